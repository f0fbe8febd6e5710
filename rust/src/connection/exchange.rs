//! One segment against the two halves of its connection: what it is, its row, and what later ones are judged by.

use super::behaviour::{self, Acked};
use super::classify::{self, Novelty};
use super::departure::{Arrival, Departure, Leaves};
use super::half::{Half, Placed};
use super::outstanding::{Acknowledged, Repeat, Seen};
use super::row::{DirectionFigures, Kind, Nullable, ReleasedBy, SegmentRow};
use super::statistics::Event;
use crate::seq;
use crate::wire::{Segment, TcpFlags};

/// Judges one segment against the state of its two halves, and moves them on.
#[inline]
pub(super) fn exchange(
    segment: &Segment,
    sender: &mut Half,
    receiver: &mut Half,
    conn: u32,
    from_client: bool,
) -> SegmentRow {
    let now = Nullable::from(segment.ts_ns);
    let placed = sender.place(segment);
    let ack = segment.flags.any(TcpFlags::ACK).then(|| receiver.place_ack(segment.ack));
    // What the receiver's link threw away was sent, but its acknowledgment and window never arrived.
    let arrived_ack = ack.filter(|_| !segment.damaged);
    let in_flight = sender.in_flight();
    let usable_window = sender.usable_window(receiver);
    let since_previous = now.since(sender.last_ts_ns);
    let sack_blocks = sack_blocks(segment, receiver);
    let reset = segment.flags.any(TcpFlags::RST);
    let novelty = if reset { Novelty::default() } else { novelty_of(segment, placed, sender) };
    let kind = classify::kind_of(segment, placed, ack, novelty, sender, receiver);
    let released = (segment.payload_bytes > 0).then(|| classify::released_by(segment, kind, sender, receiver));
    let window_bytes = sender.advertised(segment);
    count(segment, placed, kind, novelty, window_bytes, &mut sender.figures);
    let repeat = if reset { None } else { send(segment, placed, kind, sender, receiver.started) };
    let answer = arrived_ack.map_or_else(Answer::default, |ack| {
        receiver.sacked_bytes = sack_blocks.as_deref().map_or(0, |blocks| sacked_beyond(ack, blocks));
        acknowledge(segment, ack, kind, receiver)
    });
    Event {
        segment,
        kind,
        placed,
        ack,
        window_bytes,
        since_previous,
        repeat,
        acknowledged: answer.acknowledged,
        sack_blocks: sack_blocks.as_deref(),
    }
    .count(sender, receiver);
    let acked = Acked {
        bytes: answer.acked_bytes,
        segments: answer.acknowledged.wire_segments,
        lag_ns: answer.lag_ns,
        rtt_ns: answer.rtt_ns,
    };
    let in_burst = matches!(released, Some((ReleasedBy::Burst, _)));
    let mut event = behaviour::Event {
        segment,
        placed,
        kind,
        ack: arrived_ack,
        in_flight,
        window_bytes,
        since_previous,
        needed_window: false,
        in_burst,
        acked,
    };
    behaviour::take(&mut event, sender, receiver);
    let departure = departs(segment, placed, kind, sender, receiver);
    arrives(segment, arrived_ack, window_bytes, kind, &answer, sender, receiver);
    remember(segment, arrived_ack, kind, window_bytes, released, sender);
    SegmentRow {
        frame: segment.frame,
        ts_ns: now,
        seq: placed.start,
        ack: ack.into(),
        in_flight_bytes: in_flight.into(),
        usable_window_bytes: usable_window.into(),
        since_previous_ns: since_previous,
        since_last_ack_ns: now.since(receiver.last_ack_ts_ns),
        since_last_data_ns: now.since(receiver.last_data_ts_ns),
        released_by_frame: released.and_then(|(_, frame)| frame).map(|frame| frame as i64).into(),
        acked_bytes: answer.acked_bytes,
        ack_lag_ns: answer.lag_ns,
        rtt_ns: answer.rtt_ns,
        sack_blocks,
        conn,
        payload_bytes: segment.payload_bytes,
        captured_payload_bytes: segment.captured_payload_bytes,
        window_bytes,
        timestamps: segment.options.timestamps,
        ip_id: segment.ip.id,
        flags: segment.flags,
        from_client,
        ttl: segment.ip.ttl,
        ecn: segment.ip.ecn,
        kind,
        released_by: released.map(|(by, _)| by),
        path: segment.path,
        atm: segment.atm,
        departure,
    }
}

/// The segment leaves its sender, if that is news to the sender's view: late and repeated copies left before.
#[inline]
fn departs(segment: &Segment, placed: Placed, kind: Kind, sender: &mut Half, receiver: &Half) -> Option<Departure> {
    let ts_ns = segment.ts_ns?;
    let stale = matches!(kind, Kind::Keepalive | Kind::OutOfOrder | Kind::CaptureDuplicate | Kind::Reset);
    if stale || (placed.end == placed.start && kind != Kind::ZeroWindowProbe) {
        return None;
    }
    let (flags, full_bytes) = (segment.flags, sender.full_bytes());
    let leaves = Leaves {
        ts_ns,
        frame: segment.frame,
        end: placed.end,
        full_bytes,
        small: segment.payload_bytes > 0 && i64::from(segment.payload_bytes) < full_bytes,
        resent: kind.is_resent(),
        is_syn: flags.any(TcpFlags::SYN),
        tsecr: segment.options.timestamps.map(|(_, echo)| echo).filter(|_| flags.any(TcpFlags::ACK)),
    };
    let shift_ns = sender.shift_ns(receiver);
    Some(sender.view.departs(&leaves, shift_ns))
}

/// The segment arrives at the other side, whose departures it may let go.
#[inline]
fn arrives(
    segment: &Segment,
    ack: Option<i64>,
    window_bytes: Option<u32>,
    kind: Kind,
    answer: &Answer,
    sender: &Half,
    receiver: &mut Half,
) {
    let Some(ts_ns) = segment.ts_ns.filter(|_| !segment.damaged && kind != Kind::CaptureDuplicate) else { return };
    let edge = ack.zip(window_bytes).filter(|_| kind != Kind::Reset).map(|(ack, window)| ack + i64::from(window));
    let arrival = Arrival {
        ts_ns,
        ack: ack.unwrap_or(i64::MIN),
        edge: edge.into(),
        lag_ns: answer.lag_ns,
        rtt_ns: answer.rtt_ns,
        tsval: segment.options.timestamps.map(|(value, _)| value),
        frame: segment.frame,
        has_data: segment.payload_bytes > 0 || segment.flags.any(TcpFlags::SYN | TcpFlags::FIN),
    };
    let shift_ns = receiver.shift_ns(sender);
    receiver.view.arrives(arrival, shift_ns);
}

/// The SACK blocks of a segment as offsets of the stream that they report on.
#[inline]
fn sack_blocks(segment: &Segment, data_sender: &Half) -> Option<Box<[i64]>> {
    let blocks = &segment.options.sack;
    if blocks.is_empty() {
        return None;
    }
    let offset = |edge| seq::unwrap(edge, data_sender.isn.unwrap_or(0), data_sender.snd_max);
    Some(blocks.as_slice().iter().flat_map(|(left, right)| [offset(*left), offset(*right)]).collect())
}

/// Bytes in SACK blocks that are not acknowledged yet (a block below is a D-SACK, RFC 2883).
fn sacked_beyond(ack: i64, blocks: &[i64]) -> i64 {
    let (blocks, _) = blocks.as_chunks::<2>();
    blocks.iter().filter(|[left, _]| *left >= ack).map(|[left, right]| right.saturating_sub(*left).max(0)).sum()
}

/// Sequence numbers of the segment that were never seen; closes the holes they fill and opens the one they jump over.
#[inline]
fn novelty_of(segment: &Segment, placed: Placed, sender: &mut Half) -> Novelty {
    let beyond = (placed.end - placed.start.max(sender.snd_max)).max(0);
    let (filled, jumper) = sender.holes.fill(placed.start, placed.end);
    // A keepalive or an old ACK jumps over nothing: only what occupies sequence space shows a hole.
    if placed.start > sender.snd_max && placed.end > placed.start {
        sender.holes.open(sender.snd_max, placed.start, Half::jumper(segment));
    }
    Novelty { new: beyond + filled, jumper }
}

/// The segment occupies sequence space of its sender. Tells of its bytes that were resent before they were acknowledged.
#[inline]
fn send(segment: &Segment, placed: Placed, kind: Kind, sender: &mut Half, answered: bool) -> Option<Repeat> {
    let mut repeat = None;
    if placed.end > placed.start {
        let controls = (placed.end - placed.start - i64::from(segment.payload_bytes)) as u8;
        let seen = Seen {
            ts_ns: segment.ts_ns.into(),
            tsval: segment.options.timestamps.map_or(0, |(value, _)| value),
            controls,
        };
        if placed.start < sender.snd_max {
            let end = placed.end.min(sender.snd_max);
            repeat = sender.outstanding.seen_again(placed.start, end, seen, kind.is_resent());
        }
        if placed.end > sender.snd_max {
            sender.outstanding.push(placed.start.max(sender.snd_max), placed.end, seen, answered);
            sender.snd_max = placed.end;
        }
    }
    if let Some(in_flight) = sender.in_flight() {
        let most = sender.figures.max_in_flight_bytes.get().unwrap_or(0);
        sender.figures.max_in_flight_bytes = Some(in_flight.max(most)).into();
    }
    repeat
}

/// What an acknowledgment tells.
#[derive(Clone, Copy, Debug, Default)]
struct Answer {
    acked_bytes: Nullable,
    lag_ns: Nullable,
    rtt_ns: Nullable,
    acknowledged: Acknowledged,
}

/// `data_sender` sees its bytes below `ack` acknowledged.
#[inline]
fn acknowledge(segment: &Segment, ack: i64, kind: Kind, data_sender: &mut Half) -> Answer {
    let now = Nullable::from(segment.ts_ns);
    // The first ACK acknowledges at least what was seen: from the SYN on, or in mid-stream from offset 1.
    let first = i64::from(data_sender.figures.syn_segments == 0);
    let first_seen = if data_sender.started { ack.min(first) } else { ack };
    let una = data_sender.snd_una.get().unwrap_or(first_seen);
    data_sender.snd_una = Some(una).into();
    if kind == Kind::Reset && ack > data_sender.snd_max {
        return Answer { acked_bytes: Some(0).into(), ..Answer::default() };
    }
    if kind == Kind::DuplicateAck {
        data_sender.duplicate_acks_received += 1;
    }
    if ack > una {
        data_sender.snd_una = Some(ack).into();
        data_sender.duplicate_acks_received = 0;
    }
    let echo = segment.options.timestamps.map_or(0, |(_, echo)| echo);
    let acknowledged = data_sender.outstanding.acknowledge(ack, una, echo, data_sender.behaviour.sending.mss_bytes);
    if data_sender.figures.fin_segments > 0 {
        data_sender.outstanding.release();
    }
    let rtt_ns = now.since(acknowledged.sample_from_ns).get().filter(|rtt_ns| *rtt_ns >= 0);
    if let Some(rtt_ns) = rtt_ns {
        data_sender.figures.rtt.add(rtt_ns);
    }
    Answer {
        acked_bytes: Some((ack - una).max(0)).into(),
        lag_ns: now.since(acknowledged.oldest_ts_ns),
        rtt_ns: rtt_ns.into(),
        acknowledged,
    }
}

/// What later segments are judged by.
#[inline]
fn remember(
    segment: &Segment,
    ack: Option<i64>,
    kind: Kind,
    window_bytes: Option<u32>,
    released: Option<(ReleasedBy, Option<u64>)>,
    sender: &mut Half,
) {
    let now = Nullable::from(segment.ts_ns);
    sender.last_ts_ns = now;
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

/// Counts the segment.
#[inline]
fn count(
    segment: &Segment,
    placed: Placed,
    kind: Kind,
    novelty: Novelty,
    window_bytes: Option<u32>,
    figures: &mut DirectionFigures,
) {
    let flags = segment.flags;
    let payload = u64::from(segment.payload_bytes);
    figures.segments += 1;
    figures.cells += segment.atm.map_or(0, |atm| u64::from(atm.cells));
    figures.pushed_segments += u32::from(flags.any(TcpFlags::PSH));
    figures.cut_segments += u64::from(segment.captured_payload_bytes < segment.payload_bytes);
    if payload > 0 {
        figures.data_segments += 1;
        figures.payload_bytes += payload;
        if segment.payload_bytes > figures.max_segment_bytes {
            figures.max_segment_bytes = segment.payload_bytes;
            figures.header_bytes = segment.header_bytes;
        }
        if let Some(ts_ns) = segment.ts_ns {
            figures.first_data_ts_ns = figures.first_data_ts_ns.get().or(Some(ts_ns)).into();
            figures.last_data_ts_ns = Some(ts_ns).into();
        }
        let controls = (placed.end - placed.start) as u64 - payload;
        let new_payload = (novelty.new as u64).saturating_sub(controls).min(payload);
        figures.unique_bytes += new_payload;
        if kind.is_resent() {
            // Bytes that fill a hole were resent too: their first copy was lost before it could be captured.
            let resent = if novelty.jumper.is_some() { payload } else { payload - new_payload };
            figures.retransmitted_bytes += resent;
        }
    } else if !flags.any(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST) {
        figures.pure_acks += 1;
    }
    figures.retransmitted_segments += u32::from(kind.is_resent());
    match kind {
        Kind::OutOfOrder => figures.out_of_order_segments += 1,
        Kind::DuplicateAck => figures.duplicate_acks += 1,
        Kind::Keepalive => figures.keepalives += 1,
        Kind::ZeroWindowProbe => figures.zero_window_probes += 1,
        Kind::WindowUpdate => figures.window_updates += 1,
        _ => {}
    }
    if flags.any(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST) {
        figures.syn_segments += u32::from(flags.any(TcpFlags::SYN));
        figures.fin_segments += u32::from(flags.any(TcpFlags::FIN));
        figures.rst_segments += u32::from(flags.any(TcpFlags::RST));
    }
    if flags.any(TcpFlags::RST) {
        return;
    }
    figures.zero_window_advertisements += u32::from(segment.window == 0);
    if let Some(window) = window_bytes {
        figures.max_window_bytes = Some(figures.max_window_bytes.map_or(window, |most| most.max(window)));
        if !flags.any(TcpFlags::SYN) {
            figures.min_window_bytes = Some(figures.min_window_bytes.map_or(window, |least| least.min(window)));
        }
    }
}
