//! Counts of departures that show what limits a sender: Nagle's algorithm, its send buffer or the ACK clock.

use super::state::SenderState;
use super::wait::Wait;

/// A segment sent within this time of the previous one may be the tail of the same write. A BSD sender does not
/// delay that tail (4.4BSD, `tcp_output`). A slow link captures the two further apart than the sender sent them
/// (a heuristic).
const ONE_WRITE_NS: i64 = 2_000_000;

impl SenderState {
    pub(super) fn count_clocked(&mut self, held: &Wait, shift_ns: i64) {
        if held.unacked_before_bytes.get().is_none_or(|unacked| unacked == 0) {
            return;
        }
        if self.went_on_by_itself(held, shift_ns) {
            self.unclocked = self.unclocked.saturating_add(1);
        }
        if let Some(ago_ns) = held.acked_ago_ns.get() {
            let in_time = ago_ns <= self.causal_ns(shift_ns);
            // After a short wait, an ACK may precede the departure by chance. At the sender, such an ACK is not
            // counted.
            let let_go = shift_ns > 0 || held.may_be_ended_by(ago_ns);
            self.clocked = self.clocked.saturating_add(u32::from(in_time && let_go));
            self.unclocked = self.unclocked.saturating_add(u32::from(!in_time));
        }
    }

    /// Whether the application, not an event in TCP, ended the wait: nothing arrived since a small segment
    /// left, that segment had taken all available data, and the line was free again.
    fn went_on_by_itself(&self, held: &Wait, shift_ns: i64) -> bool {
        let nothing_came = !held.acked_ago_ns.is_some() && !held.peer_first_ns.is_some();
        nothing_came
            && held.small_before
            && held.held_ns.get().is_some_and(|held_ns| {
                held_ns > self.causal_ns(shift_ns) && !self.spacing.may_carry(self.since.payload_bytes, held_ns)
            })
    }

    /// Counts a small segment as evidence for or against Nagle's algorithm.
    pub(super) fn count_small(&mut self, left: &Wait, payload_bytes: i64, shift_ns: i64) {
        if left.unacked_before_bytes.get().is_none_or(|unacked| unacked == 0) {
            return;
        }
        let waited_ns = left.held_ns.get().unwrap_or(0);
        if left.unacked_bytes.get().is_none_or(|unacked| unacked > 0) {
            let passed_full = !left.small_unacked && waited_ns > ONE_WRITE_NS;
            self.held.passed_full = self.held.passed_full.saturating_add(u16::from(passed_full));
            return;
        }
        if !has_waited_with_room(left, payload_bytes) || !self.let_go_by_the_ack_of_all(left, shift_ns) {
            return;
        }
        if left.small_unacked {
            self.held.run = self.held.run.saturating_add(1);
            self.held.longest_run = self.held.longest_run.max(self.held.run);
        } else {
            self.held.over_full = self.held.over_full.saturating_add(1);
        }
    }

    /// Counts a segment sent right after a small one that had waited. It shows that the application wrote more
    /// as soon as the ACK arrived.
    pub(super) fn count_behind_held(&mut self, left: &Wait, shift_ns: i64) {
        let at_once = left.held_ns.get().is_some_and(|held_ns| held_ns <= self.causal_ns(shift_ns));
        let went_on = self.since.had_waited_behind_small && at_once && !left.peer_first_ns.is_some();
        self.held.went_on = self.held.went_on.saturating_add(u16::from(went_on));
    }

    /// Whether a segment that waited behind a small one left at once when an ACK without data arrived.
    pub(super) fn waited_behind_small(&self, left: &Wait, shift_ns: i64) -> bool {
        left.small_unacked && has_waited(left) && self.let_go_by_an_ack(left, shift_ns)
    }

    /// Counts a full-sized segment that waited although the window had room. It is evidence of a full send
    /// buffer.
    pub(super) fn count_full(&mut self, left: &Wait, payload_bytes: i64, shift_ns: i64) {
        let Some(flight) = left.unacked_before_bytes.get().filter(|unacked| *unacked > 0) else { return };
        if !has_waited_with_room(left, payload_bytes) {
            return;
        }
        if left.pushed_before && self.let_go_by_an_ack(left, shift_ns) {
            self.emptied.held_behind(flight);
        }
    }

    /// Whether the segment left at once when an ACK without data arrived that may have ended its wait.
    fn let_go_by_an_ack(&self, left: &Wait, shift_ns: i64) -> bool {
        let just_came = |ago_ns: i64| ago_ns <= self.causal_ns(shift_ns) && left.may_be_ended_by(ago_ns);
        left.acked_ago_ns.get().is_some_and(just_came) && !left.peer_last_ns.is_some()
    }

    /// Whether the segment left at once when an ACK without data covered everything outstanding.
    pub(super) fn let_go_by_the_ack_of_all(&self, left: &Wait, shift_ns: i64) -> bool {
        left.idle_ns.get().is_some_and(|idle_ns| idle_ns <= self.causal_ns(shift_ns)) && !left.peer_last_ns.is_some()
    }
}

/// Whether the segment was sent too late to be the tail of one write.
fn has_waited(left: &Wait) -> bool {
    left.held_ns.get().is_some_and(|held_ns| held_ns > ONE_WRITE_NS)
}

/// Whether the segment was sent too late to be the tail of one write, although the window had room for it.
fn has_waited_with_room(left: &Wait, payload_bytes: i64) -> bool {
    has_waited(left) && left.usable_before_bytes.get().is_some_and(|usable| usable > payload_bytes)
}
