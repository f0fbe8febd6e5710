//! The input of a format reader: the bytes, its problems, and the current frame.

use std::ops::Range;

use super::blocks::Blocks;
use super::notes::Notes;

/// A link type as pcap numbers it (`LINKTYPE_…`).
pub type LinkType = u32;

/// Captured lengths up to this are always accepted: `MAXIMUM_SNAPLEN` of libpcap,
/// `WTAP_MAX_PACKET_SIZE_STANDARD` of Wireshark.
pub(super) const MAX_RECORD_BYTES: u32 = 262_144;

/// Captured lengths up to this are accepted if the snaplen allows them (BIG TCP reaches 512 KiB, netlink and
/// USB more). A larger length means that the file is damaged.
pub(super) const MAX_DECLARED_RECORD_BYTES: u32 = 16 << 20;

/// The reader's current frame; its bytes are a range of the buffer.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    /// 1-based number within its file; 0 before the first frame.
    pub(super) number: u64,
    pub(super) ts_ns: Option<i64>,
    pub(super) link_type: Option<LinkType>,
    pub(super) original_bytes: u32,
    pub(super) data: Range<usize>,
}

impl Record {
    /// Clears the frame except its number.
    pub(super) fn clear(&mut self) {
        *self = Self { number: self.number, ..Self::default() };
    }
}

/// The input of a format reader: the bytes, its problems, and the current frame.
pub(super) struct Stream {
    pub(super) blocks: Blocks,
    pub(super) notes: Notes,
    pub(super) record: Record,
}

/// The largest captured length accepted for a record under `snaplen` (0: none declared).
pub(super) fn record_limit(snaplen: u32) -> u32 {
    if snaplen == 0 { MAX_DECLARED_RECORD_BYTES } else { snaplen.clamp(MAX_RECORD_BYTES, MAX_DECLARED_RECORD_BYTES) }
}
