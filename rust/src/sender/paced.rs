//! The even interval at which a pacing sender sends bursts of full segments.

use serde::{Deserialize, Serialize};

use super::steady::Steady;
use crate::connection::CAUSAL_NS;
use crate::nullable::Nullable;

/// A sender that paces lets two segments go at once, or more (Linux, `tcp_tso_autosize`), and then nothing for as long as they take at
/// its rate (`tcp_update_skb_after_send`). No line does so: it keeps the second of two as long as the first.
const BURST_SEGMENTS: i64 = 2;

/// Bursts of one direction, and the pace of most of them.
///
/// Only bursts that end with a full segment count: writes rarely end with one, so the program had given more. PSH does not show that: Linux
/// sets it on whatever it hands down as one piece (`__tcp_transmit_skb`, since 5.4).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Paced {
    /// When the burst of now began, and its data.
    began_ns: Nullable,
    bytes: i64,
    pace: Steady,
}

impl Paced {
    /// A segment leaves `held_ns` behind the one before, which was `small`, or full.
    #[inline]
    pub(super) fn departs(&mut self, ts_ns: i64, held_ns: i64, payload_bytes: i64, full_bytes: i64, small: bool) {
        if held_ns < CAUSAL_NS {
            self.bytes = self.bytes.saturating_add(payload_bytes);
            return;
        }
        let least_bytes = BURST_SEGMENTS.saturating_mul(full_bytes);
        if let Some(began_ns) = self.began_ns.get().filter(|_| !small && self.bytes >= least_bytes) {
            self.pace.came(ts_ns.saturating_sub(began_ns), self.bytes, 0);
        }
        (self.began_ns, self.bytes) = (Some(ts_ns).into(), payload_bytes);
    }

    /// Data of a burst, and how long behind it the next one left.
    pub(super) fn pace(self) -> (Nullable, Nullable) {
        self.pace.pace()
    }

    /// How many more bursts left at that pace than at any other.
    pub(super) fn bursts(self) -> u32 {
        self.pace.segments().1
    }
}

#[cfg(test)]
mod tests {
    use super::Paced;

    const FULL: i64 = 1448;

    /// Departures as (time behind the one before in ns, data, whether that was small) → the pace and by how many more bursts have it.
    fn after(departures: &[(i64, i64, bool)]) -> (Option<i64>, Option<i64>, u32) {
        let (mut paced, mut ts_ns) = (Paced::default(), 0);
        for (held_ns, bytes, small) in departures {
            ts_ns += held_ns;
            paced.departs(ts_ns, *held_ns, *bytes, FULL, *small);
        }
        let (bytes, ns) = paced.pace();
        (bytes.get(), ns.get(), paced.bursts())
    }

    #[test]
    fn pairs_at_the_senders_own_rate_have_a_pace() {
        // 289,600 bytes a second: two of 1,448 take 10 ms.
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
