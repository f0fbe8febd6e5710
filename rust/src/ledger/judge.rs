//! Which gate held a wait.
//!
//! The gate that opened last owns the time until it opened. Gates open with an event: an ACK, a window that opens, a timer. Where
//! several were closed until the same event, the first in [`gates::ORDER`] counts. A gate that opens with the window owns the
//! wait until then only; what comes after belongs to the next gate in the order that does not open with the window.

use super::cause::Cause;
use super::closed::Closed;
use super::direction::Direction;
use super::evidence::Evidence;
use super::gates;
use super::judged::JudgedWait;
use super::record::WaitRecord;
use super::timeline;
use super::verdict::Verdict;
use crate::connection::Confidence;

/// Judges one wait under the final facts of its direction.
#[must_use]
pub fn judge(record: &WaitRecord, direction: &Direction) -> JudgedWait {
    let evidence = Evidence::of(record, direction);
    timeline::divide(&evidence, verdict(&evidence))
}

fn verdict(wait: &Evidence<'_>) -> Verdict {
    let mut closed = gates::ORDER.iter().filter_map(|gate| gate(wait));
    let first = closed.next();
    let opens_with_window = first.is_some_and(|first| first.opens_with_window);
    let then = if opens_with_window { closed.find(|closed| !closed.opens_with_window) } else { None };
    let missing = wait.bytes_are_missing();
    let (cause, confidence) = match first {
        _ if missing => (Some(Cause::Unknown), Confidence::Possible),
        Some(Closed { cause, confidence, .. }) => (Some(cause), confidence),
        None if wait.answer_may_be_lost() => (None, Confidence::Possible),
        None => (None, Confidence::Consistent),
    };
    Verdict { cause, confidence, opens_with_window, then: then.map(|then| then.cause) }
}
