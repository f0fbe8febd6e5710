//! The rows of judged connections.

use super::super::direction::DirectionFacts;
use super::super::evidence::Evidence;
use super::super::intervals::Interval;
use super::super::judged::Note;
use super::super::rivals::Rivals;
use super::costs::Sums;
use super::kinds::Kind;
use super::locks::Lock;
use super::longest::{KeptWait, Proof};

/// The limits of one direction: how long a wait must last to be a stall, and the RTTs that show which ACKs are late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// A wait of at least this length is a stall.
    pub threshold_ns: i64,
    /// Shortest RTT between the hosts, from which `threshold_ns` follows.
    pub rtt_ns: i64,
    /// Shortest RTT of a segment of this direction; 0 if unknown.
    pub rtt_min_ns: i64,
    /// Whether the receiver sends its delayed ACKs by a periodic timer (heartbeat).
    pub receiver_beats: bool,
}

impl Bounds {
    /// The bounds of a direction.
    #[must_use]
    pub fn of(direction: &DirectionFacts) -> Self {
        let (threshold_ns, rtt_min_ns) = (Evidence::stall_ns(direction), direction.rtt_min_ns.unwrap_or(0));
        Self { threshold_ns, rtt_ns: direction.rtt_ns, rtt_min_ns, receiver_beats: direction.receiver_beats }
    }
}

/// Time per cause in both directions of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountRow {
    /// The connection.
    pub conn: u32,
    /// Time per cause in the client's direction, then in the server's; `None` if the connection has no times.
    pub sums: Option<[Sums; 2]>,
    /// For each direction, the rivals that have more than half of its unknown time; empty if there are none.
    pub rivals: [Rivals; 2],
}

/// An interval of one direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct LedgerRow {
    pub conn: u32,
    pub from_client: bool,
    pub interval: Interval,
    /// The evidence for the cause. `None` before the first segment of a direction and after its last segment.
    pub proof: Option<Proof>,
    pub bounds: Bounds,
}

/// Facts about the wait before a segment that are needed to judge application messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct NoteRow {
    pub conn: u32,
    pub frame: u64,
    pub note: Note,
    pub caused_ns: i64,
}

/// The rows made from judged connections.
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
    pub direction: DirectionFacts,
    /// The causes of the direction.
    pub kinds: Vec<Kind>,
    /// The longest intervals of the direction, in order of time.
    pub waits: Vec<KeptWait>,
    /// The throughput deadlock of the direction.
    pub lock: Option<Lock>,
}
