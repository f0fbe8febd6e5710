//! What one wait shows under the final facts of its direction: measures and tests that gates share, each defined once.
//!
//! All are pure functions of one [`WaitRecord`] and one [`Direction`]; none looks at another wait. A value that is not known
//! makes a test false. The files, each using only those before it: [`path`] (line, clocks, delays of the path), [`resent`]
//! (what the departure is, and what was lost), [`acks`] (which ACKs the sender received, and how late), [`released`]
//! (whether an ACK released the departure), [`window`], [`nagle`], [`flow`] (queues, repairs, trains), [`deferral`] (what Linux
//! leaves open in a window), [`flights`] (levels at which flights stand).

mod acks;
mod deferral;
mod flights;
mod flow;
mod nagle;
mod path;
mod released;
mod resent;
mod window;

pub use path::at_most;

use super::direction::Direction;
use super::record::WaitRecord;
use crate::sender::Wait;

/// An ACK that lags this much behind the round trip was delayed: half of the shortest timer in use (Linux and FreeBSD, 40 ms).
pub const DELAYED_ACK_NS: i64 = 20 * super::limits::NS_PER_MS;
/// No ACK may be delayed longer (RFC 5681, 4.2).
pub const LATEST_ACK_NS: i64 = 500 * super::limits::NS_PER_MS;
/// The least retransmission timeout of Linux (`TCP_RTO_MIN`).
pub const LEAST_RTO_NS: i64 = 200 * super::limits::NS_PER_MS;
/// A sender that waits for more room in the window gives up no sooner (RFC 9293, 3.8.6.2.1: 0.1 to 1 s).
pub const LEAST_OVERRIDE_NS: i64 = 100 * super::limits::NS_PER_MS;
/// No stack waits longer for its retransmission timer: Linux 120 s (`TCP_RTO_MAX`), BSD 64 s, twice that with a slow tick.
const LONGEST_TIMEOUT_NS: i64 = 128_000 * super::limits::NS_PER_MS;
/// The initial congestion window (RFC 6928).
pub const INITIAL_SEGMENTS: i64 = 10;
/// A departure that an ACK lets go within this part of a round trip of the one before belongs to a train that the path has
/// spaced; the waits between flights are longer (a heuristic).
pub const TRAIN_PART: i64 = 8;
/// A sender that spaces its flight sends two segments or more in each round trip (a heuristic).
pub const PACED_PART: i64 = 2;
/// Fewer segments in a round trip are as far apart as flights are (a heuristic).
pub const LEAST_SPREAD_SEGMENTS: i64 = 4;
/// A stall is no shorter than this on a LAN.
const LEAST_STALL_NS: i64 = 10 * super::limits::NS_PER_MS;

/// One wait under the final facts of its direction.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The departure that ended it.
    pub record: &'a WaitRecord,
    /// What its sender saw since the departure before.
    pub wait: &'a Wait,
    /// The final facts of the direction.
    pub direction: &'a Direction,
    /// Nanoseconds from the departure before to this one.
    pub wait_ns: i64,
    /// Largest payload that may leave (SMSS in force); 0 where it is not known.
    pub smss_bytes: i64,
    paced: bool,
    released: bool,
}

impl<'a> Evidence<'a> {
    /// Puts a wait beside the facts of its direction. What most gates ask is found out here, once.
    #[must_use]
    pub fn of(record: &'a WaitRecord, direction: &'a Direction) -> Self {
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

    /// The sender had more than full segments, and bursts of them leave evenly: this one, too ([`released`]).
    pub(super) fn left_at_its_pace(&self) -> bool {
        self.paced
    }

    /// An ACK without data let it leave: the program cannot have known of it ([`released`]).
    pub(super) fn was_released_by_ack(&self) -> bool {
        self.released
    }

    /// Shortest round trip between the hosts, as far as the capture shows it.
    pub(super) fn rtt_ns(&self) -> i64 {
        self.direction.rtt_ns
    }

    /// Within this time of an ACK a departure may be its effect.
    pub(super) fn causal_ns(&self) -> i64 {
        self.direction.causal_window_ns
    }

    /// Bytes in flight just after the departure before, at the sender.
    pub(super) fn flight_before(&self) -> Option<i64> {
        self.wait.flight_before_bytes.get()
    }

    /// Bytes in flight just before this departure, at the sender.
    pub(super) fn flight_after(&self) -> Option<i64> {
        self.wait.flight_after_bytes.get()
    }

    /// Largest flight of the round trip before.
    pub(super) fn previous_round_flight(&self) -> Option<i64> {
        self.wait.previous_round_flight_bytes.get()
    }

    /// Room in the window just after the departure before, at the sender.
    pub(super) fn room(&self) -> Option<i64> {
        self.wait.usable_window_before_bytes.get()
    }

    /// A wait of this length is a stall: two round trips, or 10 ms on a LAN, but at most a round trip and the least
    /// retransmission timeout of Linux. The shortest round trip counts, not the smoothed one: delayed ACKs would make that
    /// longer, and hide themselves.
    #[must_use]
    pub fn stall_ns(direction: &Direction) -> i64 {
        LEAST_STALL_NS.max(2 * direction.rtt_ns).min(direction.rtt_ns + LEAST_RTO_NS)
    }
}

/// Whether a known value passes a test.
pub(super) fn is(value: Option<i64>, test: impl FnOnce(i64) -> bool) -> bool {
    value.is_some_and(test)
}

/// Whether two known values pass a test.
pub(super) fn are(one: Option<i64>, other: Option<i64>, test: impl FnOnce(i64, i64) -> bool) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => test(one, other),
        _ => false,
    }
}

/// A share of a size.
pub(super) fn share(part: f64, of: i64) -> f64 {
    part * of as f64
}
