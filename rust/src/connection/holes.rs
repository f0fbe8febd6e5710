//! Ranges of a stream that were jumped over: lost before the capture point, late, or not captured.

use super::row::Nullable;

/// Most holes remembered per direction; the oldest is forgotten first and its bytes then count as seen.
const MAX_HOLES: usize = 256;

/// Evidence on the segment that jumped over a range: what a late segment is compared with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Jumper {
    /// When it was seen.
    pub ts_ns: Nullable,
    /// Its TCP timestamp.
    pub tsval: Option<u32>,
    /// Its IP identification, where it has one that counts.
    pub ip_id: Option<u16>,
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    start: i64,
    end: i64,
    jumper: Jumper,
}

/// The holes of one direction, ordered by offset. Empty for nearly every direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Holes {
    holes: Vec<Hole>,
}

impl Holes {
    /// `start..end` was jumped over.
    pub(super) fn open(&mut self, start: i64, end: i64, jumper: Jumper) {
        if self.holes.len() >= MAX_HOLES {
            self.holes.remove(0);
        }
        self.holes.push(Hole { start, end, jumper });
    }

    /// Bytes `start..end` came. Returns how many of them filled holes, and who had jumped over the first of those.
    #[inline]
    pub(super) fn fill(&mut self, start: i64, end: i64) -> (i64, Option<Jumper>) {
        if self.holes.is_empty() { (0, None) } else { self.fill_some(start, end) }
    }

    fn fill_some(&mut self, start: i64, end: i64) -> (i64, Option<Jumper>) {
        let mut filled = 0;
        let mut jumper = None;
        let mut left = Vec::with_capacity(self.holes.len() + 1);
        for hole in &self.holes {
            let (from, to) = (hole.start.max(start), hole.end.min(end));
            if from >= to {
                left.push(*hole);
                continue;
            }
            filled += to - from;
            jumper.get_or_insert(hole.jumper);
            if hole.start < from {
                left.push(Hole { end: from, ..*hole });
            }
            if to < hole.end {
                left.push(Hole { start: to, ..*hole });
            }
        }
        // One filled in the middle becomes two.
        left.drain(..left.len().saturating_sub(MAX_HOLES));
        self.holes = left;
        (filled, jumper)
    }
}

#[cfg(test)]
mod tests {
    use super::{Holes, Jumper};

    #[test]
    fn a_late_segment_fills_its_part_of_a_hole_once() {
        let mut holes = Holes::default();
        holes.open(1001, 3001, Jumper { tsval: Some(7), ..Jumper::default() });
        let (filled, jumper) = holes.fill(1001, 2001);
        assert_eq!((filled, jumper.and_then(|jumper| jumper.tsval)), (1000, Some(7)));
        assert_eq!(holes.fill(1001, 2001).0, 0);
        assert_eq!(holes.fill(0, 9000).0, 1000);
    }
}
