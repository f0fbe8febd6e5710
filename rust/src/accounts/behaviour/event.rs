//! One segment as the behaviour accumulators see it.

use crate::connection::{Kind, Placed, RetransmitTrigger};
use crate::nullable::Nullable;
use crate::wire::Segment;

/// One segment, its classification, and the state just before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event<'a> {
    pub segment: &'a Segment,
    pub placed: Placed,
    pub kind: Kind,
    /// What triggered it, if it is a retransmission.
    pub retransmit_trigger: Option<RetransmitTrigger>,
    /// Offset that it acknowledges, unless it is damaged and never arrived.
    pub ack: Option<i64>,
    /// Bytes in flight from its sender before it.
    pub in_flight: Option<i64>,
    /// The largest window that its sender was offered.
    pub offered_window_bytes: Option<u32>,
    /// The window that it advertises.
    pub window_bytes: Option<u32>,
    /// Time since the previous segment of its sender.
    pub since_previous: Nullable,
    /// It would not have fitted the window before the last ACK that moved the window.
    pub needed_window: bool,
    /// It follows another data segment of its sender immediately.
    pub in_burst: bool,
    /// What its ACK shows.
    pub acked: Acked,
}

/// What an ACK shows about the data that it covers for the first time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acked {
    /// Number of sequence numbers.
    pub bytes: Nullable,
    /// Number of segments. A super-segment of offload counts as the segments that it becomes on the wire.
    pub segments: u32,
    /// Time since the oldest of these bytes was last captured.
    pub lag_ns: Nullable,
    /// Time since the newest segment, if Karn's rule admits the sample.
    pub rtt_ns: Nullable,
}
