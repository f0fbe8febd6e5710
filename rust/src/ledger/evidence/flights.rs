//! Plateaus: levels that the flights of a direction do not exceed, although the receiver window has room.

use super::{Evidence, INITIAL_SEGMENTS, PACED_PART, are, is, share};

/// Without a loss, Linux stays in slow start at least up to this many segments (`hystart_low_window`,
/// `net/ipv4/tcp_cubic.c`).
pub(super) const AVOIDANCE_SEGMENTS: i64 = 16;
/// Without a loss, congestion avoidance adds one segment per RTT (RFC 5681, 3.1). CUBIC in Linux adds
/// 1/[`AVOIDANCE_PART`] of the window per RTT (`bictcp_update`).
pub(super) const AVOIDANCE_PART: i64 = 20;
/// If two consecutive flights have at least this share of a plateau, they have reached it.
const PLATEAU_SHARE: f64 = 0.9;
/// A single flight of at least this share of a plateau has reached it.
const LEVEL_SHARE: f64 = 0.95;
/// After a flight that reached the top level, a flight of at least this share of the level has stopped growing: slow
/// start would double the flight (RFC 5681, 3.1).
const TOP_SHARE: f64 = 0.5;
/// The largest initial window in bytes: ten segments of 1,460 bytes, unless two segments are larger (RFC 6928, 2).
const INITIAL_BYTES: i64 = 14_600;
/// BBR has at most this many segments in flight while it probes the minimum RTT (Linux, `bbr_cwnd_min_target`).
const MIN_PROBING_SEGMENTS: i64 = 4;

impl Evidence<'_> {
    /// Whether flights are on a plateau. A plateau has one of three forms. First, the flights stay at one level, and
    /// the present window has room for more. The level is at least two segments and well below the largest receiver
    /// window. Second, the flights rise and fall, and reach the same highest level repeatedly. Third, all flights are
    /// smaller than two segments, and the first was as large as any later one. A small segment does not count if its
    /// data was already in the send buffer, because no refill of the buffer preceded it.
    pub(in super::super) fn is_on_plateau(&self) -> bool {
        let direction = self.direction;
        let plateaus = [direction.top_bytes, direction.plateau_bytes, direction.other_plateau_bytes];
        let stands = plateaus.into_iter().flatten().any(|level| self.stands_at(level) || self.is_below(level))
            || self.is_below_top()
            || self.is_first_and_largest();
        stands && !self.window_is_near() && !(self.is_small() && self.more_was_buffered())
    }

    /// Whether no flight exceeded the level by more than a tenth, or no flight exceeded the level by a whole segment.
    /// Congestion windows grow by at least one segment.
    fn is_highest(&self, level: i64) -> bool {
        is(self.direction.max_in_flight_bytes, |most| {
            level as f64 >= share(PLATEAU_SHARE, most).min((most - self.smss_bytes + 1) as f64)
        })
    }

    /// Whether the flight differs from the level by at most 5%, or by 10% if the previous flight also reached the
    /// level. If some flight was much larger, growing flights pass through the level. In this case, the previous flight
    /// must have reached the level as well.
    fn stands_at(&self, level: i64) -> bool {
        let Some(flight) = self.flight_before().map(|flight| flight as f64) else { return false };
        let before = self.previous_round_flight().map(|flight| flight as f64);
        let (reached, nearly) = (share(LEVEL_SHARE, level), share(PLATEAU_SHARE, level));
        let stands = (flight >= reached && (self.is_highest(level) || before.is_none_or(|before| before >= reached)))
            || (flight >= nearly && before.is_some_and(|before| before >= nearly));
        stands && PLATEAU_SHARE * flight <= level as f64
    }

    /// Whether the flight is smaller than the level and no larger than an earlier flight, and no flight ever exceeded
    /// the level by a segment. The last condition does not apply to a sender older than `HyStart` (RFC 9406) and cached
    /// thresholds. Such a sender leaves slow start only after a loss.
    fn is_below(&self, level: i64) -> bool {
        let fits = is(self.flight_before(), |flight| {
            share(TOP_SHARE, level) <= flight as f64 && share(PLATEAU_SHARE, flight) <= level as f64
        });
        let highest = is(self.direction.max_in_flight_bytes, |most| most < level + self.smss_bytes);
        self.direction.near_sender && fits && (highest || self.direction.old) && self.has_flown()
    }

    fn is_below_top(&self) -> bool {
        let Some(top) = self.direction.top_bytes else { return false };
        are(self.flight_before(), self.previous_round_flight(), |flight, before| {
            share(TOP_SHARE, top) <= flight as f64
                && share(PLATEAU_SHARE, flight) <= top as f64
                && share(PLATEAU_SHARE, top) <= before as f64
        })
    }

    /// Whether this flight is the first, all flights are smaller than two segments, and no later flight is larger
    /// (except by a FIN). Since then, the congestion window has grown, but the flights have not.
    fn is_first_and_largest(&self) -> bool {
        self.direction.near_sender
            && self.previous_round_flight().is_none()
            && are(self.flight_before(), self.direction.low_top_bytes, |flight, low_top| flight + 1 >= low_top)
    }

    /// Whether the receiver window had less room than the sender needs. A sender needs room for a full-sized segment.
    /// BSD also sends if half of the largest window is free, even if this is less than a full-sized segment
    /// (`tcp_output`). Linux also waits if the room is less than two full-sized segments and less than a third of the
    /// window. In a capture away from the sender, the room is known less exactly, so room for two full-sized segments
    /// is required.
    pub(in super::super) fn window_is_near(&self) -> bool {
        if !self.direction.near_sender {
            return self.window_was_nearly_full();
        }
        let Some(room) = self.room() else { return false };
        if self.direction.old {
            let half = self.direction.max_window_bytes.map_or(f64::INFINITY, |most| most as f64 / 2.0);
            let small_fits = self.wait.small_passes && room > self.record.payload_bytes;
            return (room as f64) < half.min(self.smss_bytes as f64) && !small_fits;
        }
        room < self.smss_bytes || (!self.is_small() && self.is_too_little(Some(room)))
    }

    /// Whether all buffered data had been sent. If so, nothing was left for the congestion window to delay. The
    /// application wrote more as soon as the buffer had room again.
    pub(in super::super) fn has_stopped(&self) -> bool {
        self.direction.near_sender && self.buffer_was_emptied()
    }

    /// Whether the sender sends one small segment per RTT, each after a flight that may fill the send buffer.
    fn is_one_by_one(&self) -> bool {
        !self.direction.surely_holds_small
            && are(self.wait.payload_before_bytes.get(), self.flight_before(), |payload, flight| payload == flight)
            && self.may_fill_buffer()
            && self.was_released_by_ack()
            && self.was_held_behind_small()
    }

    /// Whether the sender sends one small segment per RTT, always of the same size, because the send buffer is full.
    /// With Nagle's algorithm alone, an application that keeps writing would fill full-sized segments, and the ACK
    /// would release everything in the buffer. The segment was therefore not in the buffer when the previous one was
    /// sent: the buffer had no room. The only other explanation is an application that writes exactly this much per
    /// RTT.
    #[inline]
    pub(in super::super) fn was_taken_one_by_one(&self) -> bool {
        self.wait.held_before && self.is_one_by_one() && self.has_flight_of_its_size()
    }

    /// Whether the sender sends one small segment per RTT, of several sizes. Either the send buffer is full, or Nagle's
    /// algorithm delays occasional writes; the capture does not show which.
    #[inline]
    pub(in super::super) fn was_taken_in_turn(&self) -> bool {
        self.wait.held_before && self.is_one_by_one() && !self.has_flight_of_its_size()
    }

    fn has_flight_of_its_size(&self) -> bool {
        let own = Some(self.record.payload_bytes);
        self.flight_before() == own && self.previous_round_flight() == own
    }

    /// Whether the flight is no larger than an earlier flight, and not much smaller than the previous one. The
    /// congestion window does not limit the flight, because the window has grown with each ACK since the earlier
    /// flight. This conclusion holds for an old sender, which leaves slow start only after a loss. For a current
    /// sender, it requires that nothing was lost and that the wait takes at least half an RTT. It must also be certain
    /// that slow start has not ended, or that congestion avoidance adds a segment per RTT.
    pub(in super::super) fn is_no_larger(&self) -> bool {
        let stands =
            || if self.direction.old { self.stands_again() || self.began_at_once() } else { self.stands_today() };
        self.direction.near_sender && !self.window_is_near() && stands()
    }

    /// Whether the flight is no larger than an earlier flight, and at least half of the previous one. If the flight is
    /// smaller than two segments, ACKs must also have released every segment of the direction.
    fn stands_again(&self) -> bool {
        self.has_flown()
            && are(self.previous_round_flight(), self.flight_before(), |before, flight| {
                share(TOP_SHARE, before) <= flight as f64
            })
            && (!self.had_little_in_flight() || self.direction.totals.unclocked == 0)
    }

    /// Whether the sender has no slow start (4.2BSD): before the first ACK of data, it sent more than any initial
    /// window allows.
    fn began_at_once(&self) -> bool {
        let smss = self.smss_bytes;
        let initial = (INITIAL_SEGMENTS * smss).min((2 * smss).max(INITIAL_BYTES));
        self.direction.beginning_seen
            && self.previous_round_flight().is_none()
            && !self.is_after_loss()
            && is(self.flight_before(), |flight| flight > initial)
    }

    fn stands_today(&self) -> bool {
        let smss = self.smss_bytes;
        !self.is_after_loss()
            && self.wait.flown_before
            && are(self.previous_round_flight(), self.flight_before(), |before, flight| {
                share(TOP_SHARE, before) <= flight as f64
            })
            && is(self.flight_before(), |flight| {
                flight > MIN_PROBING_SEGMENTS * smss
                    && (flight < AVOIDANCE_SEGMENTS * smss || flight >= AVOIDANCE_PART * smss)
            })
            && PACED_PART * self.wait_ns >= self.rtt_ns()
    }
}
