//! The columns that tell what held departures back: of segments, and of each side of a connection.

use std::sync::Arc;

use arrow_array::types::{Int64Type, UInt8Type};
use arrow_array::{ArrayRef, BooleanArray};

use super::rows::{Block, NO_CODE, Of, SegmentRows};
use super::segments::{SegmentColumn, amounts, boolean, but, nulls, set, some};
use super::{Column, bits, maybe, nullable, numbers, validity};
use crate::connection::{ConnectionRow, Nullable, Waits};

/// Columns of the segments table; null for segments that occupy no sequence space.
pub(super) const SEGMENT_COLUMNS: &[(&str, SegmentColumn)] = &[
    ("held_ns", |rows, _| value(rows, |block| &block.held_ns)),
    ("held_since_frame", |rows, _| value(rows, |block| &block.held_since_frame)),
    ("sent_ticks", |rows, _| value(rows, |block| &block.sent_ticks)),
    ("queued_ns", |rows, _| value(rows, |block| &block.queued_ns)),
    ("queue_grew_ns", |rows, _| value(rows, |block| &block.queue_grew_ns)),
    ("idle_ns", |rows, _| value(rows, |block| &block.idle_ns)),
    ("acked_ago_ns", |rows, _| value(rows, |block| &block.acked_ago_ns)),
    ("acked_by_frame", |rows, _| value(rows, |block| &block.acked_by_frame)),
    ("acked_lag_ns", |rows, _| value(rows, |block| &block.acked_lag_ns)),
    ("round_trip_ns", |rows, _| value(rows, |block| &block.round_trip_ns)),
    ("neighbour_ns", |rows, _| value(rows, |block| &block.neighbour_ns)),
    ("smoothed_ns", |rows, _| value(rows, |block| &block.smoothed_ns)),
    ("loss_told_ns", |rows, _| value(rows, |block| &block.loss_told_ns)),
    ("echo_ns", |rows, _| value(rows, |block| &block.echo_ns)),
    ("window_opened_ns", |rows, _| value(rows, |block| &block.window_opened_ns)),
    ("peer_first_ns", |rows, _| value(rows, |block| &block.peer_first_ns)),
    ("peer_last_ns", |rows, _| value(rows, |block| &block.peer_last_ns)),
    ("peer_payload_bytes", |rows, _| value(rows, |block| &block.peer_payload_bytes)),
    ("payload_before_bytes", |rows, _| value(rows, |block| &block.payload_before_bytes)),
    ("unacked_before_bytes", |rows, _| value(rows, |block| &block.unacked_before_bytes)),
    ("unacked_bytes", |rows, _| value(rows, |block| &block.unacked_bytes)),
    ("missed_bytes", |rows, _| value(rows, |block| &block.missed_bytes)),
    ("left_out_segments", |rows, _| value(rows, |block| &block.left_out_segments)),
    ("usable_before_bytes", |rows, _| value(rows, |block| &block.usable_before_bytes)),
    ("flight_bytes", |rows, _| value(rows, |block| &block.flight_bytes)),
    ("flown_before", |rows, _| flag(rows, |block| &block.flown_before)),
    ("flown_bytes", |rows, _| value(rows, |block| &block.flown_bytes)),
    ("full_bytes", |rows, _| value(rows, |block| &block.full_bytes)),
    ("window_closed", |rows, _| flag(rows, |block| &block.window_closed)),
    ("small", |rows, _| flag(rows, |block| &block.small)),
    ("small_before", |rows, _| flag(rows, |block| &block.small_before)),
    ("held_before", |rows, _| flag(rows, |block| &block.held_before)),
    ("pushed_before", |rows, _| flag(rows, |block| &block.pushed_before)),
    ("small_unacked", |rows, _| flag(rows, |block| &block.small_unacked)),
    ("small_passes", |rows, _| flag(rows, |block| &block.small_passes)),
    ("recovering", |rows, _| flag(rows, |block| &block.recovering)),
    ("repaired_by", |rows, _| but::<UInt8Type>(rows, NO_CODE, |block| &block.repaired_by)),
    ("after_loss", |rows, _| flag(rows, |block| &block.after_loss)),
    ("fills_unscaled", |rows, _| flag(rows, |block| &block.fills_unscaled)),
];

fn value(rows: &SegmentRows, column: impl Fn(&Block) -> &Of<Nullable>) -> ArrayRef {
    let nulls = nulls(rows, |block| set(&block.departs) & some(column(block)));
    amounts(rows, column, nulls)
}

fn flag(rows: &SegmentRows, column: impl Fn(&Block) -> &Of<bool>) -> ArrayRef {
    boolean(rows, |block| set(column(block)), nulls(rows, |block| set(&block.departs)))
}

/// Adds the columns of one side (0 the client, 1 the server) under its name.
pub(super) fn columns(side: &str, at: usize, rows: &[ConnectionRow], columns: &mut Vec<Column>) {
    let rows: Vec<&Waits> = rows.iter().filter_map(|row| row.waits.get(at)).collect();
    let amount = |value: fn(&Waits) -> Nullable| nullable(&rows, |row| value(row));
    let count = |value: fn(&Waits) -> u32| numbers::<Int64Type, _>(&rows, |row| value(row).into());
    let named = [
        ("first_departure_ts_ns", maybe::<Int64Type, _>(&rows, |row| row.first.map(|first| first.ts_ns))),
        ("first_departure_frame", maybe::<Int64Type, _>(&rows, |row| row.first.map(|first| first.frame as i64))),
        ("first_departure_is_syn", {
            let values = bits(&rows, |row| row.first.is_some_and(|first| first.is_syn));
            Arc::new(BooleanArray::new(values, validity(&rows, |row| row.first.is_some()))) as ArrayRef
        }),
        ("ending_held_ns", amount(|row| row.ending.held_ns)),
        ("ending_held_since_frame", amount(|row| row.ending.held_since_frame)),
        ("ending_idle_ns", amount(|row| row.ending.idle_ns)),
        ("ending_peer_first_ns", amount(|row| row.ending.peer_first_ns)),
        ("ending_peer_last_ns", amount(|row| row.ending.peer_last_ns)),
        ("level_flight_bytes", amount(|row| row.level_flight_bytes)),
        ("level_rounds", count(|row| row.level_rounds.into())),
        ("other_level_flight_bytes", amount(|row| row.other_level_flight_bytes)),
        ("other_level_rounds", count(|row| row.other_level_rounds.into())),
        ("clocked_departures", count(|row| row.clocked)),
        ("unclocked_departures", count(|row| row.unclocked)),
        ("small_behind_small", count(|row| row.small_behind_small)),
        ("small_held_run", count(|row| row.small_held_run.into())),
        ("small_past_full", count(|row| row.small_past_full.into())),
        ("small_held_over_full", count(|row| row.small_held_over_full.into())),
        ("small_held_went_on", count(|row| row.small_held_went_on.into())),
        ("tick_ns", amount(|row| row.tick_ns)),
        ("line_payload_bytes", amount(|row| row.line_payload_bytes)),
        ("line_ns", amount(|row| row.line_ns)),
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
        ("full_held_flight_bytes", amount(|row| row.full_held_flight_bytes)),
        ("full_held_times", count(|row| row.full_held_times.into())),
        ("other_full_held_flight_bytes", amount(|row| row.other_full_held_flight_bytes)),
        ("other_full_held_times", count(|row| row.other_full_held_times.into())),
        ("emptied_flight_bytes", amount(|row| row.emptied_flight_bytes)),
        ("emptied_times", count(|row| row.emptied_times.into())),
        ("other_emptied_flight_bytes", amount(|row| row.other_emptied_flight_bytes)),
        ("other_emptied_times", count(|row| row.other_emptied_times.into())),
        ("ending_payload_bytes", amount(|row| row.ending.payload_before_bytes)),
        ("ending_peer_payload_bytes", amount(|row| row.ending.peer_payload_bytes)),
    ];
    columns.extend(named.map(|(name, array)| (format!("{side}_{name}"), array)));
}
