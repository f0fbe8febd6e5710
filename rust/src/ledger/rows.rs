//! The rows that judged connections give.

use super::costs::Sums;
use super::direction::Direction;
use super::evidence::Evidence;
use super::intervals::Interval;
use super::judged::Note;
use super::kinds::Kind;
use super::locks::Lock;
use super::longest::{KeptWait, Proof};

/// What tells a stall from a wait in one direction, and a late ACK from one in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// From this length on a wait is a stall.
    pub threshold_ns: i64,
    /// Shortest round trip between the hosts, from which that follows.
    pub rtt_ns: i64,
    /// Shortest round trip of a segment of this direction; 0 where it is not known.
    pub rtt_min_ns: i64,
}

impl Bounds {
    /// Those of a direction.
    #[must_use]
    pub fn of(direction: &Direction) -> Self {
        let (threshold_ns, rtt_min_ns) = (Evidence::stall_ns(direction), direction.rtt_min_ns.unwrap_or(0));
        Self { threshold_ns, rtt_ns: direction.rtt_ns, rtt_min_ns }
    }
}

/// Where the time of a connection's directions went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountRow {
    /// The connection.
    pub conn: u32,
    /// The client's, the server's; `None` without times.
    pub sums: Option<[Sums; 2]>,
}

/// An interval of one direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct LedgerRow {
    pub conn: u32,
    pub from_client: bool,
    pub interval: Interval,
    /// What its sender knew; `None` before the first departure of a direction and after its last.
    pub proof: Option<Proof>,
    pub bounds: Bounds,
}

/// What messages have to know of a departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct NoteRow {
    pub conn: u32,
    pub frame: u64,
    pub note: Note,
    pub caused_ns: i64,
}

/// Rows that were made of judged connections.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct JudgedRows {
    pub accounts: Vec<AccountRow>,
    pub ledger: Vec<LedgerRow>,
    pub notes: Vec<NoteRow>,
}

/// The details of one direction of a connection.
#[derive(Clone, Debug)]
pub struct DirectionDetails {
    /// The final facts of the direction.
    pub direction: Direction,
    /// Its causes.
    pub kinds: Vec<Kind>,
    /// Its longest intervals, in order of time.
    pub waits: Vec<KeptWait>,
    /// Its throughput deadlock.
    pub lock: Option<Lock>,
}
