//! The interval at which most segments of a direction are sent. Only segments that the application had written earlier
//! count. In a capture at the sender, segments that an ACK released do not count.

use serde::{Deserialize, Serialize};

use crate::nullable::Nullable;

/// Two paces, or two sizes, are alike if they differ by less than 1/8 (a heuristic).
const ALIKE_PART: u64 = 8;

/// The pace of most segments or bursts. A segment counts only if the previous one did not end a write with PSH (RFC
/// 9293, 3.9.1). The application had written such a segment earlier.
///
/// The pace is found by majority vote (Boyer & Moore 1981). A segment at the current pace votes for this pace, and any
/// other segment votes against it. When no votes are left, the pace of the next segment replaces the current pace.
/// Outliers from a busy host therefore do not change the pace.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Steady {
    bytes: i64,
    ns: i64,
    votes: u32,
    /// Bytes of link and protocol overhead per segment.
    around_bytes: i64,
    /// Number of all segments, at the pace or not.
    all: u32,
    /// Number of segments at the pace whose size differs from `bytes`.
    other_sizes: u32,
}

impl Steady {
    /// Adds a segment of `payload_bytes` and `around_bytes` of overhead, which was sent `wait_ns` after a segment that
    /// did not end a write.
    #[inline]
    pub(super) fn came(&mut self, wait_ns: i64, payload_bytes: i64, around_bytes: i64) {
        let bytes = payload_bytes.saturating_add(around_bytes);
        self.around_bytes = around_bytes;
        self.all = self.all.saturating_add(1);
        if self.votes == 0 {
            *self = Self { bytes, ns: wait_ns, votes: 1, other_sizes: 0, ..*self };
        } else if are_alike(wait_ns.saturating_mul(self.bytes), self.ns.saturating_mul(bytes)) {
            self.votes = self.votes.saturating_add(1);
            self.other_sizes = self.other_sizes.saturating_add(u32::from(!are_alike(bytes, self.bytes)));
        } else {
            self.votes -= 1;
        }
    }

    /// Payload of a segment at the pace, and the interval since the previous segment.
    pub(super) fn pace(self) -> (Nullable, Nullable) {
        if self.votes == 0 {
            return Default::default();
        }
        (Some(self.bytes - self.around_bytes).into(), Some(self.ns).into())
    }

    /// Returns three numbers: all segments that count; the segments at the pace less the others; and the segments at
    /// the pace whose size differs from the usual one.
    pub(super) fn segments(self) -> (u32, u32, u32) {
        (self.all, self.votes, self.other_sizes)
    }
}

fn are_alike(one: i64, other: i64) -> bool {
    one.abs_diff(other) <= other.unsigned_abs() / ALIKE_PART
}

#[cfg(test)]
mod tests {
    use super::super::spacing::AROUND_BYTES;
    use super::Steady;

    fn after(came: &[(i64, i64)]) -> (Option<i64>, Option<i64>, u32, u32, u32) {
        let mut steady = Steady::default();
        for (wait_ns, bytes) in came {
            steady.came(*wait_ns, *bytes, AROUND_BYTES);
        }
        let ((bytes, ns), (all, votes, other_sizes)) = (steady.pace(), steady.segments());
        (bytes.get(), ns.get(), all, votes, other_sizes)
    }

    #[test]
    fn the_time_that_segments_take_for_their_size_is_the_pace_and_outliers_move_it_not() {
        // At 1 Mb/s, 1,460 bytes of payload with overhead take 12.304 ms; 422 bytes take 4 ms.
        let came = [(12_304_000, 1460), (12_400_000, 1460), (4_000_000, 422), (5_000, 1460), (12_200_000, 1460)];
        assert_eq!(after(&came), (Some(1460), Some(12_304_000), 5, 3, 1));
    }

    #[test]
    fn the_pace_of_most_takes_the_place_of_that_of_the_first() {
        let came = [(1_000, 1460), (12_304_000, 1460), (12_304_000, 1460), (12_304_000, 1460)];
        assert_eq!(after(&came), (Some(1460), Some(12_304_000), 4, 2, 0));
    }

    #[test]
    fn segments_each_at_its_own_pace_have_none_in_common() {
        assert_eq!(after(&[(1_000_000, 1460), (9_000_000, 1460)]), (None, None, 2, 0, 0));
    }
}
