//! Where a segment lies in the sequence space of its direction.

/// A segment placed in the sequence space of its direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    /// Offset of its first byte (or SYN).
    pub start: i64,
    /// Offset behind its last byte, SYN and FIN counted.
    pub end: i64,
}
