//! Random conversations must give the same results with and without header prediction, and with and without compact
//! accounts.

use proptest::prelude::*;

use super::connection::Connection;
use super::rows::SegmentRow;
use crate::accounts::{Accounts, DirectionAccount};
use crate::connection::{Predicted, Revisions};
use crate::wire::{IpFacts, SackBlocks, Segment, TcpFlags, TcpOptions};

/// One step of a conversation, as differences from the segment that the sender would normally send next.
#[derive(Clone, Copy, Debug)]
struct Step {
    from_low: bool,
    flags: u16,
    back_bytes: u32,
    payload_bytes: u32,
    flight_after_bytes: u32,
    window: u16,
    after_ns: i64,
    sacked: bool,
    damaged: bool,
}

/// Mostly normal segments. All other kinds are frequent enough to occur before and after normal ones.
fn step() -> impl Strategy<Value = Step> {
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
        let (from_low, flags, back_bytes, payload_bytes, flight_after_bytes) = facts;
        let (window, after_ns, sacked, damaged) = more;
        Step { from_low, flags, back_bytes, payload_bytes, flight_after_bytes, window, after_ns, sacked, damaged }
    })
}

/// The ACK that a host would normally send next.
fn plain(from_low: bool, flags: u16, after_ns: i64) -> Step {
    Step {
        from_low,
        flags,
        back_bytes: 0,
        payload_bytes: 0,
        flight_after_bytes: 0,
        window: 500,
        after_ns,
        sacked: false,
        damaged: false,
    }
}

/// The segments of a conversation: a handshake if `opened`, then the steps. One host's sequence numbers soon wrap
/// around.
fn conversation(opened: bool, steps: &[Step]) -> Vec<Segment> {
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
        let ack = other.wrapping_sub(step.flight_after_bytes);
        let mut options = TcpOptions { timestamps: Some((number as u32, number as u32 / 2)), ..TcpOptions::default() };
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

/// Everything that a connection produces, as debug output: segment rows, revisions, connection row.
fn everything_as_text<const ACCOUNTS: bool, const FAST_PATH: bool>(segments: &[Segment]) -> String {
    let accounts = ACCOUNTS.then(Accounts::default);
    let mut connection = Connection::new(&segments[0], 0, accounts);
    let mut revisions = Revisions::default();
    let mut rows = Vec::<SegmentRow>::new();
    for segment in segments {
        connection.take_by::<ACCOUNTS, FAST_PATH>(segment, &mut revisions, &mut rows);
    }
    format!("{rows:?} {revisions:?} {:?}", connection.row())
}

proptest! {
    #[test]
    fn the_slow_path_gives_the_same_rows(opened: bool, steps in prop::collection::vec(step(), 1..80)) {
        let segments = conversation(opened, &steps);
        prop_assert_eq!(everything_as_text::<true, true>(&segments), everything_as_text::<true, false>(&segments));
        prop_assert_eq!(everything_as_text::<false, true>(&segments), everything_as_text::<false, false>(&segments));
    }
}

#[test]
fn data_and_acks_in_order_are_predicted_and_resends_and_duplicate_acks_are_not() {
    let data = Step { payload_bytes: 1000, ..plain(true, TcpFlags::ACK, 1000) };
    let again = Step { back_bytes: 1000, ..data };
    let ack = plain(false, TcpFlags::ACK, 1000);
    let segments = conversation(true, &[data, ack, data, ack, ack, again]);
    let mut connection = Connection::new(&segments[0], 0, None);
    let mut rows = Vec::<SegmentRow>::new();
    let mut predicted = Vec::new();
    for segment in &segments {
        let Connection { client, server, .. } = &connection;
        let (sender, receiver) = if segment.from_low { (client, server) } else { (server, client) };
        predicted.push(Predicted::of(segment, sender, receiver).is_some());
        connection.take::<false>(segment, &mut Revisions::default(), &mut rows);
    }
    assert_eq!(predicted, [false, false, false, true, true, true, true, false, false]);
    assert_eq!(rows.len(), segments.len());
}

fn begun(segments: &[Segment]) -> Connection {
    Connection::new(&segments[0], 0, Some(Accounts::default()))
}

fn take(connection: &mut Connection, segment: &Segment) -> Vec<SegmentRow> {
    let mut rows = Vec::new();
    connection.take::<true>(segment, &mut Revisions::default(), &mut rows);
    rows
}

/// All rows of a connection as debug output, with accounts that are stored compactly after `compact_after` segments.
fn rows_as_text(segments: &[Segment], compact_after: Option<usize>) -> String {
    let mut connection = begun(segments);
    let mut rows = Vec::new();
    for (behind, segment) in (1..).zip(segments) {
        rows.extend(take(&mut connection, segment));
        if compact_after == Some(behind) {
            connection.accounts.iter_mut().for_each(Accounts::compact);
        }
    }
    format!("{rows:?} {:?}", connection.row())
}

proptest! {
    #[test]
    fn compact_accounts_continue_as_expanded_ones(opened: bool, steps in prop::collection::vec(step(), 1..80), behind in 1_usize..80) {
        let segments = conversation(opened, &steps);
        prop_assert_eq!(rows_as_text(&segments, Some(behind.min(segments.len()))), rows_as_text(&segments, None));
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
            Some(Accounts::Compact(bytes)) => bytes.len() * 3 < size_of::<[DirectionAccount; 2]>(),
            _ => false,
        });
    }
    // The segments are a handshake, a FIN from each host, the ACK of the last FIN, and another ACK.
    assert_eq!(seen, [false, false, false, false, false, true, false]);
}
