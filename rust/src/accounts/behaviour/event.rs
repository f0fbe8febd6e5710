//! One segment as the accumulators of behaviour see it.

use crate::connection::{Kind, Placed, ResentBy};
use crate::nullable::Nullable;
use crate::wire::Segment;

/// One segment, with what was concluded about it and what was true just before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event<'a> {
    pub segment: &'a Segment,
    pub placed: Placed,
    pub kind: Kind,
    /// What made its sender send it again.
    pub resent_by: Option<ResentBy>,
    /// What it acknowledges, unless it never arrived.
    pub ack: Option<i64>,
    /// Bytes of its sender in flight before it.
    pub in_flight: Option<i64>,
    /// The largest window that its sender was offered.
    pub offered_window_bytes: Option<u32>,
    /// The window that it advertises.
    pub window_bytes: Option<u32>,
    /// Time since its sender's segment before.
    pub since_previous: Nullable,
    /// It could not leave before the last ACK that moved the window.
    pub needed_window: bool,
    /// It follows another data segment of its sender at once.
    pub in_burst: bool,
    /// What its ACK tells.
    pub acked: Acked,
}

/// What an ACK tells of the data that it covers for the first time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acked {
    /// Sequence numbers.
    pub bytes: Nullable,
    /// Segments, super-segments of offload counted as those that they become on the wire.
    pub segments: u32,
    /// Time since the oldest of these bytes was last seen.
    pub lag_ns: Nullable,
    /// Time since the newest segment, where Karn's rule admits it.
    pub rtt_ns: Nullable,
}
