//! Delayed ACK: the sender has used up its window or buffer and waits for an ACK that the receiver delays. If the
//! sender waits because of Nagle's algorithm, the cause is `nagle-delayed-ack` instead.
//!
//! - **Closed** when a late ACK without data released the segment, and one of three conditions holds. First, the late
//!   ACK covers less than two full-sized segments. Second, it covers everything in flight. Third, the ACK just before
//!   it was in time.
//! - **Opened by** the receiver's delayed-ACK timer.
//! - **Disproved by** RTTs of equal length while the sender does not pause, by an ACK with data, and by an ACK that
//!   leaves older bytes unacknowledged.
//! - **Source:** RFC 5681, 4.2; `docs/how-it-decides.md`, 4.9.

use super::super::cause::Cause;
use super::super::evidence::Evidence;
use super::closed::Closed;

#[inline]
pub(super) fn gate(wait: &Evidence<'_>) -> Option<Closed> {
    let for_all = || wait.all_acked() && (wait.was_acked_at_once() || !wait.is_in_queue());
    (wait.ack_was_late()
        && wait.was_released_by_ack()
        && (wait.ack_was_held() || for_all())
        && !wait.was_drained_bit_by_bit())
    .then(|| Closed::consistent(Cause::DelayedAck).but_possible_if(!wait.direction.old))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, check_gate, check_judge, some};
    use super::*;
    use crate::connection::Confidence;
    use crate::nullable::Nullable;

    fn late(wait: &mut super::super::super::WaitRecord, _: &mut super::super::super::DirectionFacts) {
        wait.wait.wait_ns = some(60 * MS);
        wait.wait.ack_lag_ns = some(60 * MS);
        wait.wait.rtt_sample_ns = some(60 * MS);
        wait.wait.flight_before_bytes = some(1000);
        wait.wait.flight_after_bytes = some(0);
        wait.wait.since_all_acked_ns = some(50_000);
    }

    #[test]
    fn an_ack_that_comes_40_ms_late_for_one_segment_was_delayed() {
        check_gate(
            gate,
            &[
                ("for one segment", late, Some(Confidence::Possible)),
                ("in time", |_, _| (), None),
                (
                    "later than any receiver may delay it",
                    |wait, direction| {
                        late(wait, direction);
                        wait.wait.ack_lag_ns = some(600 * MS);
                    },
                    None,
                ),
            ],
        );
    }

    #[test]
    fn a_late_ack_that_came_long_before_the_departure_loses() {
        check_judge(&[
            ("just before", late, Some(Cause::DelayedAck)),
            (
                "15 ms before",
                |wait, direction| {
                    late(wait, direction);
                    wait.wait.since_ack_ns = some(15 * MS);
                    wait.wait.since_all_acked_ns = some(15 * MS);
                },
                None,
            ),
            (
                "one by one with its neighbour: a queue",
                |wait, direction| {
                    late(wait, direction);
                    wait.wait.flight_before_bytes = some(9000);
                    wait.wait.previous_rtt_sample_ns = some(59 * MS);
                },
                Some(Cause::Network),
            ),
            (
                "no ACK at all",
                |wait, direction| {
                    late(wait, direction);
                    wait.wait.since_ack_ns = Nullable::NULL;
                    wait.wait.since_all_acked_ns = Nullable::NULL;
                },
                None,
            ),
        ]);
    }
}
