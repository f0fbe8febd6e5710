//! Holes in a stream. A hole is a range of bytes that the capture does not contain, although it contains later bytes.
//! The bytes of a hole were lost before the capture point, or they arrive late. A retransmission can fill a hole with
//! bytes that are new to the capture, although they were sent before.

/// Maximum number of open holes. A further hole replaces the oldest one. Connections in the tested real captures have
/// at most 3.
pub const MAX_HOLES: usize = 10_000;

/// The open holes as non-empty ranges of stream offsets, in ascending order and without overlap.
#[derive(Debug, Default)]
pub struct Holes {
    ranges: Vec<(i64, i64)>,
}

impl Holes {
    /// Adds a hole from `left`, the expected offset, to `right`, the offset of the segment that arrived. `left` must
    /// not be below any earlier offset.
    pub fn open(&mut self, left: i64, right: i64) {
        self.ranges.push((left, right));
        if self.ranges.len() > MAX_HOLES {
            self.ranges.remove(0);
        }
    }

    /// Marks the bytes from `left` to `right` (exclusive) as captured. Returns how many of these bytes were missing
    /// before the call.
    pub fn fill(&mut self, left: i64, right: i64) -> i64 {
        let first = self.ranges.partition_point(|(_, end)| *end <= left);
        let last = self.ranges.partition_point(|(begin, _)| *begin < right);
        if left >= right || first >= last {
            return 0;
        }
        let filled: Vec<(i64, i64)> = self.ranges.splice(first..last, []).collect();
        let before = filled.first().map(|(begin, _)| (*begin, left));
        let after = filled.last().map(|(_, end)| (right, *end));
        let rest = before.into_iter().chain(after).filter(|(begin, end)| begin < end);
        self.ranges.splice(first..first, rest);
        filled.iter().map(|(begin, end)| (*end).min(right) - (*begin).max(left)).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The expected result comes from a set of single bytes.
        #[test]
        fn a_segment_fills_exactly_the_bytes_that_were_missing(
            segments in prop::collection::vec((0_i64..60, 1_i64..9), 0..40)
        ) {
            let (mut holes, mut end, mut missing) = (Holes::default(), 0, BTreeSet::new());
            for (seq, length) in segments {
                if seq > end {
                    holes.open(end, seq);
                    missing.extend(end..seq);
                } else {
                    let arrived: Vec<i64> = (seq..(seq + length).min(end)).filter(|offset| missing.remove(offset)).collect();
                    prop_assert_eq!(holes.fill(seq, (seq + length).min(end)), arrived.len() as i64);
                }
                end = end.max(seq + length);
            }
            let left: Vec<i64> = holes.ranges.iter().flat_map(|(begin, end)| *begin..*end).collect();
            prop_assert_eq!(left, missing.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_oldest_holes_are_forgotten_when_there_are_too_many() {
        let mut holes = Holes::default();
        for place in 0..MAX_HOLES as i64 + 5 {
            holes.open(10 * place, 10 * place + 4);
        }
        assert_eq!(holes.fill(0, 50), 0);
        assert_eq!(holes.fill(50, 60), 4);
    }
}
