//! Pacing: the sender spaces segments that it could send together.
//!
//! - **Closed** in two cases. First, bytes are in flight, the previous segment was full-sized, and the wait is at most
//!   half an RTT. Second, the sender sends bursts at an even interval by its own clock.
//! - **Counts only** if no window, buffer or ACK explains the wait, and if the direction shows pacing. A direction
//!   shows pacing if it sends bursts at an even interval, or if nothing was lost and it sends segments at any time
//!   between two ACKs. The cause is always only *possible*.
//! - **Opened by** the sender's timer.
//! - **Disproved by** ACKs that release the segments, by uneven spacing, or by a stack older than pacing.
//! - **Source:** Linux `net/ipv4/tcp_output.c` (internal pacing); BBR; `docs/how-it-decides.md`, 4.14.

use super::super::cause::Cause;
use super::super::evidence::Evidence;
use super::super::evidence::PACED_PART;
use super::closed::Closed;

#[inline]
pub(super) fn gate(wait: &Evidence<'_>) -> Option<Closed> {
    let spaced = || {
        !wait.all_acked()
            && !wait.is_bare_fin()
            && !wait.wait.small_before
            && !wait.direction.old
            && wait.wait_ns.saturating_mul(PACED_PART) <= wait.rtt_ns()
            && !wait.room_is_unseen()
            && !wait.ack_is_unseen()
    };
    (wait.was_paced_by_sender() || (wait.shows_pacing() && spaced()))
        .then(|| Closed::consistent(Cause::Pacing).but_possible_if(true))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, check_gate, check_judge, some};
    use super::*;
    use crate::connection::Confidence;
    use crate::nullable::Nullable;

    fn spaced(wait: &mut super::super::super::WaitRecord, direction: &mut super::super::super::DirectionFacts) {
        direction.leaves_between_acks = true;
        wait.wait.since_ack_ns = Nullable::NULL;
        wait.wait.wait_ns = some(5 * MS);
    }

    #[test]
    fn segments_that_no_ack_releases_leave_within_half_a_round_trip() {
        check_gate(
            gate,
            &[
                ("5 ms apart", spaced, Some(Confidence::Possible)),
                (
                    "5 ms apart, by a sender that leaves no other trace of pacing",
                    |wait, direction| {
                        spaced(wait, direction);
                        direction.leaves_between_acks = false;
                    },
                    None,
                ),
                (
                    "a stack older than pacing",
                    |wait, direction| {
                        spaced(wait, direction);
                        direction.old = true;
                    },
                    None,
                ),
                (
                    "after a small segment: the application had written no more",
                    |wait, direction| {
                        spaced(wait, direction);
                        wait.wait.small_before = true;
                    },
                    None,
                ),
            ],
        );
    }

    #[test]
    fn a_pause_of_most_of_a_round_trip_is_not_pacing() {
        check_judge(&[
            ("5 ms", spaced, Some(Cause::Pacing)),
            (
                "5 ms, and no other segment is sent between two ACKs",
                |wait, direction| {
                    spaced(wait, direction);
                    direction.leaves_between_acks = false;
                },
                Some(Cause::Unknown),
            ),
            (
                "15 ms",
                |wait, direction| {
                    spaced(wait, direction);
                    wait.wait.wait_ns = some(15 * MS);
                },
                Some(Cause::Unknown),
            ),
            ("5 ms, with an ACK", |wait, _| wait.wait.wait_ns = some(5 * MS), Some(Cause::SlowStart)),
        ]);
    }
}
