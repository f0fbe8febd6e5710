//! Whether the sender kept a small segment back because of Nagle's algorithm, one of its variants, or a similar rule.

use super::super::direction::HELD_TIMES;
use super::{Evidence, MIN_OVERRIDE_NS, are, is};
use crate::accounts::MIN_BUFFER_BYTES;
use crate::connection::{CAUSAL_NS, CLUSTER_BYTES};
use crate::sender::{LastSmall, REACTION_NS, RELEASE_PART};
use crate::wire::TcpFlags;

/// Even a busy host reacts to the ACK within 1/8 of the wait (a heuristic).
const A_LITTLE_LATE: i64 = 8;

impl Evidence<'_> {
    /// Whether the segment is a FIN or urgent data, which Nagle's algorithm never delays (Linux, `tcp_send_fin`;
    /// 4.4BSD, `tcp_output`).
    fn is_never_held(&self) -> bool {
        self.record.flags.any(TcpFlags::FIN | TcpFlags::URG)
    }

    /// Whether the flight is no larger than the flight of the previous round, and nothing was lost. The congestion
    /// window does not limit such a flight: it allowed the previous flight and has grown with each ACK since (RFC 5681,
    /// 3.1). The exception is a sender that restarts after an idle time.
    pub(in super::super) fn flight_stands(&self) -> bool {
        are(self.flight_before(), self.previous_round_flight(), |flight, before| flight <= before)
            && !self.is_after_loss()
    }

    pub(in super::super) fn has_flown(&self) -> bool {
        self.flight_stands() || self.wait.flown_before
    }

    /// Whether the payload is at least half of the largest window. BSD sends such a segment immediately, even if
    /// Nagle's algorithm is on (`tcp_output`; RFC 9293, 3.8.6.2.1).
    fn is_half_of_window(&self, payload_bytes: Option<i64>) -> bool {
        self.direction.old
            && are(payload_bytes, self.direction.max_window_bytes, |payload, most| payload >= most.div_euclid(2))
    }

    fn is_half(&self) -> bool {
        self.is_half_of_window(Some(self.record.payload_bytes))
    }

    /// Whether the segment fills half of the largest window. A BSD sender sends such a segment as soon as the
    /// application writes it. The sender must have answered faster than the override timer at least once, which rules
    /// this timer out.
    pub(in super::super) fn left_as_half_a_window(&self) -> bool {
        self.is_half() && is(self.direction.reaction_min_ns, |ns| ns < MIN_OVERRIDE_NS)
    }

    pub(in super::super) fn buffer_was_emptied(&self) -> bool {
        self.wait.pushed_before && is(self.flight_before(), |flight| self.direction.is_emptied_by(flight))
    }

    fn may_be_held(&self) -> bool {
        self.is_small() && !self.is_never_held() && !self.is_half() && !self.buffer_was_emptied()
    }

    /// Whether Nagle's algorithm is on in this direction, and the sender has so far sent no small segment while an
    /// earlier one was in flight.
    fn holds_now(&self) -> bool {
        !self.small_ones_pass() && self.direction.holds_small
    }

    /// Whether Nagle's algorithm may delay the next data. True if a small segment is in flight, the stack is current,
    /// and small segments of this direction wait for one another.
    pub(in super::super) fn nagle_may_hold(&self) -> bool {
        !self.direction.old && self.direction.holds_small && self.wait.last_small.was_in_flight()
    }

    /// Whether the ACK woke the application, which wrote this segment just then. True if ACKs in this direction release
    /// small segments behind full-sized ones, and more data often follows such a small segment immediately. Nagle's
    /// algorithm does not explain the data that follows, but Linux does: before an application sleeps because the
    /// buffer is full, Linux sends the data in the buffer (`tcp_sendmsg`, `TCP_NAGLE_PUSH`).
    pub(in super::super) fn was_written_with_the_ack(&self) -> bool {
        !self.direction.old
            && self.minshall_pending()
            && !self.wait.small_before
            && i64::from(self.direction.totals.small_delayed_continued) >= HELD_TIMES
            && is(self.flight_before(), |flight| flight > 2 * self.smss_bytes)
            && self.was_released_by_ack()
            && !self.was_released_with_more_in_flight()
    }

    /// Whether the ACK that released the segment covered the last small segment but not everything in flight.
    /// Minshall's variant of Nagle's algorithm waits for the ACK of the last small segment. A full send buffer does
    /// not: any earlier ACK would have made room in it.
    fn was_released_with_more_in_flight(&self) -> bool {
        self.wait.last_small == LastSmall::JustAcked && !self.all_acked()
    }

    /// Whether the segment followed the ACK so closely that the application cannot have been woken first. Data that
    /// Nagle's algorithm delayed is sent by the kernel, without the application. Always true in a capture away from the
    /// sender.
    fn kernel_released_it(&self) -> bool {
        !self.direction.near_sender
            || is(self.wait.since_ack_ns.get(), |ago_ns| {
                ago_ns <= REACTION_NS.max(self.wait_ns.div_euclid(RELEASE_PART))
            })
    }

    /// Whether a small segment waited while another small one was in flight, as every earlier small segment did. Every
    /// variant of Nagle's algorithm delays such a segment. The exception is a segment of half of the largest window,
    /// which BSD sends immediately. After such a segment, slow start may be what delays the next one. The result is
    /// then true only if the flight is no larger than the previous flight, or fits any congestion window.
    pub(in super::super) fn was_held_behind_small(&self) -> bool {
        let behind_half = || self.wait.small_before && self.is_half_of_window(self.wait.payload_before_bytes.get());
        self.may_be_held()
            && self.minshall_pending()
            && self.holds_now()
            && self.kernel_released_it()
            && (!behind_half() || self.fits_any_congestion_window() || self.flight_stands())
            && !self.was_written_with_the_ack()
    }

    /// Whether the sender sent a full-sized segment while a small one was in flight, and no ACK had arrived. True only
    /// in a direction in which small segments wait for one another. Either Nagle's algorithm delayed data until the
    /// application had filled a segment, or the application wrote the whole segment just then.
    pub(in super::super) fn was_filled_while_held(&self) -> bool {
        self.nagle_may_hold()
            && !self.is_small()
            && !self.was_sent_again()
            && self.wait.small_before
            && !self.wait.since_ack_ns.is_some()
            && !self.peer_spoke()
    }

    /// Whether the sender sent a small segment as soon as the only segment in flight was acknowledged. So far, the
    /// sender has sent no small segment while another was in flight. Some applications set `TCP_NODELAY` only later, as
    /// OpenSSH does after the login.
    pub(in super::super) fn was_held_at_first(&self) -> bool {
        self.may_be_held()
            && !self.small_ones_pass()
            && self.nothing_was_short()
            && self.came_with_ack()
            && !self.was_held_behind_small()
    }

    /// Whether Nagle's algorithm delayed a small segment that was sent a little after the ACK arrived. Such a segment
    /// counts only if three delayed small segments in a row, elsewhere in the direction, were sent immediately after
    /// their ACKs.
    pub(in super::super) fn was_released_late(&self) -> bool {
        !self.peer_spoke()
            && i64::from(self.direction.totals.small_delayed_run) >= HELD_TIMES
            && is(self.wait.since_all_acked_ns.get(), |ns| ns.saturating_mul(A_LITTLE_LATE) <= self.wait_ns)
            && self.was_held_behind_small()
    }

    /// Whether a small segment waited until data of the peer acknowledged an earlier small segment, although this
    /// application does not wait for answers.
    pub(in super::super) fn was_released_by_answer(&self) -> bool {
        self.direction.writes_ahead
            && self.peer_spoke()
            && self.all_acked()
            && self.just_all_acked()
            && self.was_held_behind_small()
    }

    /// Whether an ACK without data released a small segment that Nagle's algorithm delayed.
    #[inline]
    pub(in super::super) fn waited_for_ack(&self) -> bool {
        self.is_small() && ((self.was_released_by_ack() && self.was_held_by_nagle()) || self.was_released_late())
    }

    /// Whether an ACK, or data that acknowledged everything, released a small segment that Nagle's algorithm may have
    /// delayed.
    #[inline]
    pub(in super::super) fn nagle_may_have_held(&self) -> bool {
        self.waited_for_ack() || self.was_released_by_answer()
    }

    /// Whether this segment and the previous one each hold only one message: each is less than twice as long as the
    /// shortest segment of the direction. While the previous segment waited, or until the peer answered, the
    /// application therefore wrote only once, at an unknown time. An application that always has data would have
    /// written several messages in that time, and one segment would have carried all of them.
    pub(in super::super) fn holds_one_message(&self) -> bool {
        let longest = self.wait.payload_before_bytes.get().map(|before| before.max(self.record.payload_bytes));
        !self.direction.old
            && (self.wait.held_before || self.peer_spoke())
            && are(longest, self.direction.min_segment_bytes, |longest, least| longest < 2 * least)
    }

    /// Whether everything was acknowledged, and the segment was sent within the release window after that.
    fn just_all_acked(&self) -> bool {
        is(self.wait.since_all_acked_ns.get(), |ns| ns - self.queueing_delay_ns() <= self.release_ns())
    }

    /// Whether a small segment waited behind full ones in flight. The first form of Nagle's algorithm (RFC 896, BSD)
    /// delays such a segment; Minshall's variant (Linux) does not. The congestion window can delay the tail of a write
    /// in the same way. The result is therefore true only if small segments waited behind full ones at least three
    /// times, no small segment was sent while full ones were in flight, and nothing was lost.
    fn was_held_behind_full(&self) -> bool {
        self.direction.holds_behind_full
            && self.may_be_held()
            && !self.minshall_pending()
            && self.holds_now()
            && self.all_acked()
            && is(self.room(), |room| room > self.record.payload_bytes)
            && !self.is_after_loss()
    }

    /// Whether an old stack at the capture point delayed a small segment until all full ones before it were
    /// acknowledged. True only if this stack never sent a small segment while full ones were in flight.
    fn old_stack_held_behind_full(&self) -> bool {
        self.direction.near_sender
            && self.direction.old
            && self.may_be_held()
            && !self.minshall_pending()
            && self.all_acked()
            && self.direction.totals.small_past_full == 0
    }

    /// Whether the receiver window was full until an ACK made room for a full-sized segment, but this small segment
    /// still waited until everything was acknowledged. The receiver window was therefore not the limit. The congestion
    /// window was not the limit either, because the previous flight was at least as large.
    fn was_held_through_room(&self) -> bool {
        self.old_stack_held_behind_full()
            && is(self.wait.window_opened_ns.get(), |ns| ns > self.causal_ns())
            && self.flight_stands()
    }

    /// Whether the flight may fill the send buffer, because no larger flight proves that the buffer had more room. A
    /// full buffer in BSD accepts nothing until it has room for a segment or a cluster (`sosend`). A full buffer in
    /// Linux or Solaris accepts one piece more than it has room for.
    pub(in super::super) fn may_fill_buffer(&self) -> bool {
        let quantum_bytes = self.smss_bytes.max(CLUSTER_BYTES);
        are(self.flight_before(), self.direction.max_in_flight_bytes, |flight, most| {
            flight >= MIN_BUFFER_BYTES && flight + quantum_bytes > most
        })
    }

    /// Whether an old stack delayed a small segment behind a flight that leaves room in the send buffer and in the
    /// receiver window. The congestion window was not the limit, because an equally large flight was sent before.
    fn was_held_short_of_buffer(&self) -> bool {
        self.old_stack_held_behind_full()
            && self.has_flown()
            && !self.may_fill_buffer()
            && is(self.room(), |room| room > self.record.payload_bytes)
    }

    /// Whether the sender had more data in its buffer when it sent the previous segment. True if the previous segment
    /// has no PSH, and this sender sets PSH on the last buffered segment (RFC 9293, 3.9.1.2; 4.4BSD, `tcp_output`).
    /// Only old stacks count, because current stacks also omit PSH within one write or with `TCP_CORK`.
    #[inline]
    pub(in super::super) fn more_was_buffered(&self) -> bool {
        self.direction.near_sender
            && self.direction.old
            && self.direction.pushes
            && !self.wait.pushed_before
            && is(self.wait.payload_before_bytes.get(), |payload| payload > 0)
            && self.record.payload_bytes > 0
            && !self.was_sent_again()
    }

    /// Whether the receiver window had room for a full-sized segment, or for the segment that was sent.
    fn had_room(&self) -> bool {
        is(self.room(), |room| room >= self.smss_bytes.min(self.record.payload_bytes))
    }

    /// Whether the receiver window had no room for a full-sized segment when the wait began, but opened too early to
    /// have released the segment.
    pub(in super::super) fn was_kept_behind_window(&self) -> bool {
        !self.had_room()
            && is(self.record.usable_window_bytes.get(), |room| room >= self.smss_bytes)
            && is(self.wait.window_opened_ns.get(), |ns| ns > self.causal_ns())
    }

    /// Whether the stack delayed buffered data until the application had written a full-sized segment or a timer
    /// expired. True if the sender had more data, the receiver window had room, and no ACK released the segment.
    /// Without an ACK, neither the congestion window nor the send buffer was the limit, because only an ACK makes room
    /// in them.
    #[inline]
    pub(in super::super) fn was_kept_back(&self) -> bool {
        self.more_was_buffered()
            && (self.had_room() || self.was_kept_behind_window())
            && !self.ack_just_came()
            && self.wait_ns - self.serialization_ns() > CAUSAL_NS
    }

    /// Whether the data of this small segment was in the send buffer, but the segment waited until everything was
    /// acknowledged. The receiver window and the congestion window had room for the segment. For the congestion window,
    /// an earlier flight shows this: it was as large as this flight and the segment together, or it was as large as
    /// this flight and slow start has added a segment since.
    fn was_held_though_buffered(&self) -> bool {
        let flew = || {
            are(self.wait.flown_bytes.get(), self.flight_before(), |flown, flight| {
                flown >= flight + self.record.payload_bytes
            })
        };
        self.more_was_buffered()
            && self.is_small()
            && !self.is_never_held()
            && !self.is_half()
            && self.all_acked()
            && is(self.room(), |room| room > self.record.payload_bytes)
            && (self.has_flown() || flew())
    }

    pub(in super::super) fn was_held_by_nagle(&self) -> bool {
        self.was_held_behind_small()
            || self.was_held_at_first()
            || self.was_held_behind_full()
            || self.was_held_through_room()
            || self.was_held_short_of_buffer()
            || self.was_held_though_buffered()
    }
}
