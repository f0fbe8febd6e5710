//! Unknown: several causes explain the wait equally well, and their remedies differ.
//!
//! - **Closed** where small segments of different sizes leave one per RTT, behind a flight that may fill the send
//!   buffer. Either Nagle's algorithm or that buffer delays them. Later gates never see such a wait. A second function,
//!   the last gate of all, is closed where a small segment left with an ACK and no other gate explains it: Nagle's
//!   algorithm may be on, a buffer may have been full, or the application wrote just then.
//! - **Opened by** the ACK that releases the segment.
//! - **Disproved by** a larger flight (the buffer had room), or by segments of one size (then the cause is
//!   `send-buffer`).
//! - **Source:** derived; `docs/how-it-decides.md`, 4.8.

use super::super::cause::Cause;
use super::super::evidence::Evidence;
use super::closed::Closed;

#[inline]
pub(super) fn gate(wait: &Evidence<'_>) -> Option<Closed> {
    wait.was_taken_in_turn().then(|| Closed::consistent(Cause::Unknown).but_possible_if(true))
}

#[inline]
pub(super) fn with_an_ack(wait: &Evidence<'_>) -> Option<Closed> {
    (wait.was_released_by_ack() && !wait.direction.old && wait.is_small() && !wait.peer_spoke())
        .then(|| Closed::consistent(Cause::Unknown).but_possible_if(true))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_judge, small_behind_small, some};
    use super::*;
    use crate::nullable::Nullable;

    #[test]
    fn small_segments_one_a_round_trip_are_the_buffers_if_alike_and_unknown_if_not() {
        fn one_a_round_trip(
            wait: &mut super::super::super::WaitRecord,
            direction: &mut super::super::super::DirectionFacts,
        ) {
            small_behind_small(wait, direction);
            wait.payload_bytes = 900;
            wait.wait.held_before = true;
            wait.wait.smss_bytes = some(10_000);
            wait.wait.payload_before_bytes = some(2100);
            wait.wait.flight_before_bytes = some(2100);
            direction.max_in_flight_bytes = Some(2100);
        }
        check_judge(&[
            ("of several sizes", one_a_round_trip, Some(Cause::Unknown)),
            (
                "of one size",
                |wait, direction| {
                    one_a_round_trip(wait, direction);
                    wait.payload_bytes = 2100;
                    wait.wait.previous_round_flight_bytes = some(2100);
                },
                Some(Cause::SendBuffer),
            ),
            (
                "the flight leaves room in any buffer",
                |wait, direction| {
                    one_a_round_trip(wait, direction);
                    direction.max_in_flight_bytes = Some(50_000);
                },
                Some(Cause::Nagle),
            ),
            (
                "nothing was acknowledged",
                |wait, direction| {
                    one_a_round_trip(wait, direction);
                    wait.wait.since_ack_ns = Nullable::NULL;
                    wait.wait.since_all_acked_ns = Nullable::NULL;
                    wait.wait.flight_after_bytes = some(2100);
                },
                None,
            ),
        ]);
    }
}
