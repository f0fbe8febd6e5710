//! Converts 32-bit sequence numbers to 64-bit stream offsets (RFC 9293, 3.4).

/// The stream offset of a sequence number. The low 32 bits of the offset are `number - base`, and the offset is within
/// 2^31 of `near`.
///
/// A capture can start in the middle of a stream. Bytes before the first captured segment have offsets below 1.
///
/// ```
/// use tcptrace_lab_core::seq::unwrap;
///
/// let isn: u32 = 0xffff_fff0;
/// assert_eq!(unwrap(4, isn, 10), 20); // the sequence numbers wrap around, the offset does not
/// assert_eq!(unwrap(isn - 100, isn, 10), -100); // a byte before the first captured segment
/// ```
#[inline]
#[must_use]
pub fn unwrap(number: u32, base: u32, near: i64) -> i64 {
    let relative = number.wrapping_sub(base);
    let step = relative.wrapping_sub(near as u32) as i32;
    near.saturating_add(i64::from(step))
}

#[cfg(test)]
mod tests {
    use super::unwrap;
    use proptest::prelude::*;

    #[test]
    fn the_isn_is_offset_zero_and_the_first_byte_one() {
        assert_eq!(unwrap(1000, 1000, 0), 0);
        assert_eq!(unwrap(1001, 1000, 0), 1);
    }

    #[test]
    fn a_number_past_the_wrap_goes_on_upwards() {
        assert_eq!(unwrap(4, 0xffff_fff0, 10), 20);
        assert_eq!(unwrap(0, 0, 0xffff_fff0), 0x1_0000_0000);
    }

    #[test]
    fn a_byte_from_before_a_mid_stream_start_is_below_one() {
        assert_eq!(unwrap(900, 1000, 1), -100);
    }

    proptest! {
        #[test]
        fn any_offset_survives_the_way_over_32_bits(base: u32, offset in -(1i64 << 40)..(1i64 << 40), step in -0x7fff_ffffi64..0x7fff_ffff) {
            let number = base.wrapping_add((offset + step) as u32);
            prop_assert_eq!(unwrap(number, base, offset), offset + step);
        }
    }
}
