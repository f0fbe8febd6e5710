//! Target: the waits that the engine records for each sender, with segments at arbitrary times.

use tcptrace_lab_core::flows::ConnectionRow;
use tcptrace_lab_core::ledger::WaitRecord;
use tcptrace_lab_core::nullable::Nullable;
use tcptrace_lab_core::sender::{LONGEST_NS, SenderTotals, Wait};

use crate::bounds;
use crate::followed::Followed;
use crate::pipeline::Account;

/// Memory for the waits, selected by two bits of the first byte. All, most, some or none of the waits go to the
/// temporary file.
pub const MEMORY_BYTES: [usize; 4] = [0, 1000, 8000, usize::MAX];

/// Tracks the senders of the segments in `input` and checks the invariants of their waits. Bits 0 and 1 of the first
/// byte select one of [`MEMORY_BYTES`]. The input has the format of [`crate::followed`].
pub fn sender(input: &[u8]) -> Account {
    let Some((&head, records)) = input.split_first() else { return Account::default() };
    bounds::hold(input, 0, || {
        let followed = Followed::of(records);
        check_log(&followed, MEMORY_BYTES[usize::from(head & 3)]);
        for row in &followed.connections {
            for (totals, from_client) in row.waits.iter().zip([true, false]) {
                check_direction(&followed, row, totals, from_client);
            }
        }
        followed.account()
    })
}

/// The waits of one direction in order.
fn records(followed: &Followed, conn: u32, from_client: bool) -> impl Iterator<Item = WaitRecord> {
    let of_direction = move |row: &&_| {
        let row: &tcptrace_lab_core::flows::SegmentRow = row;
        (row.conn, row.from_client) == (conn, from_client)
    };
    followed.segments.iter().filter(of_direction).filter_map(WaitRecord::of)
}

/// Checks that a log returns what was written to it, from memory and from the file.
fn check_log(followed: &Followed, max_memory_bytes: usize) {
    let mut live = followed.waits(max_memory_bytes);
    for row in &followed.connections {
        for (log, from_client) in live.end(row.conn).directions.into_iter().zip([true, false]) {
            let mut expected = records(followed, row.conn, from_client);
            log.each_record(|record| assert_eq!(Some(*record), expected.next(), "a record changes in its log"))
                .expect("the temporary file can be read");
            assert!(expected.next().is_none(), "a record is lost in its log");
        }
    }
}

fn check_direction(followed: &Followed, row: &ConnectionRow, totals: &SenderTotals, from_client: bool) {
    let Some(life_ns) = row.last_ts_ns.since(row.first_ts_ns).get() else {
        assert!(totals.first.is_none(), "a departure without a time: {row:?}");
        return;
    };
    assert!(life_ns >= 0, "a connection ends before it begins: {row:?}");
    if life_ns > LONGEST_NS {
        return; // sums saturate
    }
    let mut waited_ns = 0;
    let mut frame = totals.first.map_or(0, |first| first.frame);
    for record in records(followed, row.conn, from_client) {
        assert_eq!(record.wait.frame_before.get(), Some(frame.cast_signed()), "a wait begins with the one before");
        assert!(record.frame > frame, "waits out of order: {record:?}");
        frame = record.frame;
        waited_ns += check_wait(&record.wait, life_ns);
    }
    if totals.ending.wait_ns.is_some() {
        let first = totals.first.expect("a wait begins with a departure");
        let before_ns = first.ts_ns - row.first_ts_ns.value();
        assert_eq!(before_ns + waited_ns + check_wait(&totals.ending, life_ns), life_ns, "the waits are not the life");
    } else {
        assert_eq!((totals.first.is_none(), waited_ns), (true, 0), "waits without an end: {totals:?}");
    }
    check_totals(totals, life_ns);
}

/// Checks one wait of a connection with this lifetime. Returns the length of the wait.
fn check_wait(wait: &Wait, life_ns: i64) -> i64 {
    let wait_ns = wait.wait_ns.get().expect("a wait has a length");
    let ages = [
        wait.wait_ns,
        wait.since_all_acked_ns,
        wait.since_ack_ns,
        wait.missed_acked_ns,
        wait.loss_signalled_ns,
        wait.window_opened_ns,
        wait.peer_first_ns,
        wait.peer_last_ns,
        wait.peer_data_ns,
        wait.rtt_sample_ns,
        wait.previous_rtt_sample_ns,
    ];
    assert!(ages.into_iter().all(|ns| within(ns, life_ns)), "longer than the life of {life_ns} ns: {wait:?}");
    let by_clocks = [wait.srtt_ns, wait.queueing_delay_ns, wait.queue_grew_ns];
    assert!(by_clocks.into_iter().all(|ns| within(ns, LONGEST_NS)), "what clocks show: {wait:?}");
    let sizes = [
        wait.flight_before_bytes,
        wait.flight_after_bytes,
        wait.missed_bytes,
        wait.left_out_segments,
        wait.previous_round_flight_bytes,
        wait.flown_bytes,
        wait.smss_bytes,
        wait.payload_before_bytes,
        wait.peer_payload_bytes,
    ];
    assert!(sizes.into_iter().all(|bytes| within(bytes, i64::MAX)), "below nothing: {wait:?}");
    assert_eq!(
        wait.peer_first_ns.is_some(),
        wait.peer_last_ns.is_some(),
        "who speaks first speaks last, too: {wait:?}"
    );
    assert_eq!(wait.since_ack_ns.is_some(), wait.ack_frame.is_some(), "an ACK without a frame: {wait:?}");
    wait_ns
}

fn check_totals(totals: &SenderTotals, life_ns: i64) {
    let times = [
        totals.serialization_ns,
        totals.spaced_ns,
        totals.exchange_ns,
        totals.fin_ns,
        totals.steady_ns,
        totals.paced_ns,
    ];
    assert!(
        times.into_iter().all(|ns| within(ns, life_ns.max(20_000))),
        "longer than a life of {life_ns} ns: {totals:?}"
    );
    assert!(within(totals.tick_ns, life_ns), "ticks: {totals:?}");
    let runs =
        [(totals.small_delayed_run, totals.small_delayed_over_full), (totals.level_rounds, totals.other_level_rounds)];
    assert!(runs[1].0 >= runs[1].1, "the longer level comes first: {totals:?}");
}

/// Whether the value is null or between 0 and `most`.
fn within(value: Nullable, most: i64) -> bool {
    value.get().is_none_or(|value| (0..=most).contains(&value))
}
