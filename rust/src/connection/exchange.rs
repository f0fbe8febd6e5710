//! One segment against the two halves of its connection: what it is, its row, and what later ones are judged by.

use super::account::{self, Account, Side};
use super::classify;
use super::copies;
use super::departure::Departure;
use super::evidence::Verdict;
use super::half::{self, Half, Placed};
use super::hearing::{self, Answer};
use super::revisions::Revisions;
use super::row::{Kind, Nullable, ReleasedBy, SegmentRow, SegmentSink};
use super::sending;
use super::special::{self, Signals};
use crate::wire::{Segment, TcpFlags};

/// Where the row of a segment belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub conn: u32,
    pub from_client: bool,
}

/// Judges one segment against the state of its two halves, and moves them on.
#[inline]
pub(super) fn exchange<const ACCOUNTS: bool>(
    segment: &Segment,
    sender: &mut Half,
    receiver: &mut Half,
    accounts: Option<(&mut Account, &mut Account)>,
    place: Place,
    revisions: &mut Revisions,
    rows: &mut impl SegmentSink,
) {
    let placed = sender.place(segment);
    let ack = segment.flags.any(TcpFlags::ACK).then(|| receiver.place_ack(segment.ack));
    // What the receiver's link threw away was sent, but its acknowledgment and window never arrived.
    let arrived_ack = ack.filter(|_| !segment.damaged);
    let before = Before::of(segment, sender, receiver);
    let sack_blocks = hearing::sack_blocks(segment, receiver);
    let reset = segment.flags.any(TcpFlags::RST);
    let novelty = if reset { classify::Novelty::default() } else { sending::novelty_of(segment, placed, sender) };
    let signals = special::signals(segment, placed, ack, sender, receiver);
    let verdict = classify::verdict(segment, placed, ack, novelty, sender, receiver, revisions);
    let kind = verdict.kind;
    let released = (segment.payload_bytes > 0).then(|| classify::released_by(segment, verdict, sender, receiver));
    sending::count(segment, &mut sender.figures);
    let sent = if reset { sending::Sent::default() } else { sending::send(segment, placed, verdict, sender, receiver) };
    let answer = arrived_ack.map_or_else(Answer::default, |ack| {
        hearing::acknowledge(segment, ack, sack_blocks.as_deref(), kind, receiver, revisions)
    });
    if segment.flags.any(TcpFlags::SYN) && !reset {
        half::settle_mss(sender, receiver, segment.key.is_v6());
    }
    let departure = accounts.filter(|_| ACCOUNTS).and_then(|(own, other)| {
        let judged = account::Judged {
            segment,
            placed,
            ack,
            sack_blocks: sack_blocks.as_deref(),
            before,
            novelty,
            repeat: sent.repeat,
            verdict,
            released_by: released.map(|(by, _)| by),
            answer: &answer,
        };
        account::take(judged, Side { half: sender, account: own }, Side { half: receiver, account: other })
    });
    remember(segment, arrived_ack, kind, before.window_bytes, released, sender);
    let transmission = sent.transmission;
    let judged = Judged { verdict, signals, released, answer: &answer, transmission, departure: departure.as_ref() };
    rows.push(row(segment, (placed, ack), before, sack_blocks, judged, place));
}

/// The row of a packet that was there before: nothing that is known of the connection moves.
#[cold]
pub(super) fn copied(
    segment: &Segment,
    verdict: Verdict,
    sender: &mut Half,
    receiver: &mut Half,
    place: Place,
    rows: &mut impl SegmentSink,
) {
    let placed = sender.place(segment);
    let ack = segment.flags.any(TcpFlags::ACK).then(|| receiver.place_ack(segment.ack));
    let before = Before::of(segment, sender, receiver);
    let sack_blocks = hearing::sack_blocks(segment, receiver);
    copies::count(verdict, segment, placed, sender);
    let dsack = ack.zip(sack_blocks.as_deref()).is_some_and(|(ack, blocks)| hearing::dsack(ack, blocks).is_some());
    let answer = Answer { dsack, ..Answer::default() };
    let signals = Signals::default();
    let judged = Judged { verdict, signals, released: None, answer: &answer, transmission: 0, departure: None };
    rows.push(row(segment, (placed, ack), before, sack_blocks, judged, place));
}

/// What was true just before a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub in_flight: Option<i64>,
    usable_window: Option<i64>,
    pub since_previous: Nullable,
    since_last_ack: Nullable,
    since_last_data: Nullable,
    pub window_bytes: Option<u32>,
}

impl Before {
    #[inline]
    pub(super) fn of(segment: &Segment, sender: &Half, receiver: &Half) -> Self {
        let now = Nullable::from(segment.ts_ns);
        Self {
            in_flight: sender.in_flight(),
            usable_window: sender.usable_window(receiver),
            since_previous: now.since(sender.last_ts_ns),
            since_last_ack: now.since(receiver.last_ack_ts_ns),
            since_last_data: now.since(receiver.last_data_ts_ns),
            window_bytes: sender.advertised(segment),
        }
    }
}

/// What was found out about a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged<'a> {
    pub verdict: Verdict,
    pub signals: Signals,
    pub released: Option<(ReleasedBy, Option<u64>)>,
    pub answer: &'a Answer,
    pub transmission: u8,
    pub departure: Option<&'a Departure>,
}

#[inline]
pub(super) fn row(
    segment: &Segment,
    (placed, ack): (Placed, Option<i64>),
    before: Before,
    sack_blocks: Option<Box<[i64]>>,
    judged: Judged<'_>,
    Place { conn, from_client }: Place,
) -> SegmentRow {
    let Judged { verdict, signals, released, answer, transmission, departure } = judged;
    SegmentRow {
        frame: segment.frame,
        ts_ns: segment.ts_ns.into(),
        seq: placed.start,
        ack: ack.into(),
        in_flight_bytes: before.in_flight.into(),
        usable_window_bytes: before.usable_window.into(),
        since_previous_ns: before.since_previous,
        since_last_ack_ns: before.since_last_ack,
        since_last_data_ns: before.since_last_data,
        released_by_frame: released.and_then(|(_, frame)| frame).map(|frame| frame as i64).into(),
        acked_bytes: answer.acked_bytes,
        acked_unseen_bytes: answer.unseen_bytes,
        evidence_frame: verdict.frame,
        ack_lag_ns: answer.lag_ns,
        rtt_ns: answer.rtt_ns,
        sack_blocks,
        conn,
        payload_bytes: segment.payload_bytes,
        captured_payload_bytes: segment.captured_payload_bytes,
        window_bytes: before.window_bytes,
        timestamps: segment.options.timestamps,
        ip_id: segment.ip.id,
        flags: segment.flags,
        from_client,
        ttl: segment.ip.ttl,
        ecn: segment.ip.ecn,
        kind: verdict.kind,
        evidence: verdict.evidence,
        confidence: verdict.confidence,
        resent_by: verdict.resent_by,
        dsack: answer.dsack,
        reset_kind: signals.reset_kind,
        tfo: signals.tfo,
        ecn_signal: signals.ecn,
        transmission,
        released_by: released.map(|(by, _)| by),
        path: segment.path,
        atm: segment.atm,
        departure: departure.copied(),
    }
}

/// What later segments are judged by.
#[inline]
pub(super) fn remember(
    segment: &Segment,
    ack: Option<i64>,
    kind: Kind,
    window_bytes: Option<u32>,
    released: Option<(ReleasedBy, Option<u64>)>,
    sender: &mut Half,
) {
    let now = Nullable::from(segment.ts_ns);
    sender.last_ts_ns = now;
    sender.last_sent_frame = segment.frame;
    copies::note_ip_id(segment, sender);
    if segment.flags.any(TcpFlags::RST | TcpFlags::SYN) {
        remember_controls(segment, sender);
    }
    sender.last_was_probe = kind == Kind::ZeroWindowProbe;
    sender.last_was_keepalive = kind == Kind::Keepalive;
    sender.last_was_data = segment.payload_bytes > 0;
    if segment.payload_bytes > 0 {
        sender.last_data_ts_ns = now;
        sender.burst_frame = match released {
            Some((ReleasedBy::Burst, Some(first))) => first,
            _ => segment.frame,
        };
    }
    let Some(ack) = ack else { return };
    sender.last_ack_ts_ns = now;
    sender.last_ack_frame = segment.frame;
    // An old ACK that came late says nothing about the window of now (RFC 9293, 3.10.7.4: SND.WL2).
    if kind != Kind::Reset && sender.acked.get().is_none_or(|acked| ack >= acked) {
        sender.acked = Some(ack).into();
        sender.raw_window = segment.window;
        sender.window_bytes = window_bytes;
    }
}

#[cold]
fn remember_controls(segment: &Segment, sender: &mut Half) {
    if segment.flags.any(TcpFlags::RST) {
        sender.reset_frame = if sender.reset_frame == 0 { segment.frame } else { sender.reset_frame };
    } else {
        sender.syn_answered |= segment.flags.any(TcpFlags::ACK);
    }
}
