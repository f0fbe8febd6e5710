//! How much room the receiver window had, when it opened, and whether its opening released the segment.

use super::{Evidence, MIN_OVERRIDE_NS, MIN_RTO_NS, are, is};
use crate::connection::CAUSAL_NS;

impl Evidence<'_> {
    /// Whether the window had no room for a full-sized segment, nor for this segment. A segment without payload counts
    /// as 1 byte.
    pub(in super::super) fn window_was_full(&self) -> bool {
        is(self.room(), |room| (room < self.record.payload_bytes || room < 1) && room < self.smss_bytes)
    }

    /// Whether a small segment takes all the room in the window, because the override timer expired before there was
    /// more room (RFC 9293, 3.8.6.2.1). In a capture away from the sender, the window of the last ACK that had reached
    /// the sender counts.
    pub(in super::super) fn was_cut_to_window(&self) -> bool {
        let last_ack_came = self.direction.near_sender
            || is(self.record.since_last_ack_ns.get(), |ago_ns| ago_ns > self.rtt_ns() + self.causal_ns());
        let room_now = if last_ack_came { self.record.usable_window_bytes.get() } else { self.room() };
        self.is_small()
            && is(room_now, |room| self.record.payload_bytes >= room)
            && is(self.room(), |room| room < self.smss_bytes)
    }

    /// Whether a small segment fills the receiver window to the byte. If so, the window delayed the segment, even if
    /// the window opened some time before the segment was sent.
    pub(in super::super) fn fills_window(&self) -> bool {
        self.is_small() && self.record.usable_window_bytes.get() == Some(self.record.payload_bytes)
    }

    /// Whether the first data of the connection fills a window that has been open since the handshake, and the override
    /// timer released this data. The timer counts as the cause if every reaction of the sender took at least as long as
    /// this timer.
    pub(in super::super) fn first_was_forced_in(&self) -> bool {
        self.direction.near_sender
            && self.is_first_data()
            && self.fills_window()
            && is(self.wait.since_all_acked_ns.get(), |ns| ns >= MIN_OVERRIDE_NS)
            && is(self.direction.reaction_min_ns, |ns| ns >= MIN_OVERRIDE_NS)
    }

    /// Whether a timer released this segment after the previous one was cut to the room in the window. The sender
    /// waited for more room until the override timer (RFC 9293, 3.8.6.2.1) or the window probe timer (Linux,
    /// `tcp_send_probe0`: an RTO) expired.
    pub(in super::super) fn was_forced_in(&self) -> bool {
        self.is_small()
            && self.wait.small_before
            && self.room() == Some(0)
            && !self.peer_spoke()
            && is(self.wait.since_all_acked_ns.get(), |ns| ns >= MIN_RTO_NS)
            && are(self.wait.window_opened_ns.get(), self.wait.since_ack_ns.get(), |opened_ns, acked_ns| {
                opened_ns - acked_ns > self.causal_ns()
            })
    }

    /// Whether the override timer released the segment, although no SYN shows the window scale. True if the sender
    /// waited as long as the timer runs, with nothing in flight, and then sent a small segment. The end of this segment
    /// must be the edge of the window at one of the fifteen scales, which is unlikely by chance.
    pub(in super::super) fn was_forced_in_unscaled(&self) -> bool {
        self.wait.fills_unscaled
            && self.is_small()
            && !self.peer_spoke()
            && is(self.wait.since_all_acked_ns.get(), |ns| ns >= MIN_OVERRIDE_NS)
    }

    /// Whether the window had less room than two full-sized segments.
    pub(in super::super) fn window_was_nearly_full(&self) -> bool {
        is(self.room(), |room| room < 2 * self.smss_bytes)
    }

    /// Whether the opening of the window released the segment. Data that waits for the window is sent when the window
    /// opens. If the sender did not send at that moment, or only after data from the peer, it had nothing to send. The
    /// exception is a segment that takes all the room when there is room for less than a full-sized segment (RFC 9293,
    /// 3.8.6.2.1). In a capture away from the sender, the times are not exact enough for this test.
    pub(in super::super) fn window_released_it(&self) -> bool {
        let near = self.direction.near_sender;
        let opened_ns = self.wait.window_opened_ns.get();
        let in_time = !near
            || !is(opened_ns, |ns| ns > self.causal_ns())
            || is(self.direction.max_window_bytes, |most| most <= self.record.payload_bytes)
            || self.was_cut_to_window();
        // When everything is acknowledged, a window smaller than a segment is fully open.
        let emptied_ns = self.wait.since_all_acked_ns.get().filter(|ns| *ns > self.causal_ns());
        let peer_came_later =
            near && are(self.wait.peer_last_ns.get(), opened_ns.or(emptied_ns), |peer_ns, open_ns| peer_ns < open_ns);
        in_time && !peer_came_later
    }

    /// Whether, in a capture away from the sender, the segment was sent before the window opened, and waited in a queue
    /// on the path. Two cases show this. First, the window opened so early that a segment released by its opening would
    /// have passed the capture point before the previous segment. Second, an ACK passed the capture point early enough
    /// to reach the sender, but the segment was sent before that ACK arrived. The first flight does not count, because
    /// its ACK opens the congestion window as well.
    pub(in super::super) fn was_on_the_way(&self) -> bool {
        if !is(self.previous_round_flight(), |flight| flight > 0) {
            return false;
        }
        let opened_before = is(self.wait.window_opened_ns.get(), |ns| ns > self.wait_ns);
        let ack_not_known = || {
            are(self.record.in_flight_bytes.get(), self.flight_after(), |captured, known| captured < known)
                && are(self.record.since_last_ack_ns.get(), self.direction.reaction_min_ns, |ago_ns, min_ns| {
                    ago_ns > min_ns + self.causal_ns().max(CAUSAL_NS)
                })
        };
        opened_before || ack_not_known()
    }

    /// How much the queue before the capture point grew between the previous segment and this one. The path caused this
    /// growth, whatever limited the sender. If no clock shows the growth, the jitter of the segment is used, but only
    /// if a queue is known to exist.
    pub(in super::super) fn queue_growth_ns(&self) -> i64 {
        if self.says_when() {
            return self.wait.queue_grew_ns.get().unwrap_or(0);
        }
        let queued = self.previous_round_flight().is_none() || self.was_on_the_way();
        if queued { self.jitter_ns() } else { 0 }
    }

    pub(in super::super) fn window_is_known(&self) -> bool {
        self.room().is_some()
    }

    pub(in super::super) fn window_opened(&self) -> bool {
        self.wait.window_opened_ns.is_some()
    }
}
