//! Test data for the gates: a wait in a bulk transfer, captured at the sender. Each table row changes this wait.

use super::super::cause::Cause;
use super::super::direction::DirectionFacts;
use super::super::evidence::Evidence;
use super::super::judge::judge;
use super::super::waits::record::WaitRecord;
use super::closed::Closed;
use crate::connection::{Confidence, Kind, RetransmitTrigger};
use crate::nullable::Nullable;
use crate::sender::{NS_PER_MS, Wait};

pub(in super::super) const MS: i64 = NS_PER_MS;

/// One table row: a name for the case, how the wait differs from [`bulk`], and the expected result.
pub(in super::super) type Row<E> = (&'static str, fn(&mut WaitRecord, &mut DirectionFacts), E);

pub(in super::super) fn some(value: i64) -> Nullable {
    Some(value).into()
}

/// The wait before a full-sized segment of 1,000 bytes, with an RTT of 20 ms.
pub(in super::super) fn bulk() -> (WaitRecord, DirectionFacts) {
    let wait = Wait {
        wait_ns: some(10 * MS),
        frame_before: some(9),
        since_ack_ns: some(50_000),
        ack_frame: some(10),
        ack_lag_ns: some(20 * MS),
        rtt_sample_ns: some(20 * MS),
        srtt_ns: some(20 * MS),
        payload_before_bytes: some(1000),
        flight_before_bytes: some(10_000),
        flight_after_bytes: some(9000),
        missed_bytes: some(0),
        usable_window_before_bytes: some(50_000),
        previous_round_flight_bytes: some(5000),
        flown_bytes: some(5000),
        smss_bytes: some(1000),
        ..Wait::default()
    };
    let record = WaitRecord {
        wait,
        frame: 11,
        ts_ns: 1000 * MS,
        seq: 20_001,
        payload_bytes: 1000,
        kind: Kind::New,
        in_flight_bytes: some(10_000),
        usable_window_bytes: some(51_000),
        since_last_ack_ns: some(50_000),
        ..WaitRecord::default()
    };
    let direction = DirectionFacts {
        from_client: true,
        near_sender: true,
        beginning_seen: true,
        nothing_lost: true,
        rtt_ns: 20 * MS,
        rtt_min_ns: Some(20 * MS),
        max_window_bytes: Some(65_535),
        max_segment_bytes: 1000,
        max_in_flight_bytes: Some(40_000),
        peak_flight_bytes: Some(40_000),
        causal_window_ns: 2 * MS,
        release_window_ns: 2 * MS,
        burst_ns: 40_000,
        queue_ns: 6 * MS,
        ack_clocked: true,
        ..DirectionFacts::default()
    };
    (record, direction)
}

/// Changes the segment to a small one that was sent as soon as everything was acknowledged. The previous segment was
/// also small.
pub(in super::super) fn small_behind_small(record: &mut WaitRecord, direction: &mut DirectionFacts) {
    record.payload_bytes = 100;
    record.wait.small = true;
    record.wait.small_before = true;
    record.wait.last_small = crate::sender::LastSmall::InFlight;
    record.wait.wait_ns = some(20 * MS);
    record.wait.payload_before_bytes = some(100);
    record.wait.flight_before_bytes = some(100);
    record.wait.flight_after_bytes = some(0);
    record.wait.since_all_acked_ns = some(50_000);
    direction.holds_small = true;
}

/// Changes the segment to a retransmission of the oldest segment by the retransmission timer.
pub(in super::super) fn timed_out(record: &mut WaitRecord, _: &mut DirectionFacts) {
    record.retransmit_trigger = Some(RetransmitTrigger::Timeout);
    record.kind = Kind::RtoRetransmit;
    record.wait.wait_ns = some(220 * MS);
    record.wait.since_ack_ns = Nullable::NULL;
}

/// Checks the result of one gate alone.
pub(in super::super) fn check_gate(gate: fn(&Evidence<'_>) -> Option<Closed>, rows: &[Row<Option<Confidence>>]) {
    for (name, change, expected) in rows {
        let (mut record, mut direction) = bulk();
        change(&mut record, &mut direction);
        let answer = gate(&Evidence::of(&record, &direction)).map(|closed| closed.confidence);
        assert_eq!(answer, *expected, "{name}");
    }
}

/// Checks the cause that the judge chooses among all gates, and that the intervals sum to the wait.
pub(in super::super) fn check_judge(rows: &[Row<Option<Cause>>]) {
    for (name, change, expected) in rows {
        let (mut record, mut direction) = bulk();
        change(&mut record, &mut direction);
        let judged = judge(&record, &direction);
        assert_eq!(judged.cause, *expected, "{name}");
        let total: i64 = judged.spans.iter().map(|(_, ns)| ns).sum();
        assert_eq!(Some(total), record.wait.wait_ns.get(), "{name}: the intervals sum to the wait");
    }
}
