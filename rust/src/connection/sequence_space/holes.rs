//! Skipped ranges of sequence space: lost before the capture point, reordered, or missed by the capture.

use super::outstanding::Stamp;

/// Maximum number of holes per direction. The oldest is dropped first; its bytes then count as captured.
const MAX_HOLES: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Hole {
    start: i64,
    end: i64,
    /// The segment that skipped the hole. A late segment is compared with it.
    jumper: Stamp,
    /// The hole was acknowledged, so its bytes count as not captured.
    acknowledged: bool,
    /// The rest of a hole whose first part was acknowledged and counted.
    rest: bool,
}

/// What arriving bytes fill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filled {
    /// Bytes that were missing before.
    pub bytes: i64,
    /// The part of `bytes` that was counted as not captured.
    pub counted: i64,
    /// Number of holes counted as not captured that are now filled.
    pub closed: u32,
    /// The segment that skipped the first of the bytes.
    pub jumper: Option<Stamp>,
}

/// The holes of one direction, ordered by offset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holes {
    missing: Vec<Hole>,
    /// End of the last hole.
    top: i64,
    /// Offset below which all holes are acknowledged.
    acknowledged_to: i64,
}

impl Holes {
    /// Adds the hole `start..end`.
    #[cold]
    pub(crate) fn open(&mut self, start: i64, end: i64, jumper: Stamp, acknowledged: bool) {
        if self.missing.len() >= MAX_HOLES {
            self.missing.remove(0);
        }
        self.missing.push(Hole { start, end, jumper, acknowledged, rest: false });
        self.top = end;
    }

    /// Fills holes with the bytes `start..end`.
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
        // A hole filled in its middle becomes two.
        left.drain(..left.len().saturating_sub(MAX_HOLES));
        self.missing = left;
        filled
    }

    /// Takes an ACK of everything below `ack`. Returns how many missing bytes it covers for the first time, and
    /// in how many holes.
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
