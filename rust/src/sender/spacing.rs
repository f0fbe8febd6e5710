//! How long a segment occupies the sender's line. The estimate comes from the shortest intervals between segments and
//! from round trips.

use serde::{Deserialize, Serialize};

use crate::nullable::Nullable;

/// Overhead of a segment on Ethernet in bytes: IPv4 and TCP headers, frame, preamble and inter-packet gap (IEEE 802.3).
/// Other types of links add about as much. The overhead is small compared with a full-sized segment.
pub(crate) const AROUND_BYTES: i64 = 78;
/// Bytes that a SYN occupies on Ethernet, with padding.
const SYN_LINE_BYTES: i64 = 84;
/// Payload of one ATM cell (ITU-T I.361). A segment over ATM occupies whole cells. The overhead of a segment is 40
/// bytes of headers, and 16 bytes for an AAL5 trailer and LLC/SNAP (ITU-T I.363.5, RFC 2684). A SYN occupies two cells,
/// whatever options it has.
pub(crate) const CELL_BYTES: i64 = 48;
pub(crate) const AROUND_IN_CELLS_BYTES: i64 = 40 + 16;
const SYN_CELLS: i64 = 2;
/// Bytes that the timestamp option adds to each segment after the SYN (RFC 7323, appendix A).
pub(crate) const TIMESTAMP_BYTES: i64 = 12;
/// If the round trip of the SYN is shorter than this, it consists only of the receiver's reaction time. The capture
/// point is then at the receiver, at the far end of the line.
const MIN_PATH_NS: i64 = 20_000;
/// Clock ticks and host jitter change a round trip by up to `NOISE_NS` (a heuristic). If a segment is less than
/// `FEW_BYTES` longer than the SYN, a difference of at most `NOISE_NS` between their round trips shows nothing about
/// the line.
const FEW_BYTES: i64 = 64;
const NOISE_NS: i64 = 20_000;
/// Two estimates of the line rate agree if they differ by less than 1/20 (a heuristic).
const AGREE_PART: u64 = 20;
/// Two estimates in ATM cells agree if they differ by less than 1/50. Numbers of cells are exact, so only the capture's
/// clock causes rounding errors.
const AGREE_IN_CELLS_PART: u64 = 50;

/// A pace: a number of bytes or ATM cells, and the time that they take.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Pace {
    bytes: i64,
    ns: i64,
}

impl Pace {
    /// Keeps the faster of the two paces. Returns whether the new pace is the faster one.
    fn keep_faster(&mut self, bytes: i64, ns: i64) -> bool {
        let faster = self.bytes == 0 || ns.saturating_mul(self.bytes) < self.ns.saturating_mul(bytes);
        if faster {
            *self = Self { bytes, ns };
        }
        faster
    }

    fn of(self, bytes: i64) -> i64 {
        (self.ns as f64 * bytes as f64 / self.bytes as f64) as i64
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Seen {
    /// The capture point is at the sender, before the line carries the segment.
    #[default]
    AtSender,
    /// The capture point is away from the sender, after the line has carried the whole segment.
    Away,
    /// The two hosts are so near each other that the capture point may be at either of them.
    AtEither,
}

/// The shortest interval between segments and the shortest round trip, relative to the bytes sent.
///
/// No segment can be sent while the line is busy with the previous one. The time from one segment to the next is
/// therefore an upper bound for the serialization time of the first. The time by which a segment's round trip exceeds
/// the round trip of the SYN is another upper bound. Small segments count only if both bounds agree, because an
/// application can write them at its own pace and thus space them too.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Spacing {
    /// The fastest pace at which a segment followed a full-sized one.
    full: Pace,
    /// The fastest pace at which a segment followed any other.
    any: Pace,
    /// The first RTT sample: the RTT of the SYN, if the SYN was captured.
    first_rtt_ns: Nullable,
    /// Whether the first RTT sample was of data. If so, no SYN was captured, and the SMSS is unknown too.
    begun_late: bool,
    /// The smallest increase of a data segment's RTT over the first RTT sample, per additional byte.
    longer: Pace,
    /// The smallest increase of a data segment's RTT over the first RTT sample, per additional ATM cell.
    longer_by_cells: Pace,
    /// The fastest exchange of data in both directions, compared with the SYN and its answer: the additional time for
    /// the additional bytes.
    exchange: Pace,
    /// Number of ATM cells of this exchange, less those of the SYN and its answer.
    exchange_cells: i64,
    /// In a capture away from the sender, the shortest time from data to a FIN without data.
    fin_ns: Nullable,
    /// Bytes of TCP options in each segment.
    option_bytes: i64,
    seen: Seen,
}

impl Spacing {
    #[inline]
    pub(super) fn set_timestamps(&mut self, timestamps: bool) {
        self.option_bytes = if timestamps { TIMESTAMP_BYTES } else { 0 };
    }

    /// Adds a segment of `own_bytes`, sent `wait_ns` after a segment of `before_bytes`. In a capture at the sender, the
    /// line carries the earlier segment during this interval. In other captures, it carries the later segment, because
    /// a segment is captured when all of it has arrived. If the capture point may be at either host, the smaller size
    /// counts, so that the time remains an upper bound.
    #[inline]
    pub(super) fn departs(&mut self, wait_ns: i64, before_bytes: i64, own_bytes: i64, smss_bytes: i64, seen: Seen) {
        self.seen = seen;
        let bytes = match seen {
            Seen::Away => own_bytes,
            Seen::AtEither if own_bytes > 0 => before_bytes.min(own_bytes),
            // A segment without data is a FIN here. If the capture point may be at either host, the size of the segment
            // before the FIN counts.
            Seen::AtEither | Seen::AtSender => before_bytes,
        };
        if seen == Seen::Away && own_bytes == 0 && before_bytes > 0 {
            self.fin_ns = Some(self.fin_ns.get().map_or(wait_ns, |fin_ns| fin_ns.min(wait_ns))).into();
        }
        if before_bytes == 0 || bytes == 0 || smss_bytes == 0 {
            return;
        }
        self.any.keep_faster(bytes + AROUND_BYTES, wait_ns);
        if before_bytes >= smss_bytes {
            self.full.keep_faster(bytes + AROUND_BYTES, wait_ns);
        }
    }

    /// Adds the RTT sample of a segment. The segment has `payload_bytes` of data, and its ACK has `back_bytes` of data.
    /// The lines of both directions are assumed to have equal rates.
    #[inline]
    pub(super) fn rtt_sampled(&mut self, rtt_ns: i64, payload_bytes: i64, back_bytes: i64) {
        let Some(first_ns) = self.first_rtt_ns.get() else {
            self.first_rtt_ns = Some(rtt_ns).into();
            self.begun_late = payload_bytes > 0;
            return;
        };
        let more = |bytes: i64| (bytes + AROUND_BYTES - SYN_LINE_BYTES).max(0);
        let more_bytes = more(payload_bytes) + more(back_bytes);
        if first_ns >= MIN_PATH_NS && more_bytes > 0 {
            let min_ns = if more_bytes < FEW_BYTES { NOISE_NS } else { 0 };
            let longer_ns = rtt_ns.saturating_sub(first_ns).max(min_ns);
            self.longer.keep_faster(more_bytes, longer_ns);
            let more_cells = self.cells(payload_bytes) + self.cells(back_bytes) - 2 * SYN_CELLS;
            if payload_bytes > 0 && back_bytes > 0 && self.exchange.keep_faster(more_bytes, longer_ns) {
                self.exchange_cells = more_cells;
            }
            if more_cells > 0 {
                self.longer_by_cells.keep_faster(more_cells, longer_ns);
            }
        }
    }

    /// Number of ATM cells that a segment occupies.
    fn cells(&self, payload_bytes: i64) -> i64 {
        (payload_bytes + self.option_bytes + AROUND_IN_CELLS_BYTES + CELL_BYTES - 1) / CELL_BYTES
    }

    /// The fastest pace of any two consecutive segments: the payload of one segment, and the time between the two.
    pub(super) fn closest(&self) -> (Nullable, Nullable) {
        if self.any.bytes == 0 { Default::default() } else { payload_and_time(self.any, self.any.ns) }
    }

    /// The fastest exchange of data in both directions, compared with the SYN and its answer: additional bytes on both
    /// lines, additional ATM cells, additional time. The values are null if no SYN was captured.
    pub(super) fn exchange(&self) -> (Nullable, Nullable, Nullable) {
        if self.begun_late || self.exchange.bytes == 0 {
            return Default::default();
        }
        let Pace { bytes, ns } = self.exchange;
        (Some(bytes).into(), Some(self.exchange_cells).into(), Some(ns).into())
    }

    pub(super) fn fin_ns(&self) -> Nullable {
        self.fin_ns
    }

    /// Payload of a segment, and the longest time for which it can occupy the line.
    pub(super) fn line(&self) -> (Nullable, Nullable) {
        let Self { full, any, longer, .. } = *self;
        if self.begun_late {
            return Default::default();
        }
        if any.bytes > 0 && self.round_trips_agree() && !self.is_too_slow_for_the_handshake(any) {
            return payload_and_time(any, any.ns);
        }
        if full.bytes == 0 || !self.first_rtt_ns.is_some() {
            return Default::default();
        }
        let bound_ns = if longer.bytes > 0 { longer.of(full.bytes) } else { i64::MAX };
        let line = Pace { ns: full.ns.min(bound_ns), ..full };
        if self.is_too_slow_for_the_handshake(line) { Default::default() } else { payload_and_time(line, line.ns) }
    }

    /// Whether the line may need `wait_ns` for a segment of `payload_bytes`; false if the line rate is unknown.
    pub(super) fn may_carry(&self, payload_bytes: i64, wait_ns: i64) -> bool {
        let (line_bytes, serialization_ns) = self.line();
        line_bytes.get().zip(serialization_ns.get()).is_some_and(|(bytes, ns)| {
            let line = Pace { bytes: bytes + AROUND_BYTES, ns };
            wait_ns <= line.of(payload_bytes + AROUND_BYTES).saturating_mul(2)
        })
    }

    /// Whether the intervals between segments and the round trips show the same line rate, in bytes or in ATM cells.
    fn round_trips_agree(&self) -> bool {
        let Self { any, longer, longer_by_cells, .. } = *self;
        let agrees = |pace: Pace, size: i64, part: u64| {
            pace.bytes > 0 && any.ns.abs_diff(pace.of(size)) <= any.ns.unsigned_abs() / part
        };
        agrees(longer, any.bytes, AGREE_PART)
            || agrees(longer_by_cells, self.cells(any.bytes - AROUND_BYTES), AGREE_IN_CELLS_PART)
    }

    /// Whether a line of this rate, equal in both directions, would need more time for the SYN and its answer than
    /// their round trip took. If so, the real line is faster, and something else caused the measured times. Either the
    /// application wrote late, or the receiver's delayed-ACK timer lengthened the round trip. A SYN is assumed to take
    /// no longer than the measured segment, because on ATM both can occupy equally many cells.
    fn is_too_slow_for_the_handshake(&self, line: Pace) -> bool {
        self.seen != Seen::Away
            && self
                .first_rtt_ns
                .get()
                .is_some_and(|first_ns| line.of(SYN_LINE_BYTES).min(line.ns).saturating_mul(2) > first_ns)
    }
}

fn payload_and_time(pace: Pace, ns: i64) -> (Nullable, Nullable) {
    (Some(pace.bytes - AROUND_BYTES).into(), Some(ns).into())
}

#[cfg(test)]
mod tests {
    use super::{NOISE_NS, Seen, Spacing};

    /// At 10 Mb/s, a payload of 1,460 bytes occupies 1,538 bytes on Ethernet and takes 1.2304 ms.
    const FULL_NS: i64 = 1_230_400;
    /// A payload of 500 bytes occupies 578 bytes.
    const SMALL_NS: i64 = 462_400;

    fn after(spaced: &[(i64, i64, i64)], seen: Seen) -> Spacing {
        let mut spacing = Spacing::default();
        spacing.rtt_sampled(90_000_000, 0, 0);
        for (wait_ns, before, own) in spaced {
            spacing.departs(*wait_ns, *before, *own, 1460, seen);
        }
        spacing
    }

    #[test]
    fn the_closest_two_show_how_long_a_full_segment_takes() {
        let spacing = after(&[(90_000_000, 1460, 1460), (FULL_NS, 1460, 300), (1_500_000, 1460, 1460)], Seen::AtSender);
        assert_eq!((spacing.line().0.get(), spacing.line().1.get()), (Some(1460), Some(FULL_NS)));
    }

    #[test]
    fn away_from_the_sender_the_second_of_two_counts() {
        let spacing = after(&[(SMALL_NS, 1460, 500), (FULL_NS, 1460, 1460)], Seen::Away);
        assert_eq!(spacing.line().1.get(), Some(SMALL_NS));
    }

    #[test]
    fn what_follows_a_small_segment_shows_nothing_by_itself() {
        assert_eq!(after(&[(5_000_000, 500, 1460), (5_000_000, 500, 500)], Seen::AtSender).line().1.get(), None);
    }

    #[test]
    fn small_segments_reveal_the_line_if_their_round_trips_agree() {
        let mut spacing = after(&[(SMALL_NS, 500, 500)], Seen::AtSender);
        let more_ns = SMALL_NS * (500 + 78 - 84) / (500 + 78);
        spacing.rtt_sampled(90_000_000 + more_ns, 500, 0);
        assert_eq!((spacing.line().0.get(), spacing.line().1.get()), (Some(500), Some(SMALL_NS)));
    }

    #[test]
    fn without_a_syn_writes_of_one_size_reveal_no_line() {
        let mut spacing = Spacing::default();
        spacing.rtt_sampled(12_000, 100, 0);
        spacing.departs(43_000_000, 100, 100, 100, Seen::AtSender);
        spacing.rtt_sampled(43_000_000, 100, 0);
        spacing.rtt_sampled(10_000, 0, 0); // acknowledges the FIN
        assert_eq!(spacing.line().1.get(), None);
    }

    #[test]
    fn segments_a_century_apart_reveal_no_line() {
        let mut spacing = after(&[(i64::MAX, 500, 500)], Seen::AtSender);
        spacing.rtt_sampled(90_000_001, 500, 0);
        assert_eq!(spacing.line().1.get(), None);
    }

    #[test]
    fn a_full_segment_whose_answer_came_sooner_did_not_take_so_long() {
        let mut spacing = after(&[(60_000_000, 1460, 1460)], Seen::AtSender);
        spacing.rtt_sampled(95_000_000, 1460, 0);
        assert_eq!(spacing.line().1.get(), Some(5_000_000 * 1538 / 1454));
    }

    #[test]
    fn a_tiny_segment_that_was_answered_as_soon_as_the_syn_does_not_make_the_line_endlessly_fast() {
        let mut spacing = after(&[(FULL_NS, 1460, 1460)], Seen::AtSender);
        spacing.rtt_sampled(90_000_000, 8, 0);
        assert_eq!((spacing.line().0.get(), spacing.line().1.get()), (Some(1460), Some(FULL_NS)));
        spacing.rtt_sampled(90_000_000, 52, 0);
        assert_eq!(spacing.line().1.get(), Some(NOISE_NS * 1538 / 46));
    }

    #[test]
    fn at_either_of_two_hosts_the_smaller_of_two_segments_counts() {
        let spacing = after(&[(SMALL_NS, 1460, 500), (FULL_NS, 500, 1460)], Seen::AtEither);
        assert_eq!((spacing.closest().0.get(), spacing.closest().1.get()), (Some(500), Some(SMALL_NS)));
    }

    #[test]
    fn over_atm_round_trips_and_what_follows_at_once_agree_in_cells() {
        // At 45 Mb/s, a cell takes 9,422 ns. A payload of 100 bytes occupies four cells, and a SYN occupies two.
        // Counted in bytes, the interval and the round trip would show rates that differ by 5%.
        const CELL_NS: i64 = 9_422;
        let mut spacing = after(&[(4 * CELL_NS, 100, 100)], Seen::AtSender);
        spacing.rtt_sampled(90_000_000 + 4 * CELL_NS, 100, 100);
        assert_eq!((spacing.line().0.get(), spacing.line().1.get()), (Some(100), Some(4 * CELL_NS)));
        let mut other = after(&[(5 * CELL_NS, 100, 100)], Seen::AtSender);
        other.rtt_sampled(90_000_000 + 4 * CELL_NS, 100, 100);
        assert_eq!(other.line().1.get(), None, "five cells are not four");
    }

    #[test]
    fn the_quickest_exchange_of_messages_is_kept_by_what_it_had_more_than_the_syns() {
        // A payload of 1,000 bytes occupies 1,078 bytes on the line, which is 994 more than a SYN. The payload occupies
        // 22 ATM cells, which is 20 more than a SYN. Data and an ACK without data are no exchange.
        let mut spacing = after(&[], Seen::AtSender);
        assert_eq!(spacing.exchange().2.get(), None);
        for (longer_ns, back) in [(1_700_000, 1_000), (1_590_400, 1_000), (100_000, 0)] {
            spacing.rtt_sampled(90_000_000 + longer_ns, 1_000, back);
        }
        let (bytes, cells, ns) = spacing.exchange();
        assert_eq!((bytes.get(), cells.get(), ns.get()), (Some(1_988), Some(40), Some(1_590_400)));
    }

    #[test]
    fn away_from_the_sender_the_soonest_fin_behind_data_is_kept() {
        assert_eq!(
            after(&[(70_000, 500, 0), (67_200, 500, 0), (1_000, 0, 0)], Seen::Away).fin_ns().get(),
            Some(67_200)
        );
        assert_eq!(after(&[(67_200, 500, 0)], Seen::AtSender).fin_ns().get(), None);
    }

    #[test]
    fn full_segments_that_a_program_writes_one_by_one_reveal_no_line_that_the_syn_outran() {
        // The SYN round trip took 2 ms. At a rate of 1,538 bytes in 20 ms, the SYN and its answer, 84 bytes each, would
        // take 2.2 ms.
        let mut spacing = Spacing::default();
        spacing.rtt_sampled(2_000_000, 0, 0);
        spacing.departs(20_000_000, 1460, 1460, 1460, Seen::AtSender);
        assert_eq!(spacing.line().1.get(), None);
        spacing.departs(18_000_000, 1460, 1460, 1460, Seen::AtSender);
        assert_eq!(spacing.line().1.get(), Some(18_000_000));
    }

    #[test]
    fn a_receivers_timer_that_is_about_as_late_as_the_next_write_reveals_no_line_that_the_syn_outran() {
        // The sender sends 500 bytes every 50 ms. The 500 bytes occupy 578 bytes on the line, so each byte on the line
        // seems to take 87 µs. The round trip of the data is 43 ms longer than that of the SYN, for 494 bytes more.
        // This also shows 87 µs per byte.
        let serialization_ns = |syn_ns| {
            let mut spacing = Spacing::default();
            spacing.rtt_sampled(syn_ns, 0, 0);
            spacing.departs(50_000_000, 500, 500, 1460, Seen::AtSender);
            spacing.rtt_sampled(syn_ns + 43_000_000, 500, 0);
            spacing.line().1.get()
        };
        assert_eq!((serialization_ns(190_000), serialization_ns(15_000_000)), (None, Some(50_000_000)));
    }

    #[test]
    fn segments_that_follow_each_other_in_centuries_reveal_no_line() {
        let mut spacing = Spacing::default();
        spacing.rtt_sampled(90_000_000, 0, 0);
        spacing.departs(i64::MAX, 1, 1, 1, Seen::AtSender);
        assert_eq!(spacing.line().1.get(), None, "too slow for the handshake");
        spacing.departs(i64::MAX, 1, 1, 1, Seen::Away);
        assert!(spacing.may_carry(1 << 32, i64::MAX));
    }
}
