//! What a sender's view takes from a segment that leaves.

use crate::connection::ResentBy;

/// A segment that leaves.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub(crate) struct Leaves {
    /// When it was captured.
    pub ts_ns: i64,
    /// Its frame.
    pub frame: u64,
    /// The offset of its first byte, and behind its last.
    pub start: i64,
    /// See `start`.
    pub end: i64,
    /// Its data.
    pub payload_bytes: i64,
    /// The largest payload that a segment may have: the MSS in force.
    pub full_bytes: i64,
    /// It holds less than that.
    pub small: bool,
    /// Nagle's algorithm lets it pass in any case.
    pub never_held: bool,
    /// It repairs a loss, or what was taken for one, and this made the sender do so.
    pub resent_by: Option<ResentBy>,
    /// It says that its sender has cut its congestion window for a mark of the path (RFC 3168, 6.1.2).
    pub cut: bool,
    /// It opens the connection.
    pub is_syn: bool,
    /// It ends what was written (PSH).
    pub pushed: bool,
    /// It fills a window, whose scale is not known, by one of the scales there are.
    pub fills_unscaled: bool,
    /// There is no distance between the hosts, and the capture may have been made at the receiver, which answers sooner.
    pub at_either: bool,
    /// Packets that its sender has numbered since the departure before, and that were not captured.
    pub left_out: i64,
    /// Its timestamp, and the one that it echoes.
    pub tsval: Option<u32>,
    pub tsecr: Option<u32>,
}

impl Leaves {
    /// It is one full segment, or several that were captured as one.
    pub(super) fn is_whole(&self) -> bool {
        self.payload_bytes > 0 && self.full_bytes > 0 && self.payload_bytes % self.full_bytes == 0
    }
}
