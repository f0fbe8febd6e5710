//! Whether the sender kept a small segment back: Nagle's algorithm in its forms, and what looks like it.

use super::super::direction::HELD_TIMES;
use super::{Evidence, MIN_OVERRIDE_NS, are, is};
use crate::accounts::MIN_BUFFER_BYTES;
use crate::connection::{CAUSAL_NS, CLUSTER_BYTES};
use crate::sender::{LastSmall, REACTION_NS, RELEASE_PART};
use crate::wire::TcpFlags;

/// A busy host reacts to the ACK within this part of the wait (a heuristic).
const A_LITTLE_LATE: i64 = 8;

impl Evidence<'_> {
    /// Nagle's algorithm never holds a FIN or urgent data (Linux, `tcp_send_fin`; 4.4BSD, `tcp_output`).
    fn is_never_held(&self) -> bool {
        self.record.flags.any(TcpFlags::FIN | TcpFlags::URG)
    }

    /// The flight is no larger than that of the previous round, and nothing was lost. The congestion window had room
    /// for the previous flight and has grown since with each ACK (RFC 5681, 3.1), so it does not limit this flight,
    /// unless the sender restarted after an idle time.
    pub(in super::super) fn flight_stands(&self) -> bool {
        are(self.flight_before(), self.previous_round_flight(), |flight, before| flight <= before)
            && !self.is_after_loss()
    }

    /// The flight is no larger than an earlier one.
    pub(in super::super) fn has_flown(&self) -> bool {
        self.flight_stands() || self.wait.flown_before
    }

    /// BSD sends half of the largest window at once, whatever Nagle's algorithm says (`tcp_output`; RFC 9293,
    /// 3.8.6.2.1).
    fn is_half_of_window(&self, payload_bytes: Option<i64>) -> bool {
        self.direction.old
            && are(payload_bytes, self.direction.max_window_bytes, |payload, most| payload >= most.div_euclid(2))
    }

    fn is_half(&self) -> bool {
        self.is_half_of_window(Some(self.record.payload_bytes))
    }

    /// The departure fills half of the largest window, so this sender sent it as soon as it was written. The sender has
    /// been seen to answer faster than an override timer runs.
    pub(in super::super) fn left_as_half_a_window(&self) -> bool {
        self.is_half() && is(self.direction.reaction_min_ns, |ns| ns < MIN_OVERRIDE_NS)
    }

    /// The previous departure emptied the send buffer.
    pub(in super::super) fn buffer_was_emptied(&self) -> bool {
        self.wait.pushed_before && is(self.flight_before(), |flight| self.direction.is_emptied_by(flight))
    }

    fn may_be_held(&self) -> bool {
        self.is_small() && !self.is_never_held() && !self.is_half() && !self.buffer_was_emptied()
    }

    /// No small segment has passed another so far, and the direction holds small segments.
    fn holds_now(&self) -> bool {
        !self.small_ones_pass() && self.direction.holds_small
    }

    /// The ACK woke the application, which wrote this segment just then: behind full-sized segments an ACK releases a
    /// small one, and again and again more data follows it at once. Nagle's algorithm does not hold the data that a
    /// blocked application left in the buffer: Linux pushes it before the application sleeps (`tcp_sendmsg`,
    /// `TCP_NAGLE_PUSH`).
    pub(in super::super) fn was_written_with_the_ack(&self) -> bool {
        !self.direction.old
            && self.minshall_pending()
            && !self.wait.small_before
            && i64::from(self.direction.totals.small_delayed_continued) >= HELD_TIMES
            && is(self.flight_before(), |flight| flight > 2 * self.smss_bytes)
            && self.was_released_by_ack()
            && !self.was_released_with_more_in_flight()
    }

    /// The ACK that released the departure covered the last small segment, and not all that was in flight: just the one
    /// for which Nagle's algorithm in Minshall's form waits. A full buffer would have had room with any ACK before it.
    fn was_released_with_more_in_flight(&self) -> bool {
        self.wait.last_small == LastSmall::JustAcked && !self.all_acked()
    }

    /// The departure followed the ACK so closely that the kernel released it. A segment that Nagle's algorithm holds
    /// needs no application to be woken.
    fn kernel_released_it(&self) -> bool {
        !self.direction.near_sender
            || is(self.wait.since_ack_ns.get(), |ago_ns| {
                ago_ns <= REACTION_NS.max(self.wait_ns.div_euclid(RELEASE_PART))
            })
    }

    /// A small segment waited behind a small one in flight, while none passed another: every form of Nagle's algorithm
    /// holds it. Behind half of the largest window, which BSD sends past a small segment, the flight may exceed what
    /// slow start allows; then more evidence is needed.
    pub(in super::super) fn was_held_behind_small(&self) -> bool {
        let behind_half = || self.wait.small_before && self.is_half_of_window(self.wait.payload_before_bytes.get());
        self.may_be_held()
            && self.minshall_pending()
            && self.holds_now()
            && self.kernel_released_it()
            && (!behind_half() || self.fits_any_congestion_window() || self.flight_stands())
            && !self.was_written_with_the_ack()
    }

    /// A small segment left with the ACK of the only segment in flight, before any small segment passed another. An
    /// application that sets `TCP_NODELAY` later, as OpenSSH does after the login, had not set it yet.
    pub(in super::super) fn was_held_at_first(&self) -> bool {
        self.may_be_held()
            && !self.small_ones_pass()
            && self.nothing_was_short()
            && self.came_with_ack()
            && !self.was_held_behind_small()
    }

    /// A small segment left a little later than its ACK. It counts as held by Nagle's algorithm if three held segments
    /// in a row left at once.
    pub(in super::super) fn was_released_late(&self) -> bool {
        !self.peer_spoke()
            && i64::from(self.direction.totals.small_delayed_run) >= HELD_TIMES
            && is(self.wait.since_all_acked_ns.get(), |ns| ns.saturating_mul(A_LITTLE_LATE) <= self.wait_ns)
            && self.was_held_behind_small()
    }

    /// A small segment waited behind full ones in flight. Nagle's algorithm holds it in its first form (RFC 896, BSD),
    /// not in Minshall's (Linux). A tail that the congestion window holds looks the same. So the sender must have done
    /// this three times, never have sent a small segment past full ones, and have lost nothing.
    fn was_held_behind_full(&self) -> bool {
        self.direction.holds_behind_full
            && self.may_be_held()
            && !self.minshall_pending()
            && self.holds_now()
            && self.all_acked()
            && is(self.room(), |room| room > self.record.payload_bytes)
            && !self.is_after_loss()
    }

    /// An old stack at the capture point kept a small segment behind full ones until everything was acknowledged, and
    /// never sent one past full ones.
    fn old_stack_held_behind_full(&self) -> bool {
        self.direction.near_sender
            && self.direction.old
            && self.may_be_held()
            && !self.minshall_pending()
            && self.all_acked()
            && self.direction.totals.small_past_full == 0
    }

    /// The window was full until an ACK made room for a full-sized segment, and yet this small segment waited until
    /// everything was acknowledged. The window did not hold it; nor did the congestion window, because no more was in
    /// flight than before.
    fn was_held_through_room(&self) -> bool {
        self.old_stack_held_behind_full()
            && is(self.wait.window_opened_ns.get(), |ns| ns > self.causal_ns())
            && self.flight_stands()
    }

    /// The flight may fill the send buffer: no larger one shows that the buffer had more room. Data behind such a
    /// flight waited in the buffer, or found no room there. A full buffer takes nothing until a segment or a cluster is
    /// free (BSD `sosend`), or takes one piece more than it has room for (Linux, Solaris).
    pub(in super::super) fn may_fill_buffer(&self) -> bool {
        let quantum_bytes = self.smss_bytes.max(CLUSTER_BYTES);
        are(self.flight_before(), self.direction.max_in_flight_bytes, |flight, most| {
            flight >= MIN_BUFFER_BYTES && flight + quantum_bytes > most
        })
    }

    /// An old stack held a small segment behind a flight that leaves room in the send buffer and in the receiver
    /// window. The congestion window did not hold it either, because a flight as large was sent before.
    fn was_held_short_of_buffer(&self) -> bool {
        self.old_stack_held_behind_full()
            && self.has_flown()
            && !self.may_fill_buffer()
            && is(self.room(), |room| room > self.record.payload_bytes)
    }

    /// The sender had more data in its buffer when the previous departure left: that one has no PSH, although this
    /// sender sets PSH on the last buffered segment (RFC 9293, 3.9.1.2; 4.4BSD, `tcp_output`). Current stacks also omit
    /// PSH within one write and for an application that corks, so only old stacks count.
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

    /// The receiver window had room for a full-sized segment, or for the departure.
    fn had_room(&self) -> bool {
        is(self.room(), |room| room >= self.smss_bytes.min(self.record.payload_bytes))
    }

    /// The receiver window had no room until it opened for a full-sized segment, longer than the causal window before
    /// the departure.
    pub(in super::super) fn was_kept_behind_window(&self) -> bool {
        !self.had_room()
            && is(self.record.usable_window_bytes.get(), |room| room >= self.smss_bytes)
            && is(self.wait.window_opened_ns.get(), |ns| ns > self.causal_ns())
    }

    /// The stack kept less than a full-sized segment back until the application filled it or a timer released it. The
    /// sender had more data, and the receiver window had room. No ACK released the departure, so neither the congestion
    /// window nor the send buffer was the limit: both open only with an ACK.
    #[inline]
    pub(in super::super) fn was_kept_back(&self) -> bool {
        self.more_was_buffered()
            && (self.had_room() || self.was_kept_behind_window())
            && !self.ack_just_came()
            && self.wait_ns - self.serialization_ns() > CAUSAL_NS
    }

    /// The sender had this small segment in its buffer, and both windows had room for it: as much was in flight before,
    /// or the flight without it was, and slow start adds a segment. Yet it waited until everything was acknowledged.
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

    /// Nagle's algorithm, in one of its forms, held the departure.
    pub(in super::super) fn was_held_by_nagle(&self) -> bool {
        self.was_held_behind_small()
            || self.was_held_at_first()
            || self.was_held_behind_full()
            || self.was_held_through_room()
            || self.was_held_short_of_buffer()
            || self.was_held_though_buffered()
    }
}
