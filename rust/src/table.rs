//! Converts rows to batches of Arrow columns. A test compares the names and the order of the columns with
//! `tcptrace_lab/schema/`.

mod behaviour;
mod block_columns;
mod columns;
mod departure;
mod direction;
pub mod figures;
mod hosts;
mod input;
mod ledger;
mod messages;
mod rates;
mod rows;
mod segments;
mod statistics;

pub use ledger::{
    accounts, accounts_schema, direction_facts, kinds, ledger, ledger_column_names, locks, notes, notes_schema, waits,
};
pub use messages::{messages, noted, segments_of_messages};
pub use rows::SegmentRows;
pub use segments::{Segments, segment_column_names};

use std::sync::Arc;

use arrow_array::builder::BooleanBuilder;
use arrow_array::types::{Float64Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};

use crate::connection::Revision;
use crate::flows::{ConnectionRow, DatagramRow, DirectionTimes, FlowDirection, FlowRow};
use crate::nullable::Nullable;
use crate::wire::PathNames;
use columns::{Column, addresses, batch, dictionary, flags, maybe, nullable, numbers};
use direction::DirectionRow;

/// The schema of the batches of the connections table.
///
/// # Errors
/// No error occurs in practice, because the batch behind the schema is empty.
pub fn connections_schema() -> Result<SchemaRef, ArrowError> {
    connections(&[], 0).map(|batch| batch.schema())
}

/// One batch of the connections table. `resolution_ns` is the tick of the capture's clock in nanoseconds.
///
/// # Errors
/// No error occurs in practice, because all columns have the same length.
pub fn connections(rows: &[ConnectionRow], resolution_ns: i64) -> Result<RecordBatch, ArrowError> {
    let mut columns: Vec<Column> = vec![
        ("conn".into(), numbers::<UInt32Type, _>(rows, |row| row.conn)),
        ("client_addr".into(), addresses(rows, |row| row.client.0)),
        ("client_port".into(), numbers::<UInt16Type, _>(rows, |row| row.client.1)),
        ("server_addr".into(), addresses(rows, |row| row.server.0)),
        ("server_port".into(), numbers::<UInt16Type, _>(rows, |row| row.server.1)),
        ("client_known_by".into(), numbers::<UInt8Type, _>(rows, |row| row.client_known_by as u8)),
        ("closed_by".into(), numbers::<UInt8Type, _>(rows, |row| row.closed_by as u8)),
        ("first_frame".into(), numbers::<UInt64Type, _>(rows, |row| row.first_frame)),
        ("last_frame".into(), numbers::<UInt64Type, _>(rows, |row| row.last_frame)),
        ("first_ts_ns".into(), nullable(rows, |row| row.first_ts_ns)),
        ("last_ts_ns".into(), nullable(rows, |row| row.last_ts_ns)),
        ("clock_tick_ns".into(), maybe::<Int64Type, _>(rows, |row| row.tick_ns)),
        ("syn_to_synack_ns".into(), nullable(rows, |row| row.syn_to_synack_ns)),
        ("synack_to_ack_ns".into(), nullable(rows, |row| row.synack_to_ack_ns)),
        ("link".into(), maybe::<UInt8Type, _>(rows, |row| row.line.map(|line| line as u8))),
        ("vpi".into(), maybe::<UInt16Type, _>(rows, |row| row.channel.map(|(vpi, _)| vpi))),
        ("vci".into(), maybe::<UInt16Type, _>(rows, |row| row.channel.map(|(_, vci)| vci))),
    ];
    hosts::of_connection(rows, resolution_ns, &mut columns);
    for (at, prefix) in ["client", "server"].into_iter().enumerate() {
        let directions_of_host: Vec<DirectionRow<'_>> =
            rows.iter().filter_map(|row| DirectionRow::of(row, at)).collect();
        directions(prefix, &directions_of_host, &mut columns);
        statistics::statistics(prefix, &directions_of_host, &mut columns);
        behaviour::columns(prefix, &directions_of_host, &mut columns);
        departure::columns(prefix, at, rows, &mut columns);
        rates::columns(prefix, at, rows, &mut columns);
        hosts::of_direction(prefix, at, rows, &mut columns);
    }
    for (at, prefix) in ["client", "server"].into_iter().enumerate() {
        times(prefix, at, rows, &mut columns);
    }
    batch(columns)
}

fn directions(prefix: &str, rows: &[DirectionRow<'_>], columns: &mut Vec<Column>) {
    let count = |value: fn(&DirectionRow<'_>) -> u64| numbers::<Int64Type, _>(rows, |row| value(row) as i64);
    let amount = |value: fn(&DirectionRow<'_>) -> Option<i64>| maybe::<Int64Type, _>(rows, value);
    let agreed = |value: fn(&DirectionRow<'_>) -> Option<bool>| -> ArrayRef {
        let mut flags = BooleanBuilder::new();
        for row in rows {
            flags.append_option(value(row));
        }
        Arc::new(flags.finish())
    };
    let named: Vec<(&str, ArrayRef)> = vec![
        ("segments", count(|row| row.figures.segments)),
        ("data_segments", count(|row| row.figures.data_segments)),
        ("payload_bytes", count(|row| row.counts.payload_bytes)),
        ("unique_bytes", count(|row| row.counts.unique_bytes)),
        ("retransmitted_segments", count(|row| row.counts.retransmitted_segments.into())),
        ("retransmitted_bytes", count(|row| row.counts.retransmitted_bytes)),
        ("spurious_retransmissions", count(|row| row.figures.spurious_retransmissions.into())),
        ("out_of_order_segments", count(|row| row.counts.out_of_order_segments.into())),
        ("capture_duplicates", count(|row| row.figures.capture_duplicates.into())),
        ("network_duplicates", count(|row| row.figures.network_duplicates.into())),
        ("not_captured_bytes", count(|row| row.figures.not_captured_bytes)),
        ("not_captured_holes", count(|row| row.figures.not_captured_holes.into())),
        ("duplicate_acks", count(|row| row.counts.duplicate_acks.into())),
        ("pure_acks", count(|row| row.counts.pure_acks)),
        ("keepalives", count(|row| row.counts.keepalives.into())),
        ("zero_window_probes", count(|row| row.counts.zero_window_probes.into())),
        ("window_updates", count(|row| row.counts.window_updates.into())),
        ("zero_window_advertisements", count(|row| row.counts.zero_window_advertisements.into())),
        ("pushed_segments", count(|row| row.counts.pushed_segments.into())),
        ("truncated_segments", count(|row| row.counts.truncated_segments)),
        ("syn_segments", count(|row| row.figures.syn_segments.into())),
        ("fin_segments", count(|row| row.figures.fin_segments.into())),
        ("rst_segments", count(|row| row.figures.rst_segments.into())),
        ("isn", maybe::<UInt32Type, _>(rows, |row| row.figures.isn)),
        ("mss_bytes", amount(|row| row.figures.syn_options?.mss.map(i64::from))),
        ("window_scale", maybe::<UInt8Type, _>(rows, |row| row.figures.window_scale)),
        ("sack_permitted", agreed(|row| row.figures.syn_options?.permits_sack())),
        ("timestamps", agreed(|row| row.figures.syn_options?.offers_timestamps())),
        // Without a known window scale, only windows of 0 and the windows in SYNs are known.
        ("max_window_bytes", amount(|row| row.figures.window_scale.and(row.counts.max_window_bytes).map(i64::from))),
        ("min_window_bytes", amount(|row| row.counts.min_window_bytes.map(i64::from))),
        ("max_in_flight_bytes", nullable(rows, |row| row.figures.max_in_flight_bytes)),
        ("max_segment_bytes", count(|row| row.figures.max_segment_bytes.into())),
        ("full_segment_bytes", amount(|row| row.connection.full_segment_bytes.map(i64::from))),
        ("header_bytes", amount(|row| (row.figures.header_bytes > 0).then(|| row.figures.header_bytes.into()))),
        ("cells", amount(|row| (row.counts.cells > 0).then_some(row.counts.cells as i64))),
        ("cell_payload_share", maybe::<Float64Type, _>(rows, |row| row.counts.cell_payload_share())),
        ("best_payload_share", maybe::<Float64Type, _>(rows, best_payload_share)),
        ("rtt_samples", count(|row| row.counts.rtt.samples)),
        ("rtt_min_ns", amount(|row| row.counts.rtt.min_ns())),
        ("rtt_mean_ns", amount(|row| row.counts.rtt.mean_ns())),
        ("rtt_max_ns", amount(|row| row.counts.rtt.max_ns())),
        ("first_data_ts_ns", nullable(rows, |row| row.counts.first_data_ts_ns)),
        ("last_data_ts_ns", nullable(rows, |row| row.counts.last_data_ts_ns)),
    ];
    columns.extend(named.into_iter().map(|(name, array)| (format!("{prefix}_{name}"), array)));
}

fn times(prefix: &str, at: usize, rows: &[ConnectionRow], columns: &mut Vec<Column>) {
    let times_of_host: Vec<DirectionTimes> = rows.iter().filter_map(|row| row.times.get(at).copied()).collect();
    let mut add = |name: &str, value: fn(&DirectionTimes) -> Nullable| {
        columns.push((format!("{prefix}_{name}"), nullable(&times_of_host, value)));
    };
    add("rtt_p50_ns", |times| times.rtt.p50_ns);
    add("rtt_p95_ns", |times| times.rtt.p95_ns);
    add("ack_lag_p50_ns", |times| times.ack_lag.p50_ns);
    add("ack_lag_p95_ns", |times| times.ack_lag.p95_ns);
}

/// Highest possible share of payload in the bytes on the link, or `None` if the overhead of the link or the segment
/// size is unknown.
fn best_payload_share(row: &DirectionRow<'_>) -> Option<f64> {
    let header_bytes = Some(row.figures.header_bytes).filter(|bytes| *bytes > 0)?;
    Some(row.connection.line?.best_payload_share(row.connection.full_segment_bytes?, header_bytes))
}

/// All revisions of a capture as one batch.
///
/// # Errors
/// No error occurs in practice, because all columns have the same length.
pub fn revisions(rows: &[Revision]) -> Result<RecordBatch, ArrowError> {
    batch(vec![
        ("frame".into(), numbers::<UInt64Type, _>(rows, |row| row.frame)),
        ("kind".into(), numbers::<UInt8Type, _>(rows, |row| row.kind as u8)),
        ("evidence".into(), numbers::<UInt8Type, _>(rows, |row| row.evidence as u8)),
        ("evidence_frame".into(), numbers::<UInt64Type, _>(rows, |row| row.evidence_frame)),
        ("confidence".into(), numbers::<UInt8Type, _>(rows, |row| row.confidence as u8)),
    ])
}

/// The schema of the batches of the datagrams table.
///
/// # Errors
/// No error occurs in practice, because the batch behind the schema is empty.
pub fn datagrams_schema() -> Result<SchemaRef, ArrowError> {
    datagrams(&[], &PathNames::default()).map(|batch| batch.schema())
}

/// One batch of the datagrams table.
///
/// # Errors
/// No error occurs in practice, because all columns have the same length.
pub fn datagrams(rows: &[DatagramRow], paths: &PathNames) -> Result<RecordBatch, ArrowError> {
    batch(vec![
        ("frame".into(), numbers::<UInt64Type, _>(rows, |row| row.frame)),
        ("ts_ns".into(), nullable(rows, |row| row.ts_ns)),
        ("flow".into(), numbers::<UInt32Type, _>(rows, |row| row.flow)),
        ("from_client".into(), flags(rows, |row| row.from_client)),
        ("payload_bytes".into(), numbers::<Int64Type, _>(rows, |row| row.payload_bytes.into())),
        ("captured_payload_bytes".into(), numbers::<Int64Type, _>(rows, |row| row.captured_payload_bytes.into())),
        ("fragments".into(), numbers::<UInt16Type, _>(rows, |row| row.fragments)),
        ("since_previous_ns".into(), nullable(rows, |row| row.since_previous_ns)),
        ("since_other_ns".into(), nullable(rows, |row| row.since_other_ns)),
        ("ip_id".into(), maybe::<UInt16Type, _>(rows, |row| row.ip_id)),
        ("ttl".into(), numbers::<UInt8Type, _>(rows, |row| row.ttl)),
        ("layers".into(), dictionary(rows.iter().map(|row| row.path).collect(), paths)),
    ])
}

/// The schema of the batches of the flows table.
///
/// # Errors
/// No error occurs in practice, because the batch behind the schema is empty.
pub fn flows_schema() -> Result<SchemaRef, ArrowError> {
    flows(&[]).map(|batch| batch.schema())
}

/// One batch of the flows table.
///
/// # Errors
/// No error occurs in practice, because all columns have the same length.
pub fn flows(rows: &[FlowRow]) -> Result<RecordBatch, ArrowError> {
    let mut columns: Vec<Column> = vec![
        ("flow".into(), numbers::<UInt32Type, _>(rows, |row| row.flow)),
        ("client_addr".into(), addresses(rows, |row| row.client.0)),
        ("client_port".into(), numbers::<UInt16Type, _>(rows, |row| row.client.1)),
        ("server_addr".into(), addresses(rows, |row| row.server.0)),
        ("server_port".into(), numbers::<UInt16Type, _>(rows, |row| row.server.1)),
        ("echo_samples".into(), numbers::<Int64Type, _>(rows, |row| row.echoes.samples as i64)),
        ("echo_min_ns".into(), nullable(rows, |row| row.echoes.min_ns)),
        ("echo_p50_ns".into(), nullable(rows, |row| row.echoes.quantiles.p50_ns)),
        ("echo_p95_ns".into(), nullable(rows, |row| row.echoes.quantiles.p95_ns)),
        ("echo_max_ns".into(), nullable(rows, |row| row.echoes.max_ns)),
    ];
    for (at, prefix) in ["client", "server"].into_iter().enumerate() {
        let directions: Vec<FlowDirection> = rows.iter().filter_map(|row| row.directions.get(at).copied()).collect();
        flow_directions(prefix, &directions, &mut columns);
    }
    batch(columns)
}

fn flow_directions(prefix: &str, rows: &[FlowDirection], columns: &mut Vec<Column>) {
    let count = |value: fn(&FlowDirection) -> u64| numbers::<Int64Type, _>(rows, |row| value(row) as i64);
    let amount = |value: fn(&FlowDirection) -> Option<i64>| maybe::<Int64Type, _>(rows, value);
    let named: Vec<(&str, ArrayRef)> = vec![
        ("datagrams", count(|row| row.datagrams)),
        ("payload_bytes", count(|row| row.payload_bytes)),
        ("fragmented_datagrams", count(|row| row.fragmented_datagrams)),
        ("min_payload_bytes", amount(|row| row.min_payload_bytes.map(i64::from))),
        ("mean_payload_bytes", amount(|row| row.mean_payload_bytes)),
        ("max_payload_bytes", amount(|row| row.max_payload_bytes.map(i64::from))),
        ("distinct_sizes", amount(|row| row.distinct_sizes.map(|sizes| sizes as i64))),
        ("first_ts_ns", nullable(rows, |row| row.first_ts_ns)),
        ("last_ts_ns", nullable(rows, |row| row.last_ts_ns)),
        ("rate_bps", maybe::<Float64Type, _>(rows, |row| row.rate_bps)),
        ("gap_p50_ns", nullable(rows, |row| row.gap.p50_ns)),
        ("gap_p95_ns", nullable(rows, |row| row.gap.p95_ns)),
        ("gap_max_ns", nullable(rows, |row| row.gap_max_ns)),
        ("gap_variation", maybe::<Float64Type, _>(rows, |row| row.gap_variation)),
        ("missing_datagrams", amount(|row| row.missing_datagrams.map(|datagrams| datagrams as i64))),
        ("reordered_datagrams", amount(|row| row.reordered_datagrams.map(|datagrams| datagrams as i64))),
        // Code 0 stands for IP IDs, the only evidence of missing datagrams.
        ("loss_known_by", maybe::<UInt8Type, _>(rows, |row| row.missing_datagrams.map(|_| 0))),
    ];
    columns.extend(named.into_iter().map(|(name, array)| (format!("{prefix}_{name}"), array)));
}
