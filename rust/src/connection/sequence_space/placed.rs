//! The position of a segment in the sequence space of its direction.

/// The position of a segment in the sequence space of its direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    /// Offset of its first byte (or SYN).
    pub start: i64,
    /// Offset after its last byte, including SYN and FIN.
    pub end: i64,
}
