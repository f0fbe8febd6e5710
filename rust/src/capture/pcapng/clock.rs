//! Converts ticks of an interface's clock to nanoseconds since 1970.

const NS_PER_S: i128 = 1_000_000_000;

/// Exponent of a nanosecond: 10^-9 s.
const NANO: u8 = 9;

/// With ticks shorter than 10^-38 s, no 64-bit number of ticks reaches a nanosecond: 2^64 · 10^-38 s is less than
/// 10^-18 s.
const VANISHING_DECIMAL: u8 = 38;

/// The length of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// 10^-n seconds.
    Decimal(u8),
    /// 2^-n seconds.
    Binary(u8),
}

/// The clock of one interface, from its options `if_tsresol` and `if_tsoffset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    unit: Unit,
    offset_s: i64,
    /// Nanoseconds per tick, or `None` if one multiplication cannot convert ticks to time.
    factor: Option<u64>,
}

impl Clock {
    /// A clock from the values of `if_tsresol` and `if_tsoffset`. The highest bit of `resolution` selects the base: a
    /// tick is 10^-n s if the bit is 0, and 2^-n s if it is 1. The other bits contain the number n. Without
    /// `resolution`, a tick is a microsecond.
    pub(super) fn new(resolution: Option<u8>, offset_s: i64) -> Self {
        let unit = match resolution {
            Some(value) if value & 0x80 != 0 => Unit::Binary(value & 0x7F),
            Some(value) => Unit::Decimal(value),
            None => Unit::Decimal(6),
        };
        let factor = match unit {
            Unit::Decimal(exponent) if exponent <= NANO && offset_s == 0 => {
                Some(10_u64.pow(u32::from(NANO - exponent)))
            }
            _ => None,
        };
        Self { unit, offset_s, factor }
    }

    /// The time at `ticks`, rounded down to a nanosecond, or `None` if it does not fit into 64 bits (before 1677, after
    /// 2262).
    #[inline]
    pub(super) fn ns(&self, ticks: u64) -> Option<i64> {
        let simple = self.factor.and_then(|factor| ticks.checked_mul(factor)).and_then(|ns| i64::try_from(ns).ok());
        simple.or_else(|| self.ns_in_general(ticks))
    }

    #[cold]
    #[inline(never)]
    fn ns_in_general(&self, ticks: u64) -> Option<i64> {
        let ticks = i128::from(ticks);
        // No product overflows: all are at most 2^64 · 10^9 < 2^94.
        let since_offset = match self.unit {
            Unit::Decimal(exponent) if exponent <= NANO => ticks * 10_i128.pow(u32::from(NANO - exponent)),
            Unit::Decimal(exponent) if exponent <= VANISHING_DECIMAL => ticks / 10_i128.pow(u32::from(exponent - NANO)),
            Unit::Decimal(_) => 0,
            Unit::Binary(exponent) => (ticks * NS_PER_S) >> exponent,
        };
        i64::try_from(since_offset + i128::from(self.offset_s) * NS_PER_S).ok()
    }

    /// Nanoseconds per tick, at least 1.
    pub(super) fn resolution_ns(&self) -> i64 {
        let ns = match self.unit {
            Unit::Decimal(exponent) => 10_i128.pow(u32::from(NANO.saturating_sub(exponent))),
            Unit::Binary(exponent) => NS_PER_S >> exponent,
        };
        i64::try_from(ns).unwrap_or(i64::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, NS_PER_S};
    use proptest::prelude::*;

    #[test]
    fn without_a_resolution_a_tick_is_a_microsecond() {
        assert_eq!(Clock::new(None, 0).ns(1_700_000_000_123_456), Some(1_700_000_000_123_456_000));
        assert_eq!(Clock::new(None, 0).resolution_ns(), 1_000);
    }

    #[test]
    fn decimal_resolutions_scale_to_nanoseconds() {
        for (exponent, ticks) in [(0, 1_700_000_000), (3, 1_700_000_000_000), (9, 1_700_000_000_000_000_000)] {
            assert_eq!(Clock::new(Some(exponent), 0).ns(ticks), Some(1_700_000_000_000_000_000), "10^-{exponent}");
        }
        // Picoseconds in 64 bits reach up to 18,446,744 s.
        assert_eq!(Clock::new(Some(12), 0).ns(18_000_000_123_456_789_999), Some(18_000_000_123_456_789));
    }

    #[test]
    fn a_binary_resolution_is_a_power_of_two() {
        // A tick is 2^-10 s, so 512 ticks are half a second.
        assert_eq!(Clock::new(Some(0x8A), 0).ns(1_700_000_000 * 1024 + 512), Some(1_700_000_000_500_000_000));
        // A tick is 2^-32 s (0.23 ns), as in NTP.
        assert_eq!(Clock::new(Some(0xA0), 0).ns((7 << 32) | 0x8000_0000), Some(7_500_000_000));
        assert_eq!(Clock::new(Some(0xA0), 0).resolution_ns(), 1);
    }

    #[test]
    fn an_offset_moves_the_clock_by_seconds() {
        assert_eq!(Clock::new(Some(6), 1_000_000_000).ns(5_000_001), Some(1_000_000_005_000_001_000));
        assert_eq!(Clock::new(Some(9), -10).ns(1), Some(-9_999_999_999));
    }

    #[test]
    fn times_beyond_64_bits_are_unknown() {
        assert_eq!(Clock::new(Some(0), 0).ns(u64::MAX), None);
        assert_eq!(Clock::new(Some(9), i64::MIN).ns(0), None);
        assert_eq!(Clock::new(Some(9), 0).ns(i64::MAX as u64 + 1), None);
    }

    proptest! {
        #[test]
        fn any_clock_agrees_with_exact_arithmetic(
            resolution in any::<u8>(),
            offset_s in prop_oneof![any::<i64>(), -5_000_000_000..5_000_000_000_i64],
            ticks in prop_oneof![any::<u64>(), any::<u32>().prop_map(u64::from)],
        ) {
            let exponent = u32::from(resolution & 0x7F);
            let base = if resolution & 0x80 == 0 { 10_i128 } else { 2 };
            // A power beyond 127 bits makes any 64-bit number of ticks shorter than a nanosecond.
            let since_offset = base.checked_pow(exponent).map_or(0, |power| i128::from(ticks) * NS_PER_S / power);
            let exact = since_offset + i128::from(offset_s) * NS_PER_S;
            prop_assert_eq!(Clock::new(Some(resolution), offset_s).ns(ticks), i64::try_from(exact).ok());
        }
    }
}
