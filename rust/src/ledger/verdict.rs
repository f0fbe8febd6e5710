//! What held one wait, before it is divided into intervals.

use super::cause::Cause;
use crate::connection::Confidence;

/// What held one wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    /// The gate that owns the wait; `None` where none was closed.
    pub cause: Option<Cause>,
    pub confidence: Confidence,
    /// The gate opens with the window, and owns the wait until then.
    pub opens_with_window: bool,
    /// The gate that owns what comes after the window opened.
    pub then: Option<Cause>,
}
