//! Throughput deadlocks: consecutive rounds that only the delayed-ACK timer ends (`docs/how-it-decides.md`, 1.5).
//!
//! In a deadlock, two hosts wait for each other. The receiver delays its ACK until two full-sized segments or half of
//! the receive buffer have arrived, whichever is less (4.4BSD; older stacks wait for less). The sender delays queued
//! data until it has a full-sized segment or half of the largest receiver window, whichever is less, or until
//! everything is acknowledged. A capture does not show the receive buffer, so the largest receiver window is used as
//! its size.
//!
//! Three or more consecutive waits show a deadlock if three conditions hold. First, a late ACK of everything in flight
//! ends each wait. Second, each wait has the same number of bytes in flight. Third, between the ends of two waits, the
//! sender sends as many bytes as are in flight, and the peer sends no data. The number of bytes in flight can also
//! alternate between two values, because a remaining part of one write is added to the next round.

use super::super::evidence::DELAYED_ACK_NS;
use super::super::judged::{JudgedWait, Round};
use super::super::waits::record::WaitRecord;
use super::kinds::median;
use crate::nullable::Nullable;

/// Minimum number of consecutive rounds that show a deadlock.
const MIN_ROUNDS: usize = 3;
/// The frames of at most this many rounds are reported, beginning with the first round.
const EVIDENCE_ROUNDS: usize = 10;
/// 4.4BSD sends an ACK immediately when the advertised window can grow by 1/2 of the receive buffer (`tcp_output`).
const BUFFER_PART: i64 = 2;

/// A throughput deadlock of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// Bytes in flight in each round; the larger size if two sizes alternate.
    pub flight_bytes: i64,
    /// The smaller number of bytes in flight if two sizes alternate; else equal to `flight_bytes`.
    pub min_flight_bytes: i64,
    /// Bytes in the largest small segment that the ACK at the end of a round released; 0 if none was small.
    pub queued_bytes: i64,
    /// The largest sum of bytes in flight and queued bytes in one round. The send buffer is at least this large.
    pub min_buffer_bytes: i64,
    /// The SMSS.
    pub smss_bytes: i64,
    /// The largest receiver window.
    pub window_bytes: i64,
    /// Number of rounds.
    pub rounds: u64,
    /// Total time of the waits in these rounds.
    pub ns: i64,
    /// Median length of the waits in these rounds.
    pub median_ns: i64,
    /// Whether the ACKs of these rounds released only small segments, each after a small one.
    pub nagle: bool,
    /// Whether no flight was ever much larger. If so, a full send buffer also explains the rounds.
    pub may_fill_buffer: bool,
    /// Frames of the first rounds, in order: the segments before and after each wait, and the late ACK.
    pub frames: Vec<u64>,
}

/// A wait that is long enough for a late ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct LateWait {
    ts_ns: i64,
    seq: i64,
    payload_bytes: i64,
    since_last_data_ns: Nullable,
    smss_bytes: Nullable,
    flight_bytes: Nullable,
    wait_ns: i64,
    caused_ns: i64,
    frames: [Option<u64>; 3],
    round: Option<Round>,
}

impl LateWait {
    /// `None` if the wait is too short.
    #[inline]
    pub(super) fn of(record: &WaitRecord, judged: &JudgedWait) -> Option<Self> {
        let wait = &record.wait;
        let wait_ns = wait.wait_ns.get().filter(|wait_ns| *wait_ns >= DELAYED_ACK_NS)?;
        let frame = |frame: Nullable| frame.get().map(|frame| frame as u64);
        Some(Self {
            ts_ns: record.ts_ns,
            seq: record.seq,
            payload_bytes: record.payload_bytes,
            since_last_data_ns: record.since_last_data_ns,
            smss_bytes: wait.smss_bytes,
            flight_bytes: wait.flight_before_bytes,
            wait_ns,
            caused_ns: judged.caused_ns,
            frames: [frame(wait.frame_before), frame(wait.ack_frame), Some(record.frame)],
            round: judged.round,
        })
    }

    /// Returns the wait as a round if, with this window, too few bytes are in flight for an immediate ACK.
    fn fits(&self, window_bytes: i64) -> Option<LockedRound> {
        let round = self.round?;
        let smss_bytes = self.smss_bytes.get().filter(|bytes| *bytes > 0)?;
        let flight_bytes = self.flight_bytes.get()?;
        let acked_at_once_bytes = (2 * smss_bytes).min((window_bytes + BUFFER_PART - 1).div_euclid(BUFFER_PART));
        let is_held = (round.nagle || round.may_be_held) && self.payload_bytes < smss_bytes.min(window_bytes / 2);
        let queued_bytes = if is_held { self.payload_bytes } else { 0 };
        let fits = flight_bytes < acked_at_once_bytes;
        fits.then_some(LockedRound { wait: *self, round, window_bytes, smss_bytes, flight_bytes, queued_bytes })
    }
}

/// A wait that can be a round of a deadlock.
#[derive(Clone, Copy, Debug)]
struct LockedRound {
    wait: LateWait,
    round: Round,
    window_bytes: i64,
    smss_bytes: i64,
    flight_bytes: i64,
    queued_bytes: i64,
}

impl LockedRound {
    /// Whether this round continues where the round `before` ended. `earlier` is the round before `before`; `None` if
    /// that wait cannot be a round.
    fn follows(&self, before: &Self, earlier: Option<&Self>) -> bool {
        let in_turn = earlier.is_some_and(|earlier| earlier.flight_bytes == self.flight_bytes);
        let same = self.flight_bytes == before.flight_bytes || in_turn;
        let since_ns = self.wait.ts_ns.saturating_sub(before.wait.ts_ns);
        let silent = self.wait.since_last_data_ns.get().is_none_or(|ns| ns > since_ns);
        same && self.wait.seq.saturating_sub(before.wait.seq) == self.flight_bytes && silent
    }
}

/// A group of rounds that have the same sizes in flight.
#[derive(Clone, Debug)]
struct Group {
    lock: Lock,
    wait_ns: Vec<i64>,
}

/// Finds the deadlocks of one direction. The late waits of the direction are added in order of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Locks {
    /// The last two waits, newest first; `None` for a wait that cannot be a round.
    before: [Option<LockedRound>; 2],
    /// The current run of consecutive rounds.
    run: Vec<LockedRound>,
    groups: Vec<Group>,
}

impl Locks {
    /// Adds the next late wait. If the window is unknown, no deadlock is found.
    pub(super) fn add(&mut self, wait: &LateWait, max_window_bytes: Option<i64>) {
        let round = max_window_bytes.and_then(|bytes| wait.fits(bytes));
        let [before, earlier] = &self.before;
        let follows = round.zip(before.as_ref()).is_some_and(|(round, before)| round.follows(before, earlier.as_ref()));
        if !follows {
            self.end_run();
        }
        self.run.extend(round);
        self.before = [round, self.before.first().copied().flatten()];
    }

    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        let sizes = || run.iter().map(|round| round.flight_bytes);
        let (Some(least), Some(most)) = (sizes().min(), sizes().max()) else { return };
        if run.len() < MIN_ROUNDS {
            return;
        }
        let known = |group: &Group| (group.lock.min_flight_bytes, group.lock.flight_bytes) == (least, most);
        let place = self.groups.iter().position(known).unwrap_or_else(|| {
            let lock = Lock {
                flight_bytes: most,
                min_flight_bytes: least,
                nagle: true,
                may_fill_buffer: true,
                ..Lock::default()
            };
            self.groups.push(Group { lock, wait_ns: Vec::new() });
            self.groups.len() - 1
        });
        if let Some(group) = self.groups.get_mut(place) {
            for round in &run {
                group.add(round);
            }
        }
    }

    /// The deadlock that took the most time; the last one if several took equally long.
    pub(super) fn most_expensive(mut self) -> Option<Lock> {
        self.end_run();
        let Group { mut lock, mut wait_ns } = self.groups.into_iter().max_by_key(|group| group.lock.ns)?;
        lock.median_ns = median(&mut wait_ns)?.round_ties_even() as i64;
        lock.frames.sort_unstable();
        lock.frames.dedup();
        Some(lock)
    }
}

impl Group {
    fn add(&mut self, round: &LockedRound) {
        let lock = &mut self.lock;
        if self.wait_ns.len() < EVIDENCE_ROUNDS {
            lock.frames.extend(round.wait.frames.iter().flatten());
        }
        self.wait_ns.push(round.wait.wait_ns);
        lock.rounds += 1;
        lock.ns = lock.ns.saturating_add(round.wait.caused_ns);
        lock.queued_bytes = lock.queued_bytes.max(round.queued_bytes);
        lock.min_buffer_bytes = lock.min_buffer_bytes.max(round.flight_bytes.saturating_add(round.queued_bytes));
        lock.window_bytes = lock.window_bytes.max(round.window_bytes);
        lock.smss_bytes = lock.smss_bytes.max(round.smss_bytes);
        lock.nagle &= round.round.nagle;
        lock.may_fill_buffer &= round.round.may_fill_buffer;
    }
}

#[cfg(test)]
mod tests {
    use super::{Lock, Locks};
    use crate::connection::Confidence;
    use crate::ledger::summary::locks::LateWait;
    use crate::ledger::{Cause, JudgedWait, MAX_SPANS, Rivals, Round, WaitRecord};

    const MS: i64 = 1_000_000;
    const WINDOW: i64 = 16_384;
    const FULL: i64 = 9140;

    /// A wait of `held_ms` with `unacked` bytes in flight. The segment with sequence number `seq` ends it.
    fn wait(frame: u64, seq: i64, unacked: i64, held_ms: i64) -> (WaitRecord, JudgedWait) {
        let mut record = WaitRecord {
            frame,
            ts_ns: frame as i64 * 200 * MS,
            seq,
            payload_bytes: 1000,
            since_last_data_ns: None.into(),
            ..WaitRecord::default()
        };
        record.wait.wait_ns = Some(held_ms * MS).into();
        record.wait.frame_before = Some(frame as i64 - 2).into();
        record.wait.ack_frame = Some(frame as i64 - 1).into();
        record.wait.smss_bytes = Some(FULL).into();
        record.wait.flight_before_bytes = Some(unacked).into();
        let round = Some(Round { nagle: true, may_be_held: true, may_fill_buffer: false });
        let spans = [(Cause::NagleDelayedAck, 0); MAX_SPANS];
        let (cause, confidence) = (Some(Cause::NagleDelayedAck), Confidence::Proved);
        let rivals = Rivals::default();
        (record, JudgedWait { cause, confidence, rivals, spans, caused_ns: held_ms * MS, note: None, round })
    }

    fn found(waits: &[(WaitRecord, JudgedWait)]) -> Option<Lock> {
        let mut locks = Locks::default();
        for late in waits.iter().filter_map(|(record, judged)| LateWait::of(record, judged)) {
            locks.add(&late, Some(WINDOW));
        }
        locks.most_expensive()
    }

    /// Consecutive rounds with these sizes in flight, in bytes.
    fn rounds(sizes: &[i64]) -> Vec<(WaitRecord, JudgedWait)> {
        let mut seq = 1;
        (0_u64..)
            .zip(sizes)
            .map(|(at, size)| {
                seq += size;
                wait(10 + 3 * at, seq, *size, 190 + at as i64)
            })
            .collect()
    }

    #[test]
    fn three_rounds_in_a_row_are_a_lock_and_two_are_none() {
        assert_eq!(found(&rounds(&[4096, 4096])), None);
        let lock = found(&rounds(&[4096, 4096, 4096])).unwrap();
        let expected = Lock {
            flight_bytes: 4096,
            min_flight_bytes: 4096,
            queued_bytes: 1000,
            min_buffer_bytes: 5096,
            smss_bytes: FULL,
            window_bytes: WINDOW,
            rounds: 3,
            ns: (190 + 191 + 192) * MS,
            median_ns: 191 * MS,
            nagle: true,
            may_fill_buffer: false,
            frames: vec![8, 9, 10, 11, 12, 13, 14, 15, 16],
        };
        assert_eq!(lock, expected);
    }

    #[test]
    fn two_sizes_may_come_in_turn() {
        let lock = found(&rounds(&[4096, 2048, 4096, 2048])).unwrap();
        // The size of the second round has not occurred before, so the run begins with the second round.
        assert_eq!((lock.min_flight_bytes, lock.flight_bytes, lock.rounds), (2048, 4096, 3));
        assert_eq!(found(&rounds(&[4096, 2048, 1024, 512])), None);
    }

    #[test]
    fn what_lets_an_ack_go_is_no_round() {
        assert_eq!(found(&rounds(&[8192, 8192, 8192])), None);
    }

    #[test]
    fn a_long_wait_between_ends_the_run_and_a_short_one_does_not() {
        let mut waits = rounds(&[4096, 4096, 4096, 4096]);
        let mut between = wait(15, 1, 4096, 10);
        between.1.round = None;
        waits.insert(2, between);
        assert_eq!(found(&waits).map(|lock| lock.rounds), Some(4));
        waits[2].0.wait.wait_ns = Some(20 * MS).into();
        assert_eq!(found(&waits), None);
    }

    #[test]
    fn data_of_the_other_side_between_end_the_run() {
        let mut waits = rounds(&[4096; 4]);
        waits[2].0.since_last_data_ns = Some(MS).into();
        assert_eq!(found(&waits), None);
    }

    #[test]
    fn runs_of_the_same_size_are_added_up_and_the_longest_ones_count() {
        let mut waits = rounds(&[4096; 3]);
        let later = |size: i64, first: u64| {
            let mut later = rounds(&[size; 4]);
            for (record, _) in &mut later {
                record.frame += first;
                record.wait.frame_before = Some(record.frame as i64 - 2).into();
                record.wait.ack_frame = Some(record.frame as i64 - 1).into();
                record.seq += 1_000_000 * first as i64;
                record.ts_ns += first as i64 * 200 * MS;
            }
            later
        };
        waits.extend(later(2048, 100));
        waits.extend(later(4096, 200));
        let lock = found(&waits).unwrap();
        assert_eq!((lock.flight_bytes, lock.rounds, lock.frames.len()), (4096, 7, 21));
        assert_eq!(lock.median_ns, 191 * MS);
    }
}
