//! A block of pcapng of any type.

use super::super::source::{Stop, damaged};

/// The type of the obsolete packet block.
pub(super) const PACKET: u32 = 2;
/// Number of bytes after a block's content: the block length is repeated there.
pub(super) const BLOCK_TAIL_BYTES: usize = 4;

/// A block whose bytes are all in the buffer.
pub(super) struct Block {
    pub(super) kind: u32,
    /// Length of the block, rounded up to a multiple of four, as in Wireshark.
    pub(super) bytes: usize,
}

#[cold]
pub(super) fn too_short(what: &str, block: &Block, least: usize, offset: u64) -> Stop {
    damaged(format!("{what} claims {} bytes, but needs {least}", block.bytes), offset)
}
