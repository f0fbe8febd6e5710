//! Congestion window: packet loss reduced the window, and the window is still growing.
//!
//! - **Closed** after a loss, when an ACK released the segment, the receiver window had room, and the flights are not
//!   on a plateau.
//! - **Opened by** each ACK.
//! - **Only possible** if the sender paces. BBR, for example, paces: it delays a segment until its scheduled time, and
//!   it hardly reduces its window after a loss.
//! - **Disproved by** flights that are again as large as before the loss, or by a growing RTT, which shows that the
//!   path is full.
//! - **Source:** RFC 5681, 3.1 and 3.2; RFC 9438; `docs/how-it-decides.md`, 4.11.

use super::super::cause::Cause;
use super::super::evidence::Evidence;
use super::closed::Closed;

#[inline]
pub(super) fn gate(wait: &Evidence<'_>) -> Option<Closed> {
    (wait.is_after_loss()
        && wait.is_bulk()
        && !wait.has_begun_anew()
        && !wait.is_on_plateau()
        && !wait.is_no_larger()
        && !wait.has_stopped())
    .then(|| Closed::consistent(Cause::CongestionWindow).but_possible_if(wait.direction.paces))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, check_gate, check_judge, some};
    use super::*;
    use crate::connection::Confidence;
    use crate::nullable::Nullable;

    #[test]
    fn a_window_that_a_loss_reduced_holds_flights_that_grow() {
        check_gate(
            gate,
            &[
                ("after a loss", |wait, _| wait.wait.after_loss = true, Some(Confidence::Consistent)),
                (
                    "after a loss, of a sender that paces",
                    |wait, direction| {
                        wait.wait.after_loss = true;
                        direction.paces = true;
                    },
                    Some(Confidence::Possible),
                ),
                ("before any loss", |_, _| (), None),
                (
                    "after a loss, on the plateau of a full buffer",
                    |wait, direction| {
                        wait.wait.after_loss = true;
                        wait.wait.previous_round_flight_bytes = some(10_000);
                        direction.plateau_bytes = Some(10_000);
                        direction.peak_flight_bytes = Some(10_000);
                    },
                    None,
                ),
            ],
        );
    }

    #[test]
    fn a_departure_that_no_ack_released_is_not_the_congestion_windows() {
        check_judge(&[
            ("with an ACK", |wait, _| wait.wait.after_loss = true, Some(Cause::CongestionWindow)),
            (
                "9 ms behind the last ACK",
                |wait, _| {
                    wait.wait.after_loss = true;
                    wait.wait.wait_ns = some(15 * MS);
                    wait.wait.since_ack_ns = some(9 * MS);
                },
                Some(Cause::Unknown),
            ),
            (
                "no ACK",
                |wait, _| {
                    wait.wait.after_loss = true;
                    wait.wait.wait_ns = some(15 * MS);
                    wait.wait.since_ack_ns = Nullable::NULL;
                },
                Some(Cause::Unknown),
            ),
        ]);
    }
}
