//! Numbers that direction facts and the evidence of waits share.

/// Nanoseconds in a millisecond.
pub const NS_PER_MS: i64 = 1_000_000;
/// An event within this time of another may be its effect (a heuristic).
pub const CAUSAL_NS: i64 = NS_PER_MS;
