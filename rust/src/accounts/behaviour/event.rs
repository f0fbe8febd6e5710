//! The input of the behaviour accumulators: one segment.

use crate::connection::{Kind, Placed, RetransmitTrigger};
use crate::nullable::Nullable;
use crate::wire::Segment;

/// One segment, its classification, and the connection's state just before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event<'a> {
    pub segment: &'a Segment,
    pub placed: Placed,
    pub kind: Kind,
    /// What triggered the segment, if it is a retransmission.
    pub retransmit_trigger: Option<RetransmitTrigger>,
    /// The acknowledged offset, or `None` for a damaged segment, because its receiver discards it.
    pub ack: Option<i64>,
    /// Bytes in flight from this sender before the segment.
    pub in_flight: Option<i64>,
    /// The largest window that the peer has offered to this sender.
    pub offered_window_bytes: Option<u32>,
    /// The window that the segment advertises.
    pub window_bytes: Option<u32>,
    /// Time since the sender's previous segment.
    pub since_previous: Nullable,
    /// Whether the segment exceeds the window that the peer offered before the peer's latest window update. Such a
    /// segment proves that the sender has received this update.
    pub needed_window: bool,
    /// Whether the segment immediately follows another data segment of its sender.
    pub in_burst: bool,
    pub acked: Acked,
}

/// The data that an ACK acknowledges for the first time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acked {
    /// Number of acknowledged sequence numbers.
    pub bytes: Nullable,
    /// Number of acknowledged segments. Segments that offload has merged into one are counted separately.
    pub segments: u32,
    /// Time from the last transmission of the oldest acknowledged byte to the ACK.
    pub lag_ns: Nullable,
    /// Time from the newest acknowledged segment to the ACK, or null if Karn's rule excludes the sample.
    pub rtt_ns: Nullable,
}
