//! The longest intervals of a direction and of each of its causes, with the numbers that prove their causes.

use std::cmp::Reverse;

use super::super::cause::CAUSES;
use super::super::intervals::Interval;
use super::super::waits::record::WaitRecord;
use crate::connection::Kind;
use crate::nullable::Nullable;

/// This many of the longest intervals are kept for each direction.
pub const LONGEST: usize = if cfg!(all(feature = "small-limits", not(test))) { 20 } else { 300 };
/// An interval is kept if it takes at least 1/1000 of the life of the direction. Stalls and the longest intervals of
/// each cause are kept too.
pub const LONG_PART: i64 = 1000;
/// This many of the longest intervals are kept for each cause in a direction.
pub const LONGEST_OF_CAUSE: usize = 10;

/// An interval that is kept.
#[derive(Clone, Copy, Debug)]
pub struct KeptWait {
    /// The interval.
    pub interval: Interval,
    /// The evidence for the cause. `None` before the first segment of a direction and after its last segment.
    pub proof: Option<Proof>,
    /// How many intervals of the direction are longer than this one; `None` if [`LONGEST`] or more are longer.
    pub place: Option<u16>,
    /// How many intervals of the direction with this cause are longer than this one; `None` if [`LONGEST_OF_CAUSE`] or
    /// more are longer.
    pub place_in_cause: Option<u16>,
    /// Whether the interval is long enough to be a stall.
    pub is_stall: bool,
}

/// The numbers that prove the cause of a wait, named like the columns of the stalls table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Proof {
    pub kind: Kind,
    pub ack_frame: Nullable,
    pub ack_lag_ns: Nullable,
    pub flight_before_bytes: Nullable,
    pub flight_after_bytes: Nullable,
    pub usable_window_before_bytes: Nullable,
    pub smss_bytes: Nullable,
    pub payload_bytes: i64,
    pub wait_ns: Nullable,
    pub since_all_acked_ns: Nullable,
    pub since_ack_ns: Nullable,
    pub peer_spoke: bool,
}

impl Proof {
    pub(super) fn of(record: &WaitRecord) -> Self {
        let wait = &record.wait;
        Self {
            kind: record.kind,
            ack_frame: wait.ack_frame,
            ack_lag_ns: wait.ack_lag_ns,
            flight_before_bytes: wait.flight_before_bytes,
            flight_after_bytes: wait.flight_after_bytes,
            usable_window_before_bytes: wait.usable_window_before_bytes,
            smss_bytes: wait.smss_bytes,
            payload_bytes: record.payload_bytes,
            wait_ns: wait.wait_ns,
            since_all_acked_ns: wait.since_all_acked_ns,
            since_ack_ns: wait.since_ack_ns,
            peer_spoke: wait.peer_last_ns.is_some(),
        }
    }
}

type Candidate = (Interval, Option<Proof>);

/// The order of intervals: the longest first, and among equally long ones the earliest first. If the clock ran
/// backwards, two intervals can begin at the same time; in this case, the frame number decides.
type Order = (Reverse<i64>, i64, Option<u64>);

fn order(interval: &Interval) -> Order {
    (Reverse(interval.ns), interval.start_ns, interval.frame_after)
}

/// The first `MOST` of all candidates, sorted by [`Order`].
#[derive(Clone, Debug)]
struct First<const MOST: usize> {
    candidates: Vec<Candidate>,
    /// A candidate is kept only if it sorts before this bound.
    bound: Order,
}

impl<const MOST: usize> Default for First<MOST> {
    fn default() -> Self {
        Self { candidates: Vec::new(), bound: (Reverse(i64::MIN), i64::MAX, None) }
    }
}

impl<const MOST: usize> First<MOST> {
    #[inline]
    fn add(&mut self, interval: &Interval, proof: impl FnOnce() -> Option<Proof>) {
        if order(interval) < self.bound {
            if self.candidates.capacity() == 0 {
                self.candidates.reserve_exact(2 * MOST);
            }
            self.candidates.push((*interval, proof()));
            if self.candidates.len() >= 2 * MOST {
                self.shorten();
            }
        }
    }

    fn append(&mut self, others: &mut Self) {
        self.bound = self.bound.min(others.bound);
        self.candidates.append(&mut others.candidates);
        if self.candidates.len() >= 2 * MOST {
            self.shorten();
        }
    }

    /// Creates an empty set with the bound of this set, for later candidates.
    fn beyond(&self) -> Self {
        Self { candidates: Vec::new(), bound: self.bound }
    }

    fn shorten(&mut self) {
        let (_, last, _) = self.candidates.select_nth_unstable_by_key(MOST - 1, |(interval, _)| order(interval));
        self.bound = order(&last.0);
        self.candidates.truncate(MOST);
    }

    fn sorted(mut self) -> Vec<Candidate> {
        self.candidates.sort_unstable_by_key(|(interval, _)| order(interval));
        self.candidates.truncate(MOST);
        self.candidates
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Longest {
    of_all: First<LONGEST>,
    by_cause: [First<LONGEST_OF_CAUSE>; CAUSES],
}

impl Longest {
    #[inline]
    pub(super) fn add(&mut self, interval: &Interval, record: Option<&WaitRecord>) {
        let proof = || record.map(Proof::of);
        self.of_all.add(interval, proof);
        if let Some(of_cause) = self.by_cause.get_mut(interval.cause as usize) {
            of_cause.add(interval, proof);
        }
    }

    /// Creates an empty set for later waits. The new set skips intervals that are shorter than all intervals kept so
    /// far.
    pub(super) fn beyond(&self) -> Self {
        Self { of_all: self.of_all.beyond(), by_cause: self.by_cause.each_ref().map(First::beyond) }
    }

    pub(super) fn append(&mut self, later: &mut Self) {
        self.of_all.append(&mut later.of_all);
        for (own, other) in self.by_cause.iter_mut().zip(&mut later.by_cause) {
            own.append(other);
        }
    }

    /// The intervals to keep, in order of time. The longest ones of each cause are always kept. The longest ones of the
    /// direction are kept if they are stalls, or if they take at least 1/[`LONG_PART`] of its life `life_ns`.
    pub(super) fn kept(self, life_ns: i64, stall_ns: i64) -> Vec<KeptWait> {
        let waits = |candidates: Vec<Candidate>| {
            candidates.into_iter().zip(0_u16..).map(move |((interval, proof), place)| {
                let is_stall = interval.ns >= stall_ns;
                (place, KeptWait { interval, proof, place: None, place_in_cause: None, is_stall })
            })
        };
        let mut kept: Vec<KeptWait> =
            waits(self.of_all.sorted()).map(|(place, wait)| KeptWait { place: Some(place), ..wait }).collect();
        let of_causes = self.by_cause.into_iter().flat_map(|of_cause| waits(of_cause.sorted()));
        for (place, wait) in of_causes {
            let place_in_cause = Some(place);
            match kept.iter_mut().find(|kept| kept.place_in_cause.is_none() && kept.interval == wait.interval) {
                Some(kept) => kept.place_in_cause = place_in_cause,
                None => kept.push(KeptWait { place_in_cause, ..wait }),
            }
        }
        kept.retain(|wait| {
            let is_long = wait.interval.ns.saturating_mul(LONG_PART) >= life_ns;
            wait.place_in_cause.is_some() || (wait.place.is_some() && (is_long || wait.is_stall))
        });
        kept.sort_by_key(|wait| (wait.interval.start_ns, wait.interval.ns));
        kept
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{KeptWait, LONG_PART, LONGEST, LONGEST_OF_CAUSE, Longest};
    use crate::connection::Confidence;
    use crate::ledger::intervals::Interval;
    use crate::ledger::{Cause, Rivals};

    fn intervals(lengths: &[(i64, bool)]) -> Vec<Interval> {
        let mut start_ns = 0;
        let mut made = Vec::new();
        for (ns, is_peer) in lengths {
            let cause = if *is_peer { Cause::Peer } else { Cause::Application };
            let (frame_before, frame_after) = (None, Some(made.len() as u64));
            let (confidence, rivals) = (Confidence::Proved, Rivals::default());
            made.push(Interval { start_ns, ns: *ns, cause, frame_before, frame_after, confidence, rivals });
            start_ns += ns;
        }
        made
    }

    /// The frames and places of the intervals to keep, found by sorting all intervals.
    fn naive(all: &[Interval], life_ns: i64, stall_ns: i64) -> Vec<(Option<u64>, Option<u16>, Option<u16>)> {
        let mut sorted = all.to_vec();
        sorted.sort_by_key(|interval| (-interval.ns, interval.start_ns));
        let mut kept = Vec::new();
        for (place, interval) in sorted.iter().enumerate() {
            let in_cause = sorted[..place].iter().filter(|other| other.cause == interval.cause).count();
            let long = interval.ns * LONG_PART >= life_ns || interval.ns >= stall_ns;
            if (place < LONGEST && long) || in_cause < LONGEST_OF_CAUSE {
                let known = |place: usize, most: usize| (place < most).then_some(place as u16);
                kept.push((interval, known(place, LONGEST), known(in_cause, LONGEST_OF_CAUSE)));
            }
        }
        kept.sort_by_key(|(interval, ..)| interval.start_ns);
        kept.into_iter().map(|(interval, place, in_cause)| (interval.frame_after, place, in_cause)).collect()
    }

    fn described(kept: &[KeptWait]) -> Vec<(Option<u64>, Option<u16>, Option<u16>)> {
        kept.iter().map(|wait| (wait.interval.frame_after, wait.place, wait.place_in_cause)).collect()
    }

    proptest! {
        #[test]
        fn those_are_kept_that_sorting_would_give(
            lengths in prop::collection::vec((1_i64..40, prop::bool::weighted(0.01)), 0..1500),
            part in 1_usize..400,
            knows_earlier: bool,
            life_ns in prop_oneof![Just(0_i64), 20_000_i64..40_000],
            stall_ns in 1_i64..60,
        ) {
            let all = intervals(&lengths);
            let mut longest = Longest::default();
            for some in all.chunks(part) {
                let mut later = if knows_earlier { longest.beyond() } else { Longest::default() };
                for interval in some {
                    later.add(interval, None);
                }
                longest.append(&mut later);
            }
            prop_assert_eq!(described(&longest.kept(life_ns, stall_ns)), naive(&all, life_ns, stall_ns));
        }
    }
}
