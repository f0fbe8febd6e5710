//! Medians and 95th percentiles of the round trips and ACK lags of one connection.
//!
//! A connection may have more samples than fit in memory. They are therefore counted in histogram buckets 0.1%
//! wide. A quantile is the mean of the samples in the bucket with its rank. It is exact if those are equal, and
//! otherwise within 0.1% (more if very many long connections are tracked at a time, see [`MAX_BUCKETS`]).

use hashbrown::HashTable;

use crate::connection::Judged;
use crate::nullable::Nullable;
use crate::wire::{Segment, TcpFlags};

/// Number of low fraction bits of a 32-bit float that a bucket number omits. Of the 23 fraction bits, 10 remain, so
/// that the relative bucket width is 2^-10.
const DROPPED_BITS: u32 = 13;
/// Bits of a bucket number (a float without its sign).
pub(super) const BUCKET_BITS: u32 = 31 - DROPPED_BITS;
/// Multiplier that spreads bucket numbers over the hash table: 2^64 divided by the golden ratio (Fibonacci
/// hashing).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Maximum number of buckets of all connections together (16 bytes each). Beyond it, all buckets become twice
/// as wide.
pub(super) const MAX_BUCKETS: usize = if cfg!(test) { 1 << 10 } else { 1 << 22 };

/// The quantiles of a set of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// Median.
    pub p50_ns: Nullable,
    /// 95th percentile.
    pub p95_ns: Nullable,
}

/// The times of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionTimes {
    /// Round trips of its data.
    pub rtt: Quantiles,
    /// Delays of its ACKs without data.
    pub ack_lag: Quantiles,
}

/// The kind of a time.
#[derive(Clone, Copy)]
enum TimeKind {
    Rtt,
    AckLag,
}

/// A histogram bucket.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// The kind of the times, their direction, and the bucket number.
    key: u32,
    times: u32,
    sum_ns: i64,
}

/// The times of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    /// Buckets by key.
    buckets: HashTable<Bucket>,
    /// Number of low bits that bucket numbers omit.
    widened_bits: u32,
}

impl Bucket {
    #[inline]
    fn hash(key: u32) -> u64 {
        let product = u64::from(key).wrapping_mul(SPREAD);
        // The table uses the low bits, and wide buckets have equal low bits.
        product ^ product >> 32
    }
}

#[inline]
fn group(kind: TimeKind, from_client: bool) -> u32 {
    (2 * kind as u32 + u32::from(!from_client)) << BUCKET_BITS
}

impl Times {
    /// Number of buckets.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Takes the times that the ACK of a segment shows. `other_has_finished` says that the peer's FIN came
    /// before.
    #[inline]
    pub(super) fn take(&mut self, segment: &Segment, judged: &Judged, from_client: bool, other_has_finished: bool) {
        let answer = &judged.answer;
        let Some(rtt_ns) = answer.rtt_ns.get() else { return };
        // A round trip belongs to the direction of the data, not of the ACK.
        self.add(group(TimeKind::Rtt, !from_client), rtt_ns);
        let is_pure = segment.payload_bytes == 0 && !segment.flags.any(TcpFlags::FIN | TcpFlags::SYN | TcpFlags::RST);
        let beyond_syn = judged.ack.is_some_and(|ack| ack > 1);
        // An ACK after a FIN is sent at once, so it shows no delay.
        if let Some(lag_ns) = answer.lag_ns.get().filter(|lag_ns| *lag_ns >= 0)
            && is_pure
            && beyond_syn
            && !other_has_finished
        {
            self.add(group(TimeKind::AckLag, from_client), lag_ns);
        }
    }

    #[inline]
    fn add(&mut self, group: u32, time_ns: i64) {
        // A clock that steps back produces negative times.
        let bucket = (time_ns.max(0) as f32).to_bits() >> DROPPED_BITS;
        let key = group | bucket >> self.widened_bits << self.widened_bits;
        self.count(Bucket { key, times: 1, sum_ns: time_ns });
    }

    /// Adds times to their bucket.
    #[inline]
    fn count(&mut self, more: Bucket) {
        let is_it = |bucket: &Bucket| bucket.key == more.key;
        if let Some(bucket) = self.buckets.find_mut(Bucket::hash(more.key), is_it) {
            bucket.times = bucket.times.saturating_add(more.times);
            bucket.sum_ns = bucket.sum_ns.saturating_add(more.sum_ns);
        } else {
            self.buckets.insert_unique(Bucket::hash(more.key), more, |bucket| Bucket::hash(bucket.key));
        }
    }

    /// Makes the buckets wider. `bits` is the total number of bits to omit.
    #[cold]
    pub(super) fn widen(&mut self, bits: u32) {
        self.widened_bits = bits;
        for bucket in std::mem::take(&mut self.buckets) {
            self.count(Bucket { key: bucket.key >> bits << bits, ..bucket });
        }
    }

    /// The quantiles of the client's direction and of the server's.
    pub(super) fn quantiles(self) -> [DirectionTimes; 2] {
        let mut buckets: Vec<_> = self.buckets.into_iter().collect();
        buckets.sort_unstable_by_key(|bucket| bucket.key);
        let of = |kind, from_client| {
            let group = group(kind, from_client) >> BUCKET_BITS;
            let start = buckets.partition_point(|bucket| bucket.key >> BUCKET_BITS < group);
            let end = buckets.partition_point(|bucket| bucket.key >> BUCKET_BITS <= group);
            quantiles(buckets.get(start..end).unwrap_or_default())
        };
        [true, false].map(|from_client| DirectionTimes {
            rtt: of(TimeKind::Rtt, from_client),
            ack_lag: of(TimeKind::AckLag, from_client),
        })
    }
}

/// The quantiles of sorted buckets, by nearest rank.
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

    use super::{TimeKind, Times, group};

    fn counted(times_ns: &[i64], widened_bits: u32) -> Times {
        let mut times = Times { widened_bits, ..Times::default() };
        for ns in times_ns {
            times.add(group(TimeKind::Rtt, true), *ns);
        }
        times
    }

    fn found(times: &Times) -> (Option<i64>, Option<i64>) {
        let [client, _] = times.clone().quantiles();
        (client.rtt.p50_ns.get(), client.rtt.p95_ns.get())
    }

    /// The quantile by the definition of the nearest rank.
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
        assert_eq!(found(&Times::default()), (None, None));
    }
}
