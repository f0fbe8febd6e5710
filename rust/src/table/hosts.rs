//! The columns of the connections table about the capture and the two hosts.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{LargeListBuilder, StringBuilder};
use arrow_array::types::{Float64Type, Int64Type, UInt8Type, UInt64Type};

use super::columns::{Column, maybe, numbers};
use crate::flows::ConnectionRow;
use crate::hosts::{
    Acknowledging, Bounds, Fault, NagleState, NagleVerdict, Stack, Vantage, bounds, faults, nagle, stack, vantage,
};

/// Adds the columns about the whole connection. `resolution_ns` is the tick of the capture's clock.
pub(super) fn of_connection(rows: &[ConnectionRow], resolution_ns: i64, columns: &mut Vec<Column>) {
    let placed: Vec<Vantage> = rows.iter().map(|row| vantage(row, resolution_ns)).collect();
    let faulty: Vec<Vec<Fault>> = rows.iter().map(faults).collect();
    let mut reasons = LargeListBuilder::new(StringBuilder::new());
    for faults in &faulty {
        reasons.append_value(faults.iter().map(|fault| Some(fault.name())));
    }
    columns.extend([
        ("vantage".into(), numbers::<UInt8Type, _>(&placed, |placed| placed.place as u8)),
        ("vantage_confidence".into(), {
            maybe::<UInt8Type, _>(&placed, |placed| placed.confidence.map(|confidence| confidence as u8))
        }),
        ("vantage_known_by".into(), numbers::<UInt8Type, _>(&placed, |placed| placed.known_by as u8)),
        ("rtt_to_client_ns".into(), maybe::<Int64Type, _>(&placed, |placed| placed.turnarounds_ns[0])),
        ("rtt_to_server_ns".into(), maybe::<Int64Type, _>(&placed, |placed| placed.turnarounds_ns[1])),
        ("quality_factor".into(), {
            numbers::<Float64Type, _>(&faulty, |faults| faults.iter().map(|fault| fault.factor()).product())
        }),
        ("quality_reasons".into(), Arc::new(reasons.finish()) as ArrayRef),
    ]);
}

/// The conclusions about one host.
struct Host {
    acks: Acknowledging,
    nagle: NagleVerdict,
    stack: Option<Stack>,
    bounds: Bounds,
}

impl Host {
    fn of(row: &ConnectionRow, at: usize) -> Option<Self> {
        let behaviour = row.behaviours.get(at)?;
        Some(Self {
            acks: Acknowledging::by_host(row, at),
            nagle: behaviour.sending.nagle.as_deref().map_or((NagleState::Unknown, None, None), nagle),
            stack: behaviour.syn.as_ref().and_then(stack),
            bounds: bounds(row, at),
        })
    }
}

/// Adds the columns of the client (`at` = 0) or the server (`at` = 1), and of the data from this host. Column names
/// begin with `prefix`.
pub(super) fn of_direction(prefix: &str, at: usize, rows: &[ConnectionRow], columns: &mut Vec<Column>) {
    let rows: Vec<Host> = rows.iter().filter_map(|row| Host::of(row, at)).collect();
    let code = |value: fn(&Host) -> Option<u8>| maybe::<UInt8Type, _>(&rows, value);
    let amount = |value: fn(&Host) -> Option<i64>| maybe::<Int64Type, _>(&rows, value);
    let bound = |value: fn(&Bounds) -> Option<i64>| maybe::<Int64Type, _>(&rows, |row| value(&row.bounds));
    let rate = |value: fn(&Bounds) -> Option<f64>| maybe::<Float64Type, _>(&rows, |row| value(&row.bounds));
    let named = [
        ("ack_policy", code(|row| Some(row.acks.policy as u8))),
        ("ack_policy_samples", amount(|row| Some(row.acks.samples))),
        ("ack_timer_ms", maybe::<Float64Type, _>(&rows, |row| row.acks.timer.map(|(ms, _)| ms as f64))),
        ("ack_timer_kind", code(|row| row.acks.timer.map(|(_, kind)| kind as u8))),
        ("ack_delay_from_ms", amount(|row| row.acks.delays_ms.map(|(from_ms, _)| from_ms))),
        ("ack_delay_to_ms", amount(|row| row.acks.delays_ms.map(|(_, to_ms)| to_ms))),
        ("nagle", code(|row| Some(row.nagle.0 as u8))),
        ("nagle_confidence", code(|row| row.nagle.1.map(|confidence| confidence as u8))),
        ("nagle_frame", maybe::<UInt64Type, _>(&rows, |row| row.nagle.2)),
        ("stack_guess", code(|row| row.stack.map(|stack| stack as u8))),
        ("send_bps", rate(|bounds| bounds.send_bps)),
        ("send_samples", bound(|bounds| bounds.send_samples)),
        ("drain_bps", rate(|bounds| bounds.drain_bps)),
        ("drain_samples", bound(|bounds| bounds.drain_samples)),
        ("read_bps", rate(|bounds| bounds.read_bps)),
        ("read_samples", bound(|bounds| bounds.read_samples)),
        ("receive_bps", rate(|bounds| bounds.receive_bps)),
        ("ratio", rate(|bounds| bounds.ratio)),
        ("link_bps", rate(|bounds| bounds.link_bps)),
        ("link_bound_bps", rate(|bounds| bounds.link_bound_bps)),
        ("bound_bps", rate(|bounds| bounds.bound_bps)),
        ("bound_by", code(|row| row.bounds.bound_by.map(|by| by as u8))),
        ("sent_bps", rate(|bounds| bounds.sent_bps)),
        ("reached_share", rate(|bounds| bounds.reached_share)),
        ("idle_share", rate(|bounds| bounds.idle_share)),
        ("base_rtt_ns", bound(|bounds| bounds.base_rtt_ns)),
        ("send_buffer_needed_bytes", bound(|bounds| bounds.send_buffer_needed_bytes)),
        ("receive_buffer_needed_bytes", bound(|bounds| bounds.receive_buffer_needed_bytes)),
        ("window_segments", bound(|bounds| bounds.window_segments)),
        ("window_full_share", rate(|bounds| bounds.window_full_share)),
        ("send_buffer_estimate_bytes", bound(|bounds| bounds.send_buffer_estimate_bytes)),
    ];
    columns.extend(named.map(|(name, array)| (format!("{prefix}_{name}"), array)));
}
