//! Classifies a segment from the state of its connection just before the segment.

use super::direction::{self, DirectionState};
use super::evidence::{Confidence, Evidence, RetransmitTrigger, Verdict};
use super::history::History;
use super::kind::{Kind, ReleasedBy};
use super::resent::{self, CAUSAL_NS};
use super::revisions::Revisions;
use super::sending::Novelty;
use super::sequence_space::Placed;
use crate::nullable::Nullable;
use crate::wire::{Segment, TcpFlags};

/// Shortest time between data and a keepalive: 1 s (the minimum of `TCP_KEEPIDLE` and `TCP_KEEPINTVL` in Linux), minus
/// 10% for clock error. A single byte that is sent again within this time is a retransmission, not a keepalive.
const MIN_KEEPALIVE_NS: i64 = 900_000_000;

/// The verdict on data with the next expected sequence number.
pub(crate) const NEW: Verdict = proved(Kind::New, Evidence::Sequence);
/// The verdict on a pure ACK that has no more specific kind.
pub(crate) const ACK: Verdict = proved(Kind::Ack, Evidence::Sequence);

const fn proved(kind: Kind, evidence: Evidence) -> Verdict {
    Verdict::new(kind, evidence, Confidence::Proved)
}

/// Classifies a segment of `sender` from the state before the segment. `ack` is the offset that the segment
/// acknowledges.
#[inline(always)]
pub(crate) fn verdict(
    segment: &Segment,
    placed: Placed,
    ack: Option<i64>,
    novelty: Novelty,
    sender: &mut DirectionState,
    receiver: &DirectionState,
    revisions: &mut Revisions,
) -> Verdict {
    if segment.damaged {
        return proved(Kind::LinkDamaged, Evidence::Link);
    }
    if segment.flags.any(TcpFlags::RST) {
        return proved(Kind::Reset, Evidence::Sequence);
    }
    if segment.payload_bytes <= 1
        && let Some(verdict) = probe(segment, placed, sender, receiver)
    {
        return verdict;
    }
    if placed.end == placed.start {
        return ack.map_or_else(|| ACK, |ack| pure_ack(segment, ack, sender, receiver));
    }
    if placed.start >= sender.snd_max && novelty.jumper.is_none() {
        return NEW;
    }
    resent::judge(segment, placed, novelty, sender, receiver, revisions)
}

/// Recognizes keepalives and zero-window probes. A probe has at most one byte. A probe begins at the last acknowledged
/// byte, or at the next byte.
#[inline(always)]
fn probe(segment: &Segment, placed: Placed, sender: &DirectionState, receiver: &DirectionState) -> Option<Verdict> {
    if segment.flags.any(TcpFlags::SYN | TcpFlags::FIN) || !segment.flags.any(TcpFlags::ACK) {
        return None;
    }
    let Some(una) = sender.snd_una.get() else {
        // The first captured segment of a host may be a keepalive (`DirectionState::place`).
        let is_first = sender.figures.segments == 0 && placed.start < sender.snd_max;
        return is_first.then(|| Verdict::new(Kind::Keepalive, Evidence::Sequence, Confidence::Consistent));
    };
    let below = placed.start == una - 1;
    if receiver.started && receiver.raw_window == 0 && receiver.acked.is_some() {
        let at = placed.start == una && segment.payload_bytes == 1;
        return (below || at).then(|| proved(Kind::ZeroWindowProbe, Evidence::Window).with(receiver.last_ack_frame));
    }
    if !below || una < sender.snd_max || !sender.started {
        return None;
    }
    let now = Nullable::from(segment.ts_ns);
    if una > sender.snd_max {
        // The repeated byte was not captured, so the time when it was sent is unknown. A keepalive and a reordered ACK
        // both have a lower sequence number than expected, but only a keepalive follows a silence of both hosts (Linux
        // `keepalive_time_elapsed`).
        let silent = |direction: &DirectionState| {
            now.since(direction.last_ts_ns).get().is_some_and(|since_ns| since_ns >= MIN_KEEPALIVE_NS)
        };
        let is_last = sender.overtaken.as_deref().is_none_or(|shown| shown.end <= una);
        let is_idle = segment.payload_bytes == 0 && is_last && silent(sender) && silent(receiver);
        let verdict = Verdict::new(Kind::Keepalive, Evidence::Sequence, Confidence::Consistent);
        return is_idle.then(|| verdict.with(receiver.last_ack_frame));
    }
    // If the repeated byte was not captured, the time when it was sent is unknown. In this case, the time of the
    // sender's last segment is used, which was sent later than the byte.
    let unseen = una <= 1 && sender.figures.syn_segments == 0;
    let sent_ts_ns = if unseen { sender.last_ts_ns } else { sender.last_data_ts_ns };
    let since_data_ns = now.since(sent_ts_ns).get();
    let at_once = segment.payload_bytes > 0 && since_data_ns.is_some_and(|since_ns| since_ns < MIN_KEEPALIVE_NS);
    let may_be_data = at_once && !direction::is_single_without_push(segment);
    (!may_be_data).then(|| proved(Kind::Keepalive, Evidence::Sequence).with(receiver.last_ack_frame))
}

/// Classifies an ACK without data. Duplicate ACKs are defined as in RFC 5681, 2. A duplicate ACK with SACK blocks can
/// also change the window (RFC 6675, 2).
#[inline(always)]
fn pure_ack(segment: &Segment, ack: i64, sender: &DirectionState, receiver: &DirectionState) -> Verdict {
    if sender.acked.get() == Some(ack) || receiver.history.is_some() || receiver.last_was_probe {
        return special_ack(segment, ack, sender, receiver);
    }
    ACK
}

#[cold]
fn special_ack(segment: &Segment, ack: i64, sender: &DirectionState, receiver: &DirectionState) -> Verdict {
    if receiver.last_was_probe && segment.window == 0 {
        return proved(Kind::ZeroWindowProbeAck, Evidence::Window).with(receiver.last_sent_frame);
    }
    if sender.acked.get() != Some(ack) {
        // A partial ACK acknowledges new data, but not all data that was in flight when loss recovery began (RFC 6582,
        // 3.2, step 3).
        let una = receiver.snd_una.get().unwrap_or(ack);
        let partial = ack > una
            && receiver.history.as_deref().is_some_and(|history| history.recovers(una) && history.recovers(ack));
        let frame = receiver.history.as_deref().and_then(History::newest_resend).unwrap_or(0);
        return if partial { proved(Kind::PartialAck, Evidence::Sequence).with(frame) } else { ACK };
    }
    let same_window = segment.window == sender.raw_window;
    if receiver.last_was_keepalive && same_window {
        return proved(Kind::KeepaliveAck, Evidence::Sequence).with(receiver.last_sent_frame);
    }
    let sacks = !segment.options.sack.is_empty();
    if receiver.snd_max > ack && (same_window || sacks) {
        let evidence = if sacks { Evidence::Sack } else { Evidence::Sequence };
        return proved(Kind::DuplicateAck, evidence).with(sender.last_ack_frame);
    }
    if same_window { ACK } else { proved(Kind::WindowUpdate, Evidence::Window).with(sender.last_ack_frame) }
}

/// Returns what released a data segment, and the frame of the segment that released it.
#[inline(always)]
pub(crate) fn released_by(
    segment: &Segment,
    verdict: Verdict,
    sender: &DirectionState,
    receiver: &DirectionState,
) -> (ReleasedBy, Option<u64>) {
    match (verdict.kind, verdict.retransmit_trigger) {
        (Kind::Keepalive | Kind::ZeroWindowProbe, _)
        | (_, Some(RetransmitTrigger::Timeout | RetransmitTrigger::TailProbe)) => {
            return (ReleasedBy::Timer, None);
        }
        (_, Some(RetransmitTrigger::Fast)) => return (ReleasedBy::Ack, Some(receiver.last_ack_frame)),
        _ => {}
    }
    let causal_ns = sender.figures.rtt_min_ns.get().map_or(CAUSAL_NS, |rtt_ns| CAUSAL_NS.max(rtt_ns / 10));
    let idle = sender.in_flight() == Some(0);
    let now = Nullable::from(segment.ts_ns);
    let soon = |from: Nullable| now.since(from).get().is_some_and(|gap_ns| gap_ns <= causal_ns);
    let received_after_sending =
        receiver.last_ack_ts_ns.is_some() && receiver.last_ack_ts_ns.value() >= sender.last_ts_ns.value();
    if !received_after_sending && sender.last_was_data && soon(sender.last_ts_ns) {
        return (ReleasedBy::Burst, Some(sender.burst_frame));
    }
    // Data from the peer can trigger an answer of the application. An ACK without data releases only data that is
    // already in the send buffer.
    let answers = idle && receiver.last_was_data;
    if received_after_sending && !answers && soon(receiver.last_ack_ts_ns) {
        return (ReleasedBy::Ack, Some(receiver.last_ack_frame));
    }
    if idle {
        return (ReleasedBy::Write, None);
    }
    (ReleasedBy::Unknown, None)
}
