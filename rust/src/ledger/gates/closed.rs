//! The answer of a gate: it was closed until the departure.

use super::super::cause::Cause;
use super::super::rivals::Rivals;
use crate::connection::Confidence;

/// A gate that was closed until the departure, or until shortly before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The cause that owns the time.
    pub cause: Cause,
    /// Confidence in that cause.
    pub confidence: Confidence,
    /// For a window, nanoseconds from its opening to the departure; this time has another cause. `None`: the gate
    /// opened with the departure.
    pub opened_ago_ns: Option<i64>,
    /// The causes between which the wait is undecided, if the cause is unknown.
    pub rivals: Rivals,
}

impl Closed {
    pub(super) fn proved(cause: Cause) -> Self {
        Self { cause, confidence: Confidence::Proved, opened_ago_ns: None, rivals: Rivals::default() }
    }

    pub(super) fn consistent(cause: Cause) -> Self {
        Self { confidence: Confidence::Consistent, ..Self::proved(cause) }
    }

    /// The cause is unknown: it is one of several.
    pub(super) fn one_of(rivals: Rivals) -> Self {
        Self { rivals, confidence: Confidence::Possible, ..Self::proved(Cause::Unknown) }
    }

    /// Sets how many nanoseconds before the departure the gate opened.
    pub(super) fn opened_before(self, ns: i64) -> Self {
        Self { opened_ago_ns: Some(ns), ..self }
    }

    /// Lowers the confidence to possible if `doubted`: something else explains the wait as well.
    pub(super) fn but_possible_if(self, doubted: bool) -> Self {
        if doubted { Self { confidence: Confidence::Possible, ..self } } else { self }
    }
}
