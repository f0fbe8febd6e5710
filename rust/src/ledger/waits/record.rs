//! One wait as it is stored until its connection ends: numbers and frames, without a cause.

use crate::connection::{Kind, RetransmitTrigger};
use crate::flows::SegmentRow;
use crate::nullable::Nullable;
use crate::sender::Wait;
use crate::wire::TcpFlags;

/// One wait: the segment that ended the wait, and what the sender knew when it sent this segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // each name is a fact of its own
pub struct WaitRecord {
    pub wait: Wait,
    pub frame: u64,
    pub ts_ns: i64,
    pub seq: i64,
    pub flags: TcpFlags,
    pub payload_bytes: i64,
    pub kind: Kind,
    pub retransmit_trigger: Option<RetransmitTrigger>,
    pub in_flight_bytes: Nullable,
    pub usable_window_bytes: Nullable,
    pub since_last_ack_ns: Nullable,
    pub since_last_data_ns: Nullable,
}

impl WaitRecord {
    /// The wait that a segment ended; `None` if the segment occupies no sequence space, has no time, or is the first of
    /// its direction.
    #[must_use]
    pub fn of(row: &SegmentRow) -> Option<Self> {
        let wait = row.departure.as_ref().filter(|departure| departure.wait_ns.is_some())?;
        Some(Self {
            wait: *wait,
            frame: row.frame,
            ts_ns: row.ts_ns.get()?,
            seq: row.seq,
            flags: row.flags,
            payload_bytes: i64::from(row.payload_bytes),
            kind: row.kind,
            retransmit_trigger: row.retransmit_trigger,
            in_flight_bytes: row.in_flight_bytes,
            usable_window_bytes: row.usable_window_bytes,
            since_last_ack_ns: row.since_last_ack_ns,
            since_last_data_ns: row.since_last_data_ns,
        })
    }
}
