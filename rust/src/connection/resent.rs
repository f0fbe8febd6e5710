//! Classifies segments with bytes below the highest captured offset as reordered originals or retransmissions, and
//! determines the trigger of each retransmission.

use super::direction::DirectionState;
use super::evidence::{Confidence, Evidence, RetransmitTrigger, Verdict};
use super::kind::Kind;
use super::revisions::Revisions;
use super::sending::Novelty;
use super::sequence_space::{Placed, Stamp};
use crate::nullable::Nullable;
use crate::wire::{Segment, TcpFlags};

/// The third duplicate ACK triggers a fast retransmit (RFC 5681, 3.2).
pub(crate) const FAST_RETRANSMIT_DUPLICATE_ACKS: u32 = 3;
/// Smallest retransmission timeout that a common stack uses (Linux `TCP_RTO_MIN`, 200 ms more than the RTT; RFC 6298
/// requires 1 s). If a byte is sent again sooner, the retransmission timer did not trigger the retransmission.
const MIN_RTO_NS: i64 = 200_000_000;
/// A retransmission timeout is longer than the RTT by at least this time. Real stacks use a larger margin (Linux: 200
/// ms; RFC 6298: 4 · RTTVAR).
const TIMER_MARGIN_NS: i64 = 100_000_000;
/// The probe timeout is two round trips. If only one segment is in flight, the time of a delayed ACK is added (RFC
/// 8985, 7.2).
pub(crate) const PROBE_ROUND_TRIPS: i64 = 2;
/// Time that is added to the probe timeout for a delayed ACK: `WCDelAckT` of RFC 8985, 7.2. Linux adds `TCP_RTO_MIN` in
/// `tcp_schedule_loss_probe`.
const PROBE_DELAYED_ACK_NS: i64 = 200_000_000;
/// A timer can expire late by up to this time, because of kernel ticks of 4 ms (HZ = 250) and scheduling (a heuristic).
const TIMER_LATE_NS: i64 = 40_000_000;
/// Shortest probe timeout: `TCP_TIMEOUT_MIN` of Linux (2 ticks of 1 ms at HZ = 1000) minus one tick.
const MIN_PROBE_NS: i64 = 1_000_000;
/// Timeout before the first RTT sample: 1 s (RFC 6298, 2.1), minus 10% for clock error.
const FIRST_TIMEOUT_NS: i64 = 900_000_000;
/// If there is no better evidence, a segment that fills a hole within this time counts as reordered (Wireshark's
/// limit).
const REORDERING_NS: i64 = 3_000_000;
/// If two events are at most this time or 1/10 of the RTT apart, the earlier one is assumed to be the cause of the
/// later one (a heuristic).
pub(crate) const CAUSAL_NS: i64 = 1_000_000;
/// If two IP IDs of one host differ by at most this number, the host assigned the higher one later (a heuristic). Two
/// random IP IDs are this close in 2 of 1,000 cases.
const NEAR_IP_IDS: i16 = 64;
/// A timer counts as expired after 9/10 of its time. The limit is below the whole time, because the wait is measured
/// with the capture's clock, and the timer runs with the sender's clock.
const NEARLY_TENTHS: i64 = 9;

/// Classifies a segment that has data, SYN or FIN below the highest captured offset, or that fills a hole.
#[cold]
pub(crate) fn judge(
    segment: &Segment,
    placed: Placed,
    novelty: Novelty,
    sender: &mut DirectionState,
    receiver: &DirectionState,
    revisions: &mut Revisions,
) -> Verdict {
    if segment.flags.any(TcpFlags::SYN) && placed.start == 0 {
        return syn_again(segment, sender, receiver);
    }
    let unseen = placed.end - placed.start == novelty.new;
    let order = match novelty.jumper {
        Some(jumper) if unseen => against_jumper(segment, &jumper, sender, receiver),
        _ => None,
    };
    if let Some((true, verdict)) = order {
        return verdict;
    }
    if novelty.new == 0
        && let Some(verdict) = behind_its_resend(segment, placed, sender, revisions)
    {
        return verdict;
    }
    let why = why(segment, placed, novelty, sender, receiver);
    let mut verdict = match needless(placed, novelty, sender, receiver) {
        Some(needless) => Verdict { retransmit_trigger: why.retransmit_trigger, ..needless },
        None => why,
    };
    if let Some((false, sent)) = order {
        verdict.confidence = verdict.confidence.max(sent.confidence);
        if verdict.kind == Kind::Retransmit {
            verdict = Verdict { kind: verdict.kind, retransmit_trigger: verdict.retransmit_trigger, ..sent };
        }
    }
    verdict
}

/// Classifies a SYN or SYN-ACK whose sequence number was used before.
fn syn_again(segment: &Segment, sender: &DirectionState, receiver: &DirectionState) -> Verdict {
    let answer = segment.flags.any(TcpFlags::ACK);
    let before = sender.outstanding.at(0).map(|sent| sent.stamp);
    if answer && !sender.syn_answered && sender.figures.syn_segments > 0 {
        // In a simultaneous open (RFC 9293, 3.5, figure 8), the two SYNs cross, and each host repeats its own SYN in
        // its answer to the peer's SYN.
        let other = receiver.outstanding.at(0).map_or(0, |sent| sent.stamp.frame);
        return Verdict::new(Kind::New, Evidence::Syn, Confidence::Proved).with(other);
    }
    let frame = before.map_or(0, |before| before.frame);
    let proof = Verdict::new(Kind::SynRetransmit, Evidence::Syn, Confidence::Proved).with(frame);
    Verdict { retransmit_trigger: Some(RetransmitTrigger::Handshake), ..proof }
}

/// Compares a segment that fills a hole with `jumper`, the segment that skipped the hole. Returns whether the segment
/// was sent before `jumper`, and the evidence. The first of these kinds of evidence that decides is used: TCP
/// timestamps, IP IDs, the time since `jumper`.
fn against_jumper(
    segment: &Segment,
    jumper: &Stamp,
    sender: &DirectionState,
    receiver: &DirectionState,
) -> Option<(bool, Verdict)> {
    let late =
        |evidence, confidence| Some((true, Verdict::new(Kind::OutOfOrder, evidence, confidence).with(jumper.frame)));
    let sent_again =
        |evidence, confidence| Some((false, Verdict::new(Kind::Retransmit, evidence, confidence).with(jumper.frame)));
    let own = Stamp::of(segment);
    match sent_before(&own, jumper) {
        Some((true, evidence)) => return late(evidence, certainty(evidence)),
        Some((false, Evidence::Timestamp)) => return sent_again(Evidence::Timestamp, Confidence::Proved),
        _ => {}
    }
    // If the IP ID is slightly higher than the IP ID of the sender's last segment, this segment was sent after
    // `jumper`.
    let last_id = sender.last_ip_id.filter(|id| sender.ip_id_moves && *id != 0);
    if let (Some(id), Some(last)) = (own.ip_id, last_id) {
        let step = id.get().wrapping_sub(last) as i16;
        if 0 < step && step <= NEAR_IP_IDS {
            return sent_again(Evidence::IpId, Confidence::Consistent);
        }
    }
    let gap_ns = own.ts_ns.since(jumper.ts_ns).get();
    // The sender needs at least one round trip between capture point and sender to react to the hole. A segment that is
    // captured earlier is therefore not a reaction, but was sent before `jumper`.
    if let (Some(gap_ns), Some(loop_ns)) = (gap_ns, receiver.figures.rtt_min_ns.get())
        && gap_ns < loop_ns / 10 * NEARLY_TENTHS
    {
        return late(Evidence::Rtt, Confidence::Consistent);
    }
    let bound_ns = sender.figures.rtt_min_ns.get().map_or(REORDERING_NS, |rtt_ns| REORDERING_NS.max(rtt_ns / 2));
    if gap_ns.is_some_and(|gap_ns| gap_ns < bound_ns) {
        return late(Evidence::Time, Confidence::Possible);
    }
    sent_again(Evidence::Time, Confidence::Possible)
}

/// Whether one packet was sent before another; `None` if TCP timestamps and IP IDs do not show it.
fn sent_before(one: &Stamp, other: &Stamp) -> Option<(bool, Evidence)> {
    if let (Some(one), Some(other)) = (one.tsval, other.tsval)
        && one != other
    {
        return Some(((one.get().wrapping_sub(other.get()) as i32) < 0, Evidence::Timestamp));
    }
    if let (Some(one), Some(other)) = (one.ip_id, other.ip_id) {
        let step = one.get().wrapping_sub(other.get()) as i16;
        if step != 0 && step.unsigned_abs() <= NEAR_IP_IDS.unsigned_abs() {
            return Some((step < 0, Evidence::IpId));
        }
    }
    None
}

fn certainty(evidence: Evidence) -> Confidence {
    if evidence == Evidence::Timestamp { Confidence::Proved } else { Confidence::Consistent }
}

/// Recognizes an original segment that is captured after its own retransmission. The retransmission was then spurious.
fn behind_its_resend(
    segment: &Segment,
    placed: Placed,
    sender: &mut DirectionState,
    revisions: &mut Revisions,
) -> Option<Verdict> {
    let history = sender.history.as_deref_mut()?;
    let resend = history.last_resend(placed.start)?;
    let (before, evidence) = sent_before(&Stamp::of(segment), &resend)?;
    if !before {
        return None;
    }
    if let Some(revision) = history.original_came(resend.frame, evidence, segment.frame) {
        sender.figures.spurious_retransmissions += 1;
        revisions.add(revision);
    }
    Some(Verdict::new(Kind::OutOfOrder, evidence, certainty(evidence)).with(resend.frame))
}

/// Recognizes a retransmission of bytes that have already arrived.
fn needless(placed: Placed, novelty: Novelty, sender: &DirectionState, receiver: &DirectionState) -> Option<Verdict> {
    if novelty.new > 0 {
        return None;
    }
    let una = sender.snd_una.get()?;
    if placed.end <= una {
        let proof = Verdict::new(Kind::Spurious, Evidence::Acknowledged, Confidence::Proved);
        return Some(proof.with(receiver.last_ack_frame));
    }
    let history = sender.history.as_deref()?;
    history.sacked.covers(placed.start.max(una), placed.end).then(|| {
        // SACK blocks do not prove the verdict, because the receiver can still discard the reported data (RFC 2018, 8).
        Verdict::new(Kind::Spurious, Evidence::Sack, Confidence::Consistent).with(history.sack_frame)
    })
}

/// Times between earlier events and a retransmission.
struct Waited {
    /// Time since the previous transmission of the first retransmitted byte.
    byte: Nullable,
    /// Time since the sender last sent data.
    data: Nullable,
    /// Time since the last ACK of new data.
    progress: Nullable,
    /// Time since the last ACK.
    any_ack: Nullable,
}

/// Determines what triggered a retransmission.
fn why(
    segment: &Segment,
    placed: Placed,
    novelty: Novelty,
    sender: &DirectionState,
    receiver: &DirectionState,
) -> Verdict {
    let una = sender.snd_una.get();
    let history = sender.history.as_deref();
    let resend = history.and_then(|history| history.last_resend(placed.start));
    let before = sender.outstanding.at(placed.start).map(|sent| sent.stamp).or(resend).or(novelty.jumper);
    let by = |by: RetransmitTrigger, evidence, confidence, frame| {
        let verdict = Verdict::new(by.kind(), evidence, confidence).with(frame);
        Verdict { retransmit_trigger: Some(by), ..verdict }
    };
    let earlier = before.map_or(0, |before| before.frame);
    if sender.syn_data_refused && una == Some(1) && placed.start <= 1 {
        let verdict = by(RetransmitTrigger::Handshake, Evidence::Syn, Confidence::Proved, receiver.last_ack_frame);
        return Verdict { kind: Kind::Retransmit, ..verdict };
    }
    if receiver.reset_frame > 0 {
        return by(RetransmitTrigger::Unknown, Evidence::Reset, Confidence::Consistent, receiver.reset_frame);
    }
    let now = Nullable::from(segment.ts_ns);
    let waited = Waited {
        byte: now.since(before.map(|before| before.ts_ns).unwrap_or_default()),
        data: now.since(sender.last_data_ts_ns),
        progress: now.since(sender.una_ts_ns),
        any_ack: now.since(receiver.last_ack_ts_ns),
    };
    let head = una.is_none_or(|una| placed.start <= una);
    let recovers = una.is_some_and(|una| history.is_some_and(|history| history.recovers(una)));
    let sacked_above = history.is_some_and(|history| history.sacked.any_above(placed.start));
    let loss_signalled = sender.duplicate_acks_received > 0 || sacked_above;
    let quiet_probe = !loss_signalled && !recovers && !history.is_some_and(|history| history.probing);
    if quiet_probe
        && novelty.new == 0
        && una.is_some()
        && placed.end == sender.snd_max
        && let Some(confidence) = probe_time(&waited, head, sender, receiver)
    {
        return by(RetransmitTrigger::TailProbe, Evidence::ProbeTime, confidence, earlier);
    }
    if head && let Some(confidence) = timeout(&waited, sender, receiver) {
        return by(RetransmitTrigger::Timeout, Evidence::Silence, confidence, earlier);
    }
    if let Some((_, frame)) = history.and_then(|history| history.reneged).filter(|(end, _)| placed.start < *end) {
        return by(RetransmitTrigger::Recovery, Evidence::Reneging, Confidence::Consistent, frame);
    }
    if recovers {
        let evidence = if sacked_above { Evidence::Sack } else { Evidence::PartialAck };
        return by(RetransmitTrigger::Recovery, evidence, Confidence::Consistent, receiver.last_ack_frame);
    }
    fast(head, sacked_above, sender).map_or_else(
        || by(RetransmitTrigger::Unknown, Evidence::Sequence, Confidence::Proved, earlier),
        |(evidence, confidence)| by(RetransmitTrigger::Fast, evidence, confidence, receiver.last_ack_frame),
    )
}

/// Whether duplicate ACKs or SACK blocks triggered the retransmission. Three duplicate ACKs, or SACK blocks of more
/// than two segments, prove this (RFC 6675, 4: `IsLost`). Early retransmit (RFC 5827) and RACK (RFC 8985, 6) need fewer
/// duplicate ACKs or SACK blocks.
fn fast(head: bool, sacked_above: bool, sender: &DirectionState) -> Option<(Evidence, Confidence)> {
    if head && sender.duplicate_acks_received >= FAST_RETRANSMIT_DUPLICATE_ACKS {
        return Some((Evidence::DuplicateAcks, Confidence::Proved));
    }
    if sacked_above {
        return Some((
            Evidence::Sack,
            if is_sacked_enough(sender) { Confidence::Proved } else { Confidence::Consistent },
        ));
    }
    (head && sender.duplicate_acks_received > 0).then_some((Evidence::DuplicateAcks, Confidence::Possible))
}

/// Whether `sender` has received enough duplicate ACKs or SACK blocks to treat a segment as lost.
#[inline]
pub(crate) fn is_loss_confirmed(sender: &DirectionState) -> bool {
    sender.duplicate_acks_received >= FAST_RETRANSMIT_DUPLICATE_ACKS || is_sacked_enough(sender)
}

/// Whether a hole counts as lost, because the SACK blocks above the hole cover more bytes than two segments (RFC 6675,
/// 4).
#[inline]
fn is_sacked_enough(sender: &DirectionState) -> bool {
    let full_segment = i64::from(sender.figures.max_segment_bytes);
    sender.sacked_bytes > full_segment * i64::from(FAST_RETRANSMIT_DUPLICATE_ACKS - 1)
}

/// Smoothed RTT of the whole path. The capture point may be anywhere on the path, so two RTTs are added. One is the
/// smoothed RTT between capture point and receiver, and the other is the shortest RTT between capture point and sender.
fn path_rtt_ns(sender: &DirectionState, receiver: &DirectionState) -> Option<i64> {
    let ahead_ns = sender.smoothed_rtt_ns.get()?;
    Some(ahead_ns.saturating_add(receiver.figures.rtt_min_ns.get().unwrap_or(0)))
}

/// Whether the time before a retransmission was a probe timeout. The probe timer restarts with each ACK and each data
/// segment (RFC 8985, 7.2).
fn probe_time(waited: &Waited, alone: bool, sender: &DirectionState, receiver: &DirectionState) -> Option<Confidence> {
    let refused = |direction: &DirectionState| {
        direction.figures.syn_options.and_then(|options| options.permits_sack()) == Some(false)
    };
    if refused(sender) || refused(receiver) {
        return None;
    }
    let since_data_ns = waited.data.get()?.min(waited.byte.get()?);
    let quiet_ns = since_data_ns.min(waited.progress.get().unwrap_or(since_data_ns));
    let Some(rtt_ns) = path_rtt_ns(sender, receiver) else {
        return (quiet_ns >= FIRST_TIMEOUT_NS && !alone).then_some(Confidence::Consistent);
    };
    let two_rtt_ns = rtt_ns.saturating_mul(PROBE_ROUND_TRIPS);
    if quiet_ns < MIN_PROBE_NS.max(two_rtt_ns / 10 * NEARLY_TENTHS) {
        return None;
    }
    if !alone {
        // The retransmission timer and loss recovery retransmit the oldest segment first (RFC 6298, 5.4). A
        // retransmission of another segment is therefore a probe.
        return Some(Confidence::Proved);
    }
    let latest_ns = two_rtt_ns.saturating_add(PROBE_DELAYED_ACK_NS + TIMER_LATE_NS);
    (quiet_ns <= latest_ns).then_some(Confidence::Consistent)
}

/// Whether the time before a retransmission was a retransmission timeout. The timer starts when data is sent or new
/// data is acknowledged, and expires if no further ACK of new data arrives (RFC 6298, 5).
fn timeout(waited: &Waited, sender: &DirectionState, receiver: &DirectionState) -> Option<Confidence> {
    let rtt_ns = path_rtt_ns(sender, receiver);
    let min_ns = MIN_RTO_NS.max(rtt_ns.unwrap_or(0).saturating_add(TIMER_MARGIN_NS));
    let long = |waited: Nullable| waited.get().is_none_or(|waited_ns| waited_ns >= min_ns);
    let silent = waited.data.get().or(waited.byte.get()).is_some_and(|silent_ns| silent_ns >= min_ns);
    if !long(waited.byte) || !long(waited.progress) {
        return None;
    }
    let causal_ns = CAUSAL_NS.max(rtt_ns.unwrap_or(0) / 10);
    let released = waited.any_ack.get().is_some_and(|since_ack_ns| since_ack_ns <= causal_ns);
    let margin_ns = sender.rtt_variation_ns.saturating_mul(4).max(MIN_RTO_NS);
    let full_ns = rtt_ns.map(|rtt_ns| rtt_ns.saturating_add(margin_ns) / 10 * NEARLY_TENTHS);
    let full = full_ns.is_some_and(|full_ns| waited.byte.get().is_some_and(|byte_ns| byte_ns >= full_ns));
    match (silent, released) {
        (true, false) if full && long(waited.any_ack) => Some(Confidence::Proved),
        (true, false) if waited.progress.is_some() => Some(Confidence::Consistent),
        (true, false) => Some(Confidence::Possible),
        (false, false) => (waited.byte.is_some() && waited.progress.is_some()).then_some(Confidence::Possible),
        (_, true) => None,
    }
}
