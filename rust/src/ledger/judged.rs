//! What the judge says of one wait.

use super::cause::Cause;
use crate::connection::Confidence;

/// Most intervals that one wait is divided into.
pub const MOST_SPANS: usize = 8;

/// One wait, judged.
#[derive(Clone, Copy, Debug)]
pub struct JudgedWait {
    /// The gate that held it; `None` where no gate did, and what arrived meanwhile divides it.
    pub cause: Option<Cause>,
    /// How sure its intervals are.
    pub confidence: Confidence,
    /// Its intervals in order of time: cause and nanoseconds, 0 for those that it does not have. They sum to the wait.
    pub spans: [(Cause, i64); MOST_SPANS],
    /// Nanoseconds of the intervals that the gate owns, with a full window at the beginning of the wait.
    pub caused_ns: i64,
    /// What the message that these bytes belong to must know.
    pub note: Option<Note>,
    /// Whether a late ACK of everything ended it, in a round that may be one of a throughput deadlock.
    pub round: Option<Round>,
}

/// What a message has to know of a wait inside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// TCP held it for so long that it is a stall.
    pub stall_cause: Option<Cause>,
    /// Nagle's algorithm held it, for less than that, and longer than the ACK needed.
    pub brief: bool,
    /// The program paused.
    pub paused: bool,
    /// It was sent again.
    pub is_resent: bool,
}

/// A wait that a late ACK of everything ended, behind a flight that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Nagle's algorithm held it.
    pub nagle: bool,
    /// A small segment of a direction in which none passed another.
    pub may_be_held: bool,
    /// Hardly more was ever in flight, so that a full send buffer explains it as well.
    pub may_fill_buffer: bool,
}
