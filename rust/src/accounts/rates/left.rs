//! A departure as the rates see it.

use crate::sender::Wait;

/// A segment with data leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left<'a> {
    /// The wait that it ended.
    pub held: &'a Wait,
    /// Its first byte.
    pub start: i64,
    pub payload_bytes: i64,
    pub frame: u64,
    pub pushed: bool,
    /// Seen for the first time.
    pub new: bool,
    /// The most that was in flight in this direction.
    pub most_in_flight: i64,
}
