//! Constants that the facts of a direction and the evidence of a wait share.

/// Nanoseconds in a millisecond.
pub const NS_PER_MS: i64 = 1_000_000;
