//! Send buffer: the buffer is full of unacknowledged bytes.
//!
//! - **Closed** when flights are on a plateau well below the receiver window and an ACK released the segment, or when
//!   the application refilled the buffer just after the ACK.
//! - **Only possible** in a current stack: with real applications, the send buffer of such a stack is hardly ever the
//!   cause of such a wait. The cause is also only *possible* if the sender sends one small segment per RTT, always of
//!   the same size. The application may have written these segments one by one, while Nagle's algorithm delayed them.
//! - **Opened by** the first ACK that makes room.
//! - **Disproved by** flights that still grow, by an earlier loss, or by an application that answers ACKs late.
//! - **Source:** Abrams and Chen 1991; Siekkinen and others 2005 (limitation by the transport layer);
//!   `docs/how-it-decides.md`, 4.12.

use super::super::cause::Cause;
use super::super::evidence::Evidence;
use super::closed::Closed;

#[inline]
pub(super) fn gate(wait: &Evidence<'_>) -> Option<Closed> {
    let one_by_one = wait.was_taken_one_by_one();
    // After a small segment, Nagle's algorithm or the application explains the wait as well.
    let ends_small = || wait.wait.small_before && wait.nagle_may_hold();
    let stands =
        || wait.is_bulk() && !ends_small() && (wait.is_on_plateau() || wait.is_no_larger() || wait.has_stopped());
    let stands_in_pieces =
        || wait.is_released_in_turn() && wait.small_ones_pass() && !wait.peer_spoke() && wait.is_on_plateau();
    let refilled = || {
        !wait.ends_otherwise()
            && !ends_small()
            && wait.direction.ack_clocked
            && wait.may_have_refilled_buffer()
            && wait.is_on_plateau()
    };
    let written_with_ack = || wait.window_is_known() && wait.flight_stands() && wait.was_written_with_the_ack();
    (one_by_one || stands() || stands_in_pieces() || refilled() || written_with_ack())
        .then(|| Closed::consistent(Cause::SendBuffer).but_possible_if(one_by_one || !wait.direction.old))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, check_gate, check_judge, some};
    use super::*;
    use crate::connection::Confidence;
    use crate::nullable::Nullable;

    fn on_plateau(wait: &mut super::super::super::WaitRecord, direction: &mut super::super::super::DirectionFacts) {
        wait.wait.previous_round_flight_bytes = some(10_000);
        direction.plateau_bytes = Some(10_000);
        direction.peak_flight_bytes = Some(10_000);
    }

    #[test]
    fn flights_that_stand_below_the_window_fill_a_buffer() {
        check_gate(
            gate,
            &[
                ("a plateau", on_plateau, Some(Confidence::Possible)),
                ("flights that grow", |_, _| (), None),
                (
                    "ten segments in each flight, later flights are larger",
                    |wait, direction| {
                        on_plateau(wait, direction);
                        direction.peak_flight_bytes = Some(12_000);
                    },
                    Some(Confidence::Possible),
                ),
                (
                    "twenty segments, one more does not show; later flights are larger",
                    |wait, direction| {
                        on_plateau(wait, direction);
                        wait.wait.smss_bytes = some(500);
                        direction.peak_flight_bytes = Some(12_000);
                    },
                    None,
                ),
                (
                    "an old sender, which grows by a segment only after a loss",
                    |wait, direction| {
                        on_plateau(wait, direction);
                        wait.wait.smss_bytes = some(500);
                        direction.peak_flight_bytes = Some(12_000);
                        direction.old = true;
                    },
                    Some(Confidence::Consistent),
                ),
                (
                    "a plateau at the window's edge",
                    |wait, direction| {
                        on_plateau(wait, direction);
                        wait.wait.usable_window_before_bytes = some(500);
                    },
                    None,
                ),
                (
                    "the application refills the buffer 3 ms after the ACK that made room",
                    |wait, direction| {
                        on_plateau(wait, direction);
                        wait.wait.since_ack_ns = some(3 * MS);
                    },
                    Some(Confidence::Possible),
                ),
            ],
        );
    }

    #[test]
    fn a_program_that_writes_long_behind_the_ack_has_room_in_its_buffer() {
        check_judge(&[
            ("with the ACK", on_plateau, Some(Cause::SendBuffer)),
            (
                "9 ms behind it",
                |wait, direction| {
                    on_plateau(wait, direction);
                    wait.wait.wait_ns = some(15 * MS);
                    wait.wait.since_ack_ns = some(9 * MS);
                },
                Some(Cause::Unknown),
            ),
            (
                "no ACK",
                |wait, direction| {
                    on_plateau(wait, direction);
                    wait.wait.wait_ns = some(15 * MS);
                    wait.wait.since_ack_ns = Nullable::NULL;
                },
                Some(Cause::Unknown),
            ),
        ]);
    }
}
