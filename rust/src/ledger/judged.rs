//! The result for one wait: its cause and its intervals.

use super::cause::Cause;
use super::rivals::Rivals;
use crate::connection::Confidence;

/// Maximum number of intervals of one wait.
pub const MAX_SPANS: usize = 8;

/// The cause of one wait, and when this cause ended, before the timeline divides the wait into intervals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    /// The cause that the deciding gate returns; `None` if no gate was closed.
    pub cause: Option<Cause>,
    pub confidence: Confidence,
    /// Nanoseconds from the opening of the gate to the segment. The time before the opening has the cause of the gate.
    /// `None` if the whole wait has the cause of the gate.
    pub opened_ago_ns: Option<i64>,
    /// The cause of the time from the opening of the gate to the segment.
    pub then: Option<Cause>,
    /// The causes that explain the unknown time of the wait equally well.
    pub rivals: Rivals,
}

/// One wait with its cause and its intervals.
#[derive(Clone, Copy, Debug)]
pub struct JudgedWait {
    /// The cause that the deciding gate returns; `None` if no gate was closed. Without a closed gate, the segments that
    /// arrived during the wait divide it into intervals.
    pub cause: Option<Cause>,
    /// Confidence in the causes of the intervals.
    pub confidence: Confidence,
    /// The causes that explain the unknown time of the wait equally well.
    pub rivals: Rivals,
    /// The intervals of the wait in order of time, each with its cause and its length in nanoseconds. Unused places
    /// have 0 ns. The lengths sum to the wait.
    pub spans: [(Cause, i64); MAX_SPANS],
    /// Nanoseconds of the wait that have the cause in `cause`, including a full window at the beginning.
    pub caused_ns: i64,
    /// Facts about the wait that are needed to judge the message to which its bytes belong.
    pub note: Option<Note>,
    /// Set if a late ACK of everything in flight ended the wait, so that the wait may be a round of a throughput
    /// deadlock.
    pub round: Option<Round>,
}

/// Facts about a wait that are needed to judge the message to which its bytes belong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// The cause, if TCP delayed the bytes for so long that the wait is a stall.
    pub stall_cause: Option<Cause>,
    /// Whether Nagle's algorithm delayed the bytes for longer than the ACK took, but not long enough for a stall.
    pub short_nagle_delay: bool,
    /// Whether the application paused.
    pub paused: bool,
    /// Whether the segment is a retransmission.
    pub is_resent: bool,
}

/// A wait that may be a round of a throughput deadlock, because a late ACK of everything in flight ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Whether Nagle's algorithm delayed the segment.
    pub nagle: bool,
    /// Whether the segment is small, and no small segment of the direction was sent while another was in flight.
    pub may_be_held: bool,
    /// Whether no flight was ever much larger. If so, a full send buffer also explains the wait.
    pub may_fill_buffer: bool,
}
