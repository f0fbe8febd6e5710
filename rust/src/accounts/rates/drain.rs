//! How fast the receiver of a direction accepts bytes. ACKs show this rate while a queue drains; the window shows it
//! while the receive buffer is full.

use serde::{Deserialize, Serialize};

use super::passed::Passed;
use crate::nullable::Nullable;

/// A round trip can show a queue only if it exceeds the shortest round trip by at least 0.1 ms, because the delays of
/// the hosts alone vary by nearly as much.
const MIN_QUEUE_NS: i64 = 100_000;
/// A queue counts as a sample of the rate only if it drains for at least 1 ms, and for at least half of the shortest
/// round trip. A return path that bundles ACKs (wireless, GRO) delivers them together after a wait. Over a shorter
/// period, bundled ACKs would show a rate that no link has.
const MIN_STRETCH_NS: i64 = 1_000_000;

/// An ACK of new bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advanced {
    pub ts_ns: i64,
    pub bytes: i64,
    /// Time from the newest acknowledged segment to this ACK.
    pub rtt_ns: Nullable,
    /// The shortest RTT sample of the connection so far.
    pub rtt_min_ns: i64,
    /// Bytes are still in flight after this ACK.
    pub more: bool,
}

/// Bytes and time of the periods in which a queue was busy. In such a period, the newest segment that an ACK covers was
/// already in the queue when the previous ACK was captured. The bottleneck is therefore never idle between the two
/// ACKs.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Drain {
    sum: Passed,
    stretch: Passed,
    min_ns: i64,
    last_ns: Nullable,
}

impl Drain {
    #[inline]
    pub(super) fn advanced(&mut self, ack: &Advanced) {
        let queueing_delay_ns = ack.rtt_ns.get().map_or(-1, |rtt_ns| rtt_ns.saturating_sub(ack.rtt_min_ns));
        let since_ns = self.last_ns.get().map_or(i64::MAX, |last_ns| ack.ts_ns.saturating_sub(last_ns));
        if ack.more && queueing_delay_ns >= since_ns.max(MIN_QUEUE_NS) && since_ns >= 0 {
            self.stretch.add(ack.bytes, since_ns);
            self.min_ns = MIN_STRETCH_NS.max(ack.rtt_min_ns / 2);
        } else {
            self.interrupted();
        }
        self.last_ns = Some(ack.ts_ns).filter(|_| ack.more).into();
    }

    /// Ends the period of a busy queue, because the next ACK cannot be compared with the last one.
    #[inline]
    pub(super) fn interrupted(&mut self) {
        self.sum = self.sum();
        self.stretch = Passed::default();
        self.last_ns = Nullable::default();
    }

    pub(super) fn sum(&self) -> Passed {
        let mut sum = self.sum;
        if self.stretch.samples > 0 && self.stretch.ns >= self.min_ns {
            sum.join(self.stretch);
        }
        sum
    }
}

/// An advertised window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advertised {
    pub ts_ns: i64,
    pub ack: i64,
    pub window_bytes: i64,
    /// The largest window advertised before.
    pub max_bytes: i64,
}

/// Bytes that the application read, and the time that this took. A measurement begins when the window is less than half
/// of the largest window. From then on, unread bytes fill most of the receive buffer, so the right edge of the window
/// moves at the rate at which the application reads.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Reading {
    pub sum: Passed,
    ts_ns: Nullable,
    ack: i64,
    edge: i64,
    backlog: bool,
}

impl Reading {
    #[inline]
    pub(super) fn advertised(&mut self, now: &Advertised) {
        if now.ack < self.ack {
            return; // it arrived late and says nothing about the current window
        }
        let edge = now.ack.saturating_add(now.window_bytes);
        if self.backlog
            && let Some(before_ns) = self.ts_ns.get()
        {
            self.sum.add(edge.saturating_sub(self.edge), now.ts_ns.saturating_sub(before_ns).max(0));
        }
        self.backlog = now.window_bytes.saturating_mul(2) < now.max_bytes;
        (self.ts_ns, self.ack, self.edge) = (Some(now.ts_ns).into(), now.ack, edge);
    }
}

#[cfg(test)]
mod tests {
    use super::{Advanced, Advertised, Drain, Passed, Reading};

    const MS: i64 = 1_000_000;

    /// Returns an ACK of 1,000 bytes at `at_ms` for a segment that was sent `rtt_ms` earlier; the shortest round trip
    /// is 20 ms.
    fn ack(at_ms: i64, rtt_ms: i64) -> Advanced {
        Advanced { ts_ns: at_ms * MS, bytes: 1000, rtt_ns: Some(rtt_ms * MS).into(), rtt_min_ns: 20 * MS, more: true }
    }

    #[test]
    fn a_burst_drains_at_the_rate_of_its_acks() {
        // All segments are sent together, and the queue releases one every 2 ms: the round trips are 20, 22, 24 ms and
        // so on.
        let mut drain = Drain::default();
        (0..11).for_each(|number| drain.advanced(&ack(20 + 2 * number, 20 + 2 * number)));
        assert_eq!(drain.sum(), Passed { bytes: 10_000, ns: 20 * MS, samples: 10 });
    }

    #[test]
    fn segments_that_arrive_one_by_one_drain_nothing() {
        let mut drain = Drain::default();
        (0..20).for_each(|number| drain.advanced(&ack(20 + 2 * number, 21)));
        assert_eq!(drain.sum(), Passed::default());
    }

    #[test]
    fn acks_that_the_way_back_bundled_are_no_rate() {
        let mut drain = Drain::default();
        for bundle in 0..5 {
            (0..10).for_each(|number| {
                let late = Advanced { ts_ns: bundle * 10 * MS + number * 10_000, ..ack(0, 25) };
                drain.advanced(&late);
            });
        }
        assert_eq!(drain.sum(), Passed::default());
    }

    #[test]
    fn a_full_buffer_moves_its_window_as_the_program_reads() {
        let mut reading = Reading::default();
        let advertised =
            |at_ms: i64, ack, window_bytes| Advertised { ts_ns: at_ms * MS, ack, window_bytes, max_bytes: 8000 };
        reading.advertised(&advertised(0, 1, 8000)); // nothing unread
        reading.advertised(&advertised(5, 8001, 0)); // full
        reading.advertised(&advertised(15, 8001, 2000)); // 2000 bytes read in 10 ms
        reading.advertised(&advertised(16, 10_001, 0)); // 2000 bytes arrived
        reading.advertised(&advertised(10, 9001, 1000)); // an old window, captured late
        reading.advertised(&advertised(25, 10_001, 8000)); // 8000 read in 9 ms
        reading.advertised(&advertised(900, 10_001, 8000)); // nothing more to read
        assert_eq!(reading.sum, Passed { bytes: 10_000, ns: 20 * MS, samples: 3 });
    }
}
