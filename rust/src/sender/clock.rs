//! The sender's timestamp clock (RFC 7323), derived from the segments that it sent. The clock shows the length of a
//! tick, and the capture delay of each segment. The capture delay is the time from the moment in the timestamp to the
//! capture.

use serde::{Deserialize, Serialize};

use super::timing::LONGEST_NS;
use crate::nullable::Nullable;

/// The length of a tick is measured over at least this many ticks, so that it is exact to 1/50 (a heuristic).
const MIN_TICKS: i64 = 50;
/// Tick of nearly all current timestamp clocks (Linux, FreeBSD, macOS, Windows; RFC 7323, 5.4: 1 ms to 1 s).
const MILLISECOND_NS: i64 = 1_000_000;
/// Two clocks drift apart by at most 1/[`DRIFT_PART`] of the elapsed time (a heuristic: 100 ppm is a bad quartz).
pub(crate) const DRIFT_PART: i64 = 10_000;

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Clock {
    /// Timestamp of the last segment that had one.
    tsval: Option<u32>,
    /// The time since the first segment: in ticks of the sender's clock, and in nanoseconds of the capture's clock.
    ticks: i64,
    lasted_ns: i64,
    /// `ticks` and `lasted_ns` of the second segment. The length of a tick is measured from the second segment if
    /// enough ticks have passed since then. The first segment, a SYN, can be late: it waits for address resolution, or
    /// arrives after its retransmission.
    second: Option<(i64, i64)>,
    /// The smallest capture delay so far, relative to the first segment, and when its segment was captured.
    soonest_ns: i64,
    soonest_at_ns: i64,
    /// The largest capture delay so far, less one tick (the possible error) and clock drift, and when its segment was
    /// captured.
    latest_ns: i64,
    latest_at_ns: i64,
}

impl Clock {
    /// Returns the ticks since the previous segment, which was captured `wait_ns` before this one.
    #[inline]
    pub(super) fn departs(&mut self, tsval: Option<u32>, wait_ns: Nullable) -> Option<i64> {
        let now = tsval?;
        let before = self.tsval.replace(now)?;
        let ticks = i64::from(now.wrapping_sub(before) as i32);
        self.ticks = self.ticks.saturating_add(ticks);
        self.lasted_ns = self.lasted_ns.saturating_add(wait_ns.get().unwrap_or(0));
        self.second.get_or_insert((self.ticks, self.lasted_ns));
        if self.behind_ns() <= self.soonest_ns {
            (self.soonest_ns, self.soonest_at_ns) = (self.behind_ns(), self.lasted_ns);
        }
        Some(ticks)
    }

    /// Capture delay of the last segment relative to the first one, if a tick is a millisecond.
    fn behind_ns(&self) -> i64 {
        self.lasted_ns.saturating_sub(self.ticks.saturating_mul(MILLISECOND_NS))
    }

    /// Queueing delay of the last segment before the capture point. The result is the difference between the capture
    /// delay of this segment and the smallest one so far, less a tick and clock drift. The value is at most
    /// [`LONGEST_NS`], because a broken clock can produce any timestamp.
    pub(super) fn queueing_delay_ns(&self) -> i64 {
        let drift_ns = self.lasted_ns.saturating_sub(self.soonest_at_ns) / DRIFT_PART;
        let later_ns = self.behind_ns().saturating_sub(self.soonest_ns);
        later_ns.saturating_sub(drift_ns.saturating_add(MILLISECOND_NS)).clamp(0, LONGEST_NS)
    }

    /// How much the capture delay of the last segment exceeds the largest earlier one, less a tick and clock drift. A
    /// queue that drains and grows again counts only once, so the sum of the results is the growth of the longest
    /// queue.
    pub(super) fn queue_grew_ns(&mut self) -> i64 {
        let drift_ns = self.lasted_ns.saturating_sub(self.latest_at_ns) / DRIFT_PART;
        let now_ns = self.behind_ns().saturating_sub(drift_ns.saturating_add(MILLISECOND_NS));
        let grew_ns = now_ns.saturating_sub(self.latest_ns).clamp(0, LONGEST_NS);
        if grew_ns > 0 {
            (self.latest_ns, self.latest_at_ns) = (now_ns, self.lasted_ns);
        }
        grew_ns
    }

    /// Returns the time from the moment when the sender's clock showed `tsval` to the last segment; `None` if the
    /// length of a tick is unknown.
    pub(super) fn since_ns(&self, tsval: u32) -> Option<i64> {
        let ticks = i64::from(self.tsval?.wrapping_sub(tsval) as i32);
        self.tick_ns().get().map(|tick_ns| ticks.saturating_mul(tick_ns))
    }

    pub(super) fn tick_ns(&self) -> Nullable {
        let from_second =
            self.second.map(|(ticks, ns)| (self.ticks.saturating_sub(ticks), self.lasted_ns.saturating_sub(ns)));
        let measures = [from_second.unwrap_or_default(), (self.ticks, self.lasted_ns)];
        measures.into_iter().find(|(ticks, _)| *ticks >= MIN_TICKS).map(|(ticks, ns)| ns / ticks).into()
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, LONGEST_NS, MILLISECOND_NS, Nullable};

    /// A millisecond clock after the given segments. A segment is (ms since the previous segment, ticks since the
    /// previous segment).
    fn after(departures: &[(i64, u32)]) -> Clock {
        let (mut clock, mut tsval) = (Clock::default(), 0);
        clock.departs(Some(tsval), Nullable::NULL);
        for (held_ms, ticks) in departures {
            tsval += ticks;
            assert_eq!(clock.departs(Some(tsval), Some(held_ms * MILLISECOND_NS).into()), Some(i64::from(*ticks)));
        }
        clock
    }

    #[test]
    fn what_comes_later_than_its_own_time_stood_in_a_queue_less_a_tick() {
        assert_eq!(after(&[(10, 10), (30, 10)]).queueing_delay_ns(), 19 * MILLISECOND_NS - 3_000);
        assert_eq!(after(&[(30, 10), (10, 30)]).queueing_delay_ns(), 0, "the first stood in one, the second in none");
        assert_eq!(
            after(&[(10, 30), (30, 10)]).queueing_delay_ns(),
            19 * MILLISECOND_NS - 3_000,
            "the soonest is what counts"
        );
    }

    #[test]
    fn a_queue_grew_where_it_is_longer_than_ever() {
        let (mut clock, mut tsval) = (Clock::default(), 0);
        clock.departs(Some(tsval), Nullable::NULL);
        let mut grew = Vec::new();
        for (held_ms, ticks) in [(30, 10), (10, 15), (20, 10), (40, 30)] {
            tsval += ticks;
            clock.departs(Some(tsval), Some(held_ms * MILLISECOND_NS).into());
            grew.push(clock.queue_grew_ns());
        }
        // The capture delays are 20, 15, 25 and 35 ms. From each, one tick is subtracted, and the clock drift since the
        // queue last grew: 3 µs in 30 ms, or 4 µs in 40 ms.
        assert_eq!(grew, [19 * MILLISECOND_NS - 3_000, 0, 5 * MILLISECOND_NS, 10 * MILLISECOND_NS - 1_000]);
    }

    #[test]
    fn a_clock_that_drifts_by_a_ten_thousandth_queues_nothing() {
        assert_eq!(after(&[(100_010, 100_000)]).queueing_delay_ns(), 0);
    }

    #[test]
    fn when_a_timestamp_was_the_clocks_is_known_in_whole_ticks() {
        let clock = after(&[(40, 10), (200, 50), (20, 5)]);
        assert_eq!(clock.since_ns(60), Some(20 * MILLISECOND_NS));
        assert_eq!(clock.since_ns(10), Some(220 * MILLISECOND_NS));
        assert_eq!(after(&[(40, 10)]).since_ns(0), None, "how long a tick is, is not known yet");
    }

    #[test]
    fn the_length_of_a_tick_is_known_after_fifty() {
        assert_eq!(after(&[(40, 10), (156, 39)]).tick_ns().get(), None);
        assert_eq!(after(&[(40, 10), (160, 40)]).tick_ns().get(), Some(4 * MILLISECOND_NS));
    }

    #[test]
    fn a_first_segment_that_is_late_does_not_change_the_length_of_a_tick() {
        assert_eq!(after(&[(20, 1_020), (300, 300), (200, 200)]).tick_ns().get(), Some(MILLISECOND_NS));
    }

    #[test]
    fn a_clock_that_runs_backwards_for_years_makes_no_queue_longer_than_the_longest_life() {
        let (mut clock, mut tsval) = (Clock::default(), 0_u32);
        for _ in 0..200 {
            tsval = tsval.wrapping_sub(1 << 30);
            clock.departs(Some(tsval), Some(MILLISECOND_NS).into());
        }
        assert_eq!((clock.queueing_delay_ns(), clock.queue_grew_ns()), (LONGEST_NS, LONGEST_NS));
    }
}
