//! Target: the causes of waits. For any waits, the intervals of a direction cover its lifetime without gaps. The
//! results do not depend on the number of threads or the order of the work.

use tcptrace_lab_core::connection::{Kind, RetransmitTrigger};
use tcptrace_lab_core::flows::ConnectionRow;
use tcptrace_lab_core::ledger::direction::{Drained, ReceiverEnd};
use tcptrace_lab_core::ledger::summary::costs::MOST;
use tcptrace_lab_core::ledger::summary::rows::{DirectionDetails, JudgedRows, LedgerRow};
use tcptrace_lab_core::ledger::{Cause, DirectionFacts, JudgedWait, Note, Summaries, WaitRecord, Worth, edges, judge};
use tcptrace_lab_core::nullable::Nullable;
use tcptrace_lab_core::sender::{FirstDeparture, LONGEST_NS, LastSmall, SenderTotals, Wait};
use tcptrace_lab_core::table;
use tcptrace_lab_core::wire::TcpFlags;

use crate::bounds;
use crate::followed::Followed;
use crate::pipeline::Account;
use crate::sender::MEMORY_BYTES;

/// Bytes of input for the made-up facts of a direction.
const FACTS_BYTES: usize = 128;
/// Bytes of input for each made-up wait.
const WAIT_BYTES: usize = 72;

/// Judges the waits of `input`. The first byte is followed by segments ([`crate::followed`]).
///
/// Bits of the first byte:
/// - 0 and 1: memory of the waits ([`MEMORY_BYTES`])
/// - 2 and 3: number of threads minus one
/// - 4: evidence is kept only for the largest cost
/// - 7: numbers follow instead of segments. The numbers are the facts of one direction, and waits that segments
///   possibly never produce.
pub fn ledger(input: &[u8]) -> Account {
    let Some((&head, rest)) = input.split_first() else { return Account::default() };
    if head >> 7 == 1 {
        return bounds::hold(input, 0, || crafted(rest));
    }
    bounds::hold(input, 0, || {
        let followed = Followed::of(rest);
        let most = if head >> 4 & 1 == 1 { 1 } else { MOST };
        let alone = judged_alone(&followed, most);
        check(&followed, &alone);
        let threads = usize::from(head >> 2 & 3) + 1;
        let memory_bytes = MEMORY_BYTES[usize::from(head & 3)];
        assert_same(&alone, &judged_together(&followed, most, memory_bytes, threads));
        assert_same(&alone, &judged_in_turn(&followed, most, memory_bytes, threads));
        followed.account()
    })
}

/// Thresholds that every cause exceeds.
fn worths() -> Vec<Worth> {
    Cause::ALL.map(|cause| Worth { cause, ns: 1, share: 0.0, of_client_alone: false, of_data_alone: false }).to_vec()
}

/// The results for some connections.
struct Results {
    rows: JudgedRows,
    details: Vec<(u32, DirectionDetails)>,
    /// The details as text for comparison.
    told: String,
}

impl Results {
    fn of(summaries: &Summaries, rows: JudgedRows) -> Self {
        let details: Vec<_> = summaries.details().map(|(conn, details)| (conn, details.clone())).collect();
        let told = format!("{details:?}");
        Self { rows, details, told }
    }
}

/// Judges one connection after the other with one thread, in memory.
fn judged_alone(followed: &Followed, most: usize) -> Results {
    judged_in_turn(followed, most, usize::MAX, 1)
}

/// Judges one connection after the other.
fn judged_in_turn(followed: &Followed, most: usize, memory_bytes: usize, threads: usize) -> Results {
    let mut live = followed.waits(memory_bytes);
    let mut summaries = Summaries::new(true, Some(worths()), most).with_threads(threads);
    let mut rows = JudgedRows::default();
    for row in &followed.connections {
        summaries.add([(row.clone(), live.end(row.conn))]).expect("without neighbours, nothing is stored");
        while summaries.go_on(&mut rows).expect("the temporary file can be read") {}
    }
    Results::of(&summaries, rows)
}

/// Judges all connections together.
fn judged_together(followed: &Followed, most: usize, memory_bytes: usize, threads: usize) -> Results {
    let mut live = followed.waits(memory_bytes);
    let mut summaries = Summaries::new(true, Some(worths()), most).with_threads(threads);
    let mut rows = JudgedRows::default();
    let connections = followed.connections.iter().map(|row| (row.clone(), live.end(row.conn)));
    summaries.add(connections).expect("without neighbours, nothing is stored");
    while summaries.go_on(&mut rows).expect("the temporary file can be read") {}
    Results::of(&summaries, rows)
}

fn assert_same(one: &Results, other: &Results) {
    assert_eq!(one.rows.accounts, other.rows.accounts, "the sums depend on how the work is shared out");
    assert_eq!(one.rows.ledger, other.rows.ledger, "the intervals depend on how the work is shared out");
    assert_eq!(one.rows.notes, other.rows.notes, "the notes depend on how the work is shared out");
    assert_eq!(one.told, other.told, "the details depend on how the work is shared out");
}

fn check(followed: &Followed, results: &Results) {
    assert_eq!(results.rows.accounts.len(), followed.connections.len(), "each connection has an account");
    for (row, account) in followed.connections.iter().zip(&results.rows.accounts) {
        assert_eq!(row.conn, account.conn, "accounts come in the order of their connections");
        let Some(sums) = account.sums else {
            assert!(!row.first_ts_ns.is_some(), "no account, and times are known");
            continue;
        };
        let life_ns = row.last_ts_ns.since(row.first_ts_ns).get().expect("times");
        for (sums, from_client) in sums.iter().zip([true, false]) {
            assert!(sums.iter().all(|ns| *ns >= 0), "less than no time: {sums:?}");
            assert_eq!(sums.iter().sum::<i64>(), life_ns, "the causes sum to the life");
            let of_direction = |one: &&LedgerRow| (one.conn, one.from_client) == (row.conn, from_client);
            check_intervals(row, life_ns, results.rows.ledger.iter().filter(of_direction));
        }
    }
    for note in &results.rows.notes {
        assert!(note.note != Note::default() && (0..=LONGEST_NS).contains(&note.caused_ns), "{note:?}");
    }
    results.details.iter().for_each(|(_, details)| check_details(details));
    check_tables(followed, results);
}

/// Checks that every table can be built.
fn check_tables(followed: &Followed, results: &Results) {
    let JudgedRows { accounts, ledger, notes } = &results.rows;
    let details = || results.details.iter().map(|(conn, details)| (*conn, details));
    let columns = table::ledger_column_names().map(str::to_owned);
    for (table, least) in [
        (table::connections(&followed.connections, 1_000), followed.connections.len()),
        (table::accounts(accounts), accounts.len()),
        (table::ledger(ledger, &columns), ledger.len()),
        (table::notes(notes), notes.len()),
        (table::kinds(details()), 0),
        (table::waits(details()), 0),
        (table::locks(details()), 0),
        (table::direction_facts(details()), results.details.len()),
    ] {
        assert!(table.expect("columns of one length").num_rows() >= least, "a row is lost");
    }
}

/// Checks that intervals touch, do not overlap, and cover the whole lifetime.
fn check_intervals<'a>(row: &ConnectionRow, life_ns: i64, intervals: impl Iterator<Item = &'a LedgerRow>) {
    let first_ns = row.first_ts_ns.value();
    let mut filled_ns = 0;
    for one in intervals {
        let interval = one.interval;
        assert_eq!(interval.start_ns, first_ns.saturating_add(filled_ns), "intervals touch: {interval:?}");
        assert!(interval.ns > 0, "an interval without time: {interval:?}");
        assert!(
            life_ns <= LONGEST_NS || interval.cause == Cause::Unknown,
            "what lasts too long is unknown: {interval:?}"
        );
        filled_ns += interval.ns;
    }
    assert_eq!(filled_ns, life_ns, "intervals fill the life");
}

#[allow(clippy::cast_precision_loss)] // a median is a float
fn check_details(details: &DirectionDetails) {
    let life_ns = details.direction.life_ns();
    assert_eq!(details.kinds.iter().map(|kind| kind.ns).sum::<i64>(), life_ns, "kinds sum to the life");
    for kind in &details.kinds {
        assert!(0 < kind.waits && kind.sure_waits <= kind.waits, "{kind:?}");
        assert!((0..=kind.sure_ns).contains(&kind.proved_ns) && kind.sure_ns <= kind.ns, "{kind:?}");
        assert!(0.0 < kind.median_ns && kind.median_ns <= kind.ns as f64, "{kind:?}");
    }
    assert!(details.waits.is_sorted_by_key(|wait| wait.interval.start_ns), "the longest waits come in order of time");
    if let Some(lock) = &details.lock {
        assert!(lock.rounds >= 3 && lock.min_flight_bytes <= lock.flight_bytes, "{lock:?}");
        assert!((0..=life_ns).contains(&lock.ns) && (0..=life_ns).contains(&lock.median_ns), "{lock:?}");
        assert!(!lock.frames.is_empty() && lock.frames.is_sorted(), "{lock:?}");
    }
}

/// Numbers from bytes; 0 after the last byte.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Null, or a number of any magnitude between 0 and `most`.
    fn up_to(&mut self, most: i64) -> Option<i64> {
        let [power, digits] = [self.byte(), self.byte()];
        let value = (i128::from(digits) << (power & 63)).min(i128::from(most));
        (power >> 6 != 3).then(|| i64::try_from(value).expect("bounded"))
    }

    fn ns(&mut self, most: i64) -> Nullable {
        self.up_to(most).into()
    }

    /// A plausible number of bytes in flight.
    fn bytes(&mut self) -> Nullable {
        self.up_to(1 << 40).into()
    }

    fn some_bytes(&mut self) -> i64 {
        self.up_to(1 << 40).unwrap_or(1448)
    }

    fn count(&mut self) -> u16 {
        u16::from(self.byte()) & 0xf
    }
}

/// Judges one direction with arbitrary facts and waits.
fn crafted(input: &[u8]) -> Account {
    let (facts, waits) = input.split_at(FACTS_BYTES.min(input.len()));
    let direction = crafted_direction(&mut Numbers(facts));
    for (spans, wait_ns) in edges(&direction).iter().flatten().map(|edge| {
        let from_ns = if edge.frame_before.is_some() { edge.start_ns } else { direction.first_ts_ns };
        assert!(from_ns >= direction.first_ts_ns, "an edge begins before the life");
        (edge.spans, edge.spans.iter().map(|(_, ns)| ns).sum::<i64>())
    }) {
        assert!(spans.iter().all(|(_, ns)| *ns >= 0) && wait_ns <= direction.life_ns(), "an edge: {spans:?}");
    }
    let mut account = Account { bytes_read: input.len(), ..Account::default() };
    for bytes in waits.chunks(WAIT_BYTES) {
        let record = crafted_wait(&mut Numbers(bytes), direction.life_ns());
        check_judged(&record, &judge(&record, &direction));
        account.segments += 1;
    }
    account
}

/// Checks that no interval of a wait is negative, and that their sum is the length of the wait.
fn check_judged(record: &WaitRecord, judged: &JudgedWait) {
    let wait_ns = record.wait.wait_ns.get().unwrap_or(0);
    assert!(judged.spans.iter().all(|(_, ns)| *ns >= 0), "less than no time: {judged:?}");
    assert_eq!(judged.spans.iter().map(|(_, ns)| ns).sum::<i64>(), wait_ns, "the intervals of a wait sum to it");
    assert!((0..=wait_ns).contains(&judged.caused_ns), "longer than the wait: {judged:?}");
}

fn crafted_direction(numbers: &mut Numbers<'_>) -> DirectionFacts {
    let life_ns = numbers.up_to(LONGEST_NS).unwrap_or(LONGEST_NS);
    let first_ts_ns = i64::from(numbers.byte()) << 48;
    let to_sender_ns = numbers.up_to(life_ns).unwrap_or(0);
    let rtt_ns = to_sender_ns + numbers.up_to(life_ns).unwrap_or(0);
    let ending = Wait { frame_before: Some(1).into(), ..crafted_wait(numbers, life_ns).wait };
    let before_ns = life_ns - ending.wait_ns.get().unwrap_or(0);
    let first_ns = first_ts_ns + numbers.up_to(before_ns).unwrap_or(0);
    let totals = SenderTotals {
        first: Some(FirstDeparture { ts_ns: first_ns, frame: 1, is_syn: numbers.flag() }),
        ending,
        steady_payload_bytes: Some(numbers.some_bytes()).into(),
        steady_ns: numbers.ns(life_ns),
        paced_payload_bytes: numbers.bytes(),
        paced_ns: numbers.ns(life_ns),
        clocked: numbers.count().into(),
        unclocked: numbers.count().into(),
        small_delayed_run: numbers.count(),
        small_delayed_continued: numbers.count(),
        small_behind_small: numbers.count().into(),
        emptied_flight_bytes: numbers.bytes(),
        emptied_times: numbers.count(),
        ..SenderTotals::default()
    };
    let drained = numbers.up_to(life_ns).map(|ns| Drained { bytes: numbers.some_bytes().max(1), ns });
    DirectionFacts {
        from_client: numbers.flag(),
        first_ts_ns,
        last_ts_ns: first_ts_ns + life_ns,
        rtt_min_ns: numbers.up_to(life_ns),
        near_sender: numbers.flag(),
        near_receiver: numbers.flag(),
        sender_unplaced: numbers.flag(),
        to_sender_ns,
        rtt_ns,
        max_window_bytes: numbers.up_to(1 << 30),
        receiver_last_data_ts_ns: numbers.up_to(life_ns).map(|ns| first_ts_ns + ns),
        receiver_syn_segments: numbers.count().into(),
        receiver_departed: numbers.flag(),
        receiver_data_segments: numbers.count().into(),
        receiver_end: ReceiverEnd {
            finished: numbers.flag(),
            closed_ts_ns: numbers.up_to(life_ns).map(|ns| first_ts_ns + ns),
            reset: numbers.flag(),
        },
        beginning_seen: numbers.flag(),
        pushes: numbers.flag(),
        finished: numbers.flag(),
        ended_by_others: numbers.flag(),
        numbers_packets: numbers.flag(),
        old: numbers.flag(),
        shows_no_copies: numbers.flag(),
        uses_sack: numbers.flag(),
        rounded_bytes: numbers.up_to(65_535),
        reaction_min_ns: numbers.up_to(life_ns),
        nothing_lost: numbers.flag(),
        max_segment_bytes: numbers.some_bytes(),
        max_in_flight_bytes: numbers.up_to(1 << 40),
        peak_flight_bytes: numbers.up_to(1 << 40),
        tick_ns: numbers.up_to(life_ns),
        totals,
        drained,
        causal_window_ns: 1_000_000 + rtt_ns / 10,
        unsteady_ns: rtt_ns / 10,
        burst_ns: 20_000,
        queue_ns: 1_000_000 + rtt_ns / 4,
        comes_steadily: numbers.flag(),
        comes_by_size: numbers.flag(),
        paces: numbers.flag(),
        holds_small: numbers.flag(),
        holds_behind_full: numbers.flag(),
        ack_clocked: numbers.flag(),
        plateau_bytes: numbers.up_to(1 << 40),
        top_bytes: numbers.up_to(1 << 40),
        never_full: numbers.flag(),
        ticks_milliseconds: numbers.flag(),
        only_late: numbers.flag(),
        idle_after_ns: numbers.up_to(life_ns).unwrap_or(1_000_000_000),
        receiver_idle_after_ns: numbers.up_to(life_ns).unwrap_or(1_000_000_000),
        ..DirectionFacts::default()
    }
}

fn crafted_wait(numbers: &mut Numbers<'_>, life_ns: i64) -> WaitRecord {
    const KINDS: [Kind; 4] = [Kind::New, Kind::RtoRetransmit, Kind::Spurious, Kind::ZeroWindowProbe];
    const RETRANSMIT_TRIGGERS: [Option<RetransmitTrigger>; 4] =
        [None, Some(RetransmitTrigger::Timeout), Some(RetransmitTrigger::TailProbe), Some(RetransmitTrigger::Fast)];
    let wait_ns = numbers.up_to(life_ns).unwrap_or(0);
    let flags = u16::from_le_bytes([numbers.byte(), numbers.byte()]);
    let flag = |bit: u32| flags >> bit & 1 == 1;
    let codes = numbers.byte();
    let ticks = i64::from(i32::from_le_bytes([numbers.byte(), numbers.byte(), numbers.byte(), numbers.byte()]));
    let peer_first_ns = numbers.ns(life_ns);
    let spoken = |ns: Nullable| Nullable::from(peer_first_ns.get().map(|first_ns| ns.get().unwrap_or(first_ns)));
    let wait = Wait {
        wait_ns: Some(wait_ns).into(),
        frame_before: Some(1).into(),
        sent_ticks: Some(ticks).filter(|_| !codes.is_multiple_of(7)).into(),
        queueing_delay_ns: numbers.ns(LONGEST_NS),
        queue_grew_ns: numbers.ns(LONGEST_NS),
        since_all_acked_ns: numbers.ns(life_ns),
        since_ack_ns: numbers.ns(life_ns),
        ack_lag_ns: numbers.ns(life_ns),
        rtt_sample_ns: numbers.ns(life_ns),
        previous_rtt_sample_ns: numbers.ns(life_ns),
        srtt_ns: numbers.ns(LONGEST_NS),
        loss_signalled_ns: numbers.ns(life_ns),
        echo_ns: numbers.ns(life_ns),
        window_opened_ns: numbers.ns(life_ns),
        peer_first_ns,
        peer_last_ns: spoken(numbers.ns(life_ns)),
        peer_data_ns: spoken(numbers.ns(life_ns)),
        peer_payload_bytes: numbers.bytes(),
        payload_before_bytes: numbers.bytes(),
        flight_before_bytes: numbers.bytes(),
        flight_after_bytes: numbers.bytes(),
        missed_bytes: Some(i64::from(codes >> 7)).into(),
        usable_window_before_bytes: numbers.bytes(),
        previous_round_flight_bytes: numbers.bytes(),
        smss_bytes: Some(1448).into(),
        flown_before: flag(0),
        window_closed: flag(1),
        small: flag(2),
        small_before: flag(3),
        held_before: flag(4),
        pushed_before: flag(5),
        last_small: [LastSmall::Acked, LastSmall::InFlight, LastSmall::JustAcked]
            [usize::from(flag(6)) + usize::from(flag(6) && flag(14))],
        small_passes: flag(7),
        recovering: flag(8),
        after_loss: flag(9),
        kept_alive: flag(10),
        repaired_by: RETRANSMIT_TRIGGERS[usize::from(codes >> 4 & 3)],
        ..Wait::default()
    };
    WaitRecord {
        wait,
        frame: 2,
        ts_ns: wait_ns,
        seq: i64::from(codes),
        flags: TcpFlags(flags >> 11),
        payload_bytes: if flag(15) { 1448 } else { 100 },
        kind: KINDS[usize::from(codes & 3)],
        retransmit_trigger: RETRANSMIT_TRIGGERS[usize::from(codes >> 2 & 3)],
        in_flight_bytes: numbers.bytes(),
        usable_window_bytes: numbers.bytes(),
        since_last_ack_ns: numbers.ns(life_ns),
        since_last_data_ns: numbers.ns(life_ns),
    }
}
