//! The position of a segment in the sequence space of its direction.

#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    /// Offset of the segment's first byte, or of its SYN.
    pub start: i64,
    /// Offset after the segment's last byte, where SYN and FIN count as a byte each.
    pub end: i64,
}
