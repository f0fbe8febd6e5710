//! The cause of one wait, before the wait is divided into intervals.

use super::cause::Cause;
use crate::connection::Confidence;

/// The cause of one wait, and when it ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    /// The gate that owns the wait; `None` if none was closed.
    pub cause: Option<Cause>,
    pub confidence: Confidence,
    /// Nanoseconds from the opening of the gate to the departure; the gate owns the wait until it opened. `None`: it
    /// owns the whole wait.
    pub opened_ago_ns: Option<i64>,
    /// The gate that owns the time after that.
    pub then: Option<Cause>,
}
