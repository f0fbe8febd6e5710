//! Adds a segment to the state of its direction: new bytes, opened and closed holes, and counts.

use super::direction::{DirectionState, Overtaken};
use super::evidence::Verdict;
use super::figures::DirectionFigures;
use super::kind::Kind;
use super::sequence_space::{Filled, Placed, Repeat, Stamp};
use crate::wire::{Segment, TcpFlags};

/// The new bytes of a segment, and the hole that the segment fills.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Novelty {
    /// Number of the segment's sequence numbers that were not captured before.
    pub new: i64,
    /// The earlier segment that skipped the hole, if this segment fills one.
    pub jumper: Option<Stamp>,
}

/// Counts the segment's sequence numbers that were not captured before. Closes the holes that the segment fills, and
/// opens a hole if the segment skips bytes.
#[inline(always)]
pub(crate) fn novelty_of(segment: &Segment, placed: Placed, sender: &mut DirectionState) -> Novelty {
    let beyond = (placed.end - placed.start.max(sender.snd_max)).max(0);
    let filled = sender.holes.as_deref_mut().map_or_else(Filled::default, |holes| holes.fill(placed.start, placed.end));
    let behind_ack = sender.snd_una.value() > sender.snd_max && placed.end > sender.snd_max;
    if filled.counted > 0 || behind_ack {
        take_back(placed, filled, sender);
    }
    if placed.start > sender.snd_max {
        if placed.end > placed.start {
            jump(segment, placed.start, sender);
        } else {
            overtake(segment, placed.start, sender);
        }
    }
    Novelty { new: beyond + filled.bytes, jumper: filled.jumper.or_else(|| overtaker(placed, sender)) }
}

/// Records a segment without data whose sequence number is above all captured data. The sequence number is the sender's
/// `SND.NXT` (RFC 9293, 3.10.7.4), so all lower bytes were sent before the segment. The segment opens no hole, because
/// an ACK may have a sequence number that was never used for data.
#[cold]
fn overtake(segment: &Segment, start: i64, sender: &mut DirectionState) {
    if segment.damaged
        || !segment.flags.any(TcpFlags::ACK)
        || sender.overtaken.as_ref().is_some_and(|shown| shown.end >= start)
    {
        return;
    }
    sender.overtaken = Some(Box::new(Overtaken { end: start, by: Stamp::of(segment) }));
}

/// Returns a segment without data that was sent after the bytes in `placed`, but captured before them.
#[inline(always)]
fn overtaker(placed: Placed, sender: &DirectionState) -> Option<Stamp> {
    let shown = sender.overtaken.as_deref()?;
    (placed.start >= sender.snd_max && placed.start < placed.end.min(shown.end)).then_some(shown.by)
}

/// Corrects the count of missing bytes, if the ACK of the segment's bytes was captured before the segment.
#[cold]
fn take_back(placed: Placed, filled: Filled, sender: &mut DirectionState) {
    let una = sender.snd_una.get().unwrap_or(0);
    let beyond = (placed.end.min(una) - placed.start.max(sender.snd_max)).max(0);
    let closed = filled.closed + u32::from(beyond > 0 && placed.end >= una && placed.start <= sender.snd_max);
    let figures = &mut sender.figures;
    figures.not_captured_bytes = figures.not_captured_bytes.saturating_sub((beyond + filled.counted) as u64);
    figures.not_captured_holes = figures.not_captured_holes.saturating_sub(closed);
}

/// Opens a hole for the bytes that the segment skips. Acknowledged bytes get a separate hole, because they were counted
/// as missing when their ACK was captured.
#[cold]
fn jump(segment: &Segment, start: i64, sender: &mut DirectionState) {
    let stamp = Stamp::of(segment);
    let acknowledged = sender.snd_una.get().unwrap_or(sender.snd_max).clamp(sender.snd_max, start);
    if acknowledged > sender.snd_max {
        sender.holes.get_or_insert_default().open(sender.snd_max, acknowledged, stamp, true);
    }
    if start > acknowledged {
        sender.holes.get_or_insert_default().open(acknowledged, start, stamp, false);
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// Earlier transmissions of the bytes, if the segment retransmits bytes that are not acknowledged.
    pub repeat: Option<Repeat>,
    /// How often the bytes were sent so far; 0 if the segment has no data, SYN or FIN.
    pub transmission: u8,
}

#[inline(always)]
pub(crate) fn send(
    segment: &Segment,
    placed: Placed,
    verdict: Verdict,
    sender: &mut DirectionState,
    receiver: &DirectionState,
) -> Sent {
    if placed.end <= placed.start {
        return Sent::default();
    }
    let mut sent = Sent { repeat: None, transmission: 1 };
    if placed.start < sender.snd_max {
        sent = send_again(segment, placed, verdict, sender);
    } else if verdict.kind.is_resent() {
        sent.transmission = send_unseen_again(segment, placed, verdict, sender);
    }
    if placed.end > sender.snd_max {
        let resends = u16::from(placed.start >= sender.snd_max && sent.transmission > 1);
        send_new(segment, placed, controls(segment, placed), resends, sender, receiver);
    }
    sender.note_flight();
    sent
}

/// Adds bytes above the highest offset sent.
#[inline(always)]
pub(crate) fn send_new(
    segment: &Segment,
    placed: Placed,
    controls: u8,
    resends: u16,
    sender: &mut DirectionState,
    receiver: &DirectionState,
) {
    let range = (placed.start.max(sender.snd_max), placed.end);
    sender.outstanding.push(range, Stamp::of(segment), controls, resends, receiver.started);
    sender.snd_max = placed.end;
}

/// Number of sequence numbers that SYN and FIN of the segment occupy.
#[inline]
fn controls(segment: &Segment, placed: Placed) -> u8 {
    (placed.end - placed.start - i64::from(segment.payload_bytes)) as u8
}

/// Adds bytes below the highest offset sent, which are reordered or retransmitted.
#[cold]
fn send_again(segment: &Segment, placed: Placed, verdict: Verdict, sender: &mut DirectionState) -> Sent {
    let (stamp, end) = (Stamp::of(segment), placed.end.min(sender.snd_max));
    let resent = verdict.kind.is_resent();
    let repeat = sender.outstanding.seen_again(placed.start, end, stamp, controls(segment, placed), resent);
    let resends = sender.outstanding.at(placed.start).map_or(0, |sent| sent.resends);
    let Some(by) = verdict.retransmit_trigger.filter(|_| resent) else { return Sent { repeat, transmission: 1 } };
    let una = sender.snd_una.get().unwrap_or(placed.start);
    let snd_max = sender.snd_max;
    let spurious = verdict.kind == Kind::Spurious;
    sender.figures.spurious_retransmissions += u32::from(spurious);
    sender.history_mut().resent(placed, stamp, by, spurious, una, snd_max);
    // Bytes that fill a hole or are already acknowledged are not stored. Bytes that are not stored count as sent once
    // before.
    Sent { repeat, transmission: u8::try_from(resends).unwrap_or(u8::MAX).saturating_add(1).max(2) }
}

/// Adds retransmitted bytes whose original was not captured.
#[cold]
fn send_unseen_again(segment: &Segment, placed: Placed, verdict: Verdict, sender: &mut DirectionState) -> u8 {
    if let Some(by) = verdict.retransmit_trigger {
        let una = sender.snd_una.get().unwrap_or(placed.start);
        sender.history_mut().resent(placed, Stamp::of(segment), by, false, una, placed.end);
    }
    2
}

/// Counts the segment in the figures that are needed to classify segments.
#[inline(always)]
pub(crate) fn count(segment: &Segment, figures: &mut DirectionFigures) {
    let flags = segment.flags;
    figures.segments += 1;
    if segment.payload_bytes > 0 {
        figures.data_segments += 1;
        if segment.payload_bytes > figures.max_segment_bytes {
            figures.max_segment_bytes = segment.payload_bytes;
            figures.header_bytes = segment.header_bytes;
        }
    }
    if flags.any(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST) {
        figures.syn_segments += u32::from(flags.any(TcpFlags::SYN));
        figures.fin_segments += u32::from(flags.any(TcpFlags::FIN));
        figures.rst_segments += u32::from(flags.any(TcpFlags::RST));
    }
}
