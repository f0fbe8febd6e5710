//! Recognizes packets that were captured twice or duplicated by the network. A segment without new data and without a
//! new ACK is compared with the segments captured just before it.

use super::direction::DirectionState;
use super::evidence::{Confidence, Evidence, Verdict};
use super::kind::Kind;
use super::recent::Found;
use super::sequence_space::{Placed, Stamp};
use crate::wire::{Segment, TcpFlags};

/// If no RTT was measured, an identical segment within this time is a capture duplicate (a heuristic).
const COPY_NS: i64 = 1_000_000;
/// An identical segment with the same IP ID within this time is a capture duplicate (a heuristic: the time is far below
/// 200 ms, the shortest common retransmission timeout).
const SAME_ID_COPY_NS: i64 = 10_000_000;
/// If the IP ID is the same but TTL or lower layers differ, a copy within this time is a capture duplicate (a
/// heuristic: the shortest common retransmission timeout). Such a packet was captured at two points, and a queue or a
/// slow link between the points can delay the second capture.
const OTHER_PATH_COPY_NS: i64 = 200_000_000;
/// A host can send the same pure ACK twice. If IP IDs do not distinguish packets, a repeated pure ACK is a capture
/// duplicate only if at least 1/3 of the connection's segments so far were captured twice (a heuristic).
const SYSTEMATIC_SHARE: u64 = 3;
impl DirectionState {
    /// Whether a segment of this host can be a duplicate, because the segment has neither new data nor a new ACK.
    #[inline]
    pub(crate) fn may_repeat(&self, segment: &Segment, receiver: &DirectionState) -> bool {
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

/// The verdict on a segment that duplicates an earlier segment; `None` for other segments.
#[cold]
pub(crate) fn copy_of(
    segment: &Segment,
    sender: &mut DirectionState,
    receiver: &mut DirectionState,
) -> Option<Verdict> {
    if segment.damaged {
        return None;
    }
    let verdict = judge(segment, sender, receiver)?;
    sender.recent.remember_more();
    receiver.recent.remember_more();
    Some(verdict)
}

fn judge(segment: &Segment, sender: &DirectionState, receiver: &DirectionState) -> Option<Verdict> {
    let counts = sender.ip_id_moves && segment.ip.id.is_some_and(|id| id != 0);
    let found = sender.recent.find(segment).or_else(|| in_flight(segment, sender, counts))?;
    let rtt_sample_ns =
        sender.figures.rtt_min_ns.get().map(|rtt| rtt.saturating_add(receiver.figures.rtt_min_ns.get().unwrap_or(0)));
    let quarter_ns = rtt_sample_ns.map(|rtt_ns| rtt_ns / 4);
    let within = |bound_ns: i64| found.gap_ns.is_none_or(|gap_ns| gap_ns.abs() <= bound_ns);
    let same_packet_ns = SAME_ID_COPY_NS.max(quarter_ns.unwrap_or(0));
    let verdict = |evidence, confidence| Verdict::new(Kind::CaptureDuplicate, evidence, confidence).with(found.frame);
    if found.other_path && within(if counts { OTHER_PATH_COPY_NS } else { same_packet_ns }) {
        return Some(verdict(Evidence::Path, Confidence::Proved));
    }
    if counts && within(same_packet_ns) {
        return Some(verdict(Evidence::IpId, Confidence::Consistent));
    }
    if counts && segment.options.timestamps.is_some() {
        // The packet is not a retransmission, because a retransmission is sent later and has a newer timestamp. Some
        // stacks reuse the IP ID for a retransmission, but no stack reuses the timestamp.
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

/// The segment in flight that has the same bytes and is the same packet as `segment`.
fn in_flight(segment: &Segment, sender: &DirectionState, counts: bool) -> Option<Found> {
    let isn = sender.figures.isn?;
    let start = crate::seq::unwrap(segment.seq, isn, sender.snd_max);
    let sent = sender.outstanding.at(start)?;
    let stamp = Stamp::of(segment);
    let whole = sent.start == start && sent.end == start + i64::from(segment.payload_bytes);
    let same = whole && segment.payload_bytes > 0 && sent.stamp.tsval == stamp.tsval && sent.stamp.ip_id == stamp.ip_id;
    let gap_ns = stamp.ts_ns.since(sent.stamp.ts_ns).get();
    (same && counts).then_some(Found { frame: sent.stamp.frame, gap_ns, other_path: false })
}

/// Counts a duplicate packet. If the packet occupies sequence space, it is stored for comparison with later D-SACK
/// blocks.
#[cold]
pub(crate) fn count(verdict: Verdict, segment: &Segment, placed: Placed, sender: &mut DirectionState) {
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

/// Records whether IP IDs distinguish the packets of this host. A constant IP ID does not distinguish packets.
#[inline]
pub(crate) fn note_ip_id(segment: &Segment, sender: &mut DirectionState) {
    // Some stacks send SYN-ACKs with IP ID 0 and use other IDs afterwards.
    sender.ip_id_moves = sender.last_ip_id.is_some_and(|id| id != 0) && segment.ip.id != sender.last_ip_id;
    sender.last_ip_id = segment.ip.id;
}
