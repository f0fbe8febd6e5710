//! What held one wait, before it is divided into intervals.

use super::cause::Cause;
use crate::connection::Confidence;

/// What held one wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    /// The gate that owns the wait; `None` where none was closed.
    pub cause: Option<Cause>,
    pub confidence: Confidence,
    /// The gate opened so many nanoseconds before the departure, and owns the wait until then; `None`: it owns all.
    pub opened_ago_ns: Option<i64>,
    /// The gate that owns what comes after that.
    pub then: Option<Cause>,
}
