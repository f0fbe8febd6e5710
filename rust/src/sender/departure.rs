//! A departing segment, as the sender's state uses it.

use crate::connection::RetransmitTrigger;
use crate::nullable::Nullable;

/// A departing segment.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub(crate) struct Departure {
    /// Capture time.
    pub ts_ns: i64,
    /// Frame number.
    pub frame: u64,
    /// Offset of its first byte.
    pub start: i64,
    /// Offset after its last byte.
    pub end: i64,
    /// Bytes of data.
    pub payload_bytes: i64,
    /// The largest payload that a segment may have: the SMSS (RFC 5681).
    pub smss_bytes: i64,
    /// It carries less than `smss_bytes`.
    pub small: bool,
    /// Nagle's algorithm never delays it.
    pub never_held: bool,
    /// What triggered it, if it is a retransmission.
    pub retransmit_trigger: Option<RetransmitTrigger>,
    /// It reports that its sender reduced the congestion window after an ECN mark (CWR; RFC 3168, 6.1.2).
    pub cut: bool,
    /// It is a SYN.
    pub is_syn: bool,
    /// It ends a write (PSH).
    pub pushed: bool,
    /// It fills the receive window exactly at one of the possible window scales; the actual scale is unknown.
    pub fills_unscaled: bool,
    /// The hosts are so near that the capture point may be at the receiver, which answers earlier.
    pub at_either: bool,
    /// Packets that its sender numbered (IP ID) since the previous departure and that are missing from the
    /// capture.
    pub left_out: i64,
    /// When the last data of the peer was captured, if this segment acknowledges all of it, so that it had arrived.
    pub shown_ns: Nullable,
    /// Its TCP timestamp, and the timestamp that it echoes.
    pub tsval: Option<u32>,
    pub tsecr: Option<u32>,
}

impl Departure {
    /// Whether it consists of full-sized segments only: one, or several captured as one.
    pub(super) fn is_whole(&self) -> bool {
        self.payload_bytes > 0 && self.smss_bytes > 0 && self.payload_bytes % self.smss_bytes == 0
    }
}
