//! How finely the clock of a capture really ticks, whatever its file says: programs that convert captures write them finer than they were.

/// A tick as short as this is not looked for: what is finer hides nothing that a verdict rests on.
const FINE_NS: i64 = 1_000_000;

/// So many times that are all a multiple of one step apart are no chance. By hand and by models that know no line's rate, exchanges are made whose few
/// times are round (a choice of ours).
const ENOUGH: u32 = 100;

/// The largest step that all times are multiples of, counted from the first.
#[derive(Debug, Default)]
pub(super) struct Ticks {
    first_ns: Option<i64>,
    step_ns: i64,
    times: u32,
    is_fine: bool,
}

impl Ticks {
    /// The next packet's time, which is not that of the packet before.
    #[inline]
    pub(super) fn take(&mut self, ts_ns: i64) {
        if !self.is_fine {
            self.look(ts_ns);
        }
    }

    fn look(&mut self, ts_ns: i64) {
        let Some(first_ns) = self.first_ns else {
            self.first_ns = Some(ts_ns);
            return;
        };
        self.step_ns = common_divisor(self.step_ns, ts_ns.saturating_sub(first_ns).saturating_abs());
        self.times = self.times.saturating_add(1);
        self.is_fine = (1..FINE_NS).contains(&self.step_ns);
    }

    /// The clock's tick in nanoseconds, if it is coarse beyond chance.
    pub(super) fn coarse_ns(&self) -> Option<i64> {
        (!self.is_fine && self.times >= ENOUGH && self.step_ns > 0).then_some(self.step_ns)
    }
}

/// Euclid's; 0 and a number have that number.
fn common_divisor(mut one: i64, mut other: i64) -> i64 {
    while other != 0 {
        (one, other) = (other, one.wrapping_rem(other));
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS_NS: i64 = 1_000_000;

    fn told(times_ns: impl IntoIterator<Item = i64>) -> Option<i64> {
        let mut ticks = Ticks::default();
        times_ns.into_iter().for_each(|ts_ns| ticks.take(ts_ns));
        ticks.coarse_ns()
    }

    /// Windows' timer, 64 times a second, behind a start that is no multiple of it: steps of one, two and three ticks.
    #[test]
    fn a_tick_that_is_no_round_number_is_found() {
        assert_eq!(
            told((0..200).map(|at| 1_700_000_000_123_456_789 + 15_625_000 * (at + at / 7 + at / 11))),
            Some(15_625_000)
        );
    }

    #[test]
    fn one_time_between_ticks_shows_a_finer_clock() {
        let coarse = (0..200).map(|at| at * 10 * MS_NS);
        assert_eq!(told(coarse.clone()), Some(10 * MS_NS));
        assert_eq!(told(coarse.chain([1_995 * MS_NS])), Some(5 * MS_NS));
        assert_eq!(told((0..200).map(|at| at * 10 * MS_NS).chain([1_995 * MS_NS + 1_000])), None);
    }

    #[test]
    fn few_round_times_are_chance() {
        assert_eq!(told((0..100).map(|at| at * 10 * MS_NS)), None, "99 behind the first");
        assert_eq!(told([]), None);
    }

    #[test]
    fn times_at_the_ends_of_the_range_do_no_harm() {
        assert_eq!(told([i64::MIN, i64::MAX, i64::MIN, 0]), None);
    }
}
