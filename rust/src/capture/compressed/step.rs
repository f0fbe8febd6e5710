//! What all decoders share: the result of one step, and the limit on their memory.

use super::super::source::Fault;

/// Largest history window of a zstd frame or an xz block. `zstd --ultra -22 --long=27` and `xz -9` stay within
/// it. It is also zstd's default limit for decompression (`ZSTD_WINDOWLOG_LIMIT_DEFAULT`, 27 bits).
pub(super) const MAX_WINDOW_BYTES: u64 = 128 << 20;

/// The result of one step: bytes, and the fault after them, if any.
pub(super) struct Step {
    pub(super) bytes: usize,
    pub(super) fault: Option<Fault>,
}

impl Step {
    pub(super) fn bytes(bytes: usize) -> Self {
        Self { bytes, fault: None }
    }

    pub(super) fn fault(fault: Fault) -> Self {
        Self { bytes: 0, fault: Some(fault) }
    }
}
