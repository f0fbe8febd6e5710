//! A pcapng block of any type.

use super::super::source::{Stop, damaged};

/// Type of the obsolete packet block.
pub(super) const PACKET: u32 = 2;
/// Length of the repeated block length after a block's content.
pub(super) const BLOCK_TAIL_BYTES: usize = 4;

/// A block that is completely in the buffer.
pub(super) struct Block {
    pub(super) kind: u32,
    /// Length of the block, rounded up to a multiple of four as in Wireshark.
    pub(super) bytes: usize,
}

#[cold]
pub(super) fn too_short(what: &str, block: &Block, least: usize, offset: u64) -> Stop {
    damaged(format!("{what} claims {} bytes, but needs {least}", block.bytes), offset)
}
