//! Evidence about ACKs: what was in flight, which ACKs the sender received, and how late they were.

use super::{DELAYED_ACK_NS, Evidence, LATEST_ACK_NS, MIN_RTO_NS, are, is};
use crate::hosts::LONGEST_PATH_NS;

impl Evidence<'_> {
    /// Whether bytes were in flight when the wait began. If the capture begins within the connection, the previous
    /// segment counts as in flight until the first ACK.
    pub(in super::super) fn had_in_flight(&self) -> bool {
        match self.flight_before() {
            Some(flight) => flight > 0,
            None => !self.direction.beginning_seen,
        }
    }

    /// Whether an earlier small segment was unacknowledged when the wait began (`snd_sml > snd_una` in Minshall's
    /// variant of Nagle's algorithm).
    pub(in super::super) fn minshall_pending(&self) -> bool {
        self.wait.last_small.was_in_flight() || (self.direction.never_full && self.had_in_flight())
    }

    /// Whether less than two full-sized segments were in flight when the wait began. A receiver can delay the ACK of so
    /// little data (RFC 5681, 4.2), and no queue can form.
    pub(in super::super) fn had_little_in_flight(&self) -> bool {
        is(self.flight_before(), |flight| flight < 2 * self.smss_bytes)
    }

    pub(in super::super) fn all_acked(&self) -> bool {
        is(self.flight_after(), |flight| flight <= 0)
    }

    /// Whether data from the peer, or its SYN or FIN, reached the sender during the wait.
    pub(in super::super) fn peer_spoke(&self) -> bool {
        self.wait.peer_last_ns.is_some()
    }

    /// Whether the capture lacks bytes between the previous segment and this one. Bytes that a capture tool can have
    /// cut off the previous segment do not count. In a capture away from the sender, only acknowledged bytes count,
    /// because other bytes may have been lost before the capture point. The time at which the missing bytes were sent
    /// is unknown. How long this segment waited, and what was in flight before it, is therefore unknown too. Until the
    /// missing bytes are acknowledged, the cause of the wait is `unknown`.
    pub(in super::super) fn bytes_are_missing(&self) -> bool {
        let Some(before) = self.wait.payload_before_bytes.get() else { return false };
        let cut_at_most = (self.smss_bytes - before).max(0);
        !self.direction.sender_unplaced && is(self.wait.missed_bytes.get(), |missed| missed > cut_at_most)
    }

    /// Whether packets before this segment are missing from a capture away from the sender. True if the sender numbers
    /// its packets one by one (IP ID), and a number is missing since the previous segment although the sequence numbers
    /// continue.
    fn packets_are_skipped(&self) -> bool {
        !self.direction.near_sender
            && !self.direction.sender_unplaced
            && self.direction.numbers_packets
            && !self.was_sent_again()
            && self.record.payload_bytes > 0
            && is(self.wait.left_out_segments.get(), |skipped| skipped > 0)
    }

    /// Whether this segment is a retransmission whose original was lost before the capture point. True if packets are
    /// missing, the peer sent no data that the missing packets could have acknowledged, and the wait is longer than one
    /// RTT.
    #[inline]
    pub(in super::super) fn was_lost_before_capture(&self) -> bool {
        self.packets_are_skipped() && !self.peer_spoke() && self.wait_ns > self.rtt_ns()
    }

    /// Whether the sender's answer to data of the peer may have been lost before the capture point. True if a packet is
    /// missing and the sender was silent for about an RTO. The IP IDs show the missing packet, because Linux numbers
    /// the packets of each socket one by one. Either the original of this segment was lost and the timer retransmitted
    /// it, or only an ACK was lost and the application was silent. The retransmission timer of Linux runs for 200 ms
    /// plus one or two RTTs (RFC 8985, 7.2), and for twice as long after each timeout.
    pub(in super::super) fn answer_may_be_lost(&self) -> bool {
        let Some(skipped) = self.wait.left_out_segments.get() else { return false };
        let timer_ns = (3 * (self.rtt_ns() + MIN_RTO_NS)).div_euclid(4);
        let max_ns = || timer_ns.saturating_mul(1 << skipped.clamp(0, 8));
        self.packets_are_skipped()
            && is(self.wait.peer_last_ns.get(), |ago_ns| (MIN_RTO_NS..=max_ns()).contains(&ago_ns))
    }

    /// Whether an ACK may have released the segment: it reached the sender within the causal window before the segment
    /// was sent.
    pub(in super::super) fn ack_just_came(&self) -> bool {
        is(self.wait.since_ack_ns.get(), |ago_ns| ago_ns <= self.causal_ns())
    }

    /// Whether the last ACK is late even for the newest byte that it covers: it took at least [`DELAYED_ACK_NS`] more
    /// than the shortest RTT. The last RTT sample is not used, because the newest byte does not always produce a
    /// sample.
    fn newest_waited(&self) -> bool {
        let least = self.direction.rtt_min_ns;
        self.all_acked()
            && are(self.wait.since_ack_ns.get(), least, |ago_ns, min_ns| {
                self.wait_ns - ago_ns - min_ns >= DELAYED_ACK_NS
            })
    }

    /// Whether the last ACK may be a delayed one. A delayed ACK is late for the oldest byte that it covers. A delayed
    /// ACK is also late for the newest byte, if the time of the newest byte is known. If the ACK is in time for the
    /// newest byte, no timer delayed it: the receiver sent it as soon as the newest byte arrived.
    #[inline]
    pub(in super::super) fn ack_was_late(&self) -> bool {
        let late = is(self.wait.ack_lag_ns.get(), |lag_ns| {
            (DELAYED_ACK_NS..=LATEST_ACK_NS).contains(&(lag_ns - self.direction.rtt_min_ns.unwrap_or(0)))
        });
        let newest_in_time =
            || are(self.wait.rtt_sample_ns.get(), self.direction.rtt_min_ns, |rtt, least| rtt - least < DELAYED_ACK_NS);
        late && (!newest_in_time() || self.newest_waited())
    }

    /// Whether one ACK covered the whole flight, and the sender sent nothing while it waited for this ACK. Data that
    /// drains through a queue is acknowledged segment by segment instead.
    pub(in super::super) fn was_acked_at_once(&self) -> bool {
        let waited = || is(self.wait.rtt_sample_ns.get(), |rtt_ns| 4 * self.wait_ns >= 3 * rtt_ns);
        self.all_acked() && (self.had_little_in_flight() || waited())
    }

    /// Whether the last ACK leaves out bytes that were sent more than one RTT before it. Such bytes were still in a
    /// queue, because an ACK from a delayed-ACK timer covers everything that has arrived (RFC 9293, 3.4). If something
    /// was lost in this direction, at least two segments must be left out, because a single segment may be the lost
    /// one.
    fn ack_leaves_old_bytes_out(&self) -> bool {
        let old = is(self.wait.since_ack_ns.get(), |ago_ns| {
            self.wait_ns - (ago_ns - self.queueing_delay_ns()) > self.rtt_ns() + self.causal_ns()
        });
        old && is(self.flight_after(), |flight| {
            flight >= 2 * self.smss_bytes || (self.direction.nothing_lost && flight > 0)
        })
    }

    /// Whether the oldest byte that the last ACK covers was sent more than one RTT before the previous segment. If so,
    /// earlier ACKs were also late, which shows a queue.
    fn was_released_by_late_acks(&self) -> bool {
        is(self.flight_after(), |flight| flight >= 2 * self.smss_bytes)
            && is(self.wait.ack_lag_ns.get(), |lag_ns| lag_ns - self.wait_ns > self.rtt_ns() + self.causal_ns())
    }

    /// By how much the last RTT sample exceeds the shortest RTT of any segment.
    pub(super) fn over_any_ns(&self) -> Option<i64> {
        Some(self.wait.rtt_sample_ns.get()? - self.direction.rtt_min_ns?)
    }

    /// By how much the last RTT sample exceeds the shortest possible RTT of a full-sized segment.
    pub(super) fn over_least_ns(&self) -> Option<i64> {
        self.beyond_least_ns(self.wait.rtt_sample_ns.get())
    }

    /// By how much the RTT sample of the neighbouring segment exceeds the shortest possible RTT of a full-sized
    /// segment.
    fn neighbour_over_least_ns(&self) -> Option<i64> {
        self.beyond_least_ns(self.wait.previous_rtt_sample_ns.get())
    }

    fn beyond_least_ns(&self, sample_ns: Option<i64>) -> Option<i64> {
        let min_full_ns =
            self.direction.rtt_min_ns? + self.direction.line.own_beyond_least_ns(self.wait.smss_bytes.get());
        Some(sample_ns? - min_full_ns)
    }

    fn is_for_less_than_two(&self) -> bool {
        are(self.flight_before(), self.flight_after(), |before, after| before - after < 2 * self.smss_bytes)
    }

    /// Whether the ACK of the neighbouring segment in the flight came in time. Both segments met the same queue, so no
    /// queue explains why the last ACK is late. The last ACK must cover less than two full-sized segments, because a
    /// receiver delays only such an ACK (RFC 5681, 4.2). Between old hosts, the last ACK can cover more, because their
    /// network adapters do not merge ACKs.
    pub(in super::super) fn was_late_alone(&self) -> bool {
        is(self.neighbour_over_least_ns(), |over_ns| over_ns <= self.direction.queue_ns)
            && (self.is_for_less_than_two() || self.direction.old)
    }

    /// Whether the ACK of the neighbouring segment was late, and the last ACK is at most twice as late. If so, both
    /// segments went through a queue. A receiver that delays ACKs would instead send a single ACK for everything that
    /// has arrived (RFC 9293, 3.4).
    pub(in super::super) fn was_late_with_neighbour(&self) -> bool {
        self.direction.near_sender
            && are(self.neighbour_over_least_ns(), self.over_least_ns(), |previous_rtt_sample_ns, own_ns| {
                previous_rtt_sample_ns > self.direction.queue_ns && own_ns <= 2 * previous_rtt_sample_ns
            })
    }

    /// Whether everything is acknowledged, and the flight went through a queue segment by segment.
    pub(in super::super) fn was_drained_bit_by_bit(&self) -> bool {
        self.all_acked() && !self.had_little_in_flight() && self.was_late_with_neighbour()
    }

    /// Whether the receiver delayed the ACK. A delayed ACK is late. Besides, it covers less than two full-sized
    /// segments, or no other ACK is late. The sender was silent for most of the delay. A queue looks different: its
    /// ACKs come one by one, or they leave older bytes unacknowledged.
    pub(in super::super) fn ack_was_held(&self) -> bool {
        self.ack_was_late()
            && !self.ack_leaves_old_bytes_out()
            && !self.was_released_by_late_acks()
            && (self.is_for_less_than_two() || self.was_late_alone())
            && is(self.wait.ack_lag_ns.get(), |lag_ns| {
                2 * self.wait_ns >= lag_ns - self.direction.rtt_min_ns.unwrap_or(0)
            })
    }

    pub(in super::super) fn received_first_ack(&self) -> bool {
        self.flight_before().is_none() && self.flight_after().is_some()
    }

    /// Whether the segment is the first data after the handshake. Always false if the capture begins after the
    /// handshake.
    pub(in super::super) fn is_first_data(&self) -> bool {
        self.direction.beginning_seen && !self.is_syn() && self.received_first_ack()
    }

    /// Whether the capture does not show why a segment follows the ACK late. Either the sender is far from the capture
    /// point, or the application wrote late. There are three such cases. First, no other segment shows how far away the
    /// sender is, and the segment follows an ACK without data. Second, no other segment shows the distance, and the
    /// segment follows data of the peer about as fast as the sender ever answered. Third, the segment follows a SYN-ACK
    /// whose SYN was not captured.
    pub(in super::super) fn may_be_far(&self) -> bool {
        let direction = self.direction;
        let long_idle = is(self.wait.since_all_acked_ns.get(), |ns| ns > LONGEST_PATH_NS);
        let as_soon_as_ever = direction.sender_unplaced
            && is(self.wait.peer_last_ns.get(), |ago_ns| {
                (direction.to_sender_ns..=direction.to_sender_ns + self.causal_ns()).contains(&ago_ns)
            });
        let syn_unseen = || !direction.near_sender && direction.receiver_syn_segments == 0 && self.is_first_data();
        (direction.sender_unplaced && self.all_acked() && !self.peer_spoke() && !long_idle)
            || as_soon_as_ever
            || syn_unseen()
    }
}
