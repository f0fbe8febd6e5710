//! Plateaus: levels that the flights of a direction do not exceed, although the receiver window has room.

use super::{Evidence, INITIAL_SEGMENTS, PACED_PART, are, is, share};

/// A Linux sender that has lost nothing stays in slow start at least until its congestion window has this many segments
/// (`hystart_low_window`, `net/ipv4/tcp_cubic.c`).
pub(super) const AVOIDANCE_SEGMENTS: i64 = 16;
/// In congestion avoidance, the congestion window grows by one segment per RTT (RFC 5681, 3.1). CUBIC in Linux adds
/// 1/[`AVOIDANCE_PART`] of the window per RTT while nothing is lost (`bictcp_update`).
pub(super) const AVOIDANCE_PART: i64 = 20;
/// Two consecutive flights are on a plateau if each has at least this share of the plateau.
const PLATEAU_SHARE: f64 = 0.9;
/// A single flight is on a plateau if it has at least this share of the plateau.
const LEVEL_SHARE: f64 = 0.95;
/// If one flight reached the top level and the next one has at least this share of that level, the flights have stopped
/// growing. Slow start would double the flight (RFC 5681, 3.1).
const TOP_SHARE: f64 = 0.5;
/// The largest initial window in bytes: ten segments of 1,460 bytes, unless two segments are larger (RFC 6928, 2).
const INITIAL_BYTES: i64 = 14_600;
/// BBR has at most this many segments in flight while it probes the minimum RTT (Linux, `bbr_cwnd_min_target`).
const MIN_PROBING_SEGMENTS: i64 = 4;

impl Evidence<'_> {
    /// Whether flights are on a plateau although the receiver window has room. A plateau has one of three forms:
    ///
    /// - The flights stay at one level. The level is at least two segments and well below the largest receiver window.
    /// - The flights rise and fall, and repeatedly reach the same highest level.
    /// - All flights are smaller than two segments, and no later flight was larger than the first.
    ///
    /// A small segment does not count if its data was already in the send buffer, because this data did not wait for
    /// room in the buffer.
    pub(in super::super) fn is_on_plateau(&self) -> bool {
        let direction = self.direction;
        let plateaus = [direction.top_bytes, direction.plateau_bytes, direction.other_plateau_bytes];
        let stands = plateaus.into_iter().flatten().any(|level| self.stands_at(level) || self.is_below(level))
            || self.is_below_top()
            || self.is_first_and_largest();
        stands && !self.window_is_near() && !(self.is_small() && self.more_was_buffered())
    }

    /// Whether flights hardly exceeded the level: by at most a tenth, or by less than a segment. If a congestion window
    /// grows, it grows by at least one segment.
    fn is_highest(&self, level: i64) -> bool {
        is(self.direction.peak_flight_bytes, |most| {
            level as f64 >= share(PLATEAU_SHARE, most).min((most - self.smss_bytes + 1) as f64)
        })
    }

    /// Whether the flight has at least 95% of the level, or this flight and the previous one each have at least 90%.
    /// The flight must not exceed the level by more than a tenth. If other flights were much larger, a growing flight
    /// can pass the level by chance, so the previous flight must have reached 95% too.
    fn stands_at(&self, level: i64) -> bool {
        let Some(flight) = self.flight_before().map(|flight| flight as f64) else { return false };
        let before = self.previous_round_flight().map(|flight| flight as f64);
        let (reached, nearly) = (share(LEVEL_SHARE, level), share(PLATEAU_SHARE, level));
        let stands = (flight >= reached && (self.is_highest(level) || before.is_none_or(|before| before >= reached)))
            || (flight >= nearly && before.is_some_and(|before| before >= nearly));
        stands && PLATEAU_SHARE * flight <= level as f64 && !self.may_grow_through(level)
    }

    /// Whether flights may have stayed near the level for several rounds while they grew by a segment per round. In
    /// current senders, flights grow in this way even without a loss, after `HyStart` (RFC 9406) or if the host has
    /// stored a slow-start threshold.
    fn may_grow_through(&self, level: i64) -> bool {
        !self.direction.old && level >= AVOIDANCE_PART * self.smss_bytes && !self.is_highest(level)
    }

    /// Whether the flight has at least half of the level, hardly exceeds the level, and is no larger than an earlier
    /// flight. For a current sender, the result is true only if no flight ever exceeded the level by a segment. An old
    /// sender is exempt: without `HyStart` (RFC 9406) and cached thresholds, it leaves slow start only after a loss.
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

    /// Whether this is the first flight, all flights are smaller than two segments, and no later flight is larger. A
    /// FIN in a later flight does not count. The congestion window has grown since the first flight, but the flights
    /// have not.
    fn is_first_and_largest(&self) -> bool {
        self.direction.near_sender
            && self.previous_round_flight().is_none()
            && are(self.flight_before(), self.direction.low_top_bytes, |flight, low_top| flight + 1 >= low_top)
    }

    /// Whether the receiver window has too little room for the sender to continue. A sender needs room for a full-sized
    /// segment. BSD also sends if half of the largest window is free, even if this is less than a full-sized segment
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

    /// Whether all buffered data had been sent, so that the congestion window had nothing to delay. The application
    /// wrote more as soon as the buffer had room again.
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
    /// Nagle's algorithm alone would look different. An application that keeps writing would fill full-sized segments,
    /// and the ACK would release everything in the buffer. The data of this segment was therefore not yet in the buffer
    /// when the previous segment was sent: the buffer had no room. The only other explanation is an application that
    /// writes the same small number of bytes in each RTT.
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

    /// Whether the flight is no larger than an earlier flight, and not much smaller than the previous one. If so, the
    /// congestion window does not limit the flight, because the window has grown with each ACK since the earlier
    /// flight. An old sender leaves slow start only after a loss, so its window has surely grown. For a current sender,
    /// three more conditions apply. First, nothing was lost. Second, the wait takes at least half an RTT. Third, the
    /// flight is so small that slow start has certainly not ended, or so large that congestion avoidance adds a segment
    /// per RTT.
    pub(in super::super) fn is_no_larger(&self) -> bool {
        let stands =
            || if self.direction.old { self.stands_again() || self.began_at_once() } else { self.stands_today() };
        self.direction.near_sender && !self.window_is_near() && stands()
    }

    /// Whether the flight is no larger than an earlier flight, and at least half of the previous one. A flight smaller
    /// than two segments counts only if ACKs released every segment of the direction.
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
