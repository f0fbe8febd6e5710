//! Stores the last captured segments of one direction, so that duplicate packets can be recognized.

use crate::wire::Segment;

/// Number of segments stored per direction. Most duplicate packets directly follow their originals.
const FEW: usize = 4;
/// Number of segments stored per direction after the first duplicate packet. A whole burst may be captured before the
/// duplicates of its packets.
const MANY: usize = 64;
/// Stored times have the unit 2^10 ns, about 1 µs.
const TICK_SHIFT: u32 = 10;

/// Fingerprint of a segment in 16 bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Print {
    /// Hash of all fields that are equal in a duplicate packet and its original; 0 in an unused element.
    hash: u32,
    /// Low bits of the segment's time in ticks.
    ticks: u32,
    /// Low bits of the frame number.
    frame: u32,
    ttl: u8,
    timed: bool,
    path: u16,
}

impl Print {
    #[inline]
    fn of(segment: &Segment) -> Self {
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        let (value, echo) = segment.options.timestamps.unwrap_or_default();
        let id = u64::from(segment.ip.id.unwrap_or(0));
        let numbers = u64::from(segment.seq) << 32 | u64::from(segment.ack);
        let times = u64::from(value) << 32 | u64::from(echo);
        let rest = u64::from(segment.payload_bytes)
            ^ (id << 16 | u64::from(segment.flags.0) << 48)
            ^ u64::from(segment.window) << 32;
        // The hash is multiplied after each value. Without the multiplications, sequence numbers and IP IDs, which
        // increase together, would cancel out.
        let mut hash = numbers.wrapping_mul(MIX);
        hash = (hash ^ hash >> 32 ^ rest).wrapping_mul(MIX);
        hash = (hash ^ hash >> 32 ^ times).wrapping_mul(MIX);
        for (left, right) in segment.options.sack.as_slice() {
            hash = (hash ^ (u64::from(*left) << 32 | u64::from(*right))).wrapping_mul(MIX);
            hash ^= hash >> 29;
        }
        Self {
            hash: (hash >> 32) as u32 | 1,
            ticks: (segment.ts_ns.unwrap_or(0) >> TICK_SHIFT) as u32,
            frame: segment.frame as u32,
            ttl: segment.ip.ttl,
            timed: segment.ts_ns.is_some(),
            path: segment.path,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    few: [Print; FEW],
    next: u8,
    many: Option<Box<[Print; MANY]>>,
}

impl Recent {
    #[inline]
    pub(crate) fn push(&mut self, segment: &Segment) {
        let print = Print::of(segment);
        if let Some(slot) = self.few.get_mut(usize::from(self.next) % FEW) {
            *slot = print;
        }
        if let Some(many) = &mut self.many
            && let Some(slot) = many.get_mut(usize::from(self.next) % MANY)
        {
            *slot = print;
        }
        self.next = self.next.wrapping_add(1);
    }

    /// Stores more segments from now on, because a capture that contains one packet twice usually contains other
    /// packets twice.
    pub(crate) fn remember_more(&mut self) {
        self.many.get_or_insert_with(|| Box::new([Print::default(); MANY]));
    }

    /// Returns the earlier segment with the same fingerprint, if there is one.
    pub(crate) fn find(&self, segment: &Segment) -> Option<Found> {
        let print = Print::of(segment);
        let same = |one: &&Print| one.hash == print.hash;
        let many = self.many.as_deref().map_or(&[][..], |many| &many[..]);
        let one = self.few.iter().find(same).or_else(|| many.iter().find(same))?;
        let timed = one.timed && print.timed;
        let ticks = print.ticks.wrapping_sub(one.ticks) as i32;
        Some(Found {
            frame: segment.frame - u64::from(print.frame.wrapping_sub(one.frame)),
            gap_ns: timed.then(|| i64::from(ticks) << TICK_SHIFT),
            other_path: one.ttl != print.ttl || one.path != print.path,
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub frame: u64,
    pub gap_ns: Option<i64>,
    /// The earlier segment has another TTL or other layers, so it took another path.
    pub other_path: bool,
}

#[cfg(test)]
mod tests {
    use super::{MANY, Recent};
    use crate::wire::Segment;

    fn segment(frame: u64, seq: u32) -> Segment {
        Segment { frame, seq, ts_ns: Some(frame as i64 * 1_000_000), ..Segment::default() }
    }

    #[test]
    fn the_last_four_are_remembered_and_more_once_copies_are_known() {
        let mut recent = Recent::default();
        recent.push(&segment(1, 100));
        for frame in 2..5 {
            recent.push(&segment(frame, 200 + frame as u32));
        }
        let found = recent.find(&segment(5, 100)).map(|found| (found.frame, found.gap_ns));
        assert_eq!(found.map(|found| found.0), Some(1));
        assert!(found.and_then(|found| found.1).is_some_and(|gap_ns| (gap_ns - 4_000_000).abs() < 2_000));
        recent.push(&segment(5, 300));
        assert!(recent.find(&segment(6, 100)).is_none());
        recent.remember_more();
        recent.push(&segment(6, 400));
        for frame in 7..7 + MANY as u64 - 1 {
            recent.push(&segment(frame, 1000 + frame as u32));
        }
        assert!(recent.find(&segment(99, 400)).is_some());
        assert!(recent.find(&Segment { window: 1, ..segment(99, 400) }).is_none());
    }
}
