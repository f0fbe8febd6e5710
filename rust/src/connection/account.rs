//! What is kept of one direction beside what its segments are judged by: for its row of the connections table, and for what
//! held its departures back. A pass that wants neither goes without.

use serde::{Deserialize, Serialize};

use super::behaviour::{self, Acked, Behaviour};
use super::classify::Novelty;
use super::counts::Counts;
use super::departure::{self, Arrival, Departure, Leaves, Missing, SenderView, Waits};
use super::evidence::Verdict;
use super::exchange::Before;
use super::half::{Half, Placed};
use super::hearing::Answer;
use super::outstanding::Repeat;
use super::rates::{self, Advanced, Advertised, Left, Rates};
use super::resent;
use super::row::{Kind, Nullable, ReleasedBy};
use super::statistics::{self, Statistics};
use crate::wire::{Segment, TcpFlags};

/// The account of one direction, named after its sender.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Account {
    /// What its sender saw.
    pub view: SenderView,
    pub counts: Counts,
    pub statistics: Statistics,
    pub behaviour: Behaviour,
    /// How fast it and its receiver are; `None` while it has sent little.
    pub rates: Option<Box<Rates>>,
}

/// Accounts that take more than this are not put away: not those of short connections, of which there may be many.
const MOST_PUT_AWAY_BYTES: usize = 2048;

/// The accounts of a connection, the client's and the server's. Those of one that is over are put away in a few hundred bytes,
/// where they take 2.7 KB at hand: it is kept for strays, of which most connections get none.
#[derive(Clone, Debug)]
pub(super) enum Accounts {
    AtHand(Box<[Account; 2]>),
    PutAway(Box<[u8]>),
    /// Taken out again, for a stray: more of them may come, so it stays at hand.
    TakenOut(Box<[Account; 2]>),
}

impl Default for Accounts {
    fn default() -> Self {
        Self::AtHand(Box::default())
    }
}

impl Accounts {
    /// The accounts, to be written on.
    #[inline]
    pub(super) fn at_hand(&mut self) -> Option<&mut [Account; 2]> {
        if let Self::AtHand(accounts) = self { Some(accounts) } else { self.take_out() }
    }

    #[cold]
    #[inline(never)]
    fn take_out(&mut self) -> Option<&mut [Account; 2]> {
        if let Self::PutAway(bytes) = self {
            *self = Self::TakenOut(read(bytes)?);
        }
        match self {
            Self::AtHand(accounts) | Self::TakenOut(accounts) => Some(accounts),
            Self::PutAway(_) => None,
        }
    }

    /// The accounts, for the connection's row.
    pub(super) fn take(self) -> Option<Box<[Account; 2]>> {
        match self {
            Self::AtHand(accounts) | Self::TakenOut(accounts) => Some(accounts),
            Self::PutAway(bytes) => read(&bytes),
        }
    }

    /// Nothing more is expected to be written.
    pub(super) fn put_away(&mut self) {
        let Self::AtHand(accounts) = self else { return };
        let mut room = [0; MOST_PUT_AWAY_BYTES];
        if let Ok(bytes) = postcard::to_slice(accounts, &mut room) {
            *self = Self::PutAway(Box::from(&*bytes));
        }
    }
}

/// What was put away: always there, because nothing else makes such bytes.
fn read(bytes: &[u8]) -> Option<Box<[Account; 2]>> {
    postcard::from_bytes(bytes).ok()
}

/// A direction: what its segments are judged by, and its account.
#[derive(Debug)]
pub(super) struct Side<'a> {
    pub half: &'a Half,
    pub account: &'a mut Account,
}

impl Side<'_> {
    /// How its departures waited, for the connections table.
    pub(super) fn waits(&self, other: &Self, last_ts_ns: Nullable) -> Waits {
        self.account.view.waits(last_ts_ns, Distance::between(self, other).shift_ns())
    }
}

/// How far a side and the other one are from the capture point, in time.
#[derive(Clone, Copy, Debug)]
struct Distance {
    own_ns: Option<i64>,
    other_ns: Option<i64>,
    /// The connection was captured from its beginning on.
    begun: bool,
}

impl Distance {
    #[inline]
    fn between(side: &Side<'_>, other: &Side<'_>) -> Self {
        Self {
            own_ns: behaviour::turnaround_ns(side, other),
            other_ns: behaviour::turnaround_ns(other, side),
            begun: side.half.figures.syn_segments > 0 || other.half.figures.syn_segments > 0,
        }
    }

    /// The same, from the other side.
    #[inline]
    fn reversed(self) -> Self {
        Self { own_ns: self.other_ns, other_ns: self.own_ns, ..self }
    }

    /// How much later what the other one sends reaches the side than the capture's times say.
    #[inline]
    fn shift_ns(self) -> i64 {
        departure::shift_ns(self.own_ns, self.other_ns, self.begun)
    }

    /// Whether there is no distance between the two.
    #[inline]
    fn at_either(self) -> bool {
        departure::at_either(self.own_ns, self.other_ns)
    }
}

/// A segment that was judged and took effect on both halves, but is not yet remembered as its sender's last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged<'a> {
    pub segment: &'a Segment,
    pub placed: Placed,
    /// What it acknowledges, whether it arrived or not.
    pub ack: Option<i64>,
    pub sack_blocks: Option<&'a [i64]>,
    pub before: Before,
    pub novelty: Novelty,
    pub repeat: Option<Repeat>,
    pub verdict: Verdict,
    pub released_by: Option<ReleasedBy>,
    /// What its acknowledgment tells; nothing if it never arrived.
    pub answer: &'a Answer,
}

/// Takes a segment of `sender` in. Gives what held it back, if it left its sender now.
#[inline(always)]
pub(super) fn take(judged: Judged<'_>, mut sender: Side<'_>, mut receiver: Side<'_>) -> Option<Departure> {
    let Judged { segment, placed, ack, sack_blocks, before, novelty, repeat, verdict, released_by, answer } = judged;
    let Before { in_flight, since_previous, window_bytes, .. } = before;
    let Verdict { kind, resent_by, .. } = verdict;
    sender.account.counts.sent(segment, placed, kind, novelty, window_bytes);
    receiver.account.counts.heard(answer.rtt_ns);
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
        sack_blocks,
    };
    counted.count(&mut sender, &mut receiver);
    let mut behaved = behaviour::Event {
        segment,
        placed,
        kind,
        resent_by,
        ack: ack.filter(|_| !segment.damaged),
        in_flight,
        window_bytes,
        since_previous,
        needed_window: false,
        in_burst: released_by == Some(ReleasedBy::Burst),
        acked: Acked {
            bytes: answer.acked_bytes,
            segments: acknowledged.wire_segments,
            lag_ns: answer.lag_ns,
            rtt_ns: answer.rtt_ns,
        },
    };
    behaviour::take(&mut behaved, &mut sender, &mut receiver);
    let distance = Distance::between(&sender, &receiver);
    let departure = departs(&behaved, distance, &mut sender, &receiver);
    arrives(&behaved, answer, distance.reversed(), &sender, &mut receiver);
    departure
}

/// The segment leaves its sender, if that is news to the sender's view: late and repeated copies left before.
#[inline(always)]
fn departs(
    event: &behaviour::Event<'_>,
    distance: Distance,
    sender: &mut Side<'_>,
    receiver: &Side<'_>,
) -> Option<Departure> {
    let behaviour::Event { segment, placed, kind, resent_by, .. } = *event;
    let ts_ns = segment.ts_ns?;
    let stale = matches!(kind, Kind::Keepalive | Kind::OutOfOrder | Kind::CaptureDuplicate | Kind::Reset);
    if stale || (placed.end == placed.start && kind != Kind::ZeroWindowProbe) {
        return None;
    }
    let two_flew = sender.account.view.two_flew(i64::from(sender.half.figures.max_segment_bytes));
    let most_window = receiver.account.counts.max_window_bytes.unwrap_or(0);
    let (flags, full_bytes) = (segment.flags, sender.half.full_bytes(most_window, two_flew));
    let left_out = sender.account.behaviour.numbering.take_left_out();
    let leaves = Leaves {
        ts_ns,
        frame: segment.frame,
        start: placed.start,
        end: placed.end,
        payload_bytes: i64::from(segment.payload_bytes),
        full_bytes,
        small: segment.payload_bytes > 0 && i64::from(segment.payload_bytes) < full_bytes,
        never_held: flags.any(behaviour::NEVER_HELD)
            || sender.half.is_half_a_window(segment.payload_bytes, most_window),
        // A tail probe asks whether something was lost; by itself it repairs and reduces nothing.
        resent_by: resent_by.filter(|_| kind.is_resent() && kind != Kind::TailProbe),
        cut: flags.any(TcpFlags::CWR),
        is_syn: flags.any(TcpFlags::SYN),
        pushed: flags.any(TcpFlags::PSH),
        fills_unscaled: receiver.half.is_filled_by(placed.end),
        at_either: distance.at_either(),
        left_out,
        tsval: segment.options.timestamps.map(|(value, _)| value),
        tsecr: segment.options.echo().filter(|_| flags.any(TcpFlags::ACK)),
    };
    let departure = sender.account.view.departs(&leaves, distance.shift_ns());
    let figures = &sender.half.figures;
    if segment.payload_bytes > 0 && figures.data_segments >= rates::LEAST_DATA_SEGMENTS {
        let left = Left {
            held: &departure,
            start: placed.start,
            payload_bytes: i64::from(segment.payload_bytes),
            frame: segment.frame,
            pushed: flags.any(TcpFlags::PSH),
            new: kind == Kind::New,
            most_in_flight: figures.max_in_flight_bytes.get().unwrap_or(0),
        };
        sender.account.rates.get_or_insert_default().departs(&left);
    }
    Some(departure)
}

/// The segment arrives at the other side, whose departures it may let go.
#[inline(always)]
fn arrives(
    event: &behaviour::Event<'_>,
    answer: &Answer,
    distance: Distance,
    sender: &Side<'_>,
    receiver: &mut Side<'_>,
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
        // A keepalive asks the stack, not the program.
        has_data: (segment.payload_bytes > 0 && kind != Kind::Keepalive)
            || segment.flags.any(TcpFlags::SYN | TcpFlags::FIN),
        payload_bytes: segment.payload_bytes,
        missing: if ack.is_some() { missing(kind, answer, receiver.half) } else { Missing::Nothing },
    };
    if receiver.account.rates.is_some() {
        drains(&arrival, window_bytes, kind, answer, sender, receiver);
    }
    if let Some((rtt_ns, newest)) = answer.rtt_ns.get().zip(answer.acknowledged.newest) {
        receiver.account.view.answered(rtt_ns, newest.payload_bytes, i64::from(segment.payload_bytes));
    }
    receiver.account.view.arrives(arrival, distance.shift_ns());
}

/// What an ACK says of a loss to `half`, which sent what it is for.
#[inline]
fn missing(kind: Kind, answer: &Answer, half: &Half) -> Missing {
    match (kind == Kind::DuplicateAck && !answer.dsack) || half.sacked_bytes > 0 {
        false => Missing::Nothing,
        true if resent::is_told_enough(half) => Missing::Lost,
        true => Missing::Perhaps,
    }
}

/// The segment shows how far its sender has taken in what `receiver` sent.
#[inline]
fn drains(
    arrival: &Arrival,
    window_bytes: Option<u32>,
    kind: Kind,
    answer: &Answer,
    sender: &Side<'_>,
    receiver: &mut Side<'_>,
) {
    let Some(rates) = receiver.account.rates.as_deref_mut() else { return };
    let Arrival { ts_ns, ack, .. } = *arrival;
    if let Some(bytes) = answer.acked_bytes.get().filter(|bytes| *bytes > 0) {
        let more = receiver.half.in_flight().is_some_and(|bytes| bytes > 0);
        let rtt_min_ns = receiver.half.figures.rtt_min_ns.get().unwrap_or(i64::MAX);
        rates.advanced(&Advanced { ts_ns, bytes, rtt_ns: answer.rtt_ns, rtt_min_ns, more });
    } else if kind == Kind::DuplicateAck {
        rates.interrupted();
    }
    let most = sender.account.counts.max_window_bytes;
    if let Some((window, most)) = window_bytes.zip(most).filter(|_| ack != i64::MIN && kind != Kind::Reset) {
        let (window_bytes, most_bytes) = (i64::from(window), i64::from(most));
        rates.advertised(&Advertised { ts_ns, ack, window_bytes, most_bytes });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Account, Accounts};
    use crate::connection::revisions::Revisions;
    use crate::connection::usual::tests::{conversation, plain, step};
    use crate::connection::{Connection, SegmentRow};
    use crate::wire::{Segment, TcpFlags};

    fn begun(segments: &[Segment]) -> Connection {
        Connection::new(&segments[0], 0, Some(Accounts::default()))
    }

    fn take(connection: &mut Connection, segment: &Segment) -> Vec<SegmentRow> {
        let mut rows = Vec::new();
        connection.take::<true>(segment, &mut Revisions::default(), &mut rows);
        rows
    }

    /// All rows of a connection in words; its accounts are put away behind so many segments.
    fn told(segments: &[Segment], put_away_behind: Option<usize>) -> String {
        let mut connection = begun(segments);
        let mut rows = Vec::new();
        for (behind, segment) in (1..).zip(segments) {
            rows.extend(take(&mut connection, segment));
            if put_away_behind == Some(behind) {
                connection.accounts.iter_mut().for_each(Accounts::put_away);
            }
        }
        format!("{rows:?} {:?}", connection.row())
    }

    proptest! {
        #[test]
        fn what_was_put_away_goes_on_as_if_it_had_not(opened: bool, steps in prop::collection::vec(step(), 1..80), behind in 1_usize..80) {
            let segments = conversation(opened, &steps);
            prop_assert_eq!(told(&segments, Some(behind.min(segments.len()))), told(&segments, None));
        }
    }

    #[test]
    fn accounts_of_a_connection_that_has_ended_take_a_third_until_a_stray_comes() {
        let [fin, ack] = [TcpFlags::ACK | TcpFlags::FIN, TcpFlags::ACK];
        let steps = [plain(true, fin, 1000), plain(false, fin, 1000), plain(true, ack, 1000), plain(false, ack, 1000)];
        let segments = conversation(true, &steps);
        let mut connection = begun(&segments);
        let mut seen = Vec::new();
        for segment in &segments {
            take(&mut connection, segment);
            if connection.has_ended() {
                connection.end();
            }
            seen.push(match connection.accounts.as_ref() {
                Some(Accounts::PutAway(bytes)) => bytes.len() * 3 < size_of::<[Account; 2]>(),
                _ => false,
            });
        }
        // The handshake, a FIN of each side, its ACK, and one more.
        assert_eq!(seen, [false, false, false, false, false, true, false]);
    }
}
