//! Sorted, disjoint ranges of offsets that a receiver has reported in SACK blocks.

/// Maximum number of ranges. Ranges above the limit are not added.
const MAX_RANGES: usize = 256;

#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    ranges: Vec<(i64, i64)>,
}

impl Ranges {
    /// Adds `start..end`. Returns whether the range contains a new byte.
    pub(crate) fn add(&mut self, start: i64, end: i64) -> bool {
        if start >= end || self.covers(start, end) {
            return false;
        }
        let first = self.ranges.partition_point(|(_, right)| *right < start);
        let behind = self.ranges.partition_point(|(left, _)| *left <= end);
        let mut merged = (start, end);
        for (left, right) in self.ranges.drain(first..behind) {
            merged = (merged.0.min(left), merged.1.max(right));
        }
        if self.ranges.len() < MAX_RANGES {
            self.ranges.insert(first, merged);
        }
        true
    }

    /// Whether one range contains all of `start..end`.
    pub(crate) fn covers(&self, start: i64, end: i64) -> bool {
        let at = self.ranges.partition_point(|(_, right)| *right < end);
        self.ranges.get(at).is_some_and(|(left, right)| *left <= start && end <= *right)
    }

    pub(crate) fn any_above(&self, offset: i64) -> bool {
        self.ranges.last().is_some_and(|(_, right)| *right > offset)
    }

    /// Removes all ranges that end at or below `offset`. If `offset` is inside a range, returns the end of this range:
    /// an ACK of `offset` then shows that the receiver discarded the range (reneging).
    pub(crate) fn forget_below(&mut self, offset: i64) -> Option<i64> {
        let below = self.ranges.partition_point(|(_, right)| *right <= offset);
        self.ranges.drain(..below);
        self.ranges.first().filter(|(left, _)| *left <= offset).map(|(_, right)| *right)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;

    #[test]
    fn blocks_grow_together() {
        let mut ranges = Ranges::default();
        assert!(ranges.add(2000, 3000) && ranges.add(5000, 6000) && ranges.add(3000, 5000));
        assert_eq!(ranges.ranges, [(2000, 6000)]);
        assert!(!ranges.add(2500, 5500) && !ranges.add(7000, 7000));
        assert!(ranges.covers(2000, 6000) && !ranges.covers(1999, 2001) && !ranges.covers(5999, 6001));
        assert!(ranges.any_above(5999) && !ranges.any_above(6000));
    }

    #[test]
    fn an_ack_that_stops_inside_a_block_is_reported() {
        let mut ranges = Ranges::default();
        ranges.add(2000, 3000);
        ranges.add(5000, 6000);
        assert_eq!(ranges.forget_below(1000), None);
        assert_eq!(ranges.forget_below(3000), None);
        assert_eq!(ranges.forget_below(5000), Some(6000), "the block begins where the ACK stops");
        assert_eq!(ranges.forget_below(6000), None);
        assert!(!ranges.any_above(0));
    }
}
