//! The part of a wait that the path and the line cause, and what the clocks of the sender and the capture show.

use super::super::direction::{MIN_FRAME_BYTES, at_rate};
use super::{Evidence, is};
use crate::sender::{AROUND_BYTES, DRIFT_PART, NS_PER_MS};

/// A queueing delay of at most 1/[`NO_QUEUE_PART`] of the RTT counts as none: the clocks of sender and capture vary by
/// that much (a heuristic).
const NO_QUEUE_PART: i64 = 100;
/// Two delays count as about equal if they differ by at most 1/[`NEARLY_PART`] (a heuristic).
const NEARLY_PART: i64 = 8;

impl Evidence<'_> {
    /// How long the sender's line needs to transmit the previous segment; the next byte cannot be sent earlier. The
    /// result is 0 in a capture away from the sender.
    pub(in super::super) fn serialization_ns(&self) -> i64 {
        let before = self.wait.payload_before_bytes.get().map_or(MIN_FRAME_BYTES, |bytes| bytes + AROUND_BYTES);
        self.direction.line.own_ns(before.max(MIN_FRAME_BYTES))
    }

    /// Time from the previous segment until the bottleneck has transmitted the flight, at the rate at which queues
    /// drained. The bottleneck is assumed to be busy since the first byte of the flight.
    pub(in super::super) fn draining_ns(&self) -> i64 {
        let Some(drained) = self.direction.drained.filter(|_| self.direction.near_sender) else { return 0 };
        let (Some(flight), Some(lag_ns)) = (self.flight_before(), self.wait.ack_lag_ns.get()) else { return 0 };
        let stood_before_ns = lag_ns - self.wait_ns;
        at_rate(flight, (drained.ns, drained.bytes)).saturating_sub(stood_before_ns).max(0)
    }

    /// The RTT that the previous segment and its ACK take on an empty path.
    pub(in super::super) fn undisturbed_ns(&self) -> i64 {
        undisturbed_ns(self, self.wait.payload_before_bytes.get())
    }

    /// The RTT that the whole flight takes on an empty path.
    pub(in super::super) fn undisturbed_flight_ns(&self) -> i64 {
        undisturbed_ns(self, self.flight_before())
    }

    /// The least time by which the path delayed this segment more than the previous one. The result is the difference
    /// between the wait in the capture and the wait by the sender's timestamps (RFC 7323, 3), less a tick. The result
    /// is at most the wait, even if a broken clock runs backwards.
    pub(in super::super) fn jitter_ns(&self) -> i64 {
        if self.direction.near_sender {
            return 0;
        }
        let Some(ticks) = self.wait.sent_ticks.get() else { return 0 };
        // Queues that grow make a measured tick too long. If the clock ticks in milliseconds, a tick counts as exactly
        // 1 ms instead.
        let by_clock_ns = if self.direction.ticks_milliseconds {
            (ticks + 1).saturating_mul(NS_PER_MS).saturating_add(self.wait_ns.div_euclid(DRIFT_PART))
        } else {
            let Some(tick_ns) = self.direction.tick_ns else { return 0 };
            (ticks + 1).saturating_mul(tick_ns)
        };
        self.wait_ns.saturating_sub(by_clock_ns).clamp(0, self.wait_ns)
    }

    /// Whether, in a capture away from the sender, the segment's timestamp shows its delay on the path. If so, no
    /// allowance for jitter is needed.
    pub(in super::super) fn says_when(&self) -> bool {
        !self.direction.near_sender && self.direction.ticks_milliseconds && self.wait.queueing_delay_ns.is_some()
    }

    /// How much longer the path delayed this segment than the fastest earlier one, as the timestamps show it; 0 if
    /// unknown.
    #[must_use]
    pub fn queueing_delay_ns(&self) -> i64 {
        self.wait.queueing_delay_ns.get().filter(|_| self.says_when()).unwrap_or(0)
    }

    /// Returns the least time that two packets spent in queues: the packet with the peer's last data, and this segment.
    /// The timestamp of this segment shows `own_ns` of this time; other connections can show more.
    #[must_use]
    pub fn answer_queued_ns(&self, own_ns: i64) -> i64 {
        let direction = self.direction;
        let was_asked = is(self.wait.peer_payload_bytes.get(), |bytes| bytes > 0);
        let of_an_answer = direction.neighbours.as_ref().zip(self.wait.peer_last_ns.get());
        let Some((neighbours, spoke_ns)) =
            of_an_answer.filter(|_| was_asked && !direction.near_sender && !direction.sender_unplaced)
        else {
            return own_ns;
        };
        let asked_ns = self.record.ts_ns.saturating_sub(spoke_ns.saturating_add(direction.to_sender_ns));
        // If an answer came earlier than the queues of other connections allow, it did not wait in these queues.
        let most_ns = spoke_ns.saturating_add(spoke_ns / NEARLY_PART + NS_PER_MS);
        let shared = |queue_ns: i64| if queue_ns <= most_ns { queue_ns } else { 0 };
        let [there_ns, there_and_back_ns] = neighbours.queued_ns(asked_ns, direction.to_sender_ns).map(shared);
        own_ns.saturating_add(there_ns).max(there_and_back_ns)
    }

    /// Whether, in a capture away from the sender, the segment's own timestamp shows that the segment met no queue
    /// before the capture point.
    pub(in super::super) fn met_no_queue(&self) -> bool {
        self.says_when() && self.queueing_delay_ns().saturating_mul(NO_QUEUE_PART) <= self.rtt_ns()
    }

    /// Whether the path caused most of the wait, or spaced two segments that the sender sent one right after the other.
    #[inline]
    pub(in super::super) fn was_delayed_on_path(&self) -> bool {
        if self.direction.near_sender {
            return false;
        }
        let at_once = || {
            self.wait.sent_ticks.get() == Some(0) && is(self.direction.tick_ns, |tick_ns| 2 * self.wait_ns > tick_ns)
        };
        self.wait_ns < 2 * self.jitter_ns() || at_once()
    }
}

fn undisturbed_ns(evidence: &Evidence<'_>, sent_bytes: Option<i64>) -> i64 {
    let line = &evidence.direction.line;
    evidence.rtt_ns()
        + line.own_beyond_least_ns(sent_bytes)
        + line.other_beyond_least_ns(evidence.wait.peer_payload_bytes.get())
}

/// Returns the value, but at most the bound if the bound is known.
#[must_use]
pub fn at_most(bound: Option<i64>, value: i64) -> i64 {
    bound.map_or(value, |bound| bound.min(value))
}

#[cfg(test)]
mod tests {
    use super::super::super::direction::DirectionFacts;
    use super::super::super::waits::record::WaitRecord;
    use super::{Evidence, NS_PER_MS};

    fn jitter_ns(ticks: i64, tick_ns: i64) -> i64 {
        let mut record = WaitRecord::default();
        record.wait.wait_ns = Some(30 * NS_PER_MS).into();
        record.wait.sent_ticks = Some(ticks).into();
        let direction = DirectionFacts { tick_ns: Some(tick_ns), ..DirectionFacts::default() };
        Evidence::of(&record, &direction).jitter_ns()
    }

    #[test]
    fn what_the_senders_clock_does_not_show_is_the_paths() {
        assert_eq!(jitter_ns(9, NS_PER_MS), 20 * NS_PER_MS);
        assert_eq!(jitter_ns(50, NS_PER_MS), 0);
    }

    #[test]
    fn a_clock_that_runs_backwards_makes_the_whole_wait_jitter_and_no_more() {
        assert_eq!(jitter_ns(-1_000, NS_PER_MS), 30 * NS_PER_MS);
        assert_eq!(jitter_ns(i64::from(i32::MIN), i64::MAX), 30 * NS_PER_MS);
    }
}
