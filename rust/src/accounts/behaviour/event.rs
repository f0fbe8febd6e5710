//! The properties of one segment that the behaviour accumulators use.

use crate::connection::{Kind, Placed, RetransmitTrigger};
use crate::nullable::Nullable;
use crate::wire::Segment;

/// One segment, its classification, and the state of the connection just before this segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event<'a> {
    pub segment: &'a Segment,
    pub placed: Placed,
    pub kind: Kind,
    /// What triggered the segment, if it is a retransmission.
    pub retransmit_trigger: Option<RetransmitTrigger>,
    /// The offset that the segment acknowledges; `None` if the segment is damaged, because it never arrived.
    pub ack: Option<i64>,
    /// Bytes that its sender had in flight before this segment.
    pub in_flight: Option<i64>,
    /// The largest window that the receiver has offered to this sender.
    pub offered_window_bytes: Option<u32>,
    /// The window that it advertises.
    pub window_bytes: Option<u32>,
    /// Time since the sender's previous segment.
    pub since_previous: Nullable,
    /// The segment fits the current window but not the window before it, so it needed the ACK that moved the window.
    pub needed_window: bool,
    /// The segment immediately follows another data segment of its sender.
    pub in_burst: bool,
    /// What its ACK shows.
    pub acked: Acked,
}

/// What an ACK shows about the data that no earlier ACK covers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acked {
    /// Number of sequence numbers.
    pub bytes: Nullable,
    /// Number of segments. A segment that offload merged counts as the segments that it becomes on the wire.
    pub segments: u32,
    /// Time from the latest transmission of the oldest of these bytes to the ACK.
    pub lag_ns: Nullable,
    /// Time from the newest of these segments to the ACK; null if Karn's rule excludes the sample.
    pub rtt_ns: Nullable,
}
