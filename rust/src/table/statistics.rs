//! The columns of the connections table from [`StatisticsFigures`].

use arrow_array::types::{Float64Type, Int64Type, UInt8Type};

use super::columns::{Column, maybe, nullable, numbers};
use super::direction::DirectionRow;
use crate::accounts::RttFigures;

/// `sum / count`, rounded, or `None` if `count` is 0.
fn mean(sum: u64, count: u64) -> Option<i64> {
    (count > 0).then(|| ((u128::from(sum) + u128::from(count / 2)) / u128::from(count)) as i64)
}

/// `sum / count`, or `None` if `count` is 0.
fn ratio(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}

/// Adds the columns of one direction, whose names begin with `prefix`.
pub(super) fn statistics(prefix: &str, rows: &[DirectionRow<'_>], columns: &mut Vec<Column>) {
    let named = counts(rows).into_iter().chain(sizes(rows)).chain(acks(rows)).chain(times(rows));
    columns.extend(named.map(|(name, array)| (format!("{prefix}_{name}"), array)));
}

type Named = Vec<(&'static str, arrow_array::ArrayRef)>;

fn count(rows: &[DirectionRow<'_>], value: fn(&DirectionRow<'_>) -> u64) -> arrow_array::ArrayRef {
    numbers::<Int64Type, _>(rows, |row| value(row) as i64)
}

fn amount(rows: &[DirectionRow<'_>], value: fn(&DirectionRow<'_>) -> Option<i64>) -> arrow_array::ArrayRef {
    maybe::<Int64Type, _>(rows, value)
}

fn share(rows: &[DirectionRow<'_>], value: fn(&DirectionRow<'_>) -> Option<f64>) -> arrow_array::ArrayRef {
    maybe::<Float64Type, _>(rows, value)
}

/// Number of segments with a CE mark. A SYN cannot have a CE mark (RFC 3168, 6.1.1). If all segments have a CE mark,
/// even the SYN, the ECN bits have another meaning, and the result is 0.
fn ce_segments(row: &DirectionRow<'_>) -> u64 {
    Some(row.statistics.rare.ce_segments).filter(|marked| *marked < row.figures.segments).unwrap_or(0)
}

/// Columns with numbers of segments.
fn counts(rows: &[DirectionRow<'_>]) -> Named {
    vec![
        ("frame_bytes", count(rows, |row| row.statistics.usual.frame_bytes)),
        (
            "ack_segments",
            count(rows, |row| row.figures.segments.saturating_sub(row.statistics.usual.without_ack.into())),
        ),
        ("sack_segments", count(rows, |row| row.statistics.usual.sack_segments.into())),
        ("dsack_segments", count(rows, |row| row.statistics.usual.dsack_segments.into())),
        ("max_sack_blocks", count(rows, |row| row.statistics.usual.max_sack_blocks.into())),
        ("pushed_data_segments", {
            let without_data = |row: &DirectionRow<'_>| u64::from(row.statistics.usual.pushed_without_data);
            numbers::<Int64Type, _>(rows, |row| {
                u64::from(row.counts.pushed_segments).saturating_sub(without_data(row)) as i64
            })
        }),
        ("urgent_segments", count(rows, |row| row.statistics.rare.urgent_segments)),
        ("urgent_bytes", count(rows, |row| row.statistics.rare.urgent_bytes)),
        ("zero_window_probe_bytes", count(rows, |row| row.statistics.rare.zero_window_probe_bytes)),
        ("ce_segments", count(rows, ce_segments)),
        ("cwr_segments", count(rows, |row| row.statistics.rare.cwr_segments)),
    ]
}

/// Columns with bytes: segments, windows, data in flight, stream.
fn sizes(rows: &[DirectionRow<'_>]) -> Named {
    vec![
        ("window_scale_offered", maybe::<UInt8Type, _>(rows, |row| row.figures.syn_options?.window_scale)),
        ("min_segment_bytes", amount(rows, |row| row.statistics.usual.min_segment_bytes.map(i64::from))),
        ("mean_segment_bytes", amount(rows, |row| mean(row.counts.payload_bytes, row.figures.data_segments))),
        ("truncated_bytes", count(rows, |row| row.statistics.usual.truncated_bytes)),
        ("mean_window_bytes", {
            // Without a known window scale, only windows of 0 are known, so there is no mean.
            let samples =
                |row: &DirectionRow<'_>| row.figures.window_scale.map(|_| row.statistics.usual.window_samples);
            maybe::<Int64Type, _>(rows, |row| mean(row.statistics.usual.window_sum_bytes, samples(row)?))
        }),
        ("min_in_flight_bytes", nullable(rows, |row| row.statistics.usual.min_in_flight_bytes)),
        ("mean_in_flight_bytes", {
            amount(rows, |row| mean(row.statistics.usual.in_flight_sum_bytes, row.statistics.usual.in_flight_samples))
        }),
        ("time_mean_in_flight_bytes", amount(rows, time_mean_in_flight_bytes)),
        ("initial_window_bytes", amount(rows, |row| with_syn(row, row.statistics.usual.initial_window_bytes))),
        ("initial_window_segments", amount(rows, |row| with_syn(row, row.statistics.usual.initial_window_segments))),
        ("stream_bytes", amount(rows, stream_bytes)),
        ("missing_bytes", amount(rows, |row| Some(stream_bytes(row)? - row.counts.unique_bytes as i64))),
    ]
}

/// Columns about the ACKs from this host, and about the ACKs for its data.
fn acks(rows: &[DirectionRow<'_>]) -> Named {
    vec![
        ("advancing_acks", count(rows, |row| row.statistics.usual.advancing_acks)),
        ("bytes_per_ack", {
            share(rows, |row| ratio(row.statistics.usual.acked_bytes, row.statistics.usual.advancing_acks))
        }),
        ("max_bytes_per_ack", amount(rows, |row| if_it_acks(row, row.statistics.usual.max_acked_bytes))),
        ("segments_per_ack", {
            share(rows, |row| ratio(row.statistics.usual.acked_segments, row.statistics.usual.advancing_acks))
        }),
        ("max_segments_per_ack", amount(rows, |row| if_it_acks(row, row.statistics.usual.max_acked_segments))),
        ("cumulatively_acked_segments", count(rows, |row| row.statistics.usual.cumulatively_acked_segments)),
        ("triple_duplicate_acks", count(rows, |row| row.statistics.rare.triple_duplicate_acks)),
        ("post_loss_acks", count(rows, |row| row.statistics.rare.post_loss_acks)),
        ("max_retransmits", count(rows, |row| row.statistics.rare.max_retransmits.into())),
    ]
}

/// Columns about RTTs and waits.
fn times(rows: &[DirectionRow<'_>]) -> Named {
    let mut named: Named = vec![
        ("max_gap_ns", nullable(rows, |row| row.statistics.usual.max_gap_ns)),
        ("rtt_stdev_ns", amount(rows, |row| row.counts.rtt.stdev_ns())),
        ("rtt_handshake_samples", count(rows, |row| row.statistics.usual.rtt_handshake_ns.is_some().into())),
        ("rtt_handshake_ns", nullable(rows, |row| row.statistics.usual.rtt_handshake_ns)),
        (
            "rtt_full_size_bytes",
            amount(rows, |row| Some(row.statistics.usual.rtt_full_size_bytes.into()).filter(|bytes| *bytes > 0)),
        ),
    ];
    named.extend(samples(rows, TIMESTAMP_NAMES, |row| row.statistics.usual.rtt_timestamps));
    named.extend(samples(rows, FULL_SIZE_NAMES, |row| row.statistics.usual.rtt_full_size));
    named.extend(samples(rows, RESENT_NAMES, |row| row.statistics.rare.rtt_retransmitted));
    named.extend(samples(rows, WAIT_NAMES, |row| row.statistics.rare.retransmit_interval));
    named
}

/// Column names of one set of samples: number, minimum, mean, maximum, standard deviation.
type Names = [&'static str; 5];

const TIMESTAMP_NAMES: Names = [
    "rtt_timestamp_samples",
    "rtt_timestamp_min_ns",
    "rtt_timestamp_mean_ns",
    "rtt_timestamp_max_ns",
    "rtt_timestamp_stdev_ns",
];
const FULL_SIZE_NAMES: Names = [
    "rtt_full_size_samples",
    "rtt_full_size_min_ns",
    "rtt_full_size_mean_ns",
    "rtt_full_size_max_ns",
    "rtt_full_size_stdev_ns",
];
const RESENT_NAMES: Names = [
    "rtt_retransmitted_samples",
    "rtt_retransmitted_min_ns",
    "rtt_retransmitted_mean_ns",
    "rtt_retransmitted_max_ns",
    "rtt_retransmitted_stdev_ns",
];
const WAIT_NAMES: Names = [
    "retransmit_interval_samples",
    "retransmit_interval_min_ns",
    "retransmit_interval_mean_ns",
    "retransmit_interval_max_ns",
    "retransmit_interval_stdev_ns",
];

fn samples(rows: &[DirectionRow<'_>], names: Names, of: fn(&DirectionRow<'_>) -> RttFigures) -> Named {
    let [samples, min, mean, max, stdev] = names;
    let time = |value: fn(&RttFigures) -> Option<i64>| maybe::<Int64Type, _>(rows, |row| value(&of(row)));
    vec![
        (samples, numbers::<Int64Type, _>(rows, |row| of(row).samples as i64)),
        (min, time(RttFigures::min_ns)),
        (mean, time(RttFigures::mean_ns)),
        (max, time(RttFigures::max_ns)),
        (stdev, time(RttFigures::stdev_ns)),
    ]
}

fn with_syn(row: &DirectionRow<'_>, value: u32) -> Option<i64> {
    (row.figures.syn_segments > 0).then_some(value.into())
}

fn if_it_acks(row: &DirectionRow<'_>, value: u32) -> Option<i64> {
    (row.statistics.usual.advancing_acks > 0).then_some(value.into())
}

/// Length of the stream in bytes, or `None` if the capture lacks the SYN (offset 0) or the FIN of the direction.
fn stream_bytes(row: &DirectionRow<'_>) -> Option<i64> {
    let fin = row.statistics.usual.stream_end.get()?;
    (row.figures.syn_segments > 0).then_some(fin - 1)
}

fn time_mean_in_flight_bytes(row: &DirectionRow<'_>) -> Option<i64> {
    let (first, last) = (row.connection.first_ts_ns, row.connection.last_ts_ns);
    let lasted_ns = last.since(first).get().filter(|lasted_ns| *lasted_ns > 0)?;
    let known = row.figures.max_in_flight_bytes.is_some();
    known.then(|| (row.statistics.usual.in_flight_area_until(last) / lasted_ns as f64).round() as i64)
}
