//! What a gate answers: that it was closed until the departure.

use super::cause::Cause;
use crate::connection::Confidence;

/// A gate that was closed until the departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The cause that owns the time.
    pub cause: Cause,
    /// How sure that is.
    pub confidence: Confidence,
    /// The gate opens with the window: what comes after the window opened has another reason.
    pub opens_with_window: bool,
}

impl Closed {
    pub(super) fn proved(cause: Cause) -> Self {
        Self { cause, confidence: Confidence::Proved, opens_with_window: false }
    }

    pub(super) fn consistent(cause: Cause) -> Self {
        Self { confidence: Confidence::Consistent, ..Self::proved(cause) }
    }

    /// Something else explains the wait as well.
    pub(super) fn but_possible_if(self, doubted: bool) -> Self {
        if doubted { Self { confidence: Confidence::Possible, ..self } } else { self }
    }
}
