//! Columns about waits: of each segment, and of each direction of a connection.

use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BooleanArray};

use super::block_columns::{SegmentColumn, amounts, nulls, set, some};
use super::columns::{Column, bits, maybe, nullable, numbers, validity};
use super::rows::{Block, Of, SegmentRows};
use crate::flows::ConnectionRow;
use crate::nullable::Nullable;
use crate::sender::SenderTotals;

/// Columns of the segments table. Null for segments that occupy no sequence space.
pub(super) const SEGMENT_COLUMNS: &[(&str, SegmentColumn)] = &[
    ("wait_ns", |rows, _| value(rows, |block| &block.wait_ns)),
    ("smss_bytes", |rows, _| value(rows, |block| &block.smss_bytes)),
];

fn value(rows: &SegmentRows, column: impl Fn(&Block) -> &Of<Nullable>) -> ArrayRef {
    let nulls = nulls(rows, |block| set(&block.departs) & some(column(block)));
    amounts(rows, column, nulls)
}

/// Adds the columns of one direction (0 the client's, 1 the server's), with `prefix` before their names.
pub(super) fn columns(prefix: &str, at: usize, rows: &[ConnectionRow], columns: &mut Vec<Column>) {
    let rows: Vec<&SenderTotals> = rows.iter().filter_map(|row| row.waits.get(at)).collect();
    let amount = |value: fn(&SenderTotals) -> Nullable| nullable(&rows, |row| value(row));
    let count = |value: fn(&SenderTotals) -> u32| numbers::<Int64Type, _>(&rows, |row| value(row).into());
    let named = [
        ("first_departure_ts_ns", maybe::<Int64Type, _>(&rows, |row| row.first.map(|first| first.ts_ns))),
        ("first_departure_frame", maybe::<Int64Type, _>(&rows, |row| row.first.map(|first| first.frame as i64))),
        ("first_departure_is_syn", {
            let values = bits(&rows, |row| row.first.is_some_and(|first| first.is_syn));
            Arc::new(BooleanArray::new(values, validity(&rows, |row| row.first.is_some()))) as ArrayRef
        }),
        ("ending_wait_ns", amount(|row| row.ending.wait_ns)),
        ("ending_wait_since_frame", amount(|row| row.ending.held_since_frame)),
        ("ending_since_all_acked_ns", amount(|row| row.ending.since_all_acked_ns)),
        ("ending_peer_first_ns", amount(|row| row.ending.peer_first_ns)),
        ("ending_peer_last_ns", amount(|row| row.ending.peer_last_ns)),
        ("level_flight_bytes", amount(|row| row.level_flight_bytes)),
        ("level_rounds", count(|row| row.level_rounds.into())),
        ("other_level_flight_bytes", amount(|row| row.other_level_flight_bytes)),
        ("other_level_rounds", count(|row| row.other_level_rounds.into())),
        ("clocked_departures", count(|row| row.clocked)),
        ("unclocked_departures", count(|row| row.unclocked)),
        ("small_behind_small", count(|row| row.small_behind_small)),
        ("small_delayed_run", count(|row| row.small_delayed_run.into())),
        ("small_past_full", count(|row| row.small_past_full.into())),
        ("small_delayed_over_full", count(|row| row.small_delayed_over_full.into())),
        ("small_delayed_continued", count(|row| row.small_delayed_continued.into())),
        ("tick_ns", amount(|row| row.tick_ns)),
        ("line_payload_bytes", amount(|row| row.line_payload_bytes)),
        ("serialization_ns", amount(|row| row.serialization_ns)),
        ("spaced_payload_bytes", amount(|row| row.spaced_payload_bytes)),
        ("spaced_ns", amount(|row| row.spaced_ns)),
        ("exchange_bytes", amount(|row| row.exchange_bytes)),
        ("exchange_cells", amount(|row| row.exchange_cells)),
        ("exchange_ns", amount(|row| row.exchange_ns)),
        ("fin_ns", amount(|row| row.fin_ns)),
        ("followed_segments", count(|row| row.followed_segments)),
        ("steady_payload_bytes", amount(|row| row.steady_payload_bytes)),
        ("steady_ns", amount(|row| row.steady_ns)),
        ("steady_segments", count(|row| row.steady_segments)),
        ("steady_other_sizes", count(|row| row.steady_other_sizes)),
        ("paced_payload_bytes", amount(|row| row.paced_payload_bytes)),
        ("paced_ns", amount(|row| row.paced_ns)),
        ("paced_bursts", count(|row| row.paced_bursts)),
        ("top_flight_bytes", amount(|row| row.top_flight_bytes)),
        ("top_rounds", count(|row| row.top_rounds.into())),
        ("emptied_flight_bytes", amount(|row| row.emptied_flight_bytes)),
        ("emptied_times", count(|row| row.emptied_times.into())),
        ("other_emptied_flight_bytes", amount(|row| row.other_emptied_flight_bytes)),
        ("other_emptied_times", count(|row| row.other_emptied_times.into())),
        ("ending_payload_bytes", amount(|row| row.ending.payload_before_bytes)),
        ("ending_peer_payload_bytes", amount(|row| row.ending.peer_payload_bytes)),
    ];
    columns.extend(named.map(|(name, array)| (format!("{prefix}_{name}"), array)));
}
