//! The account of one direction: statistics that classification does not need.

use serde::{Deserialize, Serialize};

use super::behaviour::{self, Acked, Answering, Behaviour};
use super::counts::Counts;
use super::rates::{self, Advanced, Advertised, Left, Rates};
use super::statistics::{self, Statistics};
use crate::connection::{Answer, Before, DirectionState, Judged, Kind, ReleasedBy, Verdict, is_loss_confirmed};
use crate::nullable::Nullable;
use crate::sender::{self, Arrival, Departure, Missing, SenderState, SenderTotals, Wait};
use crate::wire::{Segment, TcpFlags};

/// The account of one direction. A direction is named after the sender of its data.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct DirectionAccount {
    /// The state of the direction's sender.
    pub sender_state: SenderState,
    pub counts: Counts,
    pub statistics: Statistics,
    pub behaviour: Behaviour,
    /// The rates of sender and receiver, or `None` until [`rates::MIN_DATA_SEGMENTS`] data segments have been sent.
    pub rates: Option<Box<Rates>>,
}

/// One direction: the state that classifies its segments, and its account.
#[derive(Debug)]
pub(crate) struct AccountedDirection<'a> {
    pub direction: &'a DirectionState,
    pub account: &'a mut DirectionAccount,
}

impl AccountedDirection<'_> {
    /// Totals of the waits of this direction, for the connections table.
    pub(crate) fn totals(&self, other: &Self, last_ts_ns: Nullable) -> SenderTotals {
        self.account.sender_state.totals(last_ts_ns, Distance::between(self, other).shift_ns())
    }

    /// The measurements that give the turnaround of this host.
    #[inline]
    fn answering(&self, other: &Self) -> Answering {
        self.account.behaviour.answering(&other.account.behaviour, other.direction)
    }
}

/// The round-trip times from the capture point to each of the two hosts.
#[derive(Clone, Copy, Debug)]
struct Distance {
    own_ns: Option<i64>,
    other_ns: Option<i64>,
    /// Whether the capture contains a SYN of this connection.
    begun: bool,
}

impl Distance {
    #[inline]
    fn between(side: &AccountedDirection<'_>, other: &AccountedDirection<'_>) -> Self {
        Self {
            own_ns: side.answering(other).turnaround_ns(),
            other_ns: other.answering(side).turnaround_ns(),
            begun: side.direction.figures.syn_segments > 0 || other.direction.figures.syn_segments > 0,
        }
    }

    /// The distances for the other host, with `own_ns` and `other_ns` exchanged.
    #[inline]
    fn reversed(self) -> Self {
        Self { own_ns: self.other_ns, other_ns: self.own_ns, ..self }
    }

    /// Time to add to the capture time of segments for this host (`sender::shift_ns`).
    #[inline]
    fn shift_ns(self) -> i64 {
        sender::shift_ns(self.own_ns, self.other_ns, self.begun)
    }

    /// Whether both hosts are so near that the capture point can be at either of them.
    #[inline]
    fn at_either(self) -> bool {
        sender::at_either(self.own_ns, self.other_ns)
    }
}

/// Adds a segment of `sender` to both accounts. Returns the wait that ended with this segment, if the segment counts as
/// a transmission.
#[inline(always)]
pub(crate) fn take(
    segment: &Segment,
    judged: &Judged,
    mut sender: AccountedDirection<'_>,
    mut receiver: AccountedDirection<'_>,
) -> Option<Wait> {
    let Judged { placed, ack, novelty, repeat, ref before, ref verdict, ref answer, .. } = *judged;
    let Before { in_flight, since_previous, window_bytes, .. } = *before;
    let Verdict { kind, retransmit_trigger, .. } = *verdict;
    sender.account.counts.sent(segment, placed, kind, novelty, window_bytes);
    receiver.account.counts.rtt_sampled(answer.rtt_ns);
    let acknowledged = answer.acknowledged;
    let counted = statistics::Event {
        segment,
        kind,
        placed,
        ack,
        window_bytes,
        since_previous,
        repeat,
        acknowledged,
        sack_blocks: judged.sack_blocks.as_deref(),
        ecn: judged.signals.ecn,
    };
    counted.count(
        (&mut sender.account.statistics, sender.direction),
        (&mut receiver.account.statistics, receiver.direction),
    );
    let mut behaved = behaviour::Event {
        segment,
        placed,
        kind,
        retransmit_trigger,
        ack: ack.filter(|_| !segment.damaged),
        in_flight,
        offered_window_bytes: receiver.account.counts.max_window_bytes,
        window_bytes,
        since_previous,
        needed_window: false,
        in_burst: judged.released.is_some_and(|(by, _)| by == ReleasedBy::Burst),
        acked: Acked {
            bytes: answer.acked_bytes,
            segments: acknowledged.wire_segments,
            lag_ns: answer.lag_ns,
            rtt_ns: answer.rtt_ns,
        },
    };
    behaviour::take(
        &mut behaved,
        (&mut sender.account.behaviour, sender.direction),
        (&mut receiver.account.behaviour, receiver.direction),
    );
    if kind == Kind::Keepalive {
        sender.account.sender_state.keepalive_seen();
        receiver.account.sender_state.keepalive_seen();
    }
    let distance = Distance::between(&sender, &receiver);
    let wait = departs(&behaved, distance, &mut sender, &receiver);
    arrives(&behaved, answer, distance.reversed(), &sender, &mut receiver);
    wait
}

/// Adds the segment to the state of its sender. A segment that was captured late or twice is ignored, because its real
/// send time is unknown.
#[inline(always)]
fn departs(
    event: &behaviour::Event<'_>,
    distance: Distance,
    sender: &mut AccountedDirection<'_>,
    receiver: &AccountedDirection<'_>,
) -> Option<Wait> {
    let behaviour::Event { segment, placed, kind, retransmit_trigger, .. } = *event;
    let ts_ns = segment.ts_ns?;
    let stale = matches!(kind, Kind::Keepalive | Kind::OutOfOrder | Kind::CaptureDuplicate | Kind::Reset);
    if stale || (placed.end == placed.start && kind != Kind::ZeroWindowProbe) {
        return None;
    }
    let had_two_in_flight =
        sender.account.sender_state.had_two_in_flight(i64::from(sender.direction.figures.max_segment_bytes));
    let max_window = receiver.account.counts.max_window_bytes.unwrap_or(0);
    let (flags, smss_bytes) = (segment.flags, sender.direction.smss_bytes(max_window, had_two_in_flight));
    let left_out = sender.account.behaviour.numbering.take_left_out();
    let departure = Departure {
        ts_ns,
        frame: segment.frame,
        start: placed.start,
        end: placed.end,
        payload_bytes: i64::from(segment.payload_bytes),
        smss_bytes,
        small: segment.payload_bytes > 0 && i64::from(segment.payload_bytes) < smss_bytes,
        never_held: kind.is_resent()
            || flags.any(behaviour::NEVER_HELD)
            || sender.direction.is_half_a_window(segment.payload_bytes, max_window),
        // A tail loss probe does not reduce the congestion window, so it does not count as the repair of a loss.
        retransmit_trigger: retransmit_trigger.filter(|_| kind.is_resent() && kind != Kind::TailProbe),
        cut: flags.any(TcpFlags::CWR),
        is_syn: flags.any(TcpFlags::SYN),
        pushed: flags.any(TcpFlags::PSH),
        fills_unscaled: receiver.direction.is_filled_by(placed.end),
        at_either: distance.at_either(),
        left_out,
        shown_ns: event
            .ack
            .filter(|ack| *ack >= receiver.direction.snd_max)
            .and_then(|_| receiver.direction.last_data_ts_ns.get())
            .into(),
        tsval: segment.options.timestamps.map(|(value, _)| value),
        tsecr: segment.options.echo().filter(|_| flags.any(TcpFlags::ACK)),
    };
    let wait = sender.account.sender_state.departs(&departure, distance.shift_ns());
    let figures = &sender.direction.figures;
    if segment.payload_bytes > 0 && figures.data_segments >= rates::MIN_DATA_SEGMENTS {
        let left = Left {
            held: &wait,
            start: placed.start,
            payload_bytes: i64::from(segment.payload_bytes),
            frame: segment.frame,
            pushed: flags.any(TcpFlags::PSH),
            new: kind == Kind::New,
            max_in_flight: figures.max_in_flight_bytes.get().unwrap_or(0),
        };
        sender.account.rates.get_or_insert_default().departs(&left);
    }
    Some(wait)
}

#[inline(always)]
fn arrives(
    event: &behaviour::Event<'_>,
    answer: &Answer,
    distance: Distance,
    sender: &AccountedDirection<'_>,
    receiver: &mut AccountedDirection<'_>,
) {
    let behaviour::Event { segment, kind, ack, window_bytes, .. } = *event;
    let Some(ts_ns) = segment.ts_ns.filter(|_| !segment.damaged && kind != Kind::CaptureDuplicate) else { return };
    let edge = ack.zip(window_bytes).filter(|_| kind != Kind::Reset).map(|(ack, window)| ack + i64::from(window));
    let arrival = Arrival {
        ts_ns,
        ack: ack.unwrap_or(i64::MIN),
        edge: edge.into(),
        lag_ns: answer.lag_ns,
        rtt_ns: answer.rtt_ns,
        tsval: segment.options.timestamps.map(|(value, _)| value),
        tsecr: segment.options.echo().filter(|_| ack.is_some()),
        frame: segment.frame,
        // A keepalive reaches only the TCP stack, so the application does not notice it.
        has_data: (segment.payload_bytes > 0 && kind != Kind::Keepalive)
            || segment.flags.any(TcpFlags::SYN | TcpFlags::FIN),
        payload_bytes: segment.payload_bytes,
        missing: if ack.is_some() { missing(kind, answer, receiver.direction) } else { Missing::Nothing },
    };
    if receiver.account.rates.is_some() {
        drains(&arrival, window_bytes, kind, answer, sender, receiver);
    }
    if let Some((rtt_ns, newest)) = answer.rtt_ns.get().zip(answer.acknowledged.newest) {
        receiver.account.sender_state.rtt_sampled(rtt_ns, newest.payload_bytes, i64::from(segment.payload_bytes));
    }
    receiver.account.sender_state.arrives(arrival, distance.shift_ns());
}

/// Whether an ACK shows the sender of `direction` that data was lost.
#[inline]
fn missing(kind: Kind, answer: &Answer, direction: &DirectionState) -> Missing {
    match (kind == Kind::DuplicateAck && !answer.dsack) || direction.sacked_bytes > 0 {
        false => Missing::Nothing,
        true if is_loss_confirmed(direction) => Missing::Lost,
        true => Missing::Perhaps,
    }
}

/// Measures how fast data arrives at the receiver, and how fast its application reads. The acknowledgment number shows
/// how many bytes have arrived. The advertised window shows how many of these bytes the application has read.
#[inline]
fn drains(
    arrival: &Arrival,
    window_bytes: Option<u32>,
    kind: Kind,
    answer: &Answer,
    sender: &AccountedDirection<'_>,
    receiver: &mut AccountedDirection<'_>,
) {
    let Some(rates) = receiver.account.rates.as_deref_mut() else { return };
    let Arrival { ts_ns, ack, .. } = *arrival;
    if let Some(bytes) = answer.acked_bytes.get().filter(|bytes| *bytes > 0) {
        let more = receiver.direction.in_flight().is_some_and(|bytes| bytes > 0);
        let rtt_min_ns = receiver.direction.figures.rtt_min_ns.get().unwrap_or(i64::MAX);
        rates.advanced(&Advanced { ts_ns, bytes, rtt_ns: answer.rtt_ns, rtt_min_ns, more });
    } else if kind == Kind::DuplicateAck {
        rates.interrupted();
    }
    let most = sender.account.counts.max_window_bytes;
    if let Some((window, most)) = window_bytes.zip(most).filter(|_| ack != i64::MIN && kind != Kind::Reset) {
        let (window_bytes, max_bytes) = (i64::from(window), i64::from(most));
        rates.advertised(&Advertised { ts_ns, ack, window_bytes, max_bytes });
    }
}
