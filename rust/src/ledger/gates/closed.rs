//! The result of a closed gate.

use super::super::cause::Cause;
use super::super::rivals::Rivals;
use crate::connection::Confidence;

/// The result of a closed gate. The gate stayed closed until the segment at the end of the wait was sent, or it opened
/// some time before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The cause of the wait while the gate was closed.
    pub cause: Cause,
    /// Confidence in this cause.
    pub confidence: Confidence,
    /// For a receiver window, nanoseconds from its opening to the segment; another cause explains this time. `None` if
    /// the gate stayed closed until the segment was sent.
    pub opened_ago_ns: Option<i64>,
    /// If the cause is unknown, the causes that explain the wait equally well.
    pub rivals: Rivals,
}

impl Closed {
    pub(super) fn proved(cause: Cause) -> Self {
        Self { cause, confidence: Confidence::Proved, opened_ago_ns: None, rivals: Rivals::default() }
    }

    pub(super) fn consistent(cause: Cause) -> Self {
        Self { confidence: Confidence::Consistent, ..Self::proved(cause) }
    }

    /// Returns the result of a gate whose cause is unknown but one of `rivals`.
    pub(super) fn one_of(rivals: Rivals) -> Self {
        Self { rivals, confidence: Confidence::Possible, ..Self::proved(Cause::Unknown) }
    }

    /// Records that the gate opened `ns` nanoseconds before the segment was sent.
    pub(super) fn opened_before(self, ns: i64) -> Self {
        Self { opened_ago_ns: Some(ns), ..self }
    }

    /// Lowers the confidence to *possible* if `doubted` is true, because something else then explains the wait as well.
    pub(super) fn but_possible_if(self, doubted: bool) -> Self {
        if doubted { Self { confidence: Confidence::Possible, ..self } } else { self }
    }
}
