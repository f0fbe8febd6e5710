//! Messages in short pieces. A message is cut for one of two reasons. Either a buffer of the socket or application ends
//! in the middle of a segment, or the message is slightly longer than a whole number of full-sized segments.
//!
//! A socket layer with blocks of 1,024 bytes passes one or several blocks to TCP at a time. 4.2BSD passes one block at a
//! time if the send buffer has room, so a message of 1,025 bytes is sent as 1,024 and 1 (Mosher 1985). `SunOS` passes
//! four blocks at a time (`sosend`: 4 x MCLBYTES).

use serde::{Deserialize, Serialize};

use super::left::Left;
use crate::nullable::Nullable;

/// Unit of buffer sizes: MCLBYTES of 4.2BSD and `SunOS`.
const CLUSTER_BYTES: i64 = 1024;
/// The rest of a message is tiny if it has at most 1/8 of the payload of a full-sized segment.
const REST_PART: i64 = 8;
/// Two segments less than 10 ms apart belong to the same message (a heuristic: slow hosts need a few milliseconds per
/// segment).
const SAME_MESSAGE_NS: i64 = 10_000_000;
/// Segments that follow an ACK within 1 ms count as released by this ACK.
const RELEASED_NS: i64 = 1_000_000;
/// Waits of up to 10 ms are not counted, because a slow host can need this time for one segment.
const WAIT_NS: i64 = 10_000_000;

/// Messages in short pieces in one direction, and the time that they cost.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // `tcptrace_lab/schema/` defines each field
pub struct Cuts {
    pub messages: u32,
    /// Number of cuts. A cut follows a short segment that ends at a multiple of `CLUSTER_BYTES`, or a full-sized
    /// segment before the tiny rest of a message.
    pub segments: u32,
    /// Offset of the first cut in its message, or 0 if this offset differs between messages.
    pub at_bytes: u32,
    /// The last frame of the first message with a cut.
    pub frame: Nullable,
    /// How long the pieces after a cut waited for the ACK of earlier data.
    pub waited_ns: i64,
    begin: i64,
    end: i64,
    cut_at: i64,
    /// Whether the previous segment had PSH set, which marks the end of a write.
    pushed: bool,
    pending_segments: u32,
    pending_waited_ns: i64,
}

impl Cuts {
    #[inline]
    pub(super) fn departs(&mut self, left: &Left<'_>) {
        let held = left.held;
        if left.start != self.end || self.end == self.begin || !continues_message(left) {
            self.begins(left.start);
        } else if held.small_before {
            self.after_short_segment(left);
        } else if left.pushed && !self.pushed && left.payload_bytes * REST_PART <= held.smss_bytes.get().unwrap_or(0) {
            self.is_cut(left);
        }
        self.end = left.start.saturating_add(left.payload_bytes);
        self.pushed = left.pushed;
        if held.small && left.pushed && (self.end - self.begin) % CLUSTER_BYTES != 0 {
            self.ends(left.frame);
        }
    }

    /// Makes the next segment the start of a new message.
    #[inline]
    pub(super) fn interrupted(&mut self) {
        self.begins(self.end);
    }

    #[inline]
    fn begins(&mut self, start: i64) {
        (self.begin, self.end, self.pending_segments, self.pending_waited_ns) = (start, start, 0, 0);
    }

    fn after_short_segment(&mut self, left: &Left<'_>) {
        let at = left.start - self.begin;
        if at % CLUSTER_BYTES != 0 {
            self.begins(left.start);
        } else {
            self.is_cut(left);
        }
    }

    #[cold]
    fn is_cut(&mut self, left: &Left<'_>) {
        if self.pending_segments == 0 {
            self.cut_at = left.start - self.begin;
        }
        self.pending_segments += 1;
        let waited_ns = left.held.wait_ns.get().filter(|_| left.held.since_ack_ns.is_some()).unwrap_or(0);
        self.pending_waited_ns = self.pending_waited_ns.saturating_add(if waited_ns > WAIT_NS { waited_ns } else { 0 });
    }

    fn ends(&mut self, frame: u64) {
        if self.pending_segments > 0 {
            let at_bytes = u32::try_from(self.cut_at).unwrap_or(0);
            self.at_bytes = if self.messages == 0 || self.at_bytes == at_bytes { at_bytes } else { 0 };
            self.messages = self.messages.saturating_add(1);
            self.segments = self.segments.saturating_add(self.pending_segments);
            self.waited_ns = self.waited_ns.saturating_add(self.pending_waited_ns);
            self.frame = self.frame.get().or(Some(frame as i64)).into();
        }
        self.begins(self.end);
    }
}

/// Whether the segment continues the message: it is sent immediately after the previous segment, or immediately after
/// an ACK.
#[inline]
fn continues_message(left: &Left<'_>) -> bool {
    let held = left.held;
    if held.peer_first_ns.is_some() {
        return false;
    }
    held.since_ack_ns.get().map_or_else(
        || held.wait_ns.get().is_some_and(|wait_ns| wait_ns <= SAME_MESSAGE_NS),
        |ago_ns| ago_ns <= RELEASED_NS,
    )
}
