//! What nearly every segment is, judged at once: the next data of an established connection, or an ACK of more than before, on a way on
//! which nothing is open. Anything else goes the long way; what both give is the same.
//!
//! Kernels do the same for speed (Van Jacobson's header prediction; Linux `tcp_rcv_established`).

use super::account::{self, Account, Side};
use super::classify::{self, Novelty};
use super::exchange::{Before, Judged, Place, remember, row};
use super::half::{Half, Placed};
use super::hearing;
use super::row::SegmentSink;
use super::sending;
use super::special::Signals;
use crate::seq;
use crate::wire::{Segment, TcpFlags};

/// Where a usual segment lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usual {
    placed: Placed,
    /// What it acknowledges, and what was acknowledged before.
    ack: i64,
    una: i64,
}

impl Usual {
    /// `None` if the segment is not a usual one.
    #[inline(always)]
    pub(super) fn of(segment: &Segment, sender: &Half, receiver: &Half) -> Option<Self> {
        let is_plain = segment.flags.0 & !TcpFlags::PSH == TcpFlags::ACK
            && !segment.damaged
            && segment.options.sack.is_empty()
            // One byte may be a probe.
            && segment.payload_bytes != 1;
        let is_known = sender.acked.is_some() && receiver.snd_una.is_some();
        if !is_plain || !is_known || receiver.last_was_probe {
            return None;
        }
        // Nothing open lies behind the highest byte sent.
        let start = sender.snd_max;
        let is_next = segment.seq == sender.figures.isn?.wrapping_add(start as u32)
            && sender.snd_una.value() <= start
            && sender.overtaken.as_deref().is_none_or(|shown| shown.end <= start);
        let una = receiver.snd_una.value();
        let ack = seq::unwrap(segment.ack, receiver.figures.isn?, receiver.snd_max);
        let acked = sender.acked.value();
        let goes_on = if segment.payload_bytes > 0 { ack >= acked } else { ack > acked };
        let is_quiet = receiver.history.as_deref().is_none_or(|history| history.is_quiet(una));
        let placed = Placed { start, end: start + i64::from(segment.payload_bytes) };
        (is_next && goes_on && una <= ack && ack <= receiver.snd_max && is_quiet).then_some(Self { placed, ack, una })
    }

    /// Judges the segment and moves the halves of its connection on.
    #[inline(always)]
    pub(super) fn exchange<const ACCOUNTS: bool>(
        self,
        segment: &Segment,
        sender: &mut Half,
        receiver: &mut Half,
        accounts: Option<(&mut Account, &mut Account)>,
        place: Place,
        rows: &mut impl SegmentSink,
    ) {
        // Compiled twice: most of what is done for data has no meaning for an ACK.
        if segment.payload_bytes > 0 {
            self.take::<ACCOUNTS, true>(segment, sender, receiver, accounts, place, rows);
        } else {
            self.take::<ACCOUNTS, false>(segment, sender, receiver, accounts, place, rows);
        }
    }

    #[inline(always)]
    fn take<const ACCOUNTS: bool, const DATA: bool>(
        self,
        segment: &Segment,
        sender: &mut Half,
        receiver: &mut Half,
        accounts: Option<(&mut Account, &mut Account)>,
        place: Place,
        rows: &mut impl SegmentSink,
    ) {
        let Self { placed, ack, una } = self;
        let before = Before::of(segment, sender, receiver);
        let verdict = if DATA { classify::NEW } else { classify::ACK };
        let released = DATA.then(|| classify::released_by(segment, verdict, sender, receiver));
        sending::count(segment, &mut sender.figures);
        if DATA {
            sending::send_new(segment, placed, 0, 0, sender, receiver);
            sender.note_flight();
        }
        receiver.sacked_bytes = 0;
        let answer = hearing::move_on(segment, una, ack, receiver);
        let departure = accounts.filter(|_| ACCOUNTS).and_then(|(own, other)| {
            let judged = account::Judged {
                segment,
                placed,
                ack: Some(ack),
                sack_blocks: None,
                before,
                novelty: Novelty { new: placed.end - placed.start, jumper: None },
                repeat: None,
                verdict,
                released_by: released.map(|(by, _)| by),
                answer: &answer,
            };
            account::take(judged, Side { half: sender, account: own }, Side { half: receiver, account: other })
        });
        remember(segment, Some(ack), verdict.kind, before.window_bytes, released, sender);
        let judged = Judged {
            verdict,
            signals: Signals::default(),
            released,
            answer: &answer,
            transmission: u8::from(DATA),
            departure: departure.as_ref(),
        };
        rows.push(row(segment, (placed, Some(ack)), before, None, judged, place));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::connection::revisions::Revisions;
    use crate::connection::{Connection, SegmentRow};
    use crate::wire::{IpFacts, SackBlocks, TcpOptions};

    /// One step of a conversation: how a segment differs from the next one that its sender could send.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::connection) struct Step {
        from_low: bool,
        flags: u16,
        back_bytes: u32,
        payload_bytes: u32,
        unacked_bytes: u32,
        window: u16,
        after_ns: i64,
        sacked: bool,
        damaged: bool,
    }

    /// Mostly what is usual, and everything else often enough to stand before and behind it.
    pub(in crate::connection) fn step() -> impl Strategy<Value = Step> {
        let seldom = |value: BoxedStrategy<u32>| prop_oneof![9 => Just(0), 2 => value];
        let flags = prop_oneof![
            20 => Just(TcpFlags::ACK),
            6 => Just(TcpFlags::ACK | TcpFlags::PSH),
            1 => Just(TcpFlags::ACK | TcpFlags::FIN),
            1 => Just(TcpFlags::ACK | TcpFlags::ECE),
            1 => prop_oneof![Just(TcpFlags::RST), Just(TcpFlags::SYN), Just(TcpFlags::SYN | TcpFlags::ACK), Just(0)],
        ];
        let bytes = prop_oneof![4 => Just(0), 1 => Just(1), 5 => Just(1000_u32)];
        let jump = prop_oneof![Just(1), Just(500), Just(1000), Just(2000), Just(1000_u32.wrapping_neg())].boxed();
        let window = prop_oneof![8 => Just(500_u16), 1 => Just(0), 1 => any::<u16>()];
        let after_ns = prop_oneof![5 => 1_000..100_000_i64, 1 => 1_000_000..2_000_000_000_i64];
        let facts = (any::<bool>(), flags, seldom(jump.clone()), bytes, seldom(jump));
        let more = (window, after_ns, prop::bool::weighted(0.1), prop::bool::weighted(0.02));
        (facts, more).prop_map(|(facts, more)| {
            let (from_low, flags, back_bytes, payload_bytes, unacked_bytes) = facts;
            let (window, after_ns, sacked, damaged) = more;
            Step { from_low, flags, back_bytes, payload_bytes, unacked_bytes, window, after_ns, sacked, damaged }
        })
    }

    /// The next ACK that a side could send.
    pub(in crate::connection) fn plain(from_low: bool, flags: u16, after_ns: i64) -> Step {
        Step {
            from_low,
            flags,
            back_bytes: 0,
            payload_bytes: 0,
            unacked_bytes: 0,
            window: 500,
            after_ns,
            sacked: false,
            damaged: false,
        }
    }

    /// The segments of a conversation: a handshake if `opened`, then the steps. Numbers begin near their wrap.
    pub(in crate::connection) fn conversation(opened: bool, steps: &[Step]) -> Vec<Segment> {
        let mut next = [u32::MAX - 3000, 5_000_u32];
        let mut ts_ns = 0;
        let handshake = [
            plain(true, TcpFlags::SYN, 0),
            plain(false, TcpFlags::SYN | TcpFlags::ACK, 1_000_000),
            plain(true, TcpFlags::ACK, 1_000_000),
        ];
        let opening = if opened { &handshake[..] } else { &[] };
        let mut segments = Vec::new();
        for (number, step) in (1..).zip(opening.iter().chain(steps)) {
            ts_ns += step.after_ns;
            let side = usize::from(!step.from_low);
            let (seq, other) = (next[side].wrapping_sub(step.back_bytes), next[1 - side]);
            let ack = other.wrapping_sub(step.unacked_bytes);
            let mut options =
                TcpOptions { timestamps: Some((number as u32, number as u32 / 2)), ..TcpOptions::default() };
            if step.flags & TcpFlags::SYN != 0 {
                options = TcpOptions { mss: Some(1000), window_scale: Some(3), sack_permitted: true, ..options };
            }
            if step.sacked {
                let mut blocks = SackBlocks::default();
                blocks.push(ack.wrapping_add(1000), ack.wrapping_add(5000));
                options.sack = blocks;
            }
            segments.push(Segment {
                frame: number,
                ts_ns: Some(ts_ns),
                from_low: step.from_low,
                seq,
                ack,
                flags: TcpFlags(step.flags),
                window: step.window,
                payload_bytes: step.payload_bytes,
                captured_payload_bytes: step.payload_bytes,
                options,
                ip: IpFacts { id: Some(number as u16), ..IpFacts::default() },
                damaged: step.damaged,
                ..Segment::default()
            });
            let controls = u32::from(step.flags & TcpFlags::SYN != 0) + u32::from(step.flags & TcpFlags::FIN != 0);
            let end = seq.wrapping_add(step.payload_bytes + controls);
            if end.wrapping_sub(next[side]) as i32 > 0 {
                next[side] = end;
            }
        }
        segments
    }

    /// All that a connection tells, in words: its rows, what later segments showed of earlier ones, and its own row.
    fn told<const ACCOUNTS: bool, const SHORT_WAY: bool>(segments: &[Segment]) -> String {
        let accounts = ACCOUNTS.then(account::Accounts::default);
        let mut connection = Connection::new(&segments[0], 0, accounts);
        let mut revisions = Revisions::default();
        let mut rows = Vec::<SegmentRow>::new();
        for segment in segments {
            connection.take_by::<ACCOUNTS, SHORT_WAY>(segment, &mut revisions, &mut rows);
        }
        format!("{rows:?} {revisions:?} {:?}", connection.row())
    }

    proptest! {
        #[test]
        fn the_long_way_comes_to_the_same(opened: bool, steps in prop::collection::vec(step(), 1..80)) {
            let segments = conversation(opened, &steps);
            prop_assert_eq!(told::<true, true>(&segments), told::<true, false>(&segments));
            prop_assert_eq!(told::<false, true>(&segments), told::<false, false>(&segments));
        }
    }

    #[test]
    fn data_and_acks_in_order_are_usual_and_resends_and_duplicate_acks_are_not() {
        let data = Step { payload_bytes: 1000, ..plain(true, TcpFlags::ACK, 1000) };
        let again = Step { back_bytes: 1000, ..data };
        let ack = plain(false, TcpFlags::ACK, 1000);
        let segments = conversation(true, &[data, ack, data, ack, ack, again]);
        let mut connection = Connection::new(&segments[0], 0, None);
        let mut rows = Vec::<SegmentRow>::new();
        let mut usual = Vec::new();
        for segment in &segments {
            let Connection { client, server, .. } = &connection;
            let (sender, receiver) = if segment.from_low { (client, server) } else { (server, client) };
            usual.push(Usual::of(segment, sender, receiver).is_some());
            connection.take::<false>(segment, &mut Revisions::default(), &mut rows);
        }
        assert_eq!(usual, [false, false, false, true, true, true, true, false, false]);
        assert_eq!(rows.len(), segments.len());
    }
}
