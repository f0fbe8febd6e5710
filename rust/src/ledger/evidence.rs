//! Values and tests with which the gates judge a wait.
//!
//! All values and tests are pure functions of one [`WaitRecord`] and one [`DirectionFacts`]; none reads another wait.
//! If a value is unknown, a test on it is false. Each file uses only the files listed before it:
//!
//! - [`path`]: line rate, clocks, delays of the path
//! - [`resent`]: whether the segment is a retransmission, and the state of its sender after a loss
//! - [`acks`]: which ACKs the sender received, and how late they were
//! - [`released`]: whether an ACK released the segment
//! - [`window`]: room in the receiver window, and when it opened
//! - [`nagle`]: whether the sender kept a small segment back
//! - [`flow`]: queues, repairs, trains
//! - [`deferral`]: TSO deferral, by which Linux leaves a part of the window unused
//! - [`flights`]: levels that the flights do not exceed
//! - [`predicates`]: the list of all predicates by name

mod acks;
mod deferral;
mod flights;
mod flow;
mod nagle;
mod path;
mod predicates;
mod released;
mod resent;
mod window;

pub use path::at_most;

use super::direction::DirectionFacts;
use super::waits::record::WaitRecord;
use crate::sender::{NS_PER_MS, Wait};

/// An ACK is late if it takes this much longer than the shortest RTT. The value is half of the shortest delayed-ACK
/// timer in use (40 ms, Linux and FreeBSD).
pub const DELAYED_ACK_NS: i64 = 20 * NS_PER_MS;
/// The longest time for which a receiver delays an ACK (RFC 5681, 4.2).
pub const LATEST_ACK_NS: i64 = 500 * NS_PER_MS;
/// The minimum RTO of Linux (`TCP_RTO_MIN`).
pub const MIN_RTO_NS: i64 = 200 * NS_PER_MS;
/// The shortest override timer. A sender waits while the window has little room; when this timer expires, it sends a
/// small segment (RFC 9293, 3.8.6.2.1: 0.1 to 1 s).
pub const MIN_OVERRIDE_NS: i64 = 100 * NS_PER_MS;
/// The longest RTO of any stack: 120 s in Linux (`TCP_RTO_MAX`), and 64 s in BSD, where slow ticks can double it.
const LONGEST_TIMEOUT_NS: i64 = 128_000 * NS_PER_MS;
/// The initial congestion window (RFC 6928).
pub const INITIAL_SEGMENTS: i64 = 10;
/// If ACKs release two segments less than 1/8 of the RTT apart, both segments belong to a train that the path has
/// spaced. Pauses between flights are longer (a heuristic).
pub const TRAIN_PART: i64 = 8;
/// If a sender spaces its flight, it sends at least this many segments in each RTT (a heuristic).
pub const PACED_PART: i64 = 2;
/// If fewer segments than this are sent per RTT, even spacing cannot be distinguished from pauses between flights (a
/// heuristic).
pub const MIN_SPREAD_SEGMENTS: i64 = 4;
/// A stall is at least this long, which is more than the jitter of a LAN (a heuristic).
const MIN_STALL_NS: i64 = 10 * NS_PER_MS;

/// One wait, with the final facts of its direction.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The record of the segment that ended the wait.
    pub record: &'a WaitRecord,
    /// What the sender knew during the wait.
    pub wait: &'a Wait,
    /// The final facts of the direction.
    pub direction: &'a DirectionFacts,
    /// Nanoseconds from the previous segment to the segment that ended the wait.
    pub wait_ns: i64,
    /// Largest payload that the sender can send in one segment (the SMSS in force); 0 if unknown.
    pub smss_bytes: i64,
    paced: bool,
    released: bool,
}

impl<'a> Evidence<'a> {
    /// Combines a wait with the facts of its direction. The tests that most gates use are computed here, once.
    #[must_use]
    pub fn of(record: &'a WaitRecord, direction: &'a DirectionFacts) -> Self {
        let wait = &record.wait;
        let mut evidence = Self {
            record,
            wait,
            direction,
            wait_ns: wait.wait_ns.get().unwrap_or(0),
            smss_bytes: wait.smss_bytes.get().unwrap_or(0),
            paced: false,
            released: false,
        };
        evidence.paced = evidence.is_at_its_pace();
        evidence.released = evidence.is_released_by_ack();
        evidence
    }

    /// Whether the segment belongs to bursts that the sender's pacing timer sends at an even interval ([`released`]).
    pub(super) fn left_at_its_pace(&self) -> bool {
        self.paced
    }

    /// Whether an ACK without data released the segment, and the application had no part in it ([`released`]).
    pub(super) fn was_released_by_ack(&self) -> bool {
        self.released
    }

    pub(super) fn rtt_ns(&self) -> i64 {
        self.direction.rtt_ns
    }

    pub(super) fn causal_ns(&self) -> i64 {
        self.direction.causal_window_ns
    }

    pub(super) fn release_ns(&self) -> i64 {
        self.direction.release_window_ns
    }

    /// Bytes in flight just after the previous segment was sent, as the sender knew it.
    pub(super) fn flight_before(&self) -> Option<i64> {
        self.wait.flight_before_bytes.get()
    }

    /// Bytes in flight just before this segment was sent, as the sender knew it.
    pub(super) fn flight_after(&self) -> Option<i64> {
        self.wait.flight_after_bytes.get()
    }

    pub(super) fn previous_round_flight(&self) -> Option<i64> {
        self.wait.previous_round_flight_bytes.get()
    }

    /// Room in the receiver window just after the previous segment was sent, as the sender knew it.
    pub(super) fn room(&self) -> Option<i64> {
        self.wait.usable_window_before_bytes.get()
    }

    /// A wait of at least this length is a stall. The limit is twice the shortest RTT. The limit is also at least 10 ms
    /// (jitter of a LAN), and at most the shortest RTT plus the minimum RTO of Linux. The smoothed RTT is not used,
    /// because it includes delayed ACKs and would hide them.
    #[must_use]
    pub fn stall_ns(direction: &DirectionFacts) -> i64 {
        MIN_STALL_NS.max(2 * direction.rtt_ns).min(direction.rtt_ns + MIN_RTO_NS)
    }
}

/// Whether the value is known and passes the test.
pub(super) fn is(value: Option<i64>, test: impl FnOnce(i64) -> bool) -> bool {
    value.is_some_and(test)
}

/// Whether both values are known and pass the test.
pub(super) fn are(one: Option<i64>, other: Option<i64>, test: impl FnOnce(i64, i64) -> bool) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => test(one, other),
        _ => false,
    }
}

pub(super) fn share(part: f64, of: i64) -> f64 {
    part * of as f64
}
