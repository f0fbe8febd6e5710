//! The columns of the connections table about the behaviour of each host.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{Int64Builder, LargeListBuilder, StringBuilder};
use arrow_array::types::{Float64Type, Int64Type, UInt8Type, UInt64Type};

use super::columns::{Column, maybe, nullable, numbers};
use super::direction::DirectionRow;
use crate::accounts::{Acking, Count, SynShape};

/// Adds the columns of one direction, whose names begin with `prefix`.
pub(super) fn columns(prefix: &str, rows: &[DirectionRow<'_>], columns: &mut Vec<Column>) {
    let named = sending(rows).into_iter().chain(acking(rows)).chain(syn(rows));
    columns.extend(named.map(|(name, array)| (format!("{prefix}_{name}"), array)));
}

type Named = Vec<(&'static str, ArrayRef)>;

fn sending(rows: &[DirectionRow<'_>]) -> Named {
    let count = |value: fn(&DirectionRow<'_>) -> u64| numbers::<Int64Type, _>(rows, |row| value(row) as i64);
    let amount = |value: fn(&DirectionRow<'_>) -> Option<i64>| maybe::<Int64Type, _>(rows, value);
    let times = |value: fn(&DirectionRow<'_>) -> Count| numbers::<Int64Type, _>(rows, |row| value(row).count.into());
    let first = |value: fn(&DirectionRow<'_>) -> Count| {
        maybe::<UInt64Type, _>(rows, |row| Some(value(row)).filter(|count| count.count > 0).map(|count| count.first))
    };
    vec![
        ("reaction_min_ns", nullable(rows, |row| row.behaviour.reaction.min_ns)),
        ("wire_data_segments", count(|row| row.figures.data_segments + row.behaviour.sending.hidden_segments)),
        ("missing_segments", amount(|row| row.behaviour.numbering.missing())),
        ("super_segments", count(|row| row.behaviour.sending.super_segments.into())),
        ("late_segments", count(|row| row.behaviour.sending.late_segments.into())),
        ("initial_flight_bytes", amount(|row| initial(row, row.behaviour.sending.initial_bytes))),
        ("initial_flight_segments", amount(|row| initial(row, row.behaviour.sending.initial_segments))),
        ("small_in_flight", times(|row| row.nagle().small_in_flight)),
        ("small_in_flight_frame", first(|row| row.nagle().small_in_flight)),
        ("small_over_full", times(|row| row.nagle().small_over_full)),
        ("nagle_holds", times(|row| row.nagle().holds)),
        ("nagle_holds_over_full", times(|row| row.nagle().holds_over_full)),
        ("nagle_holds_ambiguous", count(|row| row.nagle().holds_ambiguous.into())),
        ("nagle_releases", count(|row| row.nagle().releases.into())),
    ]
}

fn acking(rows: &[DirectionRow<'_>]) -> Named {
    let count = |value: fn(&Acking) -> u64| numbers::<Int64Type, _>(rows, |row| row.acking().map_or(0, value) as i64);
    let amount = |value: fn(&Acking) -> Option<i64>| maybe::<Int64Type, _>(rows, |row| row.acking().and_then(value));
    let by_segments = |row: &DirectionRow<'_>| row.acking().map(|acking| acking.by_segments.map(i64::from).to_vec());
    vec![
        ("acks_by_segments", lists(rows, by_segments)),
        ("stretch_acks", count(|acking| acking.stretch_acks.into())),
        ("ack_lag_samples", count(|acking| acking.lag.samples)),
        ("ack_lag_min_ns", amount(|acking| acking.lag.min_ns())),
        ("ack_lag_mean_ns", amount(|acking| acking.lag.mean_ns())),
        ("ack_lag_max_ns", amount(|acking| acking.lag.max_ns())),
        ("prompt_ack_min_bytes", amount(|acking| (acking.prompt_acks > 0).then_some(acking.prompt_min_bytes.into()))),
        ("prompt_small_pairs", count(|acking| acking.prompt_small_pairs.into())),
        ("delayed_acks", count(|acking| acking.delayed_acks.into())),
        (
            "delayed_ack_max_bytes",
            amount(|acking| (acking.delayed_acks > 0).then_some(acking.delayed_max_bytes.into())),
        ),
        ("heartbeat_concentration", maybe::<Float64Type, _>(rows, |row| row.acking().and_then(Acking::concentration))),
    ]
}

fn syn(rows: &[DirectionRow<'_>]) -> Named {
    let mut options = StringBuilder::new();
    for row in rows {
        options.append_option(row.behaviour.syn.as_ref().map(SynShape::option_names));
    }
    vec![
        ("syn_options", Arc::new(options.finish())),
        ("syn_window_bytes", maybe::<Int64Type, _>(rows, |row| row.behaviour.syn.map(|syn| syn.window_bytes.into()))),
        ("syn_ttl", maybe::<UInt8Type, _>(rows, |row| row.behaviour.syn.map(|syn| syn.ttl))),
        ("ttl", maybe::<UInt8Type, _>(rows, |row| Some(row.behaviour.ttl).filter(|ttl| *ttl > 0))),
        ("min_window_scale", maybe::<UInt8Type, _>(rows, scale_at_least)),
    ]
}

/// A figure of the initial window, or `None` if the capture does not contain the SYN.
fn initial(row: &DirectionRow<'_>, amount: u32) -> Option<i64> {
    (row.figures.syn_segments > 0 && amount > 0).then_some(amount.into())
}

fn scale_at_least(row: &DirectionRow<'_>) -> Option<u8> {
    Some(row.behaviour.min_window_scale).filter(|scale| *scale > 0 && row.figures.window_scale.is_none())
}

fn lists<R>(rows: &[R], value: impl Fn(&R) -> Option<Vec<i64>>) -> ArrayRef {
    let mut lists = LargeListBuilder::new(Int64Builder::new());
    for row in rows {
        let values = value(row);
        lists.values().append_slice(values.as_deref().unwrap_or_default());
        lists.append(values.is_some());
    }
    Arc::new(lists.finish())
}
