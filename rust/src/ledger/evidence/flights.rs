//! Where the flights of a direction stand: at a level that they do not pass, though the window would take more.

use super::{Evidence, INITIAL_SEGMENTS, PACED_PART, are, is, share};

/// Without a loss, Linux leaves slow start with so many segments at least (`hystart_low_window`, `net/ipv4/tcp_cubic.c`).
pub(super) const AVOIDANCE_SEGMENTS: i64 = 16;
/// Without a loss, congestion avoidance adds a segment in each round trip (RFC 5681, 3.1) or, in Linux' CUBIC, this part of the
/// window (`bictcp_update`).
pub(super) const AVOIDANCE_PART: i64 = 20;
/// A flight of this share of a plateau has reached it if the round trip before had one, too.
const PLATEAU_SHARE: f64 = 0.9;
/// A flight of this share of a plateau has reached it.
const LEVEL_SHARE: f64 = 0.95;
/// A flight of this share of a top that was reached so often, and a round trip ago, no longer grows: slow start would double it
/// (RFC 5681, 3.1).
const TOP_SHARE: f64 = 0.5;
/// No initial window is larger, but one of two larger segments; nor than ten segments (RFC 6928, 2).
const INITIAL_BYTES: i64 = 14_600;
/// BBR has no more in flight while it looks for the shortest round trip (Linux, `bbr_cwnd_min_target`).
const LEAST_PROBING_SEGMENTS: i64 = 4;

impl Evidence<'_> {
    /// Flights stand at one level of two segments or more, well below the largest window, and more would fit the one of now; or
    /// they come and go below one that they reach again and again; or they are all less than two segments, and the first was as
    /// large as any. What was in the buffer already the program has not filled it with since.
    pub(in super::super) fn is_on_plateau(&self) -> bool {
        let direction = self.direction;
        let plateaus = [direction.top_bytes, direction.plateau_bytes, direction.other_plateau_bytes];
        let stands = plateaus.into_iter().flatten().any(|level| self.stands_at(level) || self.is_below(level))
            || self.is_below_top()
            || self.is_first_and_largest();
        stands && !self.window_is_near() && !(self.is_small() && self.more_was_buffered())
    }

    /// No flight was a tenth larger than the level, or none a segment larger, by which congestion windows grow.
    fn is_highest(&self, level: i64) -> bool {
        is(self.direction.max_in_flight_bytes, |most| {
            level as f64 >= share(PLATEAU_SHARE, most).min((most - self.smss_bytes + 1) as f64)
        })
    }

    /// A flight as large as the level, to within a twentieth; or nearly so, and no longer growing. Where flights went far beyond
    /// that level once, one that grows passes through it: it stands there only behind another.
    fn stands_at(&self, level: i64) -> bool {
        let Some(flight) = self.flight_before().map(|flight| flight as f64) else { return false };
        let before = self.previous_round_flight().map(|flight| flight as f64);
        let (reached, nearly) = (share(LEVEL_SHARE, level), share(PLATEAU_SHARE, level));
        let stands = (flight >= reached && (self.is_highest(level) || before.is_none_or(|before| before >= reached)))
            || (flight >= nearly && before.is_some_and(|before| before >= nearly));
        stands && PLATEAU_SHARE * flight <= level as f64
    }

    /// A smaller flight, no larger than one before, where none ever was a segment larger than the plateau. That is enough of a
    /// sender older than `HyStart` (RFC 9406) and remembered thresholds: it leaves slow start with a loss alone.
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

    /// The first of flights that are all less than two segments, and as large as any later, but for a FIN: the congestion window
    /// has grown since, and no more flew.
    fn is_first_and_largest(&self) -> bool {
        self.direction.near_sender
            && self.previous_round_flight().is_none()
            && are(self.flight_before(), self.direction.low_top_bytes, |flight, low_top| flight + 1 >= low_top)
    }

    /// The window had no room for what leaves at once: a full segment, or half of the largest window in BSD's stacks
    /// (`tcp_output`); in Linux also a third of the window for more than one. Away from the sender the room is not known so
    /// exactly: for two segments.
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

    /// All that the sender had been given had left, so that the congestion window held nothing, and the program gave more as
    /// soon as there was room again.
    pub(in super::super) fn has_stopped(&self) -> bool {
        self.direction.near_sender && self.buffer_was_emptied()
    }

    /// One in each round trip, behind a flight that may fill the buffer.
    fn is_one_by_one(&self) -> bool {
        !self.direction.surely_holds_small
            && are(self.wait.payload_before_bytes.get(), self.flight_before(), |payload, flight| payload == flight)
            && self.may_fill_buffer()
            && self.was_released_by_ack()
            && self.was_held_behind_small()
    }

    /// Small segments of one size, one in each round trip. Nagle's algorithm holds no full segment, and lets all go that the
    /// buffer has when the ACK comes: a program that goes on writing gives it full ones while there is room. So this one was not
    /// in the buffer when the last left, because it found no place there. The only other way to frames like these is a program
    /// that writes just so much in each round trip by itself.
    #[inline]
    pub(in super::super) fn was_taken_one_by_one(&self) -> bool {
        self.wait.held_before && self.is_one_by_one() && self.has_flight_of_its_size()
    }

    /// Small segments of several sizes, one in each round trip: the buffer, or what a program writes now and then, which Nagle's
    /// algorithm holds. The capture does not tell them apart.
    #[inline]
    pub(in super::super) fn was_taken_in_turn(&self) -> bool {
        self.wait.held_before && self.is_one_by_one() && !self.has_flight_of_its_size()
    }

    fn has_flight_of_its_size(&self) -> bool {
        let own = Some(self.record.payload_bytes);
        self.flight_before() == own && self.previous_round_flight() == own
    }

    /// The flight is no larger than one before, nor much smaller than the last, of a sender that leaves slow start with a loss
    /// alone, or has left it by one: whatever holds it, the congestion window does not, which has grown with each ACK since. Of
    /// senders of today that is so before any loss, where the sender stopped for long, and slow start cannot have ended, or
    /// congestion avoidance adds a segment in each round trip.
    pub(in super::super) fn is_no_larger(&self) -> bool {
        let stands =
            || if self.direction.old { self.stands_again() || self.began_at_once() } else { self.stands_today() };
        self.direction.near_sender && !self.window_is_near() && stands()
    }

    /// Below two segments nothing but ACKs may have let it go.
    fn stands_again(&self) -> bool {
        self.has_flown()
            && are(self.previous_round_flight(), self.flight_before(), |before, flight| {
                share(TOP_SHARE, before) <= flight as f64
            })
            && (!self.had_little_in_flight() || self.direction.totals.unclocked == 0)
    }

    /// More than any initial window had left before an ACK of data came: this sender knows no slow start (4.2BSD).
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
                flight > LEAST_PROBING_SEGMENTS * smss
                    && (flight < AVOIDANCE_SEGMENTS * smss || flight >= AVOIDANCE_PART * smss)
            })
            && PACED_PART * self.wait_ns >= self.rtt_ns()
    }
}
