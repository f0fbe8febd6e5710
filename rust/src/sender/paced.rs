//! The even interval at which a pacing sender sends bursts of full-sized segments.

use serde::{Deserialize, Serialize};

use super::steady::Steady;
use crate::connection::CAUSAL_NS;
use crate::nullable::Nullable;

/// Minimum burst of a pacing sender, in segments. Linux sends at least two segments together (`tcp_tso_autosize`).
/// Linux then sends nothing for the time that these segments take at the pacing rate (`tcp_update_skb_after_send`). A
/// slow line looks different: it delays the second segment as long as the first.
const BURST_SEGMENTS: i64 = 2;

/// The bursts of one direction, and the most common pace of the bursts.
///
/// Only bursts that end with a full-sized segment count. A write rarely ends with a full-sized segment, so the
/// application had already written more data. PSH does not show the end of a write here, because Linux sets PSH on each
/// piece that it passes down (`__tcp_transmit_skb`, since 5.4).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Paced {
    /// When the current burst began.
    began_ns: Nullable,
    /// Bytes of data in the current burst.
    bytes: i64,
    pace: Steady,
}

impl Paced {
    /// Adds a segment that was sent `wait_ns` after the previous one; `small` is true if the previous one was small.
    #[inline]
    pub(super) fn departs(&mut self, ts_ns: i64, wait_ns: i64, payload_bytes: i64, smss_bytes: i64, small: bool) {
        if wait_ns < CAUSAL_NS {
            self.bytes = self.bytes.saturating_add(payload_bytes);
            return;
        }
        let min_bytes = BURST_SEGMENTS.saturating_mul(smss_bytes);
        if let Some(began_ns) = self.began_ns.get().filter(|_| !small && self.bytes >= min_bytes) {
            self.pace.came(ts_ns.saturating_sub(began_ns), self.bytes, 0);
        }
        (self.began_ns, self.bytes) = (Some(ts_ns).into(), payload_bytes);
    }

    /// Bytes of data in a burst at the most common pace, and the time from the start of the burst to the start of the
    /// next one.
    pub(super) fn pace(self) -> (Nullable, Nullable) {
        self.pace.pace()
    }

    /// The number of bursts at the most common pace, less the number of other bursts.
    pub(super) fn bursts(self) -> u32 {
        self.pace.segments().1
    }
}

#[cfg(test)]
mod tests {
    use super::Paced;

    const FULL: i64 = 1448;

    /// Returns the most common pace of bursts (bytes, ns), and the number of bursts at this pace less the number of
    /// others. A segment is (ns since the previous one, bytes of data, whether the previous one was small).
    fn after(departures: &[(i64, i64, bool)]) -> (Option<i64>, Option<i64>, u32) {
        let (mut paced, mut ts_ns) = (Paced::default(), 0);
        for (wait_ns, bytes, small) in departures {
            ts_ns += wait_ns;
            paced.departs(ts_ns, *wait_ns, *bytes, FULL, *small);
        }
        let (bytes, ns) = paced.pace();
        (bytes.get(), ns.get(), paced.bursts())
    }

    #[test]
    fn pairs_at_the_senders_own_rate_have_a_pace() {
        // At 289,600 B/s, two segments of 1,448 bytes take 10 ms.
        let pair = [(9_990_000, FULL, false), (10_000, FULL, false)];
        assert_eq!(after(&pair.repeat(6)), (Some(2896), Some(10_000_000), 5));
    }

    #[test]
    fn segments_that_a_line_carries_one_by_one_are_no_bursts() {
        assert_eq!(after(&[(5_000_000, FULL, false)].repeat(6)), (None, None, 0));
    }

    #[test]
    fn what_the_program_writes_at_its_own_pace_ends_small_and_is_not_the_senders() {
        let write = [(9_980_000, FULL, true), (10_000, FULL, false), (10_000, 200, false)];
        assert_eq!(after(&write.repeat(6)), (None, None, 0));
    }
}
