//! Slow start: flights still grow towards the capacity of the path.
//!
//! - **Closed** when an ACK released the segment, the receiver window had room, and no earlier gate was closed. In
//!   current stacks, the gate stays open for a small segment, after data of the peer, and after an equally large
//!   flight.
//! - **Opened by** each ACK, which adds one segment.
//! - **Disproved by** flights that no longer grow, or by an earlier loss.
//! - **Source:** RFC 5681, 3.1; RFC 6928; `docs/how-it-decides.md`, 4.13.

use super::super::cause::Cause;
use super::super::evidence::Evidence;
use super::closed::Closed;

#[inline]
pub(super) fn gate(wait: &Evidence<'_>) -> Option<Closed> {
    let may_grow = wait.direction.old || !wait.wait.flown_before;
    (wait.is_bulk() && may_grow).then(|| Closed::consistent(Cause::SlowStart).but_possible_if(!wait.direction.old))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, check_gate, check_judge, some};
    use super::*;
    use crate::connection::Confidence;
    use crate::nullable::Nullable;

    #[test]
    fn an_ack_releases_a_flight_that_grows() {
        check_gate(
            gate,
            &[
                ("with the ACK", |_, _| (), Some(Confidence::Possible)),
                (
                    "the window's scale is not known",
                    |wait, _| wait.wait.usable_window_before_bytes = Nullable::NULL,
                    None,
                ),
                ("9 ms behind the ACK", |wait, _| wait.wait.since_ack_ns = some(9 * MS), None),
            ],
        );
    }

    #[test]
    fn a_program_that_writes_by_itself_is_not_slow_start() {
        check_judge(&[
            ("with the ACK", |_, _| (), Some(Cause::SlowStart)),
            (
                "9 ms after it, and after the ACK of everything",
                |wait, _| {
                    wait.wait.since_ack_ns = some(9 * MS);
                    wait.wait.flight_after_bytes = some(0);
                    wait.wait.since_all_acked_ns = some(9 * MS);
                },
                None,
            ),
        ]);
    }
}
