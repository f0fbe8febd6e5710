//! The state of a format reader, and the limits on the length of a frame.

use std::ops::Range;

use super::blocks::Blocks;
use super::notes::Notes;

/// A link type as pcap numbers it (`LINKTYPE_…`).
pub type LinkType = u32;

/// Captured lengths up to this limit are always accepted. libpcap (`MAXIMUM_SNAPLEN`) and Wireshark
/// (`WTAP_MAX_PACKET_SIZE_STANDARD`) have the same limit.
pub(super) const MAX_RECORD_BYTES: u32 = 262_144;

/// Captured lengths up to this limit are accepted if the snaplen allows them. A larger length means that the file is
/// damaged. BIG TCP packets have up to 512 KiB; netlink and USB packets are longer.
pub(super) const MAX_DECLARED_RECORD_BYTES: u32 = 16 << 20;

/// The current frame of a reader, whose bytes are a range of the buffer.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    /// Frame number within the file, from 1; 0 before the first frame.
    pub(super) number: u64,
    pub(super) ts_ns: Option<i64>,
    pub(super) link_type: Option<LinkType>,
    pub(super) original_bytes: u32,
    pub(super) data: Range<usize>,
}

impl Record {
    pub(super) fn clear(&mut self) {
        *self = Self { number: self.number, ..Self::default() };
    }
}

/// The state of a format reader: the buffered bytes, the problems so far, and the current frame.
pub(super) struct Stream {
    pub(super) blocks: Blocks,
    pub(super) notes: Notes,
    pub(super) record: Record,
}

/// The largest accepted captured length in a file with this snaplen. A snaplen of 0 means that the file declares none.
pub(super) fn record_limit(snaplen: u32) -> u32 {
    if snaplen == 0 { MAX_DECLARED_RECORD_BYTES } else { snaplen.clamp(MAX_RECORD_BYTES, MAX_DECLARED_RECORD_BYTES) }
}
