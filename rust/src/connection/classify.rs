//! What a segment is, judged from the state of its connection just before it.

use super::half::{Half, Placed};
use super::holes::Jumper;
use super::row::{Kind, Nullable, ReleasedBy};
use crate::wire::{Segment, TcpFlags};

/// RFC 5681, 3.2: the third duplicate ACK lets a segment be resent.
const FAST_RETRANSMIT_DUPLICATE_ACKS: u32 = 3;
/// Smallest retransmission timeout in use (Linux `TCP_RTO_MIN`, 200 ms; others are longer): a byte resent sooner was
/// not resent by this timer.
const MIN_RTO_NS: i64 = 200_000_000;
/// A gap in the stream that closes within this time was reordering, where nothing better tells (Wireshark's bound).
const REORDERING_NS: i64 = 3_000_000;
/// Within this time, or a tenth of the round trip if that is longer, one event is taken to have caused the next
/// (a heuristic; the rule book's ε).
const CAUSAL_NS: i64 = 1_000_000;

/// What a segment brings to the stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Novelty {
    /// Sequence numbers never seen before.
    pub new: i64,
    /// Who had jumped over the first of them, if they close a hole.
    pub jumper: Option<Jumper>,
}

/// Judges a segment that `sender` sent. `ack` is what it acknowledges; the state is that before the segment.
#[inline]
pub(super) fn kind_of(
    segment: &Segment,
    placed: Placed,
    ack: Option<i64>,
    novelty: Novelty,
    sender: &Half,
    receiver: &Half,
) -> Kind {
    if segment.damaged {
        return Kind::LinkDamaged;
    }
    if segment.flags.any(TcpFlags::RST) {
        return Kind::Reset;
    }
    if let Some(kind) = probe(segment, placed, sender, receiver) {
        return kind;
    }
    if placed.end == placed.start {
        return ack.map_or(Kind::Ack, |ack| pure_ack(segment, ack, sender, receiver));
    }
    if placed.start >= sender.snd_max && novelty.jumper.is_none() {
        return Kind::New;
    }
    if placed.end - placed.start == novelty.new && came_late(segment, novelty, sender) {
        return Kind::OutOfOrder;
    }
    resent(segment, placed, sender)
}

/// Keepalives and zero-window probes: at most one byte, at the last sequence number acknowledged or the next one.
#[inline]
fn probe(segment: &Segment, placed: Placed, sender: &Half, receiver: &Half) -> Option<Kind> {
    if segment.payload_bytes > 1
        || segment.flags.any(TcpFlags::SYN | TcpFlags::FIN)
        || !segment.flags.any(TcpFlags::ACK)
    {
        return None;
    }
    let una = sender.snd_una.get()?;
    let below = placed.start == una - 1;
    if receiver.started && receiver.raw_window == 0 && receiver.acked.is_some() {
        let at = placed.start == una && segment.payload_bytes == 1;
        return (below || at).then_some(Kind::ZeroWindowProbe);
    }
    (below && una == sender.snd_max && una > 1).then_some(Kind::Keepalive)
}

/// RFC 5681, 2 for duplicate ACKs; with SACK blocks the window may move at the same time (RFC 6675, 2).
fn pure_ack(segment: &Segment, ack: i64, sender: &Half, receiver: &Half) -> Kind {
    if sender.acked.get() != Some(ack) {
        return Kind::Ack;
    }
    let same_window = segment.window == sender.raw_window;
    if receiver.last_was_keepalive && same_window {
        return Kind::KeepaliveAck;
    }
    let outstanding = receiver.snd_max > ack;
    if outstanding && (same_window || !segment.options.sack.is_empty()) {
        return Kind::DuplicateAck;
    }
    if same_window { Kind::Ack } else { Kind::WindowUpdate }
}

/// Whether bytes that fill a hole were sent before those that jumped over them: by TCP timestamp, else by IP
/// identification, else by time.
fn came_late(segment: &Segment, novelty: Novelty, sender: &Half) -> bool {
    let Some(jumper) = novelty.jumper else { return false };
    let late = Half::jumper(segment);
    if let (Some(late), Some(jumper)) = (late.tsval, jumper.tsval)
        && late != jumper
    {
        return (late.wrapping_sub(jumper) as i32) < 0;
    }
    if let (Some(late), Some(jumper)) = (late.ip_id, jumper.ip_id)
        && late != jumper
    {
        return (late.wrapping_sub(jumper) as i16) < 0;
    }
    let bound_ns = sender.figures.rtt.min_ns().map_or(REORDERING_NS, |rtt_ns| REORDERING_NS.max(rtt_ns / 2));
    late.ts_ns.since(jumper.ts_ns).get().is_some_and(|gap_ns| gap_ns < bound_ns)
}

/// Why bytes were resent, as far as the row before tells for certain: by the retransmission timer only after silence of the
/// sender, fast after three duplicate ACKs or as much in SACK blocks (RFC 6675, 4: `IsLost`). Else it is left open.
fn resent(segment: &Segment, placed: Placed, sender: &Half) -> Kind {
    if sender.snd_una.get().is_some_and(|una| una != placed.start) {
        return Kind::Retransmit;
    }
    let full_segment = i64::from(sender.figures.max_segment_bytes);
    let sacked_enough = sender.sacked_bytes > full_segment * i64::from(FAST_RETRANSMIT_DUPLICATE_ACKS - 1);
    if sender.duplicate_acks_received >= FAST_RETRANSMIT_DUPLICATE_ACKS || sacked_enough {
        return Kind::FastRetransmit;
    }
    let now = Nullable::from(segment.ts_ns);
    let waited = |since: Nullable| now.since(since).get().is_some_and(|waited_ns| waited_ns >= MIN_RTO_NS);
    if waited(sender.last_ts_ns) && waited(sender.outstanding.last_seen(placed.start)) {
        return Kind::RtoRetransmit;
    }
    Kind::Retransmit
}

/// What let a data segment leave, and the frame that did.
#[inline]
pub(super) fn released_by(segment: &Segment, kind: Kind, sender: &Half, receiver: &Half) -> (ReleasedBy, Option<u64>) {
    match kind {
        Kind::RtoRetransmit | Kind::TailProbe | Kind::Keepalive | Kind::ZeroWindowProbe => {
            return (ReleasedBy::Timer, None);
        }
        Kind::FastRetransmit => return (ReleasedBy::Ack, Some(receiver.last_ack_frame)),
        _ => {}
    }
    let causal_ns = sender.figures.rtt.min_ns().map_or(CAUSAL_NS, |rtt_ns| CAUSAL_NS.max(rtt_ns / 10));
    let idle = sender.in_flight() == Some(0);
    let now = Nullable::from(segment.ts_ns);
    let soon = |from: Nullable| now.since(from).get().is_some_and(|gap_ns| gap_ns <= causal_ns);
    let heard_after_sending =
        receiver.last_ack_ts_ns.is_some() && receiver.last_ack_ts_ns.value() >= sender.last_ts_ns.value();
    if !heard_after_sending && sender.last_was_data && soon(sender.last_ts_ns) {
        return (ReleasedBy::Burst, Some(sender.burst_frame));
    }
    // An ACK that carries data lets the program answer; one without lets the stack go on.
    let answers = idle && receiver.last_was_data;
    if heard_after_sending && !answers && soon(receiver.last_ack_ts_ns) {
        return (ReleasedBy::Ack, Some(receiver.last_ack_frame));
    }
    if idle {
        return (ReleasedBy::Write, None);
    }
    (ReleasedBy::Unknown, None)
}
