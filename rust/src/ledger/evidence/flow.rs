//! How a sender with more data continues: released by ACKs, spaced by a queue, or after a repair.

use super::{Evidence, TRAIN_PART, are, is};
use crate::connection::{PROBE_ROUND_TRIPS, RetransmitTrigger};
use crate::sender::{DRIFT_PART, NS_PER_MS};

/// The longest time until Linux sends a tail-loss probe, in smoothed RTTs. The probe timeout is two smoothed RTTs, and
/// the timer can run an eighth longer (`kernel/time/timer.c`: wheel levels of eight).
const LATEST_PROBE: f64 = 2.25;
/// Linux adds at least two jiffies to the probe timeout (`tcp_schedule_loss_probe`), and its ticks are coarse.
const PROBE_TICKS_NS: i64 = 12 * NS_PER_MS;
/// After an ACK makes room in a full send buffer, an application wakes up and writes within this time (a heuristic).
const REFILL_NS: i64 = 4 * NS_PER_MS;

/// If a sender paces, it sends at least one segment in this many round trips (a heuristic).
const PACED_ROUND_TRIPS: i64 = 4;

impl Evidence<'_> {
    /// Whether the segment is part of a bulk transfer. True if an ACK released the segment, the receiver window was not
    /// the limit, and the application had written more than the sender could send in one flight.
    #[inline]
    pub(in super::super) fn is_bulk(&self) -> bool {
        self.is_released_in_turn() && !self.ends_otherwise()
    }

    /// Whether the application had already written this data, an ACK released the segment, and the receiver window was
    /// not the limit.
    pub(in super::super) fn is_released_in_turn(&self) -> bool {
        self.window_is_known() && (self.direction.ack_clocked || !self.is_small()) && self.was_released_by_ack()
    }

    /// Whether the wait has a better explanation than a full window or buffer, in a current stack. A segment that is
    /// not full-sized is more likely due to Nagle's algorithm, or to an application that wrote just then. A segment
    /// that follows data of the peer is more likely an answer.
    pub(in super::super) fn ends_otherwise(&self) -> bool {
        !self.direction.old && (self.is_small() || self.peer_spoke())
    }

    /// Whether an ACK that made room in a full send buffer may have woken the application. In old stacks, an ACK can do
    /// so only after a flight that may fill the buffer.
    pub(in super::super) fn may_have_refilled_buffer(&self) -> bool {
        !self.is_bare_fin()
            && !self.peer_spoke()
            && is(self.wait.since_ack_ns.get(), |ago_ns| ago_ns <= REFILL_NS)
            && (!self.direction.old || self.may_fill_buffer())
            && !self.left_at_its_pace()
            && !self.was_written_by_clock()
    }

    /// Whether a write may continue after the previous segment. True if the previous segment was full-sized, and either
    /// bytes were in flight until this segment was sent, or the previous segment lacks PSH. PSH counts only in a
    /// direction that sets it at the end of a write (RFC 9293, 3.9.1.2).
    pub(in super::super) fn stopped_halfway(&self) -> bool {
        !self.direction.old
            && !self.wait.small_before
            && !self.was_sent_again()
            && !self.is_bare_fin()
            && (is(self.flight_after(), |flight| flight > 0) || self.write_was_unfinished())
    }

    /// Whether a write may continue with this segment after all earlier data was acknowledged. Only a pacing timer
    /// keeps such data back, and even a slow pacing timer sends a segment every few round trips.
    fn write_was_unfinished(&self) -> bool {
        self.direction.pushes
            && self.wait_ns <= PACED_ROUND_TRIPS * self.wait.srtt_ns.get().unwrap_or(0).max(self.rtt_ns())
            && !self.wait.pushed_before
            && is(self.wait.payload_before_bytes.get(), |payload| payload > 0)
            && !self.peer_spoke()
    }

    /// Whether the last RTT sample, or the segment's own timestamp, shows a queue on the path.
    pub(in super::super) fn is_in_queue(&self) -> bool {
        // The echoed ACK shows the queues of both directions. The echo is not used if the previous segment ended a
        // write, because the application may then have written late.
        let shows_echo = self.wait.echo_ns.is_some() && !self.wait.small_before;
        let by_timestamp = self.wait.queueing_delay_ns.get().filter(|_| self.says_when() && !shows_echo);
        let late_echo_ns =
            || self.wait.echo_ns.get().zip(self.direction.reaction_min_ns).map_or(0, |(echo, least)| echo - least);
        if let Some(delay_ns) = by_timestamp {
            return self.direction.queue_ns < delay_ns;
        }
        let is_late = |over_ns: Option<i64>| self.direction.queue_ns < over_ns.unwrap_or(0) + late_echo_ns();
        // The cheaper test comes first, because the serialization time of a full-sized segment is rarely needed.
        is_late(self.over_any_ns()) && is_late(self.over_least_ns())
    }

    /// Returns the last RTT sample if the flight was in a queue of the path, otherwise 0 ns. An ACK that carries the
    /// peer's answer does not count, because it may have waited for the peer's application.
    pub(in super::super) fn still_queued_ns(&self) -> i64 {
        let acked_before_it_spoke = !self.peer_spoke()
            || are(self.wait.since_all_acked_ns.get(), self.wait.peer_first_ns.get(), |acked_ns, spoke_ns| {
                acked_ns > spoke_ns
            });
        let queued = acked_before_it_spoke
            && !self.had_little_in_flight()
            && self.was_late_with_neighbour()
            && self.is_in_queue();
        if queued { self.wait.rtt_sample_ns.get().unwrap_or(0) } else { 0 }
    }

    /// Whether the timestamp of this segment shows that TCP sent it before the previous segment was captured. From then
    /// until its capture, this segment waited in a queue of the sender's host, for example in a shaper that packets
    /// pass before they are captured. The test requires a capture at the sender and a full-sized previous segment.
    #[inline]
    pub(in super::super) fn is_in_own_queue(&self) -> bool {
        let drifted_ns = || {
            let first_ns = self.direction.totals.first?.ts_ns;
            Some(self.record.ts_ns.saturating_sub(first_ns).div_euclid(DRIFT_PART))
        };
        self.direction.near_sender
            && self.direction.ticks_milliseconds
            && !self.wait.small_before
            && are(self.wait.queueing_delay_ns.get(), drifted_ns(), |queueing_delay_ns, drifted_ns| {
                queueing_delay_ns - drifted_ns >= self.wait_ns
            })
    }

    /// Whether, in a capture at the sender, no ACK came during the RTT before the segment was sent. The sender then
    /// learned nothing about the path in that time.
    pub(in super::super) fn sender_received_nothing(&self) -> bool {
        self.direction.near_sender
            && self.wait_ns > self.rtt_ns()
            && self.wait.since_ack_ns.get().is_none_or(|ago_ns| ago_ns > self.rtt_ns())
    }

    /// Whether nothing was lost or reordered on the path, and every retransmission was spurious because a queue delayed
    /// the original. The rate of the path then determines the spacing of the segments, even if the sender treated some
    /// segments as lost.
    pub(in super::super) fn was_only_late(&self) -> bool {
        self.direction.only_late && (self.is_in_queue() || self.was_delayed_on_path())
    }

    /// Whether a retransmission filled the last hole, and its ACK released the segment. The test is false if no SYN was
    /// captured: without a window scale, the window may have been full.
    #[inline]
    pub(in super::super) fn was_repaired(&self) -> bool {
        self.wait.repaired_by.is_some() && self.window_is_known() && self.was_released_by_ack() && !self.was_only_late()
    }

    /// Whether a timeout ended the flight, and the ACK of the retransmission released this segment. After a timeout,
    /// the congestion window has room for one segment only (RFC 5681, 3.1: the loss window).
    #[inline]
    pub(in super::super) fn was_repaired_by_timeout(&self) -> bool {
        self.wait.repaired_by == Some(RetransmitTrigger::Timeout) && self.was_released_by_ack() && !self.was_only_late()
    }

    /// Whether the segment is a tail-loss probe with new data (RFC 8985, 7.3). The sender sends such a probe because
    /// the previous flight may be lost. In fact, a queue only delayed the ACKs of that flight. The result is false if
    /// two RTTs are shorter than a tick of the timer, because the time of the segment then proves nothing.
    #[inline]
    pub(in super::super) fn is_probe_of_new_data(&self) -> bool {
        let in_time = || {
            is(self.wait.srtt_ns.get(), |srtt_ns| {
                PROBE_ROUND_TRIPS * srtt_ns > PROBE_TICKS_NS
                    && self.wait_ns >= PROBE_ROUND_TRIPS * srtt_ns
                    && self.wait_ns as f64 <= LATEST_PROBE * srtt_ns as f64 + PROBE_TICKS_NS as f64
            })
        };
        self.direction.near_sender
            && !self.was_sent_again()
            && !self.direction.old
            && self.direction.nothing_lost
            && is(self.flight_after(), |flight| flight >= 2 * self.smss_bytes)
            && self.record.payload_bytes >= self.smss_bytes
            && self.flight_after() == self.flight_before()
            && !self.peer_spoke()
            && in_time()
    }

    /// Whether the room in the receiver window matters but is unknown, because the capture has no SYN and therefore no
    /// window scale. True in three cases. First, an ACK released the segment. Second, a window update released the
    /// segment after everything was acknowledged. Third, a timer retransmitted the segment spuriously. In each case,
    /// the receiver window, the congestion window or the send buffer may have been full.
    pub(in super::super) fn room_is_unseen(&self) -> bool {
        if self.window_is_known() || !self.had_in_flight() || self.is_bare_fin() {
            return false;
        }
        let update_released_it = || {
            !self.peer_spoke()
                && self.ack_just_came()
                && is(self.wait.since_all_acked_ns.get(), |ns| ns > self.causal_ns())
        };
        self.was_released_by_ack() || update_released_it() || self.is_needless()
    }

    /// Whether, in a capture away from the sender, the sender sent this segment before any captured ACK reached it. An
    /// ACK from before the start of the capture may have released the segment.
    pub(in super::super) fn ack_is_unseen(&self) -> bool {
        !self.direction.near_sender
            && !self.direction.beginning_seen
            && self.had_in_flight()
            && !self.wait.rtt_sample_ns.is_some()
    }

    /// Whether ACKs release segments at the spacing that the path caused between earlier segments. This spacing shows
    /// the rate of the path.
    #[inline]
    pub(in super::super) fn is_in_train(&self) -> bool {
        self.wait_ns.saturating_mul(TRAIN_PART) <= self.rtt_ns() && self.is_bulk()
    }
}
