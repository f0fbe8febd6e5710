//! Columns about waits, in the segments table and in the connections table.

use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BooleanArray};

use super::block_columns::{SegmentColumn, amounts, nulls, set, some};
use super::columns::{Column, bits, maybe, nullable, numbers, validity};
use super::rows::{Block, Of, SegmentRows};
use crate::flows::ConnectionRow;
use crate::nullable::Nullable;
use crate::sender::SenderTotals;

/// Columns of the segments table, null for a segment that has neither data nor SYN nor FIN.
pub(super) const SEGMENT_COLUMNS: &[(&str, SegmentColumn)] = &[
    ("wait_ns", |rows, _| value(rows, |block| &block.wait_ns)),
    ("smss_bytes", |rows, _| value(rows, |block| &block.smss_bytes)),
];

fn value(rows: &SegmentRows, column: impl Fn(&Block) -> &Of<Nullable>) -> ArrayRef {
    let nulls = nulls(rows, |block| set(&block.departs) & some(column(block)));
    amounts(rows, column, nulls)
}

/// Adds the columns of the direction in which the client (`at` = 0) or the server (`at` = 1) sends. Column names begin
/// with `prefix`.
pub(super) fn columns(prefix: &str, at: usize, rows: &[ConnectionRow], columns: &mut Vec<Column>) {
    let rows: Vec<&SenderTotals> = rows.iter().filter_map(|row| row.waits.get(at)).collect();
    let amount = |value: fn(&SenderTotals) -> Nullable| nullable(&rows, |row| value(row));
    let count = |value: fn(&SenderTotals) -> u32| numbers::<Int64Type, _>(&rows, |row| value(row).into());
    let named = [
        ("first_departure_frame", maybe::<Int64Type, _>(&rows, |row| row.first.map(|first| first.frame as i64))),
        ("first_departure_is_syn", {
            let values = bits(&rows, |row| row.first.is_some_and(|first| first.is_syn));
            Arc::new(BooleanArray::new(values, validity(&rows, |row| row.first.is_some()))) as ArrayRef
        }),
        ("level_flight_bytes", amount(|row| row.level_flight_bytes)),
        ("level_rounds", count(|row| row.level_rounds.into())),
        ("small_behind_small", count(|row| row.small_behind_small)),
        ("small_delayed_run", count(|row| row.small_delayed_run.into())),
        ("small_delayed_over_full", count(|row| row.small_delayed_over_full.into())),
        ("line_payload_bytes", amount(|row| row.line_payload_bytes)),
        ("serialization_ns", amount(|row| row.serialization_ns)),
    ];
    columns.extend(named.map(|(name, array)| (format!("{prefix}_{name}"), array)));
}
