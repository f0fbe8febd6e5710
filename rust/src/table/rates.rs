//! The columns of the connections table about a draining queue, a reading receiver, and messages in pieces.

use arrow_array::ArrayRef;
use arrow_array::types::Int64Type;

use super::columns::{Column, rare};
use crate::accounts::Rates;
use crate::flows::ConnectionRow;

/// Adds the columns of the direction in which the client (`at` = 0) or the server (`at` = 1) sends. Column names begin
/// with `prefix`. Directions with little data have null values.
pub(super) fn columns(prefix: &str, at: usize, rows: &[ConnectionRow], columns: &mut Vec<Column>) {
    let rows: Vec<Option<&Rates>> = rows.iter().filter_map(|row| Some(row.rates.get(at)?.as_deref())).collect();
    let amount = |value: fn(&Rates) -> i64| rare::<Int64Type, _>(&rows, |row| row.map(value));
    let named: [(&str, ArrayRef); 9] = [
        ("drained_bytes", amount(|rates| rates.drained().bytes)),
        ("drained_ns", amount(|rates| rates.drained().ns)),
        ("drained_acks", amount(|rates| rates.drained().samples.into())),
        ("read_ns", amount(|rates| rates.read().ns)),
        ("cut_messages", amount(|rates| rates.cuts.messages.into())),
        ("cut_pieces", amount(|rates| rates.cuts.segments.into())),
        ("cut_waited_ns", amount(|rates| rates.cuts.waited_ns)),
        ("cut_at_bytes", {
            let at = |rates: &Rates| Some(i64::from(rates.cuts.at_bytes)).filter(|bytes| *bytes > 0);
            rare::<Int64Type, _>(&rows, |row| row.and_then(at))
        }),
        ("cut_frame", rare::<Int64Type, _>(&rows, |row| row.and_then(|rates| rates.cuts.frame.get()))),
    ];
    columns.extend(named.map(|(name, array)| (format!("{prefix}_{name}"), array)));
}
