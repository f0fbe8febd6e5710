//! Flights, one per round trip: whether they grow, and which sizes recur.

use serde::{Deserialize, Serialize};

use crate::nullable::Nullable;

/// Two flights count as equal if they differ by less than 1/20 (a heuristic).
const LEVEL_PART: i64 = 20;
/// If the peer's application sends data, only flights of at least this many segments show a level (a heuristic).
/// Smaller flights are also equal if an application sends requests and waits for the responses.
const LEVEL_SEGMENTS: i64 = 2;

/// After this many rounds without growth by one segment, the congestion window does not limit the flights. A full
/// congestion window grows by at least half a segment per round, even with delayed ACKs (RFC 5681, 3.1).
const STEADY_ROUNDS: u16 = 5;

/// The flights of one direction. A round ends when the last byte of its flight is acknowledged.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Rounds {
    ends: i64,
    flight: i64,
    last_flight: Nullable,
    /// The largest flight of all earlier rounds since the sender last restarted or reduced its congestion
    /// window.
    highest: i64,
    /// The last flight that was larger than all earlier flights by at least a segment.
    grown: i64,
    /// Number of rounds since `grown`.
    steady: u16,
    /// Whether the sender reduced its congestion window in this round. If so, the flight includes lost segments.
    cut: bool,
    /// The current level: a flight size, and how many consecutive flights have about that size. `before` is the
    /// previous level. Flights may alternate between two levels, because an application that writes large pieces does
    /// not fill its buffer to the same point every time.
    now: Level,
    before: Level,
    /// The two levels with the most consecutive rounds before any loss, the level with more rounds first.
    longest: [Level; 2],
    /// The largest flight before any loss, and how many flights were about as large, consecutive or not.
    top: Level,
    peer_sent_data: bool,
}

/// A flight size, and how many flights are about that large.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Level {
    flight: i64,
    rounds: u16,
}

impl Level {
    fn has(self, flight: i64) -> bool {
        (flight - self.flight).abs() <= self.flight / LEVEL_PART
    }
}

impl Rounds {
    /// Updates the rounds after a segment was sent. Everything below `snd_max` was sent, and everything below `una` is
    /// acknowledged.
    pub(super) fn departs(&mut self, una: i64, snd_max: i64, smss_bytes: i64, after_loss: bool) {
        if una >= self.ends {
            if self.ends > 0 {
                self.finish(smss_bytes, after_loss);
            }
            self.ends = snd_max;
            self.flight = 0;
            self.cut = false;
        }
        self.flight = self.flight.max(snd_max - una);
    }

    fn finish(&mut self, smss_bytes: i64, after_loss: bool) {
        self.last_flight = Some(self.flight).into();
        if !self.cut {
            self.record_highest(smss_bytes);
        }
        if !self.now.has(self.flight) {
            let back = self.before.has(self.flight);
            let other = if back { self.before } else { Level { flight: self.flight, rounds: 0 } };
            self.before = std::mem::replace(&mut self.now, other);
        }
        self.now.rounds = self.now.rounds.saturating_add(1);
        if !after_loss && (!self.peer_sent_data || self.flight >= LEVEL_SEGMENTS * smss_bytes) {
            self.record_level();
            if self.top.has(self.flight) {
                self.top.rounds = self.top.rounds.saturating_add(1);
            } else if self.flight > self.top.flight {
                self.top = Level { flight: self.flight, rounds: 1 };
            }
        }
    }

    /// Records the largest flight, and the number of rounds since the flights last grew by a segment.
    fn record_highest(&mut self, smss_bytes: i64) {
        self.highest = self.highest.max(self.flight);
        if self.flight >= self.grown + smss_bytes {
            (self.grown, self.steady) = (self.flight, 0);
        } else {
            self.steady = self.steady.saturating_add(1);
        }
    }

    /// Stores the current level if it is one of the two with the most rounds.
    fn record_level(&mut self) {
        let [first, second] = &mut self.longest;
        if first.has(self.now.flight) {
            first.rounds = first.rounds.max(self.now.rounds);
            return;
        }
        if second.has(self.now.flight) {
            second.rounds = second.rounds.max(self.now.rounds);
        } else if self.now.rounds > second.rounds {
            *second = self.now;
        }
        if second.rounds > first.rounds {
            std::mem::swap(first, second);
        }
    }

    pub(super) fn peer_sent_data(&mut self) {
        self.peer_sent_data = true;
    }

    /// Discards earlier flights, because they no longer show how much can be in flight.
    pub(super) fn restart(&mut self) {
        (self.highest, self.grown, self.steady) = (0, 0, 0);
    }

    pub(super) fn cut(&mut self) {
        self.restart();
        self.cut = true;
    }

    pub(super) fn highest(&self) -> i64 {
        self.highest
    }

    /// Whether at least `flight` bytes were in flight in any round since the sender last restarted or reduced its
    /// congestion window. After a loss, such a round counts only if the flights have stopped growing.
    pub(super) fn had_in_flight(&self, flight: i64, after_loss: bool) -> bool {
        0 < flight && flight <= self.highest && (!after_loss || self.steady >= STEADY_ROUNDS)
    }

    pub(super) fn last_flight(&self) -> Nullable {
        self.last_flight
    }

    /// The largest flight, and how many flights were about as large.
    pub(super) fn top(&self) -> (Nullable, u16) {
        (Some(self.top.flight).filter(|_| self.top.rounds > 0).into(), self.top.rounds)
    }

    /// The two flight sizes with the most consecutive rounds, and the number of rounds of each.
    pub(super) fn levels(&self) -> [(Nullable, u16); 2] {
        self.longest.map(|level| (Some(level.flight).filter(|_| level.rounds > 0).into(), level.rounds))
    }
}

#[cfg(test)]
mod tests {
    use super::Rounds;

    /// Rounds with flights of these sizes in bytes. Each flight is acknowledged before the next is sent.
    fn after(flights: &[i64], after_loss: bool) -> Rounds {
        between(Rounds { peer_sent_data: true, ..Rounds::default() }, flights, after_loss)
    }

    fn between(mut rounds: Rounds, flights: &[i64], after_loss: bool) -> Rounds {
        let mut una = 1;
        for flight in flights {
            rounds.departs(una, una + flight, 500, after_loss);
            una += flight;
        }
        rounds.departs(una, una + 1, 500, after_loss);
        rounds
    }

    #[test]
    fn flights_that_double_stand_at_no_level() {
        assert_eq!(after(&[1000, 2000, 4000, 8000], false).levels()[0].1, 1);
    }

    #[test]
    fn flights_of_one_size_stand_at_it() {
        let rounds = after(&[1000, 2000, 4000, 4000, 4096, 4000], false);
        assert_eq!((rounds.levels()[0].0.get(), rounds.levels()[0].1), (Some(4000), 4));
        assert_eq!(rounds.last_flight().get(), Some(4000));
    }

    #[test]
    fn as_much_as_ever_flew_had_in_flight_until_the_sender_begins_anew() {
        let mut rounds = after(&[4000, 1000, 2000], false);
        assert_eq!([3999, 4000, 4001].map(|flight| rounds.had_in_flight(flight, false)), [true, true, false]);
        rounds.restart();
        assert_eq!((rounds.had_in_flight(1, false), rounds.last_flight().get()), (false, Some(2000)));
    }

    #[test]
    fn after_a_loss_flights_have_flown_that_have_not_grown_by_a_segment_in_five_rounds() {
        assert!(
            !after(&[4000, 4000, 4100, 4000, 4200], true).had_in_flight(4000, true),
            "four rounds behind the first"
        );
        assert!(after(&[4000, 4000, 4100, 4000, 4200, 4000], true).had_in_flight(4200, true));
        let growing = [4000, 4250, 4500, 4750, 5000, 5250, 5500, 5750, 6000];
        assert!((1..=growing.len()).all(|rounds| !after(&growing[..rounds], true).had_in_flight(4000, true)));
    }

    #[test]
    fn the_flight_of_a_round_in_which_the_sender_cuts_its_window_counts_what_was_lost() {
        let mut rounds = after(&[4000], true);
        rounds.cut();
        let mut una = 4001;
        for flight in [2000; 8] {
            rounds.departs(una, una + flight, 500, true);
            una += flight;
        }
        assert!(rounds.had_in_flight(2000, true) && !rounds.had_in_flight(2001, true));
    }

    #[test]
    fn a_level_after_a_loss_is_the_congestion_windows() {
        assert_eq!(after(&[4000, 4000, 4000], true).levels()[0].1, 0);
    }

    #[test]
    fn a_transfer_may_stand_at_two_levels() {
        let rounds = after(&[2000, 4000, 4000, 9000, 9000, 9100, 9000, 4000], false);
        assert_eq!(rounds.levels().map(|(flight, rounds)| (flight.get(), rounds)), [(Some(9000), 4), (Some(4000), 3)]);
    }

    #[test]
    fn flights_that_take_turns_stand_at_two_levels() {
        let rounds = after(&[4000, 5000, 4000, 5000, 4000, 5000], false);
        assert_eq!(rounds.levels().map(|(flight, rounds)| (flight.get(), rounds)), [(Some(4000), 3), (Some(5000), 3)]);
    }

    #[test]
    fn flights_that_come_and_go_below_one_level_have_a_top() {
        let rounds = after(&[1000, 4000, 2500, 4100, 3000, 3900, 2000, 4000], false);
        assert_eq!((rounds.top().0.get(), rounds.top().1), (Some(4000), 4));
    }

    #[test]
    fn flights_below_two_segments_stand_at_a_level_only_where_nobody_answers() {
        assert_eq!(after(&[900, 900, 900, 900], false).levels()[0].1, 0);
        assert_eq!(between(Rounds::default(), &[900, 900, 900, 900], false).levels()[0].1, 4);
    }
}
