//! Decides which gate is the cause of a wait (`docs/how-it-decides.md`, 3.2).
//!
//! An event opens a gate: an ACK, a window update, or a timer. The gate that opens last is the cause of the time until
//! it opens. If several gates open with the same event, the first in the order of [`gates`] counts. A receiver window
//! may open before the segment is sent. In this case, the window is the cause only until it opens. The cause of the
//! rest of the wait is the first gate that was closed until the segment was sent.

use super::cause::Cause;
use super::direction::DirectionFacts;
use super::evidence::Evidence;
use super::gates::{self, Closed};
use super::judged::{JudgedWait, Verdict};
use super::rivals::Rivals;
use super::timeline;
use super::waits::record::WaitRecord;
use crate::connection::Confidence;

/// Determines the cause and the intervals of one wait from the final facts of its direction.
///
/// ```
/// use tcptrace_lab_core::connection::{Kind, RetransmitTrigger};
/// use tcptrace_lab_core::ledger::{Cause, DirectionFacts, WaitRecord, judge};
///
/// let (kind, retransmit_trigger) = (Kind::RtoRetransmit, Some(RetransmitTrigger::Timeout));
/// let mut record = WaitRecord { kind, retransmit_trigger, payload_bytes: 1000, ..WaitRecord::default() };
/// record.wait.wait_ns = Some(220_000_000).into();
/// let judged = judge(&record, &DirectionFacts { near_sender: true, ..DirectionFacts::default() });
/// assert_eq!(judged.cause, Some(Cause::Timeout));
/// assert_eq!(judged.spans.map(|(_, ns)| ns).iter().sum::<i64>(), 220_000_000);
/// ```
#[must_use]
pub fn judge(record: &WaitRecord, direction: &DirectionFacts) -> JudgedWait {
    let evidence = Evidence::of(record, direction);
    timeline::divide(&evidence, verdict(&evidence))
}

fn verdict(wait: &Evidence<'_>) -> Verdict {
    if wait.bytes_are_missing() {
        // The missing bytes were sent before their ACK came, so the cause is unknown only until this ACK. If the ACK
        // released the segment, the cause of the whole wait is unknown.
        let released_ns = wait.direction.rtt_ns.max(wait.causal_ns());
        let opened_ago_ns = wait.wait.missed_acked_ns.get().filter(|ns| *ns > released_ns);
        let (cause, confidence) = (Some(Cause::Unknown), Confidence::Possible);
        return Verdict { cause, confidence, opened_ago_ns, then: None, rivals: Rivals::default() };
    }
    let first = gates::first_closed(wait);
    let opened_ago_ns = first.and_then(|first| first.opened_ago_ns);
    // A gate that was closed until the segment was sent is the cause of the whole wait.
    let then = opened_ago_ns.filter(|ns| *ns > 0).and_then(|_| gates::closed_to_the_end(wait));
    let hidden = is_blurred(wait) && !first.is_some_and(is_proved);
    let (cause, confidence) = match first {
        _ if hidden => (Some(Cause::Unknown), Confidence::Possible),
        Some(Closed { cause, confidence, .. }) => (Some(cause), confidence),
        None if wait.answer_may_be_lost() || wait.is_needless() => (None, Confidence::Possible),
        None => (None, Confidence::Consistent),
    };
    let rivals = then.or(first).filter(|_| !hidden).map_or_else(Rivals::default, |closed| closed.rivals);
    Verdict { cause, confidence, opened_ago_ns, then: then.map(|then| then.cause), rivals }
}

/// Whether the wait is shorter than two ticks of a coarse clock. The length of such a short wait is unknown, and so is
/// the event that ended it. Only evidence that needs no clock proves the cause of such a wait.
fn is_blurred(wait: &Evidence<'_>) -> bool {
    wait.wait_ns < wait.direction.blurred_ns
}

fn is_proved(closed: Closed) -> bool {
    closed.confidence == Confidence::Proved
}
