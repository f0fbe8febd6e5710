//! The holes in the captured sequence space of one direction. The bytes of a hole were lost before the capture point,
//! reordered, or missed by the capture.

use super::outstanding::Stamp;

/// Maximum number of holes per direction. When the limit is reached, the oldest hole is dropped, and its bytes count as
/// captured.
const MAX_HOLES: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Hole {
    start: i64,
    end: i64,
    /// The segment that skipped the hole. A segment that fills the hole is compared with this segment.
    jumper: Stamp,
    /// Whether the hole is acknowledged. If so, its bytes count as missing from the capture.
    acknowledged: bool,
    /// Whether the hole is the rest of a larger hole, whose first part was acknowledged and counted.
    rest: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filled {
    /// Number of bytes that were in holes before.
    pub bytes: i64,
    /// How many of these bytes were counted as missing from the capture.
    pub counted: i64,
    /// Number of acknowledged holes that are now completely filled.
    pub closed: u32,
    /// The segment that skipped the first of these bytes.
    pub jumper: Option<Stamp>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Holes {
    missing: Vec<Hole>,
    /// End of the last hole.
    top: i64,
    /// Holes below this offset are acknowledged.
    acknowledged_to: i64,
}

impl Holes {
    #[cold]
    pub(crate) fn open(&mut self, start: i64, end: i64, jumper: Stamp, acknowledged: bool) {
        if self.missing.len() >= MAX_HOLES {
            self.missing.remove(0);
        }
        self.missing.push(Hole { start, end, jumper, acknowledged, rest: false });
        self.top = end;
    }

    #[inline]
    pub(crate) fn fill(&mut self, start: i64, end: i64) -> Filled {
        if self.missing.is_empty() || start >= self.top { Filled::default() } else { self.fill_some(start, end) }
    }

    #[cold]
    fn fill_some(&mut self, start: i64, end: i64) -> Filled {
        let mut filled = Filled::default();
        let mut left = Vec::with_capacity(self.missing.len() + 1);
        for hole in &self.missing {
            let (from, to) = (hole.start.max(start), hole.end.min(end));
            if from >= to {
                left.push(*hole);
                continue;
            }
            filled.bytes += to - from;
            filled.counted += if hole.acknowledged { to - from } else { 0 };
            filled.closed += u32::from(hole.acknowledged && from == hole.start && to == hole.end);
            filled.jumper.get_or_insert(hole.jumper);
            if hole.start < from {
                left.push(Hole { end: from, ..*hole });
            }
            if to < hole.end {
                left.push(Hole { start: to, ..*hole });
            }
        }
        // A hole that is filled in its middle becomes two holes, so the limit is checked again.
        left.drain(..left.len().saturating_sub(MAX_HOLES));
        self.missing = left;
        filled
    }

    /// Marks all holes below `ack` as acknowledged. Returns the number of bytes in holes that are acknowledged for the
    /// first time, and the number of these holes.
    #[inline]
    pub(crate) fn acknowledge(&mut self, ack: i64) -> (i64, u32) {
        if self.acknowledged_to >= self.top { (0, 0) } else { self.acknowledge_some(ack) }
    }

    #[cold]
    fn acknowledge_some(&mut self, ack: i64) -> (i64, u32) {
        if ack <= self.acknowledged_to {
            return (0, 0);
        }
        self.acknowledged_to = ack;
        let (mut bytes, mut holes) = (0, 0);
        let mut cut = None;
        for (at, hole) in self.missing.iter_mut().enumerate() {
            if hole.acknowledged || hole.start >= ack {
                continue;
            }
            if hole.end > ack {
                cut = Some((at, Hole { start: ack, rest: true, ..*hole }));
                hole.end = ack;
            }
            hole.acknowledged = true;
            bytes += hole.end - hole.start;
            holes += u32::from(!hole.rest);
        }
        if let Some((at, rest)) = cut {
            self.missing.insert(at + 1, rest);
            self.missing.drain(..self.missing.len().saturating_sub(MAX_HOLES));
        }
        (bytes, holes)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::{Filled, Holes, Stamp};

    #[test]
    fn a_late_segment_fills_its_part_of_a_hole_once() {
        let mut holes = Holes::default();
        holes.open(1001, 3001, Stamp { tsval: NonZeroU32::new(7), ..Stamp::default() }, false);
        let filled = holes.fill(1001, 2001);
        assert_eq!((filled.bytes, filled.jumper.and_then(|jumper| jumper.tsval)), (1000, NonZeroU32::new(7)));
        assert_eq!(holes.fill(1001, 2001), Filled::default());
        assert_eq!(holes.fill(0, 9000).bytes, 1000);
    }

    #[test]
    fn what_is_acknowledged_unseen_is_reported_once_and_taken_back_if_it_comes() {
        let mut holes = Holes::default();
        holes.open(1001, 3001, Stamp::default(), false);
        assert_eq!(holes.acknowledge(1001), (0, 0));
        assert_eq!(holes.acknowledge(2001), (1000, 1));
        assert_eq!(holes.acknowledge(5001), (1000, 0), "the rest of the same hole");
        assert_eq!(holes.acknowledge(5001), (0, 0));
        let filled = holes.fill(1001, 2001);
        assert_eq!((filled.bytes, filled.counted, filled.closed), (1000, 1000, 1));
    }
}
