//! Evaluates the acknowledgment number and the SACK blocks of a segment.

use super::direction::DirectionState;
use super::figures::DirectionFigures;
use super::history::AckReport;
use super::kind::Kind;
use super::revisions::{Revision, Revisions};
use super::sequence_space::Acknowledged;
use crate::nullable::Nullable;
use crate::seq;
use crate::wire::Segment;

/// The SACK blocks of a segment, as offsets in the stream of `data_sender`.
#[inline(always)]
pub(crate) fn sack_blocks(segment: &Segment, data_sender: &DirectionState) -> Option<Box<[i64]>> {
    let blocks = &segment.options.sack;
    if blocks.is_empty() {
        return None;
    }
    let offset = |edge| seq::unwrap(edge, data_sender.figures.isn.unwrap_or(0), data_sender.snd_max);
    Some(blocks.as_slice().iter().flat_map(|(left, right)| [offset(*left), offset(*right)]).collect())
}

/// Number of bytes in the SACK blocks above the ACK. (A block below the ACK is a D-SACK, RFC 2883.)
fn sacked_beyond(ack: i64, blocks: &[i64]) -> i64 {
    let (blocks, _) = blocks.as_chunks::<2>();
    blocks.iter().filter(|[left, _]| *left >= ack).map(|[left, right]| right.saturating_sub(*left).max(0)).sum()
}

/// The first SACK block, if it is a D-SACK. A D-SACK block lies below the ACK or inside the second block (RFC 2883, 4).
#[cold]
pub(crate) fn dsack(ack: i64, blocks: &[i64]) -> Option<(i64, i64)> {
    let [left, right, more @ ..] = blocks else { return None };
    let inside = matches!(more, [outer_left, outer_right, ..] if outer_left <= left && right <= outer_right);
    (left < right && (*right <= ack || inside)).then_some((*left, *right))
}

/// What one ACK shows: acknowledged bytes, bytes missing from the capture, RTT and ACK lag.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answer {
    pub acked_bytes: Nullable,
    pub unseen_bytes: Nullable,
    pub lag_ns: Nullable,
    pub rtt_ns: Nullable,
    pub acknowledged: Acknowledged,
    /// Whether the first SACK block is a D-SACK.
    pub dsack: bool,
}

#[inline(always)]
pub(crate) fn acknowledge(
    segment: &Segment,
    ack: i64,
    sack_blocks: Option<&[i64]>,
    kind: Kind,
    data_sender: &mut DirectionState,
    revisions: &mut Revisions,
) -> Answer {
    data_sender.sacked_bytes = sack_blocks.map_or(0, |blocks| sacked_beyond(ack, blocks));
    // Before the first ACK, the lowest unacknowledged offset is 0 (the SYN), or 1 if no SYN was captured.
    let first = i64::from(data_sender.figures.syn_segments == 0);
    let first_seen = if data_sender.started { ack.min(first) } else { ack };
    let una = data_sender.snd_una.get().unwrap_or(first_seen);
    data_sender.snd_una = Some(una).into();
    if kind == Kind::Reset && ack > data_sender.snd_max {
        return Answer { acked_bytes: Some(0).into(), ..Answer::default() };
    }
    let dsack = sack_blocks.is_some_and(|blocks| dsack(ack, blocks).is_some());
    if kind == Kind::DuplicateAck && !dsack {
        data_sender.duplicate_acks_received += 1;
    }
    if data_sender.history.is_some() || sack_blocks.is_some() {
        look_back(segment, una, ack, sack_blocks.unwrap_or_default(), data_sender, revisions);
    }
    Answer { dsack, ..move_on(segment, una, ack, data_sender) }
}

/// Marks everything between `una` and `ack` as acknowledged.
#[inline(always)]
pub(crate) fn move_on(segment: &Segment, una: i64, ack: i64, data_sender: &mut DirectionState) -> Answer {
    let now = Nullable::from(segment.ts_ns);
    let mut unseen = 0;
    if ack > una {
        data_sender.snd_una = Some(ack).into();
        data_sender.una_ts_ns = now;
        data_sender.duplicate_acks_received = 0;
        unseen = unseen_bytes(una, ack, data_sender);
    }
    let echo = segment.options.echo().unwrap_or(0);
    let acknowledged = data_sender.outstanding.acknowledge(ack, una, echo, data_sender.mss_bytes);
    if data_sender.figures.fin_segments > 0 {
        data_sender.outstanding.release();
    }
    let rtt_ns = now.since(acknowledged.sample_from_ns).get().filter(|rtt_ns| *rtt_ns >= 0);
    if let Some(rtt_ns) = rtt_ns {
        data_sender.add_rtt(rtt_ns);
    }
    Answer {
        acked_bytes: Some((ack - una).max(0)).into(),
        unseen_bytes: data_sender.started.then_some(unseen).into(),
        lag_ns: now.since(acknowledged.oldest_ts_ns),
        rtt_ns: rtt_ns.into(),
        acknowledged,
        dsack: false,
    }
}

/// Number of bytes between `una` and `ack` that are missing from the capture.
#[inline(always)]
fn unseen_bytes(una: i64, ack: i64, data_sender: &mut DirectionState) -> i64 {
    let (in_holes, holes) = data_sender.holes.as_deref_mut().map_or((0, 0), |holes| holes.acknowledge(ack));
    let beyond = ack - una.max(data_sender.snd_max);
    if (in_holes == 0 && beyond <= 0) || !data_sender.started {
        return 0;
    }
    if beyond == 1 && data_sender.may_have_probed() {
        data_sender.snd_max = ack;
        return 0;
    }
    let beyond = beyond.max(0);
    // The missing bytes after the last captured byte count as one hole.
    let opened = u32::from(beyond > 0 && una <= data_sender.snd_max);
    data_sender.figures.not_captured_bytes += (in_holes + beyond) as u64;
    data_sender.figures.not_captured_holes += holes + opened;
    in_holes + beyond
}

#[cold]
fn look_back(
    segment: &Segment,
    una: i64,
    ack: i64,
    sack_blocks: &[i64],
    data_sender: &mut DirectionState,
    revisions: &mut Revisions,
) {
    let duplicate = dsack(ack, sack_blocks);
    let report = AckReport {
        ts_ns: segment.ts_ns.into(),
        frame: segment.frame,
        una,
        ack,
        tsecr: segment.options.echo(),
        rtt_min_ns: data_sender.figures.rtt_min_ns.get(),
        dsack: duplicate,
    };
    let snd_max = data_sender.snd_max;
    let mut history = data_sender.history.take().unwrap_or_default();
    let figures = &mut data_sender.figures;
    history.judge(&report, |revision| {
        revise(revision, figures);
        revisions.add(revision);
    });
    history.report(&report, sack_blocks, snd_max);
    data_sender.history = Some(history);
}

/// Corrects the counts in `figures` after a verdict was revised.
fn revise(revision: Revision, figures: &mut DirectionFigures) {
    if revision.kind == Kind::Spurious {
        figures.spurious_retransmissions += 1;
    } else {
        figures.network_duplicates += 1;
        figures.capture_duplicates -= figures.capture_duplicates.min(1);
    }
}
