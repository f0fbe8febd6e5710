//! Computes quantiles of any number of time values in limited memory.
//!
//! A capture can contain more time values than fit into memory, so the values are counted in buckets that are 0.1%
//! wide. A quantile is the mean of the values in the bucket with the quantile's rank. If all values of the bucket are
//! equal, the quantile is exact. If the values differ, the quantile is off by at most 0.1%. If there are very many long
//! flows at the same time, buckets are wider ([`MAX_BUCKETS`]).

use hashbrown::HashTable;

use crate::nullable::Nullable;

/// Number of low fraction bits that a bucket number omits from a 32-bit float. With the other 10 fraction bits, the
/// width of a bucket is at most 2^-10 (0.1%) of the values in the bucket.
const DROPPED_BITS: u32 = 13;
/// Number of bits in a bucket number: the bits of a float, without the sign and the omitted bits.
pub(super) const BUCKET_BITS: u32 = 31 - DROPPED_BITS;
/// This factor spreads bucket numbers over the hash table (Fibonacci hashing: 2^64 divided by the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Maximum number of buckets in all histograms together (16 bytes each). If there are more buckets, all buckets become
/// twice as wide.
pub(super) const MAX_BUCKETS: usize = if cfg!(test) { 1 << 10 } else { 1 << 22 };

/// The quantiles of a set of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// Median.
    pub p50_ns: Nullable,
    /// 95th percentile.
    pub p95_ns: Nullable,
}

/// The times of one set in one bucket.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// The number of the set in the high bits, and the bucket number in the low bits.
    key: u32,
    times: u32,
    sum_ns: i64,
}

impl Bucket {
    #[inline]
    fn hash(key: u32) -> u64 {
        let product = u64::from(key).wrapping_mul(SPREAD);
        // The hash table uses the low bits of a hash. Wide buckets have equal low bits, so the high bits are mixed in.
        product ^ product >> 32
    }
}

/// A few numbered sets of time values.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    buckets: HashTable<Bucket>,
    /// Number of low bits that are omitted because buckets are wider.
    widened_bits: u32,
}

impl Histogram {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Adds a time to a set.
    #[inline]
    pub(super) fn add(&mut self, set: u32, time_ns: i64) {
        // A clock that steps back gives negative times.
        let bucket = (time_ns.max(0) as f32).to_bits() >> DROPPED_BITS;
        let key = set << BUCKET_BITS | bucket >> self.widened_bits << self.widened_bits;
        self.count(Bucket { key, times: 1, sum_ns: time_ns });
    }

    #[inline(never)] // a small `add` is inlined, which saves 2 % of the instructions per segment
    fn count(&mut self, more: Bucket) {
        let is_it = |bucket: &Bucket| bucket.key == more.key;
        if let Some(bucket) = self.buckets.find_mut(Bucket::hash(more.key), is_it) {
            bucket.times = bucket.times.saturating_add(more.times);
            bucket.sum_ns = bucket.sum_ns.saturating_add(more.sum_ns);
        } else {
            self.buckets.insert_unique(Bucket::hash(more.key), more, |bucket| Bucket::hash(bucket.key));
        }
    }

    /// Makes the buckets wider by omitting the lowest `bits` bits of bucket numbers.
    #[cold]
    pub(super) fn widen(&mut self, bits: u32) {
        self.widened_bits = bits;
        for bucket in std::mem::take(&mut self.buckets) {
            self.count(Bucket { key: bucket.key >> bits << bits, ..bucket });
        }
    }

    /// The quantiles of the sets 0 to `N - 1`.
    pub(super) fn quantiles<const N: usize>(self) -> [Quantiles; N] {
        let mut buckets: Vec<_> = self.buckets.into_iter().collect();
        buckets.sort_unstable_by_key(|bucket| bucket.key);
        std::array::from_fn(|set| {
            let start = buckets.partition_point(|bucket| ((bucket.key >> BUCKET_BITS) as usize) < set);
            let end = buckets.partition_point(|bucket| (bucket.key >> BUCKET_BITS) as usize <= set);
            quantiles(buckets.get(start..end).unwrap_or_default())
        })
    }
}

/// The quantiles of sorted buckets by nearest rank.
fn quantiles(buckets: &[Bucket]) -> Quantiles {
    let times: u64 = buckets.iter().map(|bucket| u64::from(bucket.times)).sum();
    let at = |percent: u64| {
        let rank = (times * percent).div_ceil(100);
        let mut counted = 0;
        let found = buckets.iter().find(|bucket| {
            counted += u64::from(bucket.times);
            counted >= rank
        });
        found.map(|bucket| (bucket.sum_ns as f64 / f64::from(bucket.times)).round_ties_even() as i64).into()
    };
    Quantiles { p50_ns: at(50), p95_ns: at(95) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Histogram, Quantiles};

    fn counted(times_ns: &[i64], widened_bits: u32) -> Histogram {
        let mut times = Histogram { widened_bits, ..Histogram::default() };
        for ns in times_ns {
            times.add(1, *ns);
        }
        times
    }

    fn found(times: &Histogram) -> (Option<i64>, Option<i64>) {
        let [other, own] = times.clone().quantiles();
        assert_eq!(other, Quantiles::default());
        (own.p50_ns.get(), own.p95_ns.get())
    }

    /// The quantile of sorted values by nearest rank.
    fn nearest_rank(sorted: &[i64], percent: usize) -> Option<i64> {
        sorted.get((sorted.len() * percent).div_ceil(100).checked_sub(1)?).copied()
    }

    fn is_within(found: Option<i64>, expected: Option<i64>, width: f64) -> bool {
        match (found, expected) {
            (Some(found), Some(expected)) => (found - expected).abs() as f64 <= 1.0_f64.max(expected as f64 * width),
            _ => found == expected,
        }
    }

    proptest! {
        #[test]
        fn quantiles_are_the_nearest_ranks_to_within_a_bucket(mut times_ns in prop::collection::vec(0_i64..1_000_000_000_000, 0..200), bits in 0_u32..4) {
            let mut times = counted(&times_ns, 0);
            let (p50_ns, p95_ns) = found(&times);
            times_ns.sort_unstable();
            prop_assert!(is_within(p50_ns, nearest_rank(&times_ns, 50), 0.001));
            prop_assert!(is_within(p95_ns, nearest_rank(&times_ns, 95), 0.001));
            times.widen(bits);
            let (p50_ns, p95_ns) = found(&times);
            let width = 0.001 * f64::from(1 << bits);
            prop_assert!(is_within(p50_ns, nearest_rank(&times_ns, 50), width));
            prop_assert!(is_within(p95_ns, nearest_rank(&times_ns, 95), width));
            prop_assert_eq!(found(&counted(&times_ns, bits)), (p50_ns, p95_ns));
        }
    }

    #[test]
    fn equal_times_give_their_value_exactly() {
        assert_eq!(found(&counted(&[40_000_123; 5], 0)), (Some(40_000_123), Some(40_000_123)));
    }

    #[test]
    fn a_clock_that_steps_back_makes_the_smallest_times() {
        assert_eq!(found(&counted(&[-5000, 1000, 2000, 3000], 0)), (Some(1000), Some(3000)));
        assert_eq!(found(&counted(&[-5000, 1000, -5000, -5000], 0)), (Some(-5000), Some(1000)));
    }

    #[test]
    fn without_times_there_are_no_quantiles() {
        assert_eq!(found(&Histogram::default()), (None, None));
    }
}
