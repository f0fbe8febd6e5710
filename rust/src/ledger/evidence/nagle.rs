//! Whether the sender kept a small segment back: Nagle's algorithm in its forms, and what looks like it.

use super::super::direction::HELD_TIMES;
use super::released::REACTION_NS;
use super::{Evidence, LEAST_OVERRIDE_NS, are, is};
use crate::accounts::LEAST_BUFFER_BYTES;
use crate::connection::{CAUSAL_NS, CLUSTER_BYTES};
use crate::sender::LET_GO_PART;
use crate::wire::TcpFlags;

/// A busy host reacts to the ACK within this part of the wait (a heuristic).
const A_LITTLE_LATE: i64 = 8;

impl Evidence<'_> {
    /// A close sends what is left, and urgent data leave at once (Linux, `tcp_send_fin`; 4.4BSD, `tcp_output`).
    fn is_never_held(&self) -> bool {
        self.record.flags.any(TcpFlags::FIN | TcpFlags::URG)
    }

    /// The flight is no larger than one of the round trip before. The congestion window had room for that one, and slow start
    /// adds to it with each ACK (RFC 5681, 3.1): so it is not what holds this one back, but for a sender that began anew.
    pub(in super::super) fn flight_stands(&self) -> bool {
        are(self.flight_before(), self.previous_round_flight(), |flight, before| flight <= before)
            && !self.is_after_loss()
    }

    /// The flight is no larger than one of any round trip before.
    pub(in super::super) fn has_flown(&self) -> bool {
        self.flight_stands() || self.wait.flown_before
    }

    /// BSD lets half of the largest window pass, whatever Nagle's algorithm says (`tcp_output`; RFC 9293, 3.8.6.2.1).
    fn is_half_of_window(&self, payload_bytes: Option<i64>) -> bool {
        self.direction.old
            && are(payload_bytes, self.direction.max_window_bytes, |payload, most| payload >= most.div_euclid(2))
    }

    fn is_half(&self) -> bool {
        self.is_half_of_window(Some(self.record.payload_bytes))
    }

    /// Half of the largest window leaves as soon as it is given, from a sender that was seen to go on sooner than a timer that
    /// waits for more room.
    pub(in super::super) fn left_as_half_a_window(&self) -> bool {
        self.is_half() && is(self.direction.reaction_min_ns, |ns| ns < LEAST_OVERRIDE_NS)
    }

    /// All that the sender had been given had left with the departure before.
    pub(in super::super) fn buffer_was_emptied(&self) -> bool {
        self.wait.pushed_before && is(self.flight_before(), |flight| self.direction.is_emptied_by(flight))
    }

    fn may_be_held(&self) -> bool {
        self.is_small() && !self.is_never_held() && !self.is_half() && !self.buffer_was_emptied()
    }

    /// The sender holds small segments at this point of the transfer.
    fn holds_now(&self) -> bool {
        !self.small_ones_pass() && self.direction.holds_small
    }

    /// Behind full segments an ACK lets a small one go, and time after time more follows it at once: its program gave all of
    /// that just then, and so was woken by the ACK. What a program that wants to go on has left in the buffer does not wait for
    /// Nagle's algorithm: Linux pushes it when it blocks its program (`tcp_sendmsg`, `TCP_NAGLE_PUSH`).
    pub(in super::super) fn was_written_with_the_ack(&self) -> bool {
        !self.direction.old
            && self.minshall_pending()
            && !self.wait.small_before
            && i64::from(self.direction.totals.small_held_went_on) >= HELD_TIMES
            && is(self.flight_before(), |flight| flight > 2 * self.smss_bytes)
            && self.was_released_by_ack()
    }

    /// What Nagle's algorithm holds is let go by the host that takes the ACK, and no program has to be woken for it.
    fn kernel_released_it(&self) -> bool {
        !self.direction.near_sender
            || is(self.wait.since_ack_ns.get(), |ago_ns| {
                ago_ns <= REACTION_NS.max(self.wait_ns.div_euclid(LET_GO_PART))
            })
    }

    /// A small segment behind a small one in flight, while the sender let none pass: what Nagle's algorithm holds in all its
    /// forms. Behind half of the largest window, which passes a small one, there may be more in flight than slow start has room
    /// for.
    pub(in super::super) fn was_held_behind_small(&self) -> bool {
        let behind_half = || self.wait.small_before && self.is_half_of_window(self.wait.payload_before_bytes.get());
        self.may_be_held()
            && self.minshall_pending()
            && self.holds_now()
            && self.kernel_released_it()
            && (!behind_half() || self.fits_any_congestion_window() || self.flight_stands())
            && !self.was_written_with_the_ack()
    }

    /// A small segment left with the ACK of the only one in flight, before any passed another: a program that sets `TCP_NODELAY`
    /// later, as OpenSSH's does behind the login, had not set it yet.
    pub(in super::super) fn was_held_at_first(&self) -> bool {
        self.may_be_held()
            && !self.small_ones_pass()
            && self.nothing_was_short()
            && self.came_with_ack()
            && !self.was_held_behind_small()
    }

    /// Where three held segments in a row left at once, one that left a little later than its ACK was held, too.
    pub(in super::super) fn was_released_late(&self) -> bool {
        !self.peer_spoke()
            && i64::from(self.direction.totals.small_held_run) >= HELD_TIMES
            && is(self.wait.since_all_acked_ns.get(), |ns| ns.saturating_mul(A_LITTLE_LATE) <= self.wait_ns)
            && self.was_held_behind_small()
    }

    /// A small segment behind full ones in flight: held by Nagle's algorithm in its first form (RFC 896, BSD), not in Minshall's
    /// (Linux). A tail that the congestion window holds looks alike, so the sender must have done it three times, never let one
    /// pass, and have lost nothing.
    fn was_held_behind_full(&self) -> bool {
        self.direction.holds_behind_full
            && self.may_be_held()
            && !self.minshall_pending()
            && self.holds_now()
            && self.all_acked()
            && is(self.room(), |room| room > self.record.payload_bytes)
            && !self.is_after_loss()
    }

    /// An old stack at the capture point kept a small segment behind full ones until all was acknowledged, and never let one
    /// pass.
    fn old_stack_held_behind_full(&self) -> bool {
        self.direction.near_sender
            && self.direction.old
            && self.may_be_held()
            && !self.minshall_pending()
            && self.all_acked()
            && self.direction.totals.small_past_full == 0
    }

    /// Behind a window that was full an ACK made room for a full segment, and yet this small one waited for the ACK of all.
    /// Neither the window nor, with no more in flight than before, the congestion window can have held it.
    fn was_held_through_room(&self) -> bool {
        self.old_stack_held_behind_full()
            && is(self.wait.window_opened_ns.get(), |ns| ns > self.causal_ns())
            && self.flight_stands()
    }

    /// Never was so much more in flight that the send buffer is known to have had room: what waits behind such a flight was held
    /// back in the buffer, or found no place there. A full buffer takes nothing until a segment or a cluster of it is free (BSD
    /// `sosend`), or takes one piece more than it has room for (Linux, Solaris).
    pub(in super::super) fn may_fill_buffer(&self) -> bool {
        let quantum_bytes = self.smss_bytes.max(CLUSTER_BYTES);
        are(self.flight_before(), self.direction.max_in_flight_bytes, |flight, most| {
            flight >= LEAST_BUFFER_BYTES && flight + quantum_bytes > most
        })
    }

    /// Behind a flight that leaves room in every send buffer, and in the window; nor, as a flight as large had flown before, is
    /// it the congestion window that held it.
    fn was_held_short_of_buffer(&self) -> bool {
        self.old_stack_held_behind_full()
            && self.has_flown()
            && !self.may_fill_buffer()
            && is(self.room(), |room| room > self.record.payload_bytes)
    }

    /// A sender that sets PSH did not in the departure before: it had more in its buffer by then (RFC 9293, 3.9.1.2: the last
    /// segment of what is buffered must have it; 4.4BSD, `tcp_output`). Stacks of today leave it out for a program that corks,
    /// too, or within one write.
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

    /// The window had room for a full segment, or for what left.
    fn had_room(&self) -> bool {
        is(self.room(), |room| room >= self.smss_bytes.min(self.record.payload_bytes))
    }

    /// The window had no room, until it opened.
    pub(in super::super) fn was_kept_behind_window(&self) -> bool {
        !self.had_room()
            && is(self.record.usable_window_bytes.get(), |room| room >= self.smss_bytes)
            && is(self.wait.window_opened_ns.get(), |ns| ns > self.causal_ns())
    }

    /// The sender had more, the window had room for it, and this one left by itself: neither the congestion window nor the send
    /// buffer opens without an ACK. So less than a full segment was kept back, until the program filled it or a timer let it go.
    #[inline]
    pub(in super::super) fn was_kept_back(&self) -> bool {
        self.more_was_buffered()
            && (self.had_room() || self.was_kept_behind_window())
            && !self.ack_just_came()
            && self.wait_ns - self.serialization_ns() > CAUSAL_NS
    }

    /// A small segment that the sender had, and for which both windows had room: so much flew at once before, or the flight
    /// without it, and slow start adds a segment. Yet it waited for the ACK of all.
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

    /// Nagle's algorithm, in one of its forms, holds what left.
    pub(in super::super) fn was_held_by_nagle(&self) -> bool {
        self.was_held_behind_small()
            || self.was_held_at_first()
            || self.was_held_behind_full()
            || self.was_held_through_room()
            || self.was_held_short_of_buffer()
            || self.was_held_though_buffered()
    }
}
