//! Network: the rate of the path, or a queue before the bottleneck, spaces the segments.
//!
//! - **Closed** in five cases: segments are sent in one burst; ACKs arrive one by one through a queue; ACKs arrive as a
//!   train; segments are spread evenly over the RTT in a capture away from the sender; or the sender's timestamps prove
//!   a delay on the path.
//! - **Only possible** in two cases. A train without a queue may also be slow start. Even spacing may also be pacing:
//!   without timestamps, a sender that spaces its segments evenly looks like a narrow path or like a shaper on its own
//!   host.
//! - **Opened** as the bottleneck drains.
//! - **Disproved by** RTTs at their minimum while the sender waits.
//! - **Source:** RFC 6349, 3.3 (RTT under load); the fractions are heuristics; `docs/how-it-decides.md`, 4.10.

use super::super::cause::Cause;
use super::super::evidence::Evidence;
use super::super::evidence::MIN_SPREAD_SEGMENTS;
use super::closed::Closed;
use crate::sender::{AROUND_BYTES, RELEASE_PART};

pub(super) fn gate(wait: &Evidence<'_>) -> Option<Closed> {
    let by_sender_or_path = is_steady(wait) || (wait.left_at_its_pace() && !wait.was_paced_by_sender());
    // If data of the peer arrived, a path delay of known length explains only a part of the wait. The timeline gives
    // this part its own interval.
    let delayed = || wait.was_delayed_on_path() && !(wait.peer_spoke() && wait.says_when());
    let spaced_by_path = (wait.is_in_burst() && !wait.is_small())
        || by_sender_or_path
        || is_draining(wait)
        || is_evenly_spread(wait)
        || delayed()
        || wait.is_in_own_queue()
        || wait.is_probe_of_new_data();
    // Without a queue, a train shows only that earlier segments were spaced. Slow start spaces segments too.
    let in_train = || wait.is_in_train() && !wait.is_after_loss() && !wait.is_on_plateau() && !wait.nagle_may_hold();
    (spaced_by_path || in_train())
        .then(|| Closed::consistent(Cause::Network).but_possible_if(by_sender_or_path || !spaced_by_path))
}

/// Whether ACKs release the segment while the flight drains through a queue.
fn is_draining(wait: &Evidence<'_>) -> bool {
    let released = || wait.was_released_by_ack() && (!wait.was_acked_at_once() || wait.was_drained_bit_by_bit());
    let still_out = || {
        !wait.met_no_queue()
            && !wait.had_little_in_flight()
            && !wait.all_acked()
            && !wait.ack_was_held()
            && !wait.is_bare_fin()
            && !wait.sender_received_nothing()
    };
    wait.is_in_queue()
        && (still_out() || released())
        && !((wait.was_late_alone() || wait.was_drained_bit_by_bit()) && wait.is_on_plateau())
}

/// Nanoseconds from one segment to the next if the flight is spread evenly over the RTT.
fn share_of_round_trip(wait: &Evidence<'_>) -> Option<f64> {
    let payload = wait.wait.payload_before_bytes.get()?;
    wait.flight_before().map(|flight| payload as f64 * wait.rtt_ns() as f64 / flight as f64)
}

/// Whether enough segments are in flight to distinguish even spacing from flights with pauses between them.
fn has_many(wait: &Evidence<'_>) -> bool {
    wait.flight_before().is_some_and(|flight| flight >= MIN_SPREAD_SEGMENTS * wait.smss_bytes)
}

fn is_no_burst(wait: &Evidence<'_>, share_ns: f64) -> bool {
    (4 * wait.wait_ns) as f64 >= 3.0 * share_ns
}

fn is_no_pause(wait: &Evidence<'_>, share_ns: f64) -> bool {
    (3 * wait.wait_ns) as f64 <= 4.0 * share_ns
}

/// Whether segments are spread evenly over the RTT, in a capture away from the sender and without timestamps. The
/// intervals between segments are at least 3/4 of the mean interval. Outside a train, the intervals are also at most
/// 4/3 of the mean interval. A flight that seems to be on a plateau does not contradict even spacing. At the full rate
/// of the path, equally many bytes arrive in each RTT, whatever the sender has in flight. A full send buffer would
/// instead release flights with pauses between them.
fn is_evenly_spread(wait: &Evidence<'_>) -> bool {
    if wait.direction.near_sender || wait.direction.tick_ns.is_some() || !has_many(wait) {
        return false;
    }
    let Some(share_ns) = share_of_round_trip(wait) else { return false };
    is_no_burst(wait, share_ns) && wait.is_bulk() && (wait.is_in_train() || is_no_pause(wait, share_ns))
}

/// Whether the bottleneck spaces the segment, in a direction without timestamps. The interval before the segment is at
/// most a quarter longer than the bottleneck needs for a segment of its size. The rate of the bottleneck comes from
/// segments that follow others of the same write: the application had already written them. In a capture at the sender,
/// the segment must not have been released by an ACK. In this case, a shaper on the captured interface of the sender's
/// host delayed the segment.
fn is_steady(wait: &Evidence<'_>) -> bool {
    let direction = wait.direction;
    let totals = &direction.totals;
    if !direction.comes_steadily {
        return false;
    }
    let Some((pace_ns, pace_bytes)) = totals.steady_ns.get().zip(totals.steady_payload_bytes.get()) else {
        return false;
    };
    let around = |bytes: i64| (bytes + AROUND_BYTES) as f64;
    let at_pace_ns = around(wait.record.payload_bytes) * pace_ns as f64 / around(pace_bytes);
    if (4 * wait.wait_ns) as f64 > 5.0 * at_pace_ns {
        return false;
    }
    let acked_near = || wait.wait.since_ack_ns.get().is_some_and(|ago_ns| RELEASE_PART * ago_ns <= wait.wait_ns);
    let no_ack_released_it = !direction.near_sender || (!wait.wait.small_before && !acked_near());
    let spread = || {
        has_many(wait)
            && share_of_round_trip(wait)
                .is_some_and(|share_ns| is_no_burst(wait, share_ns) && is_no_pause(wait, share_ns))
    };
    no_ack_released_it && (direction.comes_by_size || spread() || !wait.is_on_plateau())
}

#[cfg(test)]
mod tests {
    use super::super::super::direction::DirectionFacts;
    use super::super::super::waits::record::WaitRecord;
    use super::super::testing::{MS, check_gate, check_judge, some};
    use super::*;
    use crate::connection::Confidence;
    use crate::nullable::Nullable;
    use crate::sender::LONGEST_NS;

    #[test]
    fn the_path_spaces_what_queues_and_trains_carry() {
        check_gate(
            gate,
            &[
                (
                    "one burst",
                    |wait, _| {
                        wait.wait.wait_ns = some(10_000);
                        wait.wait.since_ack_ns = Nullable::NULL;
                    },
                    Some(Confidence::Consistent),
                ),
                (
                    "released by an ACK that was 10 ms late, like its neighbours",
                    |wait, _| wait.wait.rtt_sample_ns = some(30 * MS),
                    Some(Confidence::Consistent),
                ),
                ("a train, 1 ms apart", |wait, _| wait.wait.wait_ns = some(MS), Some(Confidence::Possible)),
                (
                    "passed down before the previous segment was captured: a shaper on the host",
                    |wait, direction| {
                        direction.ticks_milliseconds = true;
                        direction.totals.first =
                            Some(crate::sender::FirstDeparture { ts_ns: wait.ts_ns, frame: 1, is_syn: true });
                        wait.wait.queueing_delay_ns = some(12 * MS);
                    },
                    Some(Confidence::Consistent),
                ),
                ("a flight's first segment, with its ACK in time", |_, _| (), None),
            ],
        );
    }

    #[test]
    fn a_queue_explains_no_departure_that_no_ack_released() {
        check_judge(&[
            ("a queue", |wait, _| wait.wait.rtt_sample_ns = some(30 * MS), Some(Cause::Network)),
            (
                "a queue, but all was acknowledged 9 ms before",
                |wait, _| {
                    wait.wait.rtt_sample_ns = some(30 * MS);
                    wait.wait.flight_after_bytes = some(0);
                    wait.wait.since_all_acked_ns = some(9 * MS);
                    wait.wait.since_ack_ns = some(9 * MS);
                },
                None,
            ),
        ]);
    }

    #[test]
    fn years_and_huge_flights_are_judged_as_well() {
        fn lasts_for_years(wait: &mut WaitRecord, direction: &mut DirectionFacts) {
            direction.near_sender = false;
            direction.rtt_ns = LONGEST_NS;
            direction.comes_steadily = true;
            direction.totals.steady_ns = some(LONGEST_NS);
            direction.totals.steady_payload_bytes = some(1000);
            wait.payload_bytes = 1 << 32;
            wait.wait.payload_before_bytes = some(1 << 32);
            wait.wait.flight_before_bytes = some(1 << 40);
            wait.wait.wait_ns = some(LONGEST_NS);
        }
        check_gate(
            gate,
            &[
                ("spread over years", lasts_for_years, Some(Confidence::Possible)),
                (
                    "in a queue for years",
                    |wait, direction| {
                        lasts_for_years(wait, direction);
                        direction.ticks_milliseconds = true;
                        wait.wait.queueing_delay_ns = some(LONGEST_NS);
                    },
                    Some(Confidence::Possible),
                ),
            ],
        );
    }
}
