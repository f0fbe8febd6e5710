//! A segment that the sender sends, with the facts that the sender's state uses.

use crate::connection::RetransmitTrigger;
use crate::nullable::Nullable;

#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub(crate) struct Departure {
    /// Capture time.
    pub ts_ns: i64,
    /// Frame number.
    pub frame: u64,
    /// Sequence offset of the first byte of the segment.
    pub start: i64,
    /// Sequence offset after the last byte of the segment.
    pub end: i64,
    /// Bytes of data.
    pub payload_bytes: i64,
    /// The largest payload that a segment can have: the SMSS (RFC 5681).
    pub smss_bytes: i64,
    /// Whether the segment carries less than `smss_bytes`.
    pub small: bool,
    /// Whether Nagle's algorithm never delays this segment.
    pub never_held: bool,
    /// What triggered the retransmission; `None` if the segment is not a retransmission.
    pub retransmit_trigger: Option<RetransmitTrigger>,
    /// Whether the segment reports that its sender reduced the congestion window after an ECN mark (CWR; RFC 3168,
    /// 6.1.2).
    pub cut: bool,
    /// Whether the segment is a SYN.
    pub is_syn: bool,
    /// Whether the segment ends a write (PSH).
    pub pushed: bool,
    /// Whether the segment fills the receive window to the byte at one of the possible window scales. False if the
    /// actual scale is known.
    pub fills_unscaled: bool,
    /// Whether the capture point may be at the receiver: the hosts are very near each other, and the receiver answers
    /// earlier than the sender.
    pub at_either: bool,
    /// Number of packets that are missing from the capture since the sender's previous segment, according to the
    /// sender's packet numbers (IP ID).
    pub left_out: i64,
    /// Capture time of the peer's last data, if this segment acknowledges all data of the peer.
    pub shown_ns: Nullable,
    /// The TCP timestamp of the segment, and the timestamp that it echoes.
    pub tsval: Option<u32>,
    pub tsecr: Option<u32>,
}

impl Departure {
    /// Whether the departure consists of full-sized segments only: one, or several captured as one.
    pub(super) fn is_whole(&self) -> bool {
        self.payload_bytes > 0 && self.smss_bytes > 0 && self.payload_bytes % self.smss_bytes == 0
    }
}
