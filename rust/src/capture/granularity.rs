//! Measures the real tick of the capture's clock.
//!
//! A file can declare a resolution of 1 µs although the host's clock advances only every 10 ms. All packets within one
//! tick of such a clock have the same timestamp. Any two timestamps of such a clock differ by a multiple of the tick.

/// Ticks below 0.1 ms are not reported, because they hardly affect results: a cause and its effect can be up to 1 ms
/// apart.
const MIN_NS: i64 = 100_000;
/// Minimum number of steps that are multiples of the tick. If the clock had no such tick, one step in four would be a
/// multiple by chance.
const MIN_STEPS: u32 = 20;
/// A step counts as a multiple if it is off by at most 1/8 of the tick.
const TOLERANCE: i64 = 8;
/// Steps of more than this many ticks are ignored, because clock drift hides whether they are multiples.
const LONGEST_STEP: i64 = 16;
/// Minimum ratio of steps that are multiples to steps that are not multiples.
const FEW: u32 = 20;

/// Counts the steps from each timestamp to the next one.
///
/// ```
/// use tcptrace_lab_core::capture::Granularity;
///
/// let mut clock = Granularity::default();
/// for step_ns in [0, 0, 10_000_000].repeat(30) {
///     clock.take(step_ns);
/// }
/// assert_eq!(clock.tick_ns(), Some(10_000_000)); // it ticks every 10 ms
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Granularity {
    /// The candidate for the tick: the shortest positive step so far.
    min_ns: i64,
    /// Numbers of steps since the candidate last changed. `multiples` counts multiples of the candidate, `equal` counts
    /// steps of 0, and `others` counts the rest.
    multiples: u32,
    others: u32,
    equal: u32,
}

impl Default for Granularity {
    fn default() -> Self {
        Self { min_ns: i64::MAX, multiples: 0, others: 0, equal: 0 }
    }
}

impl Granularity {
    /// Counts the time from one packet to the next.
    #[inline]
    pub fn take(&mut self, step_ns: i64) {
        if self.min_ns >= MIN_NS {
            self.take_coarse(step_ns);
        }
    }

    fn take_coarse(&mut self, step_ns: i64) {
        let (tick_ns, error_ns) = (self.min_ns, self.min_ns / TOLERANCE);
        if step_ns == 0 {
            self.equal = self.equal.saturating_add(1);
        } else if (1..tick_ns - error_ns).contains(&step_ns) {
            *self = Self { min_ns: step_ns, multiples: 1, ..Self::default() };
        } else if step_ns > 0 && step_ns / LONGEST_STEP < tick_ns {
            let off_ns = step_ns.saturating_add(error_ns) % tick_ns;
            let count = if off_ns <= 2 * error_ns { &mut self.multiples } else { &mut self.others };
            *count = count.saturating_add(1);
        }
    }

    /// The clock's tick in nanoseconds, or `None` if the tick is shorter than [`MIN_NS`], or if too few steps show it.
    ///
    /// At least half of the steps must be 0. A tick that rarely gives two packets the same timestamp does not affect
    /// the results.
    #[must_use]
    pub fn tick_ns(&self) -> Option<i64> {
        let coarse = self.min_ns >= MIN_NS
            && self.multiples >= MIN_STEPS
            && self.others.saturating_mul(FEW) <= self.multiples
            && self.equal >= self.multiples.saturating_add(self.others);
        coarse.then_some(self.min_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times_ns: impl IntoIterator<Item = i64>) -> Option<i64> {
        let mut granularity = Granularity::default();
        let mut previous = None;
        for ts_ns in times_ns {
            if let Some(previous) = previous.replace(ts_ns) {
                granularity.take(ts_ns - previous);
            }
        }
        granularity.tick_ns()
    }

    const MS: i64 = 1_000_000;

    /// Timestamps of packets about 0.7 ms apart, from a clock that ticks every `tick_ns`.
    fn shown(tick_ns: i64) -> impl Iterator<Item = i64> {
        (0..1_000_i64).map(move |at| (at * 700_000 + at * at % 7_919 * 97) / tick_ns * tick_ns)
    }

    #[test]
    fn a_clock_that_ticks_every_10_ms_or_4_ms_is_known_by_its_steps() {
        assert_eq!(of(shown(10 * MS)), Some(10 * MS));
        assert_eq!(of(shown(4 * MS)), Some(4 * MS));
    }

    #[test]
    fn ticks_may_vary_a_little() {
        let uneven = shown(10 * MS).map(|ts_ns| ts_ns + ts_ns / (10 * MS) % 3 * 100_000);
        assert!(of(uneven).is_some_and(|tick_ns| (9 * MS..=11 * MS).contains(&tick_ns)));
    }

    #[test]
    fn steps_as_long_as_a_number_holds_show_nothing() {
        let mut granularity = Granularity::default();
        for step_ns in [i64::MAX, i64::MIN, i64::MAX - 1, i64::MAX] {
            granularity.take(step_ns);
        }
        assert_eq!(granularity.tick_ns(), None);
    }

    #[test]
    fn a_fine_clock_has_none() {
        assert_eq!(of(shown(1_000)), None);
        assert_eq!(of(shown(1)), None);
    }

    #[test]
    fn even_traffic_is_no_coarse_clock_if_no_two_packets_meet() {
        assert_eq!(of((0..1_000).map(|at| at * 20 * MS)), None);
    }

    #[test]
    fn pairs_at_uneven_times_are_no_coarse_clock() {
        assert_eq!(of((0..1_000_i64).map(|at| at / 2 * 20 * MS + at / 2 * (at / 2) % 7_919 * 1_000)), None);
    }

    #[test]
    fn a_few_steps_show_nothing() {
        assert_eq!(of(shown(10 * MS).take(100)), None);
    }
}
