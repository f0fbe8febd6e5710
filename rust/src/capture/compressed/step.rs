//! The result of one decompression step, and the memory limit for all decompressors.

use super::super::source::Fault;

/// Largest history window of a zstd frame or xz block. Files of `zstd --ultra -22 --long=27` and `xz -9` do not exceed
/// this limit. The zstd program has the same default limit (`ZSTD_WINDOWLOG_LIMIT_DEFAULT`, 27 bits).
pub(super) const MAX_WINDOW_BYTES: u64 = 128 << 20;

/// The result of one decompression step: the number of bytes, and possibly a fault after these bytes.
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
