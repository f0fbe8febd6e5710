//! Whether an ACK released the segment. No ACK released it if every window and buffer had room, or if the sender paces
//! its segments (`docs/how-it-decides.md`, 2.2).

use super::super::direction::{CAUSAL_SHARE_NEAR, DEFAULT_MSS_BYTES};
use super::{Evidence, are, is};
use crate::accounts::MIN_BUFFER_BYTES;
use crate::connection::CAUSAL_NS;
use crate::sender::{NS_PER_MS, REACTION_NS, RELEASE_PART};

/// If the application writes by its own clock, an ACK comes in the last 1/100 of a wait by chance once in 100 waits.
const NO_CHANCE: i64 = 100;
/// The intervals between paced segments vary by at most 1/[`PACE_PART`] (a heuristic).
const PACE_PART: i64 = 4;

impl Evidence<'_> {
    /// Whether the sender had received the ACK some time before it sent the segment, as the segment's timestamp and the
    /// timestamp that it echoes show. In a capture away from the sender, path delays can vary by more than the time
    /// between segments. Without this test, some ACK would always seem to release a segment.
    fn ack_had_arrived_long_before(&self) -> bool {
        self.says_when()
            && 4 * self.wait_ns < 3 * self.rtt_ns()
            && are(self.wait.echo_ns.get(), self.direction.reaction_min_ns, |echo_ns, min_ns| {
                echo_ns - min_ns - self.queueing_delay_ns() > CAUSAL_NS
            })
            && is(self.wait.since_ack_ns.get(), |ago_ns| RELEASE_PART * ago_ns > self.wait_ns)
    }

    /// Whether the segment followed an ACK so closely that an application with its own clock is unlikely to have
    /// written it then.
    pub(in super::super) fn came_with_ack(&self) -> bool {
        is(self.wait.since_ack_ns.get(), |ago_ns| NO_CHANCE.saturating_mul(ago_ns) <= self.wait_ns)
    }

    /// Whether the sender sends small segments while an earlier small one is in flight. If a sender rounds its MSS,
    /// full-sized segments that were first taken for small ones do not count.
    pub(in super::super) fn small_ones_pass(&self) -> bool {
        let taken_for_small = is(self.direction.rounded_bytes, |rounded| self.smss_bytes > rounded);
        self.wait.small_passes && !taken_for_small
    }

    /// Whether the segment and the flight together are no larger than one full-sized segment. Every congestion window
    /// has room for one full-sized segment (RFC 5681, 3.1).
    pub(in super::super) fn fits_any_congestion_window(&self) -> bool {
        is(self.flight_before(), |flight| flight + self.record.payload_bytes <= self.smss_bytes.max(DEFAULT_MSS_BYTES))
    }

    /// Whether only one segment was in flight, so small that the congestion window, the receiver window and the send
    /// buffer had room for another. In this case, only Nagle's algorithm can delay the next segment inside TCP.
    pub(in super::super) fn nothing_was_short(&self) -> bool {
        let one_in_flight =
            are(self.flight_before(), self.wait.payload_before_bytes.get(), |flight, payload| flight == payload)
                && is(self.flight_before(), |flight| flight < MIN_BUFFER_BYTES);
        !self.is_after_loss()
            && one_in_flight
            && self.fits_any_congestion_window()
            && is(self.room(), |room| room > self.record.payload_bytes)
    }

    /// Whether the segment belongs to bursts that the sender sends at an even interval. The sender had more full-sized
    /// segments, and no ACK released this one, although an ACK may have preceded it by chance. A sender that sends one
    /// burst per RTT looks similar and is excluded. If no ACK came shortly before the segment, the flight must contain
    /// two bursts, or the interval between bursts must differ from the RTT. If an ACK came shortly before,
    /// [`Self::leaves_no_pause`] decides.
    pub(super) fn is_at_its_pace(&self) -> bool {
        let direction = self.direction;
        let Some(pace_ns) = direction.totals.paced_ns.get().filter(|_| direction.paces) else { return false };
        self.had_in_flight()
            && !self.is_bare_fin()
            && !self.peer_spoke()
            && !self.is_behind_queue()
            && !self.wait.small_before
            && self.waited_about(pace_ns)
            && ((self.no_ack_is_near() && self.pace_is_no_round_trip(pace_ns)) || self.leaves_no_pause(pace_ns))
    }

    /// Whether the wait differs from the interval by at most a quarter.
    fn waited_about(&self, interval_ns: i64) -> bool {
        (PACE_PART - 1) * interval_ns <= PACE_PART * self.wait_ns
            && PACE_PART * self.wait_ns <= (PACE_PART + 1) * interval_ns
    }

    fn is_behind_queue(&self) -> bool {
        let delay_ns = if self.says_when() { self.wait.queueing_delay_ns.get() } else { self.over_least_ns() };
        is(delay_ns, |delay_ns| self.direction.queue_ns < delay_ns)
    }

    fn two_bursts_flew(&self) -> bool {
        are(self.flight_before(), self.direction.totals.paced_payload_bytes.get(), |flight, burst| flight >= 2 * burst)
    }

    /// Whether the bursts are not just one flight per RTT. One flight per RTT looks like paced bursts, and so does an
    /// application that continues some time after each ACK. The bursts count as paced if the flight contains at least
    /// two of them, or if the interval between them differs from the RTT.
    fn pace_is_no_round_trip(&self, pace_ns: i64) -> bool {
        let rtt_ns = self.rtt_ns();
        let like_round_trip = pace_ns * (PACE_PART + 1) >= PACE_PART * rtt_ns
            && pace_ns * (PACE_PART - 1) <= PACE_PART * (rtt_ns + NS_PER_MS);
        self.two_bursts_flew() || !like_round_trip
    }

    fn no_ack_is_near(&self) -> bool {
        let near_ns = (CAUSAL_NS as f64).max(CAUSAL_SHARE_NEAR * self.rtt_ns() as f64);
        !is(self.wait.since_ack_ns.get(), |ago_ns| ago_ns as f64 <= near_ns)
    }

    /// Whether the flight contains at least two bursts and takes an RTT or more at their pace. Besides, the time from
    /// the ACK to the segment must be longer than after an ACK that releases a segment. If the bursts took less than an
    /// RTT, there would be a pause in each RTT.
    fn leaves_no_pause(&self, pace_ns: i64) -> bool {
        let burst = self.direction.totals.paced_payload_bytes.get().filter(|bytes| *bytes > 0);
        let takes_a_round_trip = are(self.flight_before(), burst, |flight, burst| {
            flight.saturating_mul(pace_ns).div_euclid(burst) >= self.rtt_ns()
        });
        let its_ack_ns = if self.direction.near_sender {
            self.wait.since_ack_ns.get()
        } else {
            self.wait.echo_ns.get().map(|echo_ns| echo_ns - self.queueing_delay_ns())
        };
        let reaction_ns = self.direction.reaction_min_ns.unwrap_or(0);
        let just_acked = is(its_ack_ns, |ago_ns| ago_ns - reaction_ns <= REACTION_NS);
        self.two_bursts_flew() && takes_a_round_trip && !just_acked
    }

    /// Whether the sender sets the pace itself. In a capture away from the sender, a path that lets bursts pass (a
    /// token bucket) looks the same, so timestamps must show the queues.
    pub(in super::super) fn was_paced_by_sender(&self) -> bool {
        (self.direction.near_sender || self.says_when()) && self.left_at_its_pace()
    }

    /// Whether the direction shows pacing: bursts at an even interval, or, if nothing was lost, segments that are sent
    /// at any time between two ACKs. Losses matter because segments do not follow each ACK during loss recovery either.
    /// False if Nagle's algorithm also explains the wait.
    pub(in super::super) fn shows_pacing(&self) -> bool {
        let direction = self.direction;
        (direction.paces || (direction.leaves_between_acks && direction.nothing_lost)) && !self.nagle_may_hold()
    }

    /// Whether the application wrote the data of this segment on its own clock: one interval after the previous write.
    /// In a capture at the sender, the segment also followed the last ACK later than a host needs to react.
    pub(in super::super) fn was_written_by_clock(&self) -> bool {
        let direction = self.direction;
        direction.writes_by_clock
            && self.wait.small_before
            && !self.peer_spoke()
            && is(direction.totals.written_ns.get(), |interval_ns| self.waited_about(interval_ns))
            && !(direction.near_sender && is(self.wait.since_ack_ns.get(), |ago_ns| ago_ns <= REACTION_NS))
    }

    /// Whether an ACK without data released the segment, and neither the application nor a pacing timer did.
    pub(super) fn is_released_by_ack(&self) -> bool {
        if !self.had_in_flight() || self.is_bare_fin() {
            return false;
        }
        let in_time = if self.all_acked() {
            !self.peer_spoke()
                && is(self.wait.since_all_acked_ns.get(), |ns| ns - self.queueing_delay_ns() <= self.release_ns())
                && !self.may_be_far()
        } else {
            is(self.wait.since_ack_ns.get(), |ago_ns| ago_ns <= self.release_ns())
        };
        // The application wrote the segment just then: no window or buffer was short of room, and Nagle's algorithm
        // does not delay small segments.
        let by_program = || self.small_ones_pass() && !self.came_with_ack() && self.nothing_was_short();
        in_time
            && !by_program()
            && !self.ack_had_arrived_long_before()
            && !self.left_at_its_pace()
            && !self.was_written_by_clock()
    }

    /// Whether the sender sent the segment together with the previous one, without an ACK between them.
    pub(in super::super) fn is_in_burst(&self) -> bool {
        !self.wait.since_ack_ns.is_some() && self.wait_ns <= self.direction.burst_ns
    }
}
