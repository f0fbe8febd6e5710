//! Flights, one per round trip: whether they grow, and the level at which they stand.

use super::super::row::Nullable;

/// Flights that differ by less than this part are equal (rule book B, 8: the plateau).
const LEVEL_PART: i64 = 20;

/// The flights of one direction. A round ends when the last byte of its flight is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    ends: i64,
    flight: i64,
    last_flight: Nullable,
    /// A flight, and how many that are about equal came one after the other.
    like: i64,
    alike: u16,
    /// The same where they were most, before any loss.
    level: i64,
    level_held: u16,
}

impl Rounds {
    /// Something left, and all up to `snd_max` is sent; below `una` all is acknowledged.
    pub(super) fn departs(&mut self, una: i64, snd_max: i64, after_loss: bool) {
        if una >= self.ends {
            if self.ends > 0 {
                self.finish(after_loss);
            }
            self.ends = snd_max;
            self.flight = 0;
        }
        self.flight = self.flight.max(snd_max - una);
    }

    fn finish(&mut self, after_loss: bool) {
        self.last_flight = Some(self.flight).into();
        if (self.flight - self.like).abs() <= self.like / LEVEL_PART {
            self.alike = self.alike.saturating_add(1);
        } else {
            (self.like, self.alike) = (self.flight, 1);
        }
        if !after_loss && self.alike > self.level_held {
            (self.level, self.level_held) = (self.like, self.alike);
        }
    }

    /// The largest flight of the round before.
    pub(super) fn last_flight(&self) -> Nullable {
        self.last_flight
    }

    /// The level at which the flights stood longest, and for how many rounds.
    pub(super) fn level(&self) -> (Nullable, u16) {
        (Some(self.level).filter(|_| self.level_held > 0).into(), self.level_held)
    }
}

#[cfg(test)]
mod tests {
    use super::Rounds;

    /// Flights of so many bytes, each acknowledged before the next leaves.
    fn after(flights: &[i64], after_loss: bool) -> Rounds {
        let mut rounds = Rounds::default();
        let mut una = 1;
        for flight in flights {
            rounds.departs(una, una + flight, after_loss);
            una += flight;
        }
        rounds.departs(una, una + 1, after_loss);
        rounds
    }

    #[test]
    fn flights_that_double_stand_at_no_level() {
        assert_eq!(after(&[1000, 2000, 4000, 8000], false).level().1, 1);
    }

    #[test]
    fn flights_of_one_size_stand_at_it() {
        let rounds = after(&[1000, 2000, 4000, 4000, 4096, 4000], false);
        assert_eq!((rounds.level().0.get(), rounds.level().1), (Some(4000), 4));
        assert_eq!(rounds.last_flight().get(), Some(4000));
    }

    #[test]
    fn a_level_after_a_loss_is_the_congestion_windows() {
        assert_eq!(after(&[4000, 4000, 4000], true).level().1, 0);
    }
}
