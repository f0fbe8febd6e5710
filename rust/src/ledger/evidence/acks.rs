//! What was in flight, which ACKs the sender received, and how late they were.

use super::super::direction::LONGEST_PATH_NS;
use super::{DELAYED_ACK_NS, Evidence, LATEST_ACK_NS, LEAST_RTO_NS, are, is};

impl Evidence<'_> {
    /// Bytes were in flight when the wait began. Where the capture began within a connection and no ACK had come yet, the
    /// departure before was, at least.
    pub(in super::super) fn had_in_flight(&self) -> bool {
        match self.flight_before() {
            Some(flight) => flight > 0,
            None => !self.direction.beginning_seen,
        }
    }

    /// An earlier small segment was not acknowledged when the wait began (Minshall: `snd_sml > snd_una`).
    pub(in super::super) fn minshall_pending(&self) -> bool {
        self.wait.minshall_pending || (self.direction.never_full && self.had_in_flight())
    }

    /// Fewer than two segments were in flight: they do not let an ACK go at once (RFC 5681, 4.2), nor do they make a queue.
    pub(in super::super) fn had_little_in_flight(&self) -> bool {
        is(self.flight_before(), |flight| flight < 2 * self.smss_bytes)
    }

    /// Everything sent was acknowledged when the departure left.
    pub(in super::super) fn all_acked(&self) -> bool {
        is(self.flight_after(), |flight| flight <= 0)
    }

    /// Data of the other side, or its SYN or FIN, reached the sender meanwhile.
    pub(in super::super) fn peer_spoke(&self) -> bool {
        self.wait.peer_last_ns.is_some()
    }

    /// More left since the departure before than the capture holds, and than a tool can have cut off that one; away from the
    /// sender it was acknowledged since, and so not lost before. When it left is not known, nor how long this one waited and
    /// behind what flight: no verdict goes across such a hole.
    pub(in super::super) fn bytes_are_missing(&self) -> bool {
        let Some(before) = self.wait.payload_before_bytes.get() else { return false };
        let cut_at_most = (self.smss_bytes - before).max(0);
        !self.direction.sender_unplaced && is(self.wait.missed_bytes.get(), |missed| missed > cut_at_most)
    }

    /// Away from a sender that numbers its packets one by one: more had left since the departure before, and this one is the
    /// next all the same.
    fn packets_are_skipped(&self) -> bool {
        !self.direction.near_sender
            && !self.direction.sender_unplaced
            && self.direction.numbers_packets
            && !self.was_sent_again()
            && self.record.payload_bytes > 0
            && is(self.wait.left_out_segments.get(), |skipped| skipped > 0)
    }

    /// It had left before, and was lost on its way to the capture point: where the other side sends no data, nothing else was
    /// to be sent. What left once more did so a round trip later at least.
    #[inline]
    pub(in super::super) fn was_lost_before_capture(&self) -> bool {
        self.packets_are_skipped() && !self.peer_spoke() && self.wait_ns > self.rtt_ns()
    }

    /// [`Self::was_lost_before_capture`] behind data of the other side: it was lost, or an ACK, and the program was silent for
    /// as long as a timer. A timer of Linux, whose sockets number so, runs for 200 ms and a round trip or two (RFC 8985, 7.2),
    /// and each doubles the next.
    pub(in super::super) fn answer_may_be_lost(&self) -> bool {
        let Some(skipped) = self.wait.left_out_segments.get() else { return false };
        let timer_ns = (3 * (self.rtt_ns() + LEAST_RTO_NS)).div_euclid(4);
        let most_ns = || timer_ns.saturating_mul(1 << skipped.clamp(0, 8));
        self.packets_are_skipped()
            && is(self.wait.peer_last_ns.get(), |ago_ns| (LEAST_RTO_NS..=most_ns()).contains(&ago_ns))
    }

    /// An ACK reached the sender so shortly before that it may have caused the departure.
    pub(in super::super) fn ack_just_came(&self) -> bool {
        is(self.wait.since_ack_ns.get(), |ago_ns| ago_ns <= self.causal_ns())
    }

    /// The newest byte that the last ACK acknowledges left last, long before. It may have given no sample, so that the last
    /// sample is older.
    fn newest_waited(&self) -> bool {
        let least = self.direction.rtt_min_ns;
        self.all_acked()
            && are(self.wait.since_ack_ns.get(), least, |ago_ns, least_ns| {
                self.wait_ns - ago_ns - least_ns >= DELAYED_ACK_NS
            })
    }

    /// The last ACK came as late as a receiver may delay it: late for the oldest byte that it acknowledges, and for the newest,
    /// where that is known; else the oldest waited for its sender to send more.
    #[inline]
    pub(in super::super) fn ack_was_late(&self) -> bool {
        let late = is(self.wait.ack_lag_ns.get(), |lag_ns| {
            (DELAYED_ACK_NS..=LATEST_ACK_NS).contains(&(lag_ns - self.direction.rtt_min_ns.unwrap_or(0)))
        });
        let newest_in_time =
            || are(self.wait.rtt_sample_ns.get(), self.direction.rtt_min_ns, |rtt, least| rtt - least < DELAYED_ACK_NS);
        late && (!newest_in_time() || self.newest_waited())
    }

    /// One ACK for all, and nothing left while it was awaited: what drains through a queue is acknowledged bit by bit.
    pub(in super::super) fn was_acked_at_once(&self) -> bool {
        let waited = || is(self.wait.rtt_sample_ns.get(), |rtt_ns| 4 * self.wait_ns >= 3 * rtt_ns);
        self.all_acked() && (self.had_little_in_flight() || waited())
    }

    /// The last ACK leaves something out that had left more than a round trip before: that had not arrived when the ACK left,
    /// and stood in a queue. A timer's ACK is for all that has arrived (RFC 9293, 3.4); a single segment may be lost.
    fn ack_leaves_old_bytes_out(&self) -> bool {
        let old = is(self.wait.since_ack_ns.get(), |ago_ns| {
            self.wait_ns - (ago_ns - self.queueing_delay_ns()) > self.rtt_ns() + self.causal_ns()
        });
        old && is(self.flight_after(), |flight| {
            flight >= 2 * self.smss_bytes || (self.direction.nothing_lost && flight > 0)
        })
    }

    /// The departure before came more than a round trip behind what is acknowledged now, so that the ACKs before this one were
    /// late as well: one after the other, as in a queue.
    fn was_released_by_late_acks(&self) -> bool {
        is(self.flight_after(), |flight| flight >= 2 * self.smss_bytes)
            && is(self.wait.ack_lag_ns.get(), |lag_ns| lag_ns - self.wait_ns > self.rtt_ns() + self.causal_ns())
    }

    /// How much longer the last round trip took than the shortest one of any segment.
    pub(super) fn over_any_ns(&self) -> Option<i64> {
        Some(self.wait.rtt_sample_ns.get()? - self.direction.rtt_min_ns?)
    }

    /// How much longer the last round trip took than the shortest one of a full segment.
    pub(super) fn over_least_ns(&self) -> Option<i64> {
        self.beyond_least_ns(self.wait.rtt_sample_ns.get())
    }

    /// [`Self::over_least_ns`] of the segment just before the last sample.
    fn neighbour_over_least_ns(&self) -> Option<i64> {
        self.beyond_least_ns(self.wait.previous_rtt_sample_ns.get())
    }

    fn beyond_least_ns(&self, sample_ns: Option<i64>) -> Option<i64> {
        let least_full_ns =
            self.direction.rtt_min_ns? + self.direction.line.own_beyond_least_ns(self.wait.smss_bytes.get());
        Some(sample_ns? - least_full_ns)
    }

    /// What the ACKs of this wait acknowledged is less than two full segments.
    fn is_for_less_than_two(&self) -> bool {
        are(self.flight_before(), self.flight_after(), |before, after| before - after < 2 * self.smss_bytes)
    }

    /// The ACK came late, and that of the segment just before, in the same flight, had come in time: both had the same queue
    /// before them. It is for less than two full segments, which a receiver may keep back (RFC 5681, 4.2); or for more, between
    /// old hosts, whose ACKs no adapter gathers.
    pub(in super::super) fn was_late_alone(&self) -> bool {
        is(self.neighbour_over_least_ns(), |over_ns| over_ns <= self.direction.queue_ns)
            && (self.is_for_less_than_two() || self.direction.old)
    }

    /// The ACK of the segment just before came late, by itself, and this one no later than as much again: both went through a
    /// queue. A receiver that delays its ACK has one for all that has come (RFC 9293, 3.4).
    pub(in super::super) fn was_late_with_neighbour(&self) -> bool {
        self.direction.near_sender
            && are(self.neighbour_over_least_ns(), self.over_least_ns(), |previous_rtt_sample_ns, own_ns| {
                previous_rtt_sample_ns > self.direction.queue_ns && own_ns <= 2 * previous_rtt_sample_ns
            })
    }

    /// The flight, which is acknowledged to its last byte, went through a queue segment by segment.
    pub(in super::super) fn was_drained_bit_by_bit(&self) -> bool {
        self.all_acked() && !self.had_little_in_flight() && self.was_late_with_neighbour()
    }

    /// A late ACK for less than two full segments, or late alone, and the sender was idle for most of the time that it was
    /// late: in a queue it would have come one by one with others, or leave out what left long before.
    pub(in super::super) fn ack_was_held(&self) -> bool {
        self.ack_was_late()
            && !self.ack_leaves_old_bytes_out()
            && !self.was_released_by_late_acks()
            && (self.is_for_less_than_two() || self.was_late_alone())
            && is(self.wait.ack_lag_ns.get(), |lag_ns| {
                2 * self.wait_ns >= lag_ns - self.direction.rtt_min_ns.unwrap_or(0)
            })
    }

    /// No ACK had come before the departure before, and one has come since.
    pub(in super::super) fn heard_first_ack(&self) -> bool {
        self.flight_before().is_none() && self.flight_after().is_some()
    }

    /// The first data behind the handshake. In a capture that begins later, the first that is seen is not it.
    pub(in super::super) fn is_first_data(&self) -> bool {
        self.direction.beginning_seen && !self.is_syn() && self.heard_first_ack()
    }

    /// The sender may be as far away as this departure came behind the ACK, or its program so late: nothing else says how far
    /// it is. Behind a message that is so where it answered about as soon as it ever did, and behind a SYN-ACK where the SYN
    /// was not captured.
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
