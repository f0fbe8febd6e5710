//! Numbers that direction facts and the evidence of waits share.

/// Nanoseconds in a millisecond.
pub const NS_PER_MS: i64 = 1_000_000;
