//! The number of intervals of each cause in a direction, and the exact median of their lengths.

use super::super::cause::{CAUSES, Cause};
use super::super::intervals::Interval;
use crate::connection::Confidence;

/// The intervals of one cause in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// The cause.
    pub cause: Cause,
    /// Sum of the intervals.
    pub ns: i64,
    /// Number of intervals.
    pub waits: u64,
    /// Number of intervals whose cause has the confidence *proved* or *consistent*, not only *possible*.
    pub sure_waits: u64,
    /// Sum of the intervals whose cause is proved or consistent.
    pub sure_ns: i64,
    /// Sum of the intervals whose cause is proved.
    pub proved_ns: i64,
    /// Median length of the intervals.
    pub median_ns: f64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Lengths {
    by_cause: [OfCause; CAUSES],
}

#[derive(Clone, Debug, Default)]
struct OfCause {
    sure_waits: u64,
    sure_ns: i64,
    proved_ns: i64,
    ns: Vec<i64>,
}

impl Lengths {
    #[inline]
    pub(super) fn add(&mut self, interval: &Interval) {
        if let Some(of_cause) = self.by_cause.get_mut(interval.cause as usize) {
            if interval.confidence != Confidence::Possible {
                of_cause.sure_waits += 1;
                of_cause.sure_ns += interval.ns;
            }
            if interval.confidence == Confidence::Proved {
                of_cause.proved_ns += interval.ns;
            }
            of_cause.ns.push(interval.ns);
        }
    }

    pub(super) fn append(&mut self, others: &mut Self) {
        for (own, other) in self.by_cause.iter_mut().zip(&mut others.by_cause) {
            let OfCause { sure_waits, sure_ns, proved_ns, mut ns } = std::mem::take(other);
            own.sure_waits += sure_waits;
            own.sure_ns += sure_ns;
            own.proved_ns += proved_ns;
            own.ns.append(&mut ns);
        }
    }

    /// Sums, counts and medians by cause, without the causes that have no interval.
    pub(super) fn kinds(mut self) -> Vec<Kind> {
        let named = Cause::ALL.into_iter().zip(&mut self.by_cause);
        named
            .filter_map(|(cause, of_cause)| {
                let OfCause { sure_waits, sure_ns, proved_ns, ref mut ns } = *of_cause;
                let median_ns = median(ns)?;
                let (waits, ns) = (ns.len() as u64, ns.iter().sum());
                Some(Kind { cause, ns, waits, sure_waits, sure_ns, proved_ns, median_ns })
            })
            .collect()
    }
}

/// The median: the middle number, or the mean of the middle two; `None` if there are no numbers. The numbers are
/// reordered.
pub(super) fn median(numbers: &mut [i64]) -> Option<f64> {
    let count = numbers.len();
    if count == 0 {
        return None;
    }
    let (below, middle, _) = numbers.select_nth_unstable(count / 2);
    let middle = *middle as f64;
    let is_odd = !count.is_multiple_of(2);
    let other = if is_odd { None } else { below.iter().max().copied() };
    Some(other.map_or(middle, |other| middle.midpoint(other as f64)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Lengths, median};
    use crate::connection::Confidence;
    use crate::ledger::intervals::Interval;
    use crate::ledger::{Cause, Rivals};

    fn naive(mut numbers: Vec<i64>) -> Option<f64> {
        numbers.sort_unstable();
        let middle = numbers.len() / 2;
        match numbers.len() {
            0 => None,
            count if count % 2 == 1 => Some(numbers[middle] as f64),
            _ => Some((numbers[middle - 1] as f64).midpoint(numbers[middle] as f64)),
        }
    }

    proptest! {
        #[test]
        fn the_median_is_that_of_sorted_numbers(mut numbers in prop::collection::vec(0_i64..50, 0..40)) {
            prop_assert_eq!(median(&mut numbers.clone()), naive(numbers.clone()));
            for number in &mut numbers {
                *number += 1 << 40;
            }
            prop_assert_eq!(median(&mut numbers.clone()), naive(numbers));
        }
    }

    #[test]
    fn possible_waits_are_not_sure() {
        let mut lengths = Lengths::default();
        for (ns, confidence) in [(5, Confidence::Proved), (7, Confidence::Possible), (12, Confidence::Consistent)] {
            let (frame_before, frame_after) = (None, None);
            let (cause, rivals) = (Cause::Peer, Rivals::default());
            lengths.add(&Interval { start_ns: 0, ns, cause, frame_before, frame_after, confidence, rivals });
        }
        let mut all = Lengths::default();
        all.append(&mut lengths);
        let kinds = all.kinds();
        assert_eq!(kinds.len(), 1);
        assert_eq!((kinds[0].cause, kinds[0].ns, kinds[0].waits, kinds[0].sure_waits), (Cause::Peer, 24, 3, 2));
        assert_eq!((kinds[0].sure_ns, kinds[0].proved_ns), (17, 5));
        assert!((kinds[0].median_ns - 7.0).abs() < f64::EPSILON);
    }
}
