//! Nagle's algorithm: a small segment waits for the ACK of the data in flight.
//!
//! - **Closed** when Nagle's algorithm delayed a small segment and an ACK released the segment. If the receiver delayed
//!   the ACK, the cause is `nagle-delayed-ack` (RFC 1122, 4.2.3.2), else `nagle`.
//! - **Also closed** if data of the peer acknowledged the previous segment, and the application does not wait for
//!   answers.
//! - **Not closed** if the segment and the previous one each hold one message: nothing shows when the application wrote
//!   the message.
//! - **Opened by** the ACK of everything in flight; in Minshall's variant, by the ACK of the last small segment.
//! - **Disproved by** a small segment that is sent while an earlier small one is in flight.
//! - **Source:** RFC 896; RFC 9293, 3.7.4; Linux `net/ipv4/tcp_output.c` (`tcp_nagle_check`, Minshall's variant);
//!   `docs/how-it-decides.md`, 4.7.

use super::super::cause::Cause;
use super::super::evidence::Evidence;
use super::closed::Closed;

/// Whether a full send buffer also explains the wait: no flight was ever much larger.
fn buffer_may_hold_it(wait: &Evidence<'_>) -> bool {
    wait.may_fill_buffer() && !wait.more_was_buffered()
}

/// Closed if Nagle's algorithm delayed a small segment until an ACK arrived, and the receiver delayed this ACK.
#[inline]
pub(super) fn with_delayed_ack(wait: &Evidence<'_>) -> Option<Closed> {
    (wait.ack_was_late() && wait.waited_for_ack()).then(|| {
        Closed::consistent(Cause::NagleDelayedAck).but_possible_if(buffer_may_hold_it(wait) || wait.was_held_at_first())
    })
}

/// Closed if Nagle's algorithm delayed a small segment, and the receiver did not delay the ACK. Also closed if the
/// stack kept buffered data back although the receiver window had room.
#[inline]
pub(super) fn gate(wait: &Evidence<'_>) -> Option<Closed> {
    let is_held = || wait.nagle_may_have_held() && !wait.was_taken_one_by_one() && !wait.was_taken_in_turn();
    ((is_held() && !wait.holds_one_message()) || wait.was_kept_back())
        .then(|| Closed::consistent(Cause::Nagle).but_possible_if(!wait.direction.old || buffer_may_hold_it(wait)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, check_gate, check_judge, small_behind_small, some};
    use super::*;
    use crate::connection::Confidence;
    use crate::nullable::Nullable;

    fn held_late(wait: &mut super::super::super::WaitRecord, direction: &mut super::super::super::DirectionFacts) {
        small_behind_small(wait, direction);
        wait.wait.wait_ns = some(60 * MS);
        wait.wait.ack_lag_ns = some(60 * MS);
        wait.wait.rtt_sample_ns = some(60 * MS);
    }

    #[test]
    fn a_small_segment_waits_for_the_ack_of_an_earlier_small_one() {
        check_gate(
            gate,
            &[
                ("released by the ACK of all", small_behind_small, Some(Confidence::Possible)),
                (
                    "this direction does not delay small segments (TCP_NODELAY)",
                    |wait, direction| {
                        small_behind_small(wait, direction);
                        direction.holds_small = false;
                        wait.wait.small_passes = true;
                    },
                    None,
                ),
                (
                    "behind a flight that may fill the send buffer",
                    |wait, direction| {
                        small_behind_small(wait, direction);
                        wait.wait.flight_before_bytes = some(4096);
                        direction.max_in_flight_bytes = Some(4096);
                    },
                    Some(Confidence::Possible),
                ),
                (
                    "released by an answer, which the application may have waited for",
                    |wait, direction| {
                        small_behind_small(wait, direction);
                        wait.wait.peer_last_ns = wait.wait.since_all_acked_ns;
                    },
                    None,
                ),
                (
                    "released by an answer, and the application does not wait for answers",
                    |wait, direction| {
                        small_behind_small(wait, direction);
                        wait.wait.peer_last_ns = wait.wait.since_all_acked_ns;
                        direction.writes_ahead = true;
                    },
                    Some(Confidence::Possible),
                ),
                (
                    "sent 9 ms after the ACK of everything: the application wrote then",
                    |wait, direction| {
                        small_behind_small(wait, direction);
                        wait.wait.since_all_acked_ns = some(9 * MS);
                        wait.wait.since_ack_ns = some(9 * MS);
                    },
                    None,
                ),
                (
                    "an old stack had more in its buffer, and the window had room",
                    |wait, direction| {
                        wait.wait.since_ack_ns = Nullable::NULL;
                        direction.old = true;
                        direction.pushes = true;
                    },
                    Some(Confidence::Consistent),
                ),
            ],
        );
        check_gate(
            with_delayed_ack,
            &[
                ("the ACK came 40 ms late", held_late, Some(Confidence::Consistent)),
                ("the ACK came in time", small_behind_small, None),
            ],
        );
    }

    #[test]
    fn the_tail_of_a_large_write_waits_for_the_ack_of_the_last_tail() {
        fn tail(wait: &mut super::super::super::WaitRecord, direction: &mut super::super::super::DirectionFacts) {
            small_behind_small(wait, direction);
            direction.totals.small_delayed_continued = 3;
            wait.wait.small_before = false;
            wait.wait.payload_before_bytes = some(1000);
            wait.wait.flight_before_bytes = some(9000);
            wait.wait.flight_after_bytes = some(5000);
            wait.wait.since_all_acked_ns = Nullable::NULL;
            wait.wait.last_small = crate::sender::LastSmall::JustAcked;
        }
        check_judge(&[
            ("with just that ACK", tail, Some(Cause::Nagle)),
            (
                "with another ACK, and more data follows repeatedly: the application had just written",
                |wait, direction| {
                    tail(wait, direction);
                    wait.wait.last_small = crate::sender::LastSmall::InFlight;
                },
                Some(Cause::Unknown),
            ),
        ]);
    }

    #[test]
    fn a_departure_long_after_the_ack_of_everything_is_not_nagles() {
        check_judge(&[
            ("with the late ACK", held_late, Some(Cause::NagleDelayedAck)),
            (
                "15 ms behind it",
                |wait, direction| {
                    held_late(wait, direction);
                    wait.wait.since_all_acked_ns = some(15 * MS);
                    wait.wait.since_ack_ns = some(15 * MS);
                },
                None,
            ),
            (
                "a full segment",
                |wait, direction| {
                    held_late(wait, direction);
                    wait.payload_bytes = 1000;
                    wait.wait.small = false;
                },
                Some(Cause::DelayedAck),
            ),
        ]);
    }
}
