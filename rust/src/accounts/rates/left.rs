//! The properties of a sent segment from which rates are computed.

use crate::sender::Wait;

/// A departing segment with data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left<'a> {
    /// The wait of the sender that ended with this segment.
    pub held: &'a Wait,
    /// Offset of its first byte.
    pub start: i64,
    pub payload_bytes: i64,
    pub frame: u64,
    pub pushed: bool,
    /// Whether it carries new data.
    pub new: bool,
    /// The largest number of bytes ever in flight in this direction.
    pub max_in_flight: i64,
}
