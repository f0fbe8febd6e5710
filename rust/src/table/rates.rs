//! The columns of the connections table about the rates at which a queue drains and a receiver reads, and about
//! messages that a full buffer splits.

use arrow_array::ArrayRef;
use arrow_array::types::Int64Type;

use super::columns::{Column, rare};
use crate::accounts::Rates;
use crate::flows::ConnectionRow;

/// Adds the columns of one direction. `at` is 0 if the client sends, 1 if the server sends; `prefix` is put before the
/// column names. Values are null if the direction has little data.
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
