//! Packets that the capture, or the network, holds twice: found by comparing a segment that brings nothing new with
//! those captured just before it.

use super::evidence::{Confidence, Evidence, Verdict};
use super::half::{Half, Placed};
use super::outstanding::Stamp;
use super::row::Kind;
use crate::wire::{Segment, TcpFlags};

/// Segments remembered per direction; copies mostly stand beside each other.
const FEW: usize = 4;
/// The same once a copy was seen: bursts may come as a whole before their copies.
const MANY: usize = 64;
/// Without a round trip to compare with, what looks the same within this time is a copy (a heuristic).
const COPY_NS: i64 = 1_000_000;
/// The same where the IP identification, too, says that it is the same packet (a heuristic: far below the 200 ms of the
/// shortest common retransmission timeout).
const SAME_ID_COPY_NS: i64 = 10_000_000;
/// The same where it came another way, too: queues and slow links lie between two points of one path (a heuristic: less than
/// the shortest common retransmission timeout).
const OTHER_WAY_COPY_NS: i64 = 200_000_000;
/// A pure ACK without an identification can be a true repetition. It counts as a copy in a capture that holds at least one of
/// so many segments twice (a heuristic).
const SYSTEMATIC_SHARE: u64 = 3;
/// Nanoseconds of a tick of the remembered times, as a power of two: about a microsecond.
const TICK_SHIFT: u32 = 10;

/// What is remembered of a segment, in 16 bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Print {
    /// Everything that a copy has in common with its original; 0: nothing is remembered.
    hash: u32,
    /// Low bits of its time in ticks, and of its frame number.
    ticks: u32,
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
        // Each is mixed before the next comes in: sequence numbers and identifications rise together, and would cancel.
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

/// The segments of one direction that were captured last.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    few: [Print; FEW],
    next: u8,
    many: Option<Box<[Print; MANY]>>,
}

impl Recent {
    /// Remembers a segment.
    #[inline]
    pub(super) fn push(&mut self, segment: &Segment) {
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

    /// A capture that holds one packet twice holds others twice.
    fn remember_more(&mut self) {
        self.many.get_or_insert_with(|| Box::new([Print::default(); MANY]));
    }

    /// The one that this segment repeats: its frame, how long ago it was, and whether it came another way.
    fn find(&self, segment: &Segment) -> Option<Found> {
        let print = Print::of(segment);
        let same = |one: &&Print| one.hash == print.hash;
        let many = self.many.as_deref().map_or(&[][..], |many| &many[..]);
        let one = self.few.iter().find(same).or_else(|| many.iter().find(same))?;
        let timed = one.timed && print.timed;
        let ticks = print.ticks.wrapping_sub(one.ticks) as i32;
        Some(Found {
            frame: segment.frame - u64::from(print.frame.wrapping_sub(one.frame)),
            gap_ns: timed.then(|| i64::from(ticks) << TICK_SHIFT),
            other_way: one.ttl != print.ttl || one.path != print.path,
        })
    }
}

/// An earlier segment that looks the same.
#[derive(Clone, Copy, Debug)]
struct Found {
    frame: u64,
    gap_ns: Option<i64>,
    /// Another time to live, or other layers.
    other_way: bool,
}

impl Half {
    /// Whether a segment of this side can be a copy: it sends and acknowledges nothing for the first time.
    #[inline]
    pub(super) fn may_repeat(&self, segment: &Segment, receiver: &Half) -> bool {
        if segment.payload_bytes > 0 {
            let end = segment.seq.wrapping_add(segment.payload_bytes);
            let sent_to = self.figures.isn.unwrap_or(0).wrapping_add(self.snd_max as u32);
            if end.wrapping_sub(sent_to) as i32 > 0 {
                return false;
            }
        }
        if !segment.flags.any(TcpFlags::ACK) || !self.acked.is_some() {
            return self.started || segment.flags.any(TcpFlags::RST);
        }
        let acked_to = receiver.figures.isn.unwrap_or(0).wrapping_add(self.acked.value() as u32);
        segment.ack.wrapping_sub(acked_to) as i32 <= 0
    }
}

/// The verdict on a segment that brings nothing new, if it is a copy of an earlier one.
#[cold]
pub(super) fn copy_of(segment: &Segment, sender: &mut Half, receiver: &mut Half) -> Option<Verdict> {
    if segment.damaged {
        return None;
    }
    let verdict = judge(segment, sender, receiver)?;
    sender.recent.remember_more();
    receiver.recent.remember_more();
    Some(verdict)
}

fn judge(segment: &Segment, sender: &Half, receiver: &Half) -> Option<Verdict> {
    let counts = sender.ip_id_moves && segment.ip.id.is_some_and(|id| id != 0);
    let found = sender.recent.find(segment).or_else(|| in_flight(segment, sender, counts))?;
    let round_trip_ns =
        sender.figures.rtt_min_ns.get().map(|rtt| rtt.saturating_add(receiver.figures.rtt_min_ns.get().unwrap_or(0)));
    let quarter_ns = round_trip_ns.map(|rtt_ns| rtt_ns / 4);
    let within = |bound_ns: i64| found.gap_ns.is_none_or(|gap_ns| gap_ns.abs() <= bound_ns);
    let same_packet_ns = SAME_ID_COPY_NS.max(quarter_ns.unwrap_or(0));
    let verdict = |evidence, confidence| Verdict::new(Kind::CaptureDuplicate, evidence, confidence).with(found.frame);
    if found.other_way && within(if counts { OTHER_WAY_COPY_NS } else { same_packet_ns }) {
        return Some(verdict(Evidence::Path, Confidence::Proved));
    }
    if counts && within(same_packet_ns) {
        return Some(verdict(Evidence::IpId, Confidence::Consistent));
    }
    if counts && segment.options.timestamps.is_some() {
        // The clock has moved since; some stacks resend with the same identification, but none with the same time.
        return Some(Verdict::new(Kind::NetworkDuplicate, Evidence::IpId, Confidence::Consistent).with(found.frame));
    }
    if !within(quarter_ns.unwrap_or(COPY_NS)) {
        return None;
    }
    let occupies = segment.payload_bytes > 0 || segment.flags.any(TcpFlags::SYN | TcpFlags::FIN);
    let copies = u64::from(sender.figures.capture_duplicates) + u64::from(receiver.figures.capture_duplicates);
    let systematic = copies * SYSTEMATIC_SHARE >= sender.figures.segments + receiver.figures.segments;
    if !occupies && !systematic {
        return None;
    }
    let evidence = if segment.options.timestamps.is_some() { Evidence::Timestamp } else { Evidence::Time };
    let confidence = if occupies { Confidence::Consistent } else { Confidence::Possible };
    Some(verdict(evidence, confidence))
}

/// The packet whose bytes are still on their way, if it is the same packet.
fn in_flight(segment: &Segment, sender: &Half, counts: bool) -> Option<Found> {
    let isn = sender.figures.isn?;
    let start = crate::seq::unwrap(segment.seq, isn, sender.snd_max);
    let sent = sender.outstanding.at(start)?;
    let stamp = Stamp::of(segment);
    let whole = sent.start == start && sent.end == start + i64::from(segment.payload_bytes);
    let same = whole && segment.payload_bytes > 0 && sent.stamp.tsval == stamp.tsval && sent.stamp.ip_id == stamp.ip_id;
    let gap_ns = stamp.ts_ns.since(sent.stamp.ts_ns).get();
    (same && counts).then_some(Found { frame: sent.stamp.frame, gap_ns, other_way: false })
}

/// What a copy adds to its direction: that it is one. Nothing else that is known of the connection moves.
#[cold]
pub(super) fn count(verdict: Verdict, segment: &Segment, placed: Placed, sender: &mut Half) {
    if verdict.kind == Kind::CaptureDuplicate {
        sender.figures.capture_duplicates += 1;
    } else {
        sender.figures.network_duplicates += 1;
    }
    if placed.end > placed.start {
        let stamp = Stamp::of(segment);
        let counted = verdict.kind == Kind::NetworkDuplicate;
        sender.history_mut().remember_copy(placed, stamp, counted);
    }
}

/// Notes whether this side's IP identifications tell its packets apart: a constant one does not.
#[inline]
pub(super) fn note_ip_id(segment: &Segment, sender: &mut Half) {
    // That of a SYN-ACK is 0 in some stacks, whatever comes behind it.
    sender.ip_id_moves = sender.last_ip_id.is_some_and(|id| id != 0) && segment.ip.id != sender.last_ip_id;
    sender.last_ip_id = segment.ip.id;
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
