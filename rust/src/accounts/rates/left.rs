//! The input of the rate measurements: one sent segment.

use crate::sender::Wait;

/// A sent segment with data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left<'a> {
    /// The sender's wait before this segment.
    pub held: &'a Wait,
    /// Offset of the segment's first byte.
    pub start: i64,
    pub payload_bytes: i64,
    pub frame: u64,
    pub pushed: bool,
    /// Whether the segment carries new data.
    pub new: bool,
    /// The largest number of bytes ever in flight in this direction.
    pub max_in_flight: i64,
}
