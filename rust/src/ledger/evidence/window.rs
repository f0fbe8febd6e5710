//! What the receiver's window had room for, when it opened, and whether that let the departure go.

use super::{Evidence, LEAST_OVERRIDE_NS, LEAST_RTO_NS, are, is};
use crate::connection::CAUSAL_NS;

impl Evidence<'_> {
    /// There was room for less than a full segment, and for less than this one, or for none.
    pub(in super::super) fn window_was_full(&self) -> bool {
        is(self.room(), |room| (room < self.record.payload_bytes || room < 1) && room < self.smss_bytes)
    }

    /// A small segment that takes all the room there was: the sender had waited for more room, and gave up (RFC 9293,
    /// 3.8.6.2.1: override). Away from the sender, what the last ACK said of the window counts once it had reached the sender.
    pub(in super::super) fn was_cut_to_window(&self) -> bool {
        let last_ack_came = self.direction.near_sender
            || is(self.record.since_last_ack_ns.get(), |ago_ns| ago_ns > self.rtt_ns() + self.causal_ns());
        let room_now = if last_ack_came { self.record.usable_window_bytes.get() } else { self.room() };
        self.is_small()
            && is(room_now, |room| self.record.payload_bytes >= room)
            && is(self.room(), |room| room < self.smss_bytes)
    }

    /// A small segment that fills the window to the byte: whatever opened it before, it held this one, too.
    pub(in super::super) fn fills_window(&self) -> bool {
        self.is_small() && self.record.usable_window_bytes.get() == Some(self.record.payload_bytes)
    }

    /// The first data of all fills a window that had been open since the handshake: no opening of it ever let this sender go on
    /// sooner than its override timer, so that the timer is what let this go, too.
    pub(in super::super) fn first_was_forced_in(&self) -> bool {
        self.direction.near_sender
            && self.is_first_data()
            && self.fills_window()
            && is(self.wait.since_all_acked_ns.get(), |ns| ns >= LEAST_OVERRIDE_NS)
            && is(self.direction.reaction_min_ns, |ns| ns >= LEAST_OVERRIDE_NS)
    }

    /// Away from the sender: the departure before was cut to the room there was, and waited for more than the ACKs made, until
    /// the sender's timer (RFC 9293, 3.8.6.2.1) or its window probe's (Linux, `tcp_send_probe0`: an RTO) let this one go.
    pub(in super::super) fn was_forced_in(&self) -> bool {
        self.is_small()
            && self.wait.small_before
            && self.room() == Some(0)
            && !self.peer_spoke()
            && is(self.wait.since_all_acked_ns.get(), |ns| ns >= LEAST_RTO_NS)
            && are(self.wait.window_opened_ns.get(), self.wait.since_ack_ns.get(), |opened_ns, acked_ns| {
                opened_ns - acked_ns > self.causal_ns()
            })
    }

    /// [`Self::first_was_forced_in`] where no SYN tells the scale of the window: that a small segment ends to the byte where
    /// the window does by one of the fifteen scales, after its sender waited so long with nothing in flight, is no chance.
    pub(in super::super) fn was_forced_in_unscaled(&self) -> bool {
        self.wait.fills_unscaled
            && self.is_small()
            && !self.peer_spoke()
            && is(self.wait.since_all_acked_ns.get(), |ns| ns >= LEAST_OVERRIDE_NS)
    }

    /// There was room for less than two full segments.
    pub(in super::super) fn window_was_nearly_full(&self) -> bool {
        is(self.room(), |room| room < 2 * self.smss_bytes)
    }

    /// What a window holds leaves when it opens. Where the sender sent nothing then, or only when an answer came, it had nothing
    /// to send, unless there is no room for a full segment and this one takes all of it (RFC 9293, 3.8.6.2.1). Away from the
    /// sender that is not seen so exactly.
    pub(in super::super) fn window_released_it(&self) -> bool {
        let near = self.direction.near_sender;
        let opened_ns = self.wait.window_opened_ns.get();
        let in_time = !near
            || !is(opened_ns, |ns| ns > self.causal_ns())
            || is(self.direction.max_window_bytes, |most| most <= self.record.payload_bytes)
            || self.was_cut_to_window();
        // Where a window is smaller than a segment, it is all open when all is acknowledged.
        let emptied_ns = self.wait.since_all_acked_ns.get().filter(|ns| *ns > self.causal_ns());
        let peer_came_later =
            near && are(self.wait.peer_last_ns.get(), opened_ns.or(emptied_ns), |peer_ns, open_ns| peer_ns < open_ns);
        in_time && !peer_came_later
    }

    /// Away from its sender: it had left long before, and stood in a queue that was there before. Either the departure before
    /// came to the capture point behind what the window's opening can have let go, or this one does not know of an ACK that
    /// would have reached its sender. Not said of the first flight: its ACK opens the congestion window as much as this one.
    pub(in super::super) fn was_on_the_way(&self) -> bool {
        if !is(self.previous_round_flight(), |flight| flight > 0) {
            return false;
        }
        let opened_before = is(self.wait.window_opened_ns.get(), |ns| ns > self.wait_ns);
        let ack_not_known = || {
            are(self.record.in_flight_bytes.get(), self.flight_after(), |captured, known| captured < known)
                && are(self.record.since_last_ack_ns.get(), self.direction.reaction_min_ns, |ago_ns, least_ns| {
                    ago_ns > least_ns + self.causal_ns().max(CAUSAL_NS)
                })
        };
        opened_before || ack_not_known()
    }

    /// By so much the queue before the capture point was longer for it than for the departures before: that is the path's,
    /// whatever held its sender. Where no clock tells of the queue, the departure before does.
    pub(in super::super) fn queue_growth_ns(&self) -> i64 {
        if self.says_when() {
            return self.wait.queue_grew_ns.get().unwrap_or(0);
        }
        let queued = self.previous_round_flight().is_none() || self.was_on_the_way();
        if queued { self.jitter_ns() } else { 0 }
    }

    /// How much room the window had is known.
    pub(in super::super) fn window_is_known(&self) -> bool {
        self.room().is_some()
    }

    /// The window opened while the sender waited.
    pub(in super::super) fn window_opened(&self) -> bool {
        self.wait.window_opened_ns.is_some()
    }
}
