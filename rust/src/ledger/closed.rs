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
    /// When the gate says that the sender may go on: so many nanoseconds before the departure the window opened. What comes after that
    /// has another reason. `None`: at the departure.
    pub opened_ago_ns: Option<i64>,
}

impl Closed {
    pub(super) fn proved(cause: Cause) -> Self {
        Self { cause, confidence: Confidence::Proved, opened_ago_ns: None }
    }

    pub(super) fn consistent(cause: Cause) -> Self {
        Self { confidence: Confidence::Consistent, ..Self::proved(cause) }
    }

    /// It opened so many nanoseconds before the departure.
    pub(super) fn opened_before(self, ns: i64) -> Self {
        Self { opened_ago_ns: Some(ns), ..self }
    }

    /// Something else explains the wait as well.
    pub(super) fn but_possible_if(self, doubted: bool) -> Self {
        if doubted { Self { confidence: Confidence::Possible, ..self } } else { self }
    }
}
