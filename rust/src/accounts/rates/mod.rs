//! How fast the sender can send, and how fast the receiver can accept data, if nothing else limits the transfer. Bursts
//! show the sender's rate. Queued data shows the rate of the receiver, or of the path to the receiver.
//!
//! Abrams and Chen ("A New View on What Limits TCP/IP Throughput in Local Area Networks", 1991) call the two rates λ
//! and μ and measure them on hosts without other load. In a capture, only some periods show the rates. `Rates` adds up
//! the bytes and the time of these periods. [`crate::hosts`] draws the conclusions.

mod cuts;
mod drain;
mod left;
mod passed;

pub use cuts::Cuts;
pub(super) use drain::{Advanced, Advertised};
pub(super) use left::Left;
pub use passed::Passed;

use serde::{Deserialize, Serialize};

use drain::{Drain, Reading};

/// Minimum number of data segments for rate measurements. Shorter directions have too few samples. Most directions in
/// large captures are shorter, so this limit saves memory.
pub(super) const MIN_DATA_SEGMENTS: u64 = 4;
/// A wait of more than 10 ms and more than two round trips is a pause of the application and ends a burst (a heuristic
/// for LANs).
const PAUSE_NS: i64 = 10_000_000;
/// If the congestion window has room, an ACK releases segments only within 0.1 ms (a heuristic: a kernel needs only a
/// fraction of this time to send after an ACK).
const AFTER_ACK_NS: i64 = 100_000;
/// If the congestion window has no room, an ACK can release segments within 0.2 ms or 1/4 of the round trip, whichever
/// is longer. A blocked application needs time to wake up and to write.
const WOKEN_NS: i64 = 200_000;
const WOKEN_PART: i64 = 4;
/// The congestion window and the send buffer have room while less than 9/10 of the largest flight is in flight.
const ROOM_PARTS: (i64, i64) = (9, 10);

/// The rate measurements of one direction, which is named after the sender of its data.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // `tcptrace_lab/schema/` defines each field
pub struct Rates {
    /// Bytes of segments that nothing delayed, and the sum of the times from the previous segment to each of them.
    pub burst: Passed,
    drain: Drain,
    reading: Reading,
    pub cuts: Cuts,
}

impl Rates {
    /// Adds a sent data segment.
    #[inline]
    pub(super) fn departs(&mut self, left: &Left<'_>) {
        if !left.new || left.held.recovering {
            self.cuts.interrupted();
            return;
        }
        self.cuts.departs(left);
        let Some(wait_ns) = left.held.wait_ns.get().filter(|_| was_free(left)) else { return };
        let pause_ns = PAUSE_NS.max(left.held.rtt_sample_ns.get().unwrap_or(0).saturating_mul(2));
        if wait_ns <= pause_ns {
            self.burst.add(left.payload_bytes, wait_ns);
        }
    }

    /// Adds an ACK for new bytes.
    #[inline]
    pub(super) fn advanced(&mut self, advanced: &Advanced) {
        self.drain.advanced(advanced);
    }

    /// Ends the busy period of a queue, because an ACK reports a hole.
    #[inline]
    pub(super) fn interrupted(&mut self) {
        self.drain.interrupted();
    }

    /// Adds an advertised window.
    #[inline]
    pub(super) fn advertised(&mut self, advertised: &Advertised) {
        self.reading.advertised(advertised);
    }

    /// Bytes that were acknowledged while more data was queued, and the time of these periods.
    #[must_use]
    pub fn drained(&self) -> Passed {
        self.drain.sum()
    }

    /// Bytes that the application read while its receive buffer was at least half full, and the time of these periods.
    #[must_use]
    pub fn read(&self) -> Passed {
        self.reading.sum
    }
}

/// Whether only the sender's host and application can have delayed the segment. This is true if the window had room, no
/// data of the peer arrived, and no ACK released the segment.
#[inline]
fn was_free(left: &Left<'_>) -> bool {
    let Left { held, payload_bytes, max_in_flight, .. } = *left;
    if held.peer_first_ns.is_some() || held.window_closed {
        return false;
    }
    let (Some(usable), Some(before)) = (held.usable_window_before_bytes.get(), held.flight_before_bytes.get()) else {
        return false;
    };
    if usable < payload_bytes {
        return false;
    }
    let Some(ago_ns) = held.since_ack_ns.get() else { return true };
    let woken_ns = WOKEN_NS.max(held.rtt_sample_ns.get().unwrap_or(0) / WOKEN_PART);
    let had_room = !held.small
        && !held.after_loss
        && before.saturating_add(payload_bytes).saturating_mul(ROOM_PARTS.1)
            <= max_in_flight.saturating_mul(ROOM_PARTS.0);
    ago_ns > woken_ns || (had_room && ago_ns > AFTER_ACK_NS)
}

#[cfg(test)]
mod tests {
    use super::{Left, Passed, Rates};
    use crate::sender::Wait;

    /// A full-sized segment after a flight of 10,000 bytes, sent `wait_ns` after the previous segment and
    /// `since_ack_ns` after an ACK.
    fn after(wait_ns: i64, since_ack_ns: Option<i64>) -> Wait {
        Wait {
            wait_ns: Some(wait_ns).into(),
            since_ack_ns: since_ack_ns.into(),
            rtt_sample_ns: Some(20_000_000).into(),
            flight_before_bytes: Some(10_000).into(),
            usable_window_before_bytes: Some(50_000).into(),
            smss_bytes: Some(1000).into(),
            ..Wait::default()
        }
    }

    fn rates(held: &Wait, max_in_flight: i64) -> Rates {
        let mut rates = Rates::default();
        let left = Left { held, start: 1, payload_bytes: 1000, frame: 5, pushed: false, new: true, max_in_flight };
        rates.departs(&left);
        rates
    }

    const ONE: Passed = Passed { bytes: 1000, ns: 1_000_000, samples: 1 };

    #[test]
    fn a_segment_that_no_ack_let_go_is_the_senders_own_pace() {
        assert_eq!(rates(&after(1_000_000, None), 11_000).burst, ONE);
    }

    #[test]
    fn a_segment_that_an_ack_let_go_shows_nothing_of_the_sender() {
        assert_eq!(rates(&after(1_000_000, Some(50_000)), 11_000).burst, Passed::default());
    }

    #[test]
    fn an_ack_lets_nothing_go_where_the_flight_was_larger_before() {
        assert_eq!(rates(&after(1_000_000, Some(150_000)), 13_000).burst, ONE);
        assert_eq!(rates(&after(1_000_000, Some(150_000)), 12_000).burst, Passed::default());
    }

    #[test]
    fn a_program_that_writes_long_after_the_ack_was_not_waiting_for_it() {
        assert_eq!(rates(&after(9_000_000, Some(5_000_001)), 11_000).burst.samples, 1);
        assert_eq!(rates(&after(9_000_000, Some(5_000_000)), 11_000).burst.samples, 0);
    }

    #[test]
    fn a_closed_window_an_answer_and_a_pause_are_no_bursts() {
        let free = after(1_000_000, None);
        let full = Wait { usable_window_before_bytes: Some(999).into(), ..free };
        let answered = Wait { peer_first_ns: Some(500).into(), ..free };
        assert_eq!(rates(&full, 0).burst.samples + rates(&answered, 0).burst.samples, 0);
        assert_eq!(rates(&after(40_000_000, None), 0).burst.samples, 1);
        assert_eq!(rates(&after(40_000_001, None), 0).burst.samples, 0);
    }
}
