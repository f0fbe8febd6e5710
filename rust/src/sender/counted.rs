//! Counts segments that show whether Nagle's algorithm, the send buffer or the ACK clock limits a sender.

use super::state::SenderState;
use super::wait::Wait;
use crate::nullable::Nullable;

/// A segment sent within this time after the previous one may be the tail of the same write (a heuristic). A BSD sender
/// does not delay the tail of a write (4.4BSD, `tcp_output`). Behind a slow link, the two segments are captured further
/// apart than they were sent.
const ONE_WRITE_NS: i64 = 2_000_000;

impl SenderState {
    pub(super) fn count_clocked(&mut self, wait: &Wait, shift_ns: i64) {
        if wait.flight_before_bytes.get().is_none_or(|unacked| unacked == 0) {
            return;
        }
        if self.application_continued(wait, shift_ns) {
            self.unclocked = self.unclocked.saturating_add(1);
        }
        if let Some(ago_ns) = wait.since_ack_ns.get() {
            let in_time = ago_ns <= self.causal_ns(shift_ns);
            // After a short wait, the last ACK may precede the segment by chance. In a capture at the sender, an ACK
            // counts only if it came in the last 1/8 of the wait.
            let released = shift_ns > 0 || wait.may_be_ended_by(ago_ns);
            self.clocked = self.clocked.saturating_add(u32::from(in_time && released));
            self.unclocked = self.unclocked.saturating_add(u32::from(!in_time));
        }
    }

    /// Whether the application ended the wait, and not an event in TCP. True if the previous segment was small and took
    /// all available data, nothing has arrived since, and the previous segment no longer occupied the line.
    fn application_continued(&self, wait: &Wait, shift_ns: i64) -> bool {
        let nothing_came = !wait.since_ack_ns.is_some() && !wait.peer_first_ns.is_some();
        nothing_came
            && wait.small_before
            && wait.wait_ns.get().is_some_and(|wait_ns| {
                wait_ns > self.causal_ns(shift_ns) && !self.spacing.may_carry(self.since.payload_bytes, wait_ns)
            })
    }

    /// Counts a small segment as evidence for or against Nagle's algorithm.
    pub(super) fn count_small(&mut self, wait: &Wait, payload_bytes: i64, shift_ns: i64) {
        if wait.flight_before_bytes.get().is_none_or(|unacked| unacked == 0) {
            return;
        }
        let waited_ns = wait.wait_ns.get().unwrap_or(0);
        if wait.flight_after_bytes.get().is_none_or(|unacked| unacked > 0) {
            let passed_full = !wait.last_small.was_in_flight() && waited_ns > ONE_WRITE_NS;
            self.small_waits.passed_full = self.small_waits.passed_full.saturating_add(u16::from(passed_full));
            return;
        }
        if !has_waited_with_room(wait, payload_bytes) || !self.released_by_the_ack_of_all(wait, shift_ns) {
            return;
        }
        if wait.last_small.was_in_flight() {
            self.small_waits.run = self.small_waits.run.saturating_add(1);
            self.small_waits.longest_run = self.small_waits.longest_run.max(self.small_waits.run);
        } else {
            self.small_waits.over_full = self.small_waits.over_full.saturating_add(1);
        }
    }

    /// Counts a segment sent right after a small one that had waited. The segment shows that the application had
    /// written more by the time the ACK arrived.
    pub(super) fn count_after_small_wait(&mut self, wait: &Wait, shift_ns: i64) {
        let at_once = wait.wait_ns.get().is_some_and(|wait_ns| wait_ns <= self.causal_ns(shift_ns));
        let went_on = self.since.had_waited_behind_small && at_once && !wait.peer_first_ns.is_some();
        self.small_waits.went_on = self.small_waits.went_on.saturating_add(u16::from(went_on));
    }

    /// Counts a data segment of the peer. A segment that does not acknowledge the sender's last segment answers earlier
    /// segments, because the peer sent it before the last segment arrived.
    pub(super) fn count_answer(&mut self, ack: i64) {
        let (waits, since) = (&mut self.small_waits, &mut self.since);
        let answers_earlier = since.left_with_ack && ack < self.snd_max;
        waits.before_answer = waits.before_answer.saturating_add(u16::from(answers_earlier));
        since.left_with_ack = false;
        since.answer_pieces = since.answer_pieces.saturating_add(u8::from(ack >= self.snd_max));
    }

    /// Whether a small segment is sent as soon as the small segment before it is acknowledged. The ACK must carry no
    /// data, or only the first piece of an answer; this piece must be small, and no other piece may be captured yet.
    ///
    /// The function also counts two kinds of small segments. One kind was sent with the ACK, before captured data of
    /// the peer reached the sender. The other kind was sent only when data of the peer arrived after the ACK.
    /// `acks_all` is true if the segment acknowledges all captured data of the peer.
    pub(super) fn leaves_with_ack(&mut self, wait: &Wait, acks_all: bool, shift_ns: i64) -> bool {
        let just_came = |ago_ns: Nullable| ago_ns.get().is_some_and(|ago_ns| ago_ns <= self.causal_ns(shift_ns));
        if !wait.last_small.was_in_flight() {
            return false;
        }
        let (just_acked, pieces) = (just_came(wait.since_all_acked_ns), self.since.answer_pieces);
        let early = just_acked && pieces > 0 && !acks_all;
        let awaited = just_came(wait.peer_last_ns) && (!just_acked || pieces > 1) && acks_all;
        let is_small = wait.peer_payload_bytes.get().is_none_or(|bytes| bytes < self.smss_bytes);
        let waits = &mut self.small_waits;
        waits.before_answer = waits.before_answer.saturating_add(u16::from(early));
        waits.after_answer = waits.after_answer.saturating_add(u16::from(awaited));
        just_acked && !early && pieces <= 1 && is_small
    }

    /// Whether a segment that waited behind a small one was sent as soon as an ACK without data arrived.
    pub(super) fn waited_behind_small(&self, wait: &Wait, shift_ns: i64) -> bool {
        wait.last_small.was_in_flight() && has_waited(wait) && self.released_by_an_ack(wait, shift_ns)
    }

    /// Counts a full-sized segment that waited although the window had room. Such a wait is evidence of a full send
    /// buffer.
    pub(super) fn count_full(&mut self, wait: &Wait, payload_bytes: i64, shift_ns: i64) {
        let Some(flight) = wait.flight_before_bytes.get().filter(|unacked| *unacked > 0) else { return };
        if !has_waited_with_room(wait, payload_bytes) {
            return;
        }
        if wait.pushed_before && self.released_by_an_ack(wait, shift_ns) {
            self.full_buffer.waited_after(flight);
        }
    }

    /// Whether the segment was sent as soon as an ACK without data arrived.
    fn released_by_an_ack(&self, wait: &Wait, shift_ns: i64) -> bool {
        let just_came = |ago_ns: i64| ago_ns <= self.causal_ns(shift_ns) && wait.may_be_ended_by(ago_ns);
        wait.since_ack_ns.get().is_some_and(just_came) && !wait.peer_last_ns.is_some()
    }

    /// Whether the segment was sent as soon as an ACK without data covered everything in flight.
    pub(super) fn released_by_the_ack_of_all(&self, wait: &Wait, shift_ns: i64) -> bool {
        wait.since_all_acked_ns.get().is_some_and(|idle_ns| idle_ns <= self.causal_ns(shift_ns))
            && !wait.peer_last_ns.is_some()
    }
}

/// Whether the segment was sent too late to be the tail of one write.
fn has_waited(wait: &Wait) -> bool {
    wait.wait_ns.get().is_some_and(|wait_ns| wait_ns > ONE_WRITE_NS)
}

/// Whether the segment was sent too late to be the tail of one write, although the window had room for it.
fn has_waited_with_room(wait: &Wait, payload_bytes: i64) -> bool {
    has_waited(wait) && wait.usable_window_before_bytes.get().is_some_and(|usable| usable > payload_bytes)
}
