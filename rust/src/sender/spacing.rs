//! How long a segment occupies the sender's line, by what followed it soonest and by its round trips.

use serde::{Deserialize, Serialize};

use crate::nullable::Nullable;

/// What a segment takes on an Ethernet beside its data: headers of IPv4 and TCP, frame, preamble and gap (IEEE 802.3). On
/// other lines it is about as much, and next to full segments little.
pub(crate) const AROUND_BYTES: i64 = 78;
/// What a SYN takes, which is padded.
const SYN_LINE_BYTES: i64 = 84;
/// Over ATM a segment takes whole cells, of which each carries so many bytes (ITU-T I.361), with a trailer and LLC/SNAP behind its
/// headers (ITU-T I.363.5, RFC 2684); a SYN with any options takes two.
pub(crate) const CELL_BYTES: i64 = 48;
pub(crate) const AROUND_IN_CELLS_BYTES: i64 = 40 + 16;
const SYN_CELLS: i64 = 2;
/// What timestamps take of each segment behind the SYN (RFC 7323, appendix A).
pub(crate) const TIMESTAMP_BYTES: i64 = 12;
/// A shorter round trip of a SYN is its receiver's own time: the capture was taken there, behind the line.
const LEAST_PATH_NS: i64 = 20_000;
/// Round trips that differ from a SYN's by no more than this show nothing of the line: it may be a clock's tick, or the host's own
/// jitter (a heuristic).
const FEW_BYTES: i64 = 64;
const NOISE_NS: i64 = 20_000;
/// Two estimates of a line's rate agree if they differ by less than this part (a heuristic).
const AGREE_PART: u64 = 20;
/// Two estimates in ATM cells agree if they differ by less than this part: nothing but the capture's clock is rounded.
const AGREE_IN_CELLS_PART: u64 = 50;

/// So many bytes in so much time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Pace {
    bytes: i64,
    ns: i64,
}

impl Pace {
    /// Keeps the fastest. Whether that is this one.
    fn least(&mut self, bytes: i64, ns: i64) -> bool {
        let faster = self.bytes == 0 || ns.saturating_mul(self.bytes) < self.ns.saturating_mul(bytes);
        if faster {
            *self = Self { bytes, ns };
        }
        faster
    }

    /// The time of other bytes at this pace.
    fn of(self, bytes: i64) -> i64 {
        (self.ns as f64 * bytes as f64 / self.bytes as f64) as i64
    }
}

/// Where a departure is captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Seen {
    /// At its sender: before the line carries it.
    #[default]
    AtSender,
    /// Away from it: when all of it is there.
    Away,
    /// At one of two hosts with no distance between them: which of the two is not known.
    AtEither,
}

/// The closest two departures for their size, and the shortest round trip for its size.
///
/// Nothing can leave while the line is busy with what left before. So the time from a segment to the next is an upper bound
/// of the time that it takes on the line; another is by how much its round trip exceeds that of a SYN. A program that writes
/// small segments at its own pace spaces them, too: they tell of the line only where both bounds are about the same.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Spacing {
    /// Behind full segments, and behind any.
    full: Pace,
    any: Pace,
    /// The first round trip: of the SYN, where that was captured.
    first_rtt_ns: Nullable,
    /// It was of data: no SYN was captured, and what is a full segment is not known either.
    begun_late: bool,
    /// What a round trip of data took longer than that, by the bytes that it had more; and by the cells, if the line is ATM's.
    longer: Pace,
    longer_by_cells: Pace,
    /// The same of a round trip with data both ways, and its cells.
    exchange: Pace,
    exchange_cells: i64,
    /// Away from the sender: how soon a FIN without data came behind data.
    fin_ns: Nullable,
    /// What options take of each segment.
    option_bytes: i64,
    /// Where the last departure was captured.
    seen: Seen,
}

impl Spacing {
    /// Segments have timestamps, or not.
    #[inline]
    pub(super) fn stamped(&mut self, stamped: bool) {
        self.option_bytes = if stamped { TIMESTAMP_BYTES } else { 0 };
    }

    /// A segment leaves `held_ns` after one of `before_bytes`; at a distance from the sender its own size counts, because it
    /// is captured when all of it is there. Of two sizes of which one counts, the smaller leaves this an upper bound.
    #[inline]
    pub(super) fn departs(&mut self, held_ns: i64, before_bytes: i64, own_bytes: i64, full_bytes: i64, seen: Seen) {
        self.seen = seen;
        let bytes = match seen {
            Seen::Away => own_bytes,
            Seen::AtEither if own_bytes > 0 => before_bytes.min(own_bytes),
            // At either, too: what follows without data is a FIN, and nothing but a round trip tells that it followed at once.
            Seen::AtEither | Seen::AtSender => before_bytes,
        };
        if seen == Seen::Away && own_bytes == 0 && before_bytes > 0 {
            self.fin_ns = Some(self.fin_ns.get().map_or(held_ns, |fin_ns| fin_ns.min(held_ns))).into();
        }
        if before_bytes == 0 || bytes == 0 || full_bytes == 0 {
            return;
        }
        self.any.least(bytes + AROUND_BYTES, held_ns);
        if before_bytes >= full_bytes {
            self.full.least(bytes + AROUND_BYTES, held_ns);
        }
    }

    /// A round-trip sample came, of a segment with so much data and an ACK with so much; both ways are taken to be alike.
    #[inline]
    pub(super) fn answered(&mut self, rtt_ns: i64, payload_bytes: i64, back_bytes: i64) {
        let Some(first_ns) = self.first_rtt_ns.get() else {
            self.first_rtt_ns = Some(rtt_ns).into();
            self.begun_late = payload_bytes > 0;
            return;
        };
        let more = |bytes: i64| (bytes + AROUND_BYTES - SYN_LINE_BYTES).max(0);
        let more_bytes = more(payload_bytes) + more(back_bytes);
        if first_ns >= LEAST_PATH_NS && more_bytes > 0 {
            let least_ns = if more_bytes < FEW_BYTES { NOISE_NS } else { 0 };
            let longer_ns = rtt_ns.saturating_sub(first_ns).max(least_ns);
            self.longer.least(more_bytes, longer_ns);
            let more_cells = self.cells(payload_bytes) + self.cells(back_bytes) - 2 * SYN_CELLS;
            if payload_bytes > 0 && back_bytes > 0 && self.exchange.least(more_bytes, longer_ns) {
                self.exchange_cells = more_cells;
            }
            if more_cells > 0 {
                self.longer_by_cells.least(more_cells, longer_ns);
            }
        }
    }

    /// Cells that a segment takes of an ATM line.
    fn cells(&self, payload_bytes: i64) -> i64 {
        (payload_bytes + self.option_bytes + AROUND_IN_CELLS_BYTES + CELL_BYTES - 1) / CELL_BYTES
    }

    /// Data of a segment, and how soon another one followed.
    pub(super) fn closest(&self) -> (Nullable, Nullable) {
        if self.any.bytes == 0 { Default::default() } else { told(self.any, self.any.ns) }
    }

    /// What a round trip with data both ways took longer than that of the SYN, for the bytes that it had more on both lines, and the
    /// cells; nothing where no SYN was captured.
    pub(super) fn exchange(&self) -> (Nullable, Nullable, Nullable) {
        if self.begun_late || self.exchange.bytes == 0 {
            return Default::default();
        }
        let Pace { bytes, ns } = self.exchange;
        (Some(bytes).into(), Some(self.exchange_cells).into(), Some(ns).into())
    }

    /// How soon a FIN came behind data, away from its sender.
    pub(super) fn fin_ns(&self) -> Nullable {
        self.fin_ns
    }

    /// Data of a segment, and the longest that it can keep the line busy.
    pub(super) fn line(&self) -> (Nullable, Nullable) {
        let Self { full, any, longer, .. } = *self;
        if self.begun_late {
            return Default::default();
        }
        if any.bytes > 0 && self.round_trips_agree() && !self.is_too_slow_for_the_handshake(any) {
            return told(any, any.ns);
        }
        if full.bytes == 0 || !self.first_rtt_ns.is_some() {
            return Default::default();
        }
        let bound_ns = if longer.bytes > 0 { longer.of(full.bytes) } else { i64::MAX };
        let line = Pace { ns: full.ns.min(bound_ns), ..full };
        if self.is_too_slow_for_the_handshake(line) { Default::default() } else { told(line, line.ns) }
    }

    /// Whether the line, as far as it is known, may need so long for a segment.
    pub(super) fn may_carry(&self, payload_bytes: i64, held_ns: i64) -> bool {
        let (line_bytes, line_ns) = self.line();
        line_bytes.get().zip(line_ns.get()).is_some_and(|(bytes, ns)| {
            let line = Pace { bytes: bytes + AROUND_BYTES, ns };
            held_ns <= line.of(payload_bytes + AROUND_BYTES).saturating_mul(2)
        })
    }

    /// Whether the closest two and the round trips tell the same, in bytes or in cells.
    fn round_trips_agree(&self) -> bool {
        let Self { any, longer, longer_by_cells, .. } = *self;
        let agrees = |pace: Pace, size: i64, part: u64| {
            pace.bytes > 0 && any.ns.abs_diff(pace.of(size)) <= any.ns.unsigned_abs() / part
        };
        agrees(longer, any.bytes, AGREE_PART)
            || agrees(longer_by_cells, self.cells(any.bytes - AROUND_BYTES), AGREE_IN_CELLS_PART)
    }

    /// Whether a line so slow would have carried the SYN and its answer, both ways being alike, for longer than they took. Then it was the
    /// program that wrote so late, and nothing tells of the line: not even a receiver's timer, by which a round trip may seem as long. A SYN
    /// takes no longer than any data, in whole cells either.
    fn is_too_slow_for_the_handshake(&self, line: Pace) -> bool {
        self.seen != Seen::Away
            && self
                .first_rtt_ns
                .get()
                .is_some_and(|first_ns| line.of(SYN_LINE_BYTES).min(line.ns).saturating_mul(2) > first_ns)
    }
}

fn told(pace: Pace, ns: i64) -> (Nullable, Nullable) {
    (Some(pace.bytes - AROUND_BYTES).into(), Some(ns).into())
}

#[cfg(test)]
mod tests {
    use super::{NOISE_NS, Seen, Spacing};

    /// 10 Mb/s: 1460 bytes take 1538 on an Ethernet, 1.2304 ms; 500 take 578.
    const FULL_NS: i64 = 1_230_400;
    const SMALL_NS: i64 = 462_400;

    fn after(spaced: &[(i64, i64, i64)], seen: Seen) -> Spacing {
        let mut spacing = Spacing::default();
        spacing.answered(90_000_000, 0, 0);
        for (held_ns, before, own) in spaced {
            spacing.departs(*held_ns, *before, *own, 1460, seen);
        }
        spacing
    }

    #[test]
    fn the_closest_two_tell_how_long_a_full_segment_takes() {
        let spacing = after(&[(90_000_000, 1460, 1460), (FULL_NS, 1460, 300), (1_500_000, 1460, 1460)], Seen::AtSender);
        assert_eq!((spacing.line().0.get(), spacing.line().1.get()), (Some(1460), Some(FULL_NS)));
    }

    #[test]
    fn away_from_the_sender_the_second_of_two_counts() {
        let spacing = after(&[(SMALL_NS, 1460, 500), (FULL_NS, 1460, 1460)], Seen::Away);
        assert_eq!(spacing.line().1.get(), Some(SMALL_NS));
    }

    #[test]
    fn what_follows_a_small_segment_tells_nothing_by_itself() {
        assert_eq!(after(&[(5_000_000, 500, 1460), (5_000_000, 500, 500)], Seen::AtSender).line().1.get(), None);
    }

    #[test]
    fn small_segments_tell_of_the_line_if_their_round_trips_agree() {
        let mut spacing = after(&[(SMALL_NS, 500, 500)], Seen::AtSender);
        let more_ns = SMALL_NS * (500 + 78 - 84) / (500 + 78);
        spacing.answered(90_000_000 + more_ns, 500, 0);
        assert_eq!((spacing.line().0.get(), spacing.line().1.get()), (Some(500), Some(SMALL_NS)));
    }

    #[test]
    fn without_a_syn_writes_of_one_size_tell_of_no_line() {
        let mut spacing = Spacing::default();
        spacing.answered(12_000, 100, 0);
        spacing.departs(43_000_000, 100, 100, 100, Seen::AtSender);
        spacing.answered(43_000_000, 100, 0);
        spacing.answered(10_000, 0, 0); // of the FIN
        assert_eq!(spacing.line().1.get(), None);
    }

    #[test]
    fn segments_a_century_apart_tell_of_no_line() {
        let mut spacing = after(&[(i64::MAX, 500, 500)], Seen::AtSender);
        spacing.answered(90_000_001, 500, 0);
        assert_eq!(spacing.line().1.get(), None);
    }

    #[test]
    fn a_full_segment_whose_answer_came_sooner_did_not_take_so_long() {
        let mut spacing = after(&[(60_000_000, 1460, 1460)], Seen::AtSender);
        spacing.answered(95_000_000, 1460, 0);
        assert_eq!(spacing.line().1.get(), Some(5_000_000 * 1538 / 1454));
    }

    #[test]
    fn a_tiny_segment_that_was_answered_as_soon_as_the_syn_does_not_make_the_line_endlessly_fast() {
        let mut spacing = after(&[(FULL_NS, 1460, 1460)], Seen::AtSender);
        spacing.answered(90_000_000, 8, 0);
        assert_eq!((spacing.line().0.get(), spacing.line().1.get()), (Some(1460), Some(FULL_NS)));
        spacing.answered(90_000_000, 52, 0);
        assert_eq!(spacing.line().1.get(), Some(NOISE_NS * 1538 / 46));
    }

    #[test]
    fn at_either_of_two_hosts_the_smaller_of_two_segments_counts() {
        let spacing = after(&[(SMALL_NS, 1460, 500), (FULL_NS, 500, 1460)], Seen::AtEither);
        assert_eq!((spacing.closest().0.get(), spacing.closest().1.get()), (Some(500), Some(SMALL_NS)));
    }

    #[test]
    fn over_atm_round_trips_and_what_follows_at_once_agree_in_cells() {
        // 45 Mb/s: a cell takes 9,422 ns; 100 bytes take four of them, a SYN two. Bytes tell 5 % less: 188 for four cells, 178 for four.
        const CELL_NS: i64 = 9_422;
        let mut spacing = after(&[(4 * CELL_NS, 100, 100)], Seen::AtSender);
        spacing.answered(90_000_000 + 4 * CELL_NS, 100, 100);
        assert_eq!((spacing.line().0.get(), spacing.line().1.get()), (Some(100), Some(4 * CELL_NS)));
        let mut other = after(&[(5 * CELL_NS, 100, 100)], Seen::AtSender);
        other.answered(90_000_000 + 4 * CELL_NS, 100, 100);
        assert_eq!(other.line().1.get(), None, "five cells are not four");
    }

    #[test]
    fn the_quickest_exchange_of_messages_is_kept_by_what_it_had_more_than_the_syns() {
        // 1,000 bytes take 1,078 on the line, 994 more than a SYN, and 22 cells, 20 more. Data that is only acknowledged is none.
        let mut spacing = after(&[], Seen::AtSender);
        assert_eq!(spacing.exchange().2.get(), None);
        for (longer_ns, back) in [(1_700_000, 1_000), (1_590_400, 1_000), (100_000, 0)] {
            spacing.answered(90_000_000 + longer_ns, 1_000, back);
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
    fn full_segments_that_a_program_writes_one_by_one_tell_of_no_line_that_the_syn_outran() {
        // The SYN's round trip took 2 ms. At 20 ms for 1,538 bytes, its 84 and those of its answer had taken 2.2 ms.
        let mut spacing = Spacing::default();
        spacing.answered(2_000_000, 0, 0);
        spacing.departs(20_000_000, 1460, 1460, 1460, Seen::AtSender);
        assert_eq!(spacing.line().1.get(), None);
        spacing.departs(18_000_000, 1460, 1460, 1460, Seen::AtSender);
        assert_eq!(spacing.line().1.get(), Some(18_000_000));
    }

    #[test]
    fn a_receivers_timer_that_is_about_as_late_as_the_next_write_tells_of_no_line_that_the_syn_outran() {
        // 500 bytes every 50 ms, acknowledged after 43: 86 us for each of 494 bytes more than a SYN, as for 578 in 50 ms.
        let told = |syn_ns| {
            let mut spacing = Spacing::default();
            spacing.answered(syn_ns, 0, 0);
            spacing.departs(50_000_000, 500, 500, 1460, Seen::AtSender);
            spacing.answered(syn_ns + 43_000_000, 500, 0);
            spacing.line().1.get()
        };
        assert_eq!((told(190_000), told(15_000_000)), (None, Some(50_000_000)));
    }

    #[test]
    fn segments_that_follow_each_other_in_centuries_tell_of_no_line() {
        let mut spacing = Spacing::default();
        spacing.answered(90_000_000, 0, 0);
        spacing.departs(i64::MAX, 1, 1, 1, Seen::AtSender);
        assert_eq!(spacing.line().1.get(), None, "too slow for the handshake");
        spacing.departs(i64::MAX, 1, 1, 1, Seen::Away);
        assert!(spacing.may_carry(1 << 32, i64::MAX));
    }
}
