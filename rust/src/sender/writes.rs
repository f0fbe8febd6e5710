//! Compares two explanations of when a burst begins: the application writes by its own clock, or an ACK releases data
//! that the application has already written.
//!
//! Each explanation predicts when the next burst begins. If the application writes by its own clock, the burst begins
//! one interval after the last burst. If an ACK releases data, the burst begins as soon as the ACK arrives. An
//! explanation gets a vote if its error is much smaller than that of the other.

use serde::{Deserialize, Serialize};

use crate::connection::CAUSAL_NS;
use crate::nullable::Nullable;

/// A prediction is better if its error is at most half of the other prediction's error (a heuristic).
const BETTER_PART: i64 = 2;
/// A host reacts to an ACK within this time (a heuristic: five times what a host needs for one segment). If a burst
/// began that soon after an ACK, the clock gets no vote.
pub(crate) const REACTION_NS: i64 = 100_000;
/// If an ACK wakes an application, the application writes within this time (a heuristic: twice what the kernel needs).
pub(crate) const SLOW_REACTION_NS: i64 = 200_000;
/// A segment is early if it was sent in the first 1/[`EARLY_PART`] of the time from one ACK to the next. A segment is
/// late if it was sent after 1/[`LATE_PART`] of this time. By chance, there are half as many early segments as late
/// ones.
const EARLY_PART: i64 = 4;
const LATE_PART: i64 = 2;

/// The bursts of one direction that began after the end of a write, and the votes for each explanation.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Writes {
    /// When the current burst began.
    began_ns: Nullable,
    /// The interval before the current burst.
    interval_ns: Nullable,
    /// Time from the last ACK to the start of the current burst.
    reaction_ns: i64,
    votes: Votes,
    /// The sum of all intervals between writes that the clock predicted.
    clock_ns: i64,
    /// The last segment that an ACK may have released: when the ACK arrived, and the time from the ACK to the segment.
    after_ack: Option<(i64, i64)>,
    chance: Chance,
    reactions: Reactions,
}

/// Reaction times are counted by powers of two in nanoseconds; the first is 2^`MIN_POWER` (8 µs).
const MIN_POWER: u32 = 13;
const POWERS: usize = 18;
/// A cluster of reaction times ends at two consecutive powers of two whose counts are at most 1/[`VALLEY_PART`] of the
/// cluster's largest count (a heuristic).
const VALLEY_PART: u16 = 8;

/// The largest count of a cluster is at least this many segments (a heuristic).
const MIN_CLUSTER: u16 = 5;

/// Counts of segments by the time since the last ACK, in powers of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Reactions([u16; POWERS]);

impl Reactions {
    #[inline]
    fn add(&mut self, ns: i64) {
        let power = 64 - (ns.max(0) as u64 >> MIN_POWER).leading_zeros();
        if let Some(count) = self.0.get_mut(power as usize) {
            *count = count.saturating_add(1);
        }
    }

    /// The longest reaction time of the first cluster; `None` if the cluster does not end.
    fn longest_ns(self) -> Option<i64> {
        let (mut most, mut last) = (0, None);
        for (power, count) in self.0.into_iter().enumerate() {
            most = most.max(count);
            if most >= MIN_CLUSTER && count > most / VALLEY_PART {
                last = Some(power);
            }
            if last.is_some_and(|last| power >= last + 2) {
                return last.map(|last| 1 << (MIN_POWER + last as u32));
            }
        }
        None
    }
}
/// The number of bursts that began as the clock predicted, and the number that began as the ACK predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Votes {
    pub(super) clock: u32,
    pub(super) ack: u32,
}

/// How many segments were sent early and late between two ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Chance {
    pub(super) early: u32,
    pub(super) late: u32,
}

/// A segment of new data, with the facts that the two explanations use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Left {
    pub(super) ts_ns: i64,
    /// Time since the previous segment.
    pub(super) wait_ns: i64,
    /// Time since the last ACK, if an ACK came after the previous segment.
    pub(super) since_ack_ns: Option<i64>,
    /// Whether the previous segment was small and therefore ended a write.
    pub(super) small_before: bool,
    /// Whether data of the peer arrived since the previous segment.
    pub(super) answers: bool,
}

impl Writes {
    #[inline]
    pub(super) fn departs(&mut self, left: Left) {
        if let Some(ago_ns) = left.since_ack_ns {
            self.reactions.add(ago_ns);
            self.after_ack = Some((left.ts_ns.saturating_sub(ago_ns), ago_ns));
        }
        if left.wait_ns < CAUSAL_NS {
            return;
        }
        let interval_ns = self.began_ns.get().map(|began_ns| left.ts_ns.saturating_sub(began_ns));
        if let Some(interval_ns) = interval_ns.filter(|_| left.small_before && !left.answers) {
            if let Some(before_ns) = self.interval_ns.get() {
                self.vote(interval_ns, before_ns, left);
            }
            self.interval_ns = Some(interval_ns).into();
        } else {
            self.interval_ns = Nullable::NULL;
        }
        self.began_ns = Some(left.ts_ns).into();
        self.reaction_ns = left.since_ack_ns.unwrap_or(0);
    }

    fn vote(&mut self, interval_ns: i64, before_ns: i64, left: Left) {
        let clock_error_ns = interval_ns.saturating_sub(before_ns).saturating_abs();
        let late_ns = left.since_ack_ns.unwrap_or(left.wait_ns);
        // Each explanation has one unknown constant: the interval of the clock, and the reaction time to an ACK, which
        // must be short. If the reaction time were assumed to be 0, delayed ACKs, which a timer sends at even
        // intervals, would make the application seem to write by a clock.
        let is_reaction = late_ns <= SLOW_REACTION_NS;
        let ack_error_ns =
            if is_reaction { late_ns.saturating_sub(self.reaction_ns).saturating_abs() } else { late_ns };
        if late_ns > REACTION_NS && clock_error_ns.saturating_mul(BETTER_PART) <= ack_error_ns {
            self.votes.clock = self.votes.clock.saturating_add(1);
            self.clock_ns = self.clock_ns.saturating_add(interval_ns);
        } else if ack_error_ns.saturating_mul(BETTER_PART) <= clock_error_ns {
            self.votes.ack = self.votes.ack.saturating_add(1);
        }
    }

    #[inline]
    pub(super) fn acked(&mut self, now_ns: i64) {
        let Some((ack_ns, late_ns)) = self.after_ack.take() else { return };
        let gap_ns = now_ns.saturating_sub(ack_ns);
        if gap_ns < 2 * REACTION_NS {
            return;
        }
        if late_ns.saturating_mul(EARLY_PART) <= gap_ns {
            self.chance.early = self.chance.early.saturating_add(1);
        } else if late_ns.saturating_mul(LATE_PART) > gap_ns {
            self.chance.late = self.chance.late.saturating_add(1);
        }
    }

    /// The mean interval between writes that the clock predicted.
    pub(super) fn interval_ns(self) -> Nullable {
        self.clock_ns.checked_div(i64::from(self.votes.clock)).into()
    }

    pub(super) fn votes(self) -> Votes {
        self.votes
    }

    /// The longest time in which this sender reacts to an ACK. Null unless the reactions are clearly faster than the
    /// sender's other segments.
    pub(super) fn reaction_ns(self) -> Nullable {
        self.reactions.longest_ns().into()
    }

    pub(super) fn chance(self) -> Chance {
        self.chance
    }
}

#[cfg(test)]
mod tests {
    use super::{Chance, Left, Votes, Writes};

    const MS: i64 = 1_000_000;
    const US: i64 = 1_000;

    /// Writes that begin at the given times, each `since_ack_ns` after an ACK. The sender is silent between the writes.
    fn after(writes: &[(i64, i64)]) -> Writes {
        let (mut rivals, mut before_ns) = (Writes::default(), 0);
        for (ts_ns, since_ack_ns) in writes {
            rivals.acked(ts_ns - since_ack_ns);
            rivals.departs(Left {
                ts_ns: *ts_ns,
                wait_ns: ts_ns - before_ns,
                since_ack_ns: Some(*since_ack_ns),
                small_before: true,
                answers: false,
            });
            before_ns = *ts_ns;
        }
        rivals
    }

    #[test]
    fn an_even_interval_predicts_what_acks_at_any_time_do_not() {
        // The application writes every 5 ms, give or take 20 µs. The last ACK came 0.2 to 0.8 ms before each write.
        let writes: Vec<_> =
            (1..=10).map(|n| (n * 5 * MS + 20 * US * (n % 2), 200 * US + 150 * US * (n % 5))).collect();
        let rivals = after(&writes);
        // The first interval is known with the second write, and the first prediction is possible for the third write.
        assert_eq!(rivals.votes(), Votes { clock: 8, ack: 0 });
        assert!((4_960 * US..=5_040 * US).contains(&rivals.interval_ns().get().unwrap()));
    }

    #[test]
    fn acks_predict_what_comes_at_uneven_intervals_as_soon_as_they_do() {
        let times = [10, 31, 49, 72, 90, 112, 129, 151];
        let writes: Vec<_> = times.into_iter().map(|ms| (ms * MS, 30 * US)).collect();
        assert_eq!(after(&writes).votes(), Votes { clock: 0, ack: 6 });
        // Even intervals do not count as a clock if each write follows an ACK within a host's reaction time, or if the
        // ACKs predict the writes equally well.
        let kernel: Vec<_> = (1..=8).map(|n| (n * 20 * MS + 20 * US * (n % 2), 30 * US + 5 * US * (n % 2))).collect();
        assert_eq!(after(&kernel).votes(), Votes { clock: 0, ack: 6 });
        let woken: Vec<_> = (1..=8).map(|n| (n * 20 * MS + 20 * US * (n % 2), 150 * US + 30 * US * (n % 2))).collect();
        assert_eq!(after(&woken).votes(), Votes { clock: 0, ack: 0 });
        // The receiver's timer sends an ACK every 40 ms, give or take 20 µs. The sender continues 90 to 120 µs after
        // each ACK.
        let delayed: Vec<_> = (1..=9).map(|n| (n * 40 * MS + 20 * US * (n % 2), 90 * US + 15 * US * (n % 3))).collect();
        assert_eq!(after(&delayed).votes(), Votes { clock: 0, ack: 4 });
    }

    #[test]
    fn a_prediction_that_is_not_twice_as_good_has_no_vote() {
        // Intervals vary by 1 ms, and ACKs come 1.5 ms before each write.
        let writes: Vec<_> = (1..=8).map(|n| (n * 20 * MS + MS * (n % 2) / 2, 3 * MS / 2)).collect();
        assert_eq!(after(&writes).votes(), Votes { clock: 0, ack: 0 });
    }

    #[test]
    fn between_two_acks_a_reaction_is_early_and_others_are_late_by_chance() {
        // ACKs arrive every 10 ms; segments are sent 3, 7 and 1 ms after them in turn. No ACK follows the last segment.
        let behind_ns = |n: i64| [MS, 3 * MS, 7 * MS][n as usize % 3];
        let writes: Vec<_> = (1..=9).map(|n| (n * 10 * MS + behind_ns(n), behind_ns(n))).collect();
        assert_eq!(after(&writes).chance(), Chance { early: 2, late: 3 });
        // ACKs that arrive together in one batch show nothing.
        let batch: Vec<_> = (1..=9).map(|n| (n * 100 * US, 60 * US)).collect();
        assert_eq!(after(&batch).chance(), Chance { early: 0, late: 0 });
    }

    #[test]
    fn reactions_that_differ_clearly_from_other_departures_have_a_longest_one() {
        let of = |reactions: &[i64]| {
            let writes: Vec<_> = (1..).zip(reactions).map(|(n, us)| (n * 100 * MS, us * US)).collect();
            after(&writes).reaction_ns().get()
        };
        let fast = [20, 25, 28, 30, 31, 22];
        // The reactions of 20 to 31 µs are below 2^15 ns, and all other segments follow their ACK after at least 5 ms.
        assert_eq!(of(&[&fast[..], &[5_000, 9_000]].concat()), Some(1 << 15));
        // Every power of two has equally many reactions, so the counts do not fall before the longest reaction.
        assert_eq!(of(&[20, 40, 80, 160, 320, 640, 1_280, 2_560, 5_120, 10_240].repeat(6)), Some(1 << 24));
        assert_eq!(of(&fast[..4]), None, "too few");
    }
}
