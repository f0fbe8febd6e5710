//! How fast the receiver of a direction accepts bytes. While a queue drains, ACKs show this rate. While the receive
//! buffer is full, the advertised window shows this rate.

use serde::{Deserialize, Serialize};

use super::passed::Passed;
use crate::nullable::Nullable;

/// Round trips show a queue only if they exceed the shortest one by at least 0.1 ms. The delays of the hosts alone vary
/// by nearly as much.
const MIN_QUEUE_NS: i64 = 100_000;
/// A queue shows a rate only if it drains for at least 1 ms, and for at least half of the shortest round trip. Some
/// return paths (wireless, GRO) bundle ACKs and deliver several of them at once. Over a shorter time, such ACKs would
/// show a rate that no link has.
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
    /// Whether bytes are still in flight after this ACK.
    pub more: bool,
}

/// Bytes and time of busy queues. A queue is busy between two ACKs if the newest segment that the second ACK
/// acknowledges was already queued when the first ACK was captured. The bottleneck has no idle time between two such
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

    /// Ends a busy period, because the next ACK cannot be compared with the last one.
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
    /// The largest window before this one.
    pub max_bytes: i64,
}

/// Bytes that the application read, and the time that this took. The measurement runs while the window is less than
/// half of the largest window. A small window means that unread bytes fill most of the receive buffer. The right edge
/// of the window then moves as fast as the application reads.
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
            return; // a late segment has an old window
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

    /// An ACK of 1,000 bytes at `at_ms`, for a segment that was sent `rtt_ms` earlier. The shortest round trip is 20
    /// ms.
    fn ack(at_ms: i64, rtt_ms: i64) -> Advanced {
        Advanced { ts_ns: at_ms * MS, bytes: 1000, rtt_ns: Some(rtt_ms * MS).into(), rtt_min_ns: 20 * MS, more: true }
    }

    #[test]
    fn a_burst_drains_at_the_rate_of_its_acks() {
        // All segments are sent at once, and one segment leaves the queue every 2 ms. The round trips are 20 ms, 22 ms,
        // 24 ms and so on.
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
        reading.advertised(&advertised(0, 1, 8000)); // the buffer is empty
        reading.advertised(&advertised(5, 8001, 0)); // the buffer is full
        reading.advertised(&advertised(15, 8001, 2000)); // the application read 2000 bytes in 10 ms
        reading.advertised(&advertised(16, 10_001, 0)); // 2000 bytes arrived
        reading.advertised(&advertised(10, 9001, 1000)); // an old window that was captured late
        reading.advertised(&advertised(25, 10_001, 8000)); // the application read 8000 bytes in 9 ms
        reading.advertised(&advertised(900, 10_001, 8000)); // the buffer is empty
        assert_eq!(reading.sum, Passed { bytes: 10_000, ns: 20 * MS, samples: 3 });
    }
}
