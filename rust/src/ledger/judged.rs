//! The judgement of one wait: its cause, then its intervals.

use super::cause::Cause;
use super::rivals::Rivals;
use crate::connection::Confidence;

/// Maximum number of intervals of one wait.
pub const MAX_SPANS: usize = 8;

/// The cause of one wait and when it ended, before the timeline divides the wait into intervals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    /// The gate that owns the wait; `None` if none was closed.
    pub cause: Option<Cause>,
    pub confidence: Confidence,
    /// Nanoseconds from the opening of the gate to the departure. The time before the opening counts for the gate.
    /// `None`: the whole wait counts for it.
    pub opened_ago_ns: Option<i64>,
    /// The gate that owns the time from the opening to the departure.
    pub then: Option<Cause>,
    /// The causes between which its unknown time is undecided.
    pub rivals: Rivals,
}

/// One wait with its cause and its intervals.
#[derive(Clone, Copy, Debug)]
pub struct JudgedWait {
    /// The gate that owns the wait; `None` if no gate was closed. The arrivals during the wait then divide it.
    pub cause: Option<Cause>,
    /// Confidence in its intervals.
    pub confidence: Confidence,
    /// The causes between which its unknown time is undecided.
    pub rivals: Rivals,
    /// Its intervals in order of time: cause and nanoseconds. Unused places have 0 ns. They sum to the wait.
    pub spans: [(Cause, i64); MAX_SPANS],
    /// Nanoseconds of the wait that have this cause, including a full window at its beginning.
    pub caused_ns: i64,
    /// What is needed to judge the message that contains these bytes.
    pub note: Option<Note>,
    /// Set if a late ACK of everything ended the wait, so that it may be a round of a throughput deadlock.
    pub round: Option<Round>,
}

/// What is needed of a wait to judge the message that it is part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// The cause, if TCP held the bytes long enough for a stall.
    pub stall_cause: Option<Cause>,
    /// Nagle's algorithm delayed the bytes longer than the ACK took, but not long enough for a stall.
    pub short_nagle_delay: bool,
    /// The application paused.
    pub paused: bool,
    /// The departure is a retransmission.
    pub is_resent: bool,
}

/// A wait that a late ACK of everything ended, with a known flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Nagle's algorithm held the departure.
    pub nagle: bool,
    /// The departure is small, and no small segment of the direction passed another.
    pub may_be_held: bool,
    /// A flight was never much larger, so a full send buffer explains the wait as well.
    pub may_fill_buffer: bool,
}
