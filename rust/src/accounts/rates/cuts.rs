//! Messages that leave in short pieces, because a buffer of the socket or of the program ended where no segment did, or because
//! they are a little longer than full segments.
//!
//! Socket layers that are made of buffers of 1,024 bytes hand a message on in pieces of so many of them: 4.2BSD one by one where
//! the send buffer holds two (Mosher 1985: 1,025 bytes leave as 1,024 and 1), that of Sun four at a time (`sosend`: 4 x MCLBYTES).

use serde::{Deserialize, Serialize};

use super::left::Left;
use crate::nullable::Nullable;

/// Buffers have multiples of this size: MCLBYTES of 4.2BSD and of what Sun made of it.
const CLUSTER_BYTES: i64 = 1024;
/// A rest that is this part of a full segment, or less, is a packet for next to nothing.
const REST_PART: i64 = 8;
/// What leaves within this time of the segment before belongs to the same message (a heuristic: hosts that need long for a
/// segment need some milliseconds).
const SAME_MESSAGE_NS: i64 = 10_000_000;
/// So soon after an ACK leaves what waited for it.
const RELEASED_NS: i64 = 1_000_000;
/// A wait that is worth counting: longer than hosts need for a segment.
const WAIT_NS: i64 = 10_000_000;

/// Messages of one direction that were cut, and what that cost.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // one fact has one home: `schema.py`
pub struct Cuts {
    /// Messages that left in such pieces.
    pub messages: u32,
    /// Short segments within them, each of which ends at a multiple of a cluster, and full ones behind which next to nothing is left.
    pub segments: u32,
    /// The end of the first, if it is the same in all messages, counted from the begin of the message; 0 if not.
    pub at_bytes: u32,
    /// The last segment of the first such message.
    pub frame: Nullable,
    /// Time that what was cut off waited for the ACK of what came before.
    pub waited_ns: i64,
    begin: i64,
    end: i64,
    cut_at: i64,
    /// The segment before had PSH: its write ended there.
    pushed: bool,
    here: u32,
    here_ns: i64,
}

impl Cuts {
    #[inline]
    pub(super) fn departs(&mut self, left: &Left<'_>) {
        let held = left.held;
        if left.start != self.end || self.end == self.begin || !goes_on(left) {
            self.begins(left.start);
        } else if held.small_before {
            self.behind_a_short_one(left);
        } else if left.pushed && !self.pushed && left.payload_bytes * REST_PART <= held.full_bytes.get().unwrap_or(0) {
            self.is_cut(left);
        }
        self.end = left.start.saturating_add(left.payload_bytes);
        self.pushed = left.pushed;
        if held.small && left.pushed && (self.end - self.begin) % CLUSTER_BYTES != 0 {
            self.ends(left.frame);
        }
    }

    /// What comes next is another message.
    #[inline]
    pub(super) fn interrupted(&mut self) {
        self.begins(self.end);
    }

    #[inline]
    fn begins(&mut self, start: i64) {
        (self.begin, self.end, self.here, self.here_ns) = (start, start, 0, 0);
    }

    fn behind_a_short_one(&mut self, left: &Left<'_>) {
        let at = left.start - self.begin;
        if at % CLUSTER_BYTES != 0 {
            self.begins(left.start);
        } else {
            self.is_cut(left);
        }
    }

    #[cold]
    fn is_cut(&mut self, left: &Left<'_>) {
        if self.here == 0 {
            self.cut_at = left.start - self.begin;
        }
        self.here += 1;
        let waited_ns = left.held.held_ns.get().filter(|_| left.held.acked_ago_ns.is_some()).unwrap_or(0);
        self.here_ns = self.here_ns.saturating_add(if waited_ns > WAIT_NS { waited_ns } else { 0 });
    }

    fn ends(&mut self, frame: u64) {
        if self.here > 0 {
            let at_bytes = u32::try_from(self.cut_at).unwrap_or(0);
            self.at_bytes = if self.messages == 0 || self.at_bytes == at_bytes { at_bytes } else { 0 };
            self.messages = self.messages.saturating_add(1);
            self.segments = self.segments.saturating_add(self.here);
            self.waited_ns = self.waited_ns.saturating_add(self.here_ns);
            self.frame = self.frame.get().or(Some(frame as i64)).into();
        }
        self.begins(self.end);
    }
}

/// Whether it belongs to what left before it: at once, or as soon as an ACK let it.
#[inline]
fn goes_on(left: &Left<'_>) -> bool {
    let held = left.held;
    if held.peer_first_ns.is_some() {
        return false;
    }
    held.acked_ago_ns.get().map_or_else(
        || held.held_ns.get().is_some_and(|held_ns| held_ns <= SAME_MESSAGE_NS),
        |ago_ns| ago_ns <= RELEASED_NS,
    )
}
