//! The intervals in the life of a direction, with their frames, as tables and reports show them.

use super::cause::Cause;
use super::edges::Edge;
use super::judged::JudgedWait;
use super::rivals::Rivals;
use super::waits::record::WaitRecord;
use crate::connection::Confidence;

/// A part of the life of a direction that has one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Start, in nanoseconds since 1970.
    pub start_ns: i64,
    /// Length in nanoseconds.
    pub ns: i64,
    /// Why the sender did not send the next byte.
    pub cause: Cause,
    /// Frame of the last segment that was sent before the interval.
    pub frame_before: Option<u64>,
    /// Frame of the segment that ended the wait which contains the interval.
    pub frame_after: Option<u64>,
    /// Confidence in the cause.
    pub confidence: Confidence,
    /// The causes that explain the interval equally well, if its cause is unknown.
    pub rivals: Rivals,
}

impl Interval {
    /// The intervals of a wait, in order of time.
    pub(super) fn of_wait(record: &WaitRecord, judged: &JudgedWait) -> impl Iterator<Item = Self> {
        let wait_ns = record.wait.wait_ns.get().unwrap_or(0);
        let first = Self {
            start_ns: record.ts_ns.saturating_sub(wait_ns),
            ns: 0,
            cause: Cause::Unknown,
            frame_before: record.wait.frame_before.get().map(|frame| frame as u64),
            frame_after: Some(record.frame),
            confidence: judged.confidence,
            rivals: judged.rivals,
        };
        first.divided(&judged.spans)
    }

    /// The intervals of the time before the first segment of a direction or after its last segment, in order of time.
    pub(super) fn of_edge(edge: &Edge) -> impl Iterator<Item = Self> {
        let Edge { start_ns, frame_before, frame_after, ref spans, confidence } = *edge;
        let (cause, rivals) = (Cause::Unknown, Rivals::default());
        let first = Self { start_ns, ns: 0, cause, frame_before, frame_after, confidence, rivals };
        first.divided(spans)
    }

    /// Divides this interval into consecutive intervals with the causes and lengths in `spans`. The cause `handshake`
    /// is always proved, because the capture shows the segments of the handshake.
    fn divided(self, spans: &[(Cause, i64)]) -> impl Iterator<Item = Self> {
        let mut start_ns = self.start_ns;
        spans.iter().filter(|(_, ns)| *ns != 0).map(move |&(cause, ns)| {
            let confidence = if cause == Cause::Handshake { Confidence::Proved } else { self.confidence };
            let rivals = if cause == Cause::Unknown { self.rivals } else { Rivals::default() };
            let interval = Self { start_ns, ns, cause, confidence, rivals, ..self };
            start_ns = start_ns.saturating_add(ns);
            interval
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Interval;
    use crate::connection::Confidence;
    use crate::ledger::edges::Edge;
    use crate::ledger::{Cause, MAX_SPANS};

    #[test]
    fn intervals_touch_and_leave_out_what_takes_no_time() {
        let mut spans = [(Cause::Network, 0); MAX_SPANS];
        (spans[1], spans[5]) = ((Cause::Network, 30), (Cause::Peer, 12));
        let edge =
            Edge { start_ns: 100, frame_before: Some(1), frame_after: None, spans, confidence: Confidence::Possible };
        let found: Vec<_> =
            Interval::of_edge(&edge).map(|Interval { start_ns, ns, cause, .. }| (start_ns, ns, cause)).collect();
        assert_eq!(found, [(100, 30, Cause::Network), (130, 12, Cause::Peer)]);
    }

    #[test]
    fn the_handshake_is_proved_whatever_held_the_data_behind_it() {
        let mut spans = [(Cause::Network, 0); MAX_SPANS];
        (spans[0], spans[5]) = ((Cause::Handshake, 30), (Cause::Application, 12));
        let edge =
            Edge { start_ns: 0, frame_before: None, frame_after: Some(4), spans, confidence: Confidence::Consistent };
        let found: Vec<_> = Interval::of_edge(&edge).map(|interval| (interval.cause, interval.confidence)).collect();
        assert_eq!(found, [(Cause::Handshake, Confidence::Proved), (Cause::Application, Confidence::Consistent)]);
    }
}
