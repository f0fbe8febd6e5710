//! Judges ended connections on several threads, sums their waits, and keeps the details of the connections that lose
//! the most time.
//!
//! `meeting` finds connections that share a path. `judging` judges the waits of one connection in shares, which
//! `threads` distributes among threads. [`rows`] contains the results that are reported: sums, [`kinds`] of causes, the
//! [`longest`] waits with the [`timers`] that ended them, and [`locks`] (throughput deadlocks). [`costs`] selects the
//! connections that lose enough time for these details.

pub mod costs;
mod judging;
pub mod kinds;
pub mod locks;
pub mod longest;
mod meeting;
pub mod rows;
mod threads;
pub mod timers;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::num::NonZeroUsize;
use std::thread;

use super::direction::DirectionFacts;
use super::waits::log::EndedWaits;
use super::waits::record::WaitRecord;
use crate::flows::ConnectionRow;
use costs::{Costs, Failed, Worth};
use judging::{Judging, Share, Wanted};
pub use meeting::MAX_CONNECTIONS;
use meeting::{Ended, Meeting};
use rows::{AccountRow, DirectionDetails, JudgedRows};
use threads::by_threads;

/// If every interval becomes a row, each thread judges about this many waits before rows are returned.
const EACH_WITH_INTERVALS: u64 = if cfg!(test) {
    250
} else if cfg!(feature = "small-limits") {
    10
} else {
    1 << 11
};
/// If few intervals become rows, each thread judges about this many waits before rows are returned.
const EACH: u64 = 4 * EACH_WITH_INTERVALS;
/// Maximum number of connections that are judged together.
const TOGETHER: usize = 1024;

/// Returns the wait that ended with frame number `frame`, and the final facts of its direction. `connections` are all
/// connections of the capture. `None` if no wait ends with this frame.
///
/// # Errors
/// The spool cannot be read.
pub fn wait_before(
    frame: u64,
    connections: impl IntoIterator<Item = (ConnectionRow, EndedWaits)>,
) -> io::Result<Option<(WaitRecord, DirectionFacts)>> {
    let mut meeting = Meeting::of(0, usize::MAX);
    meeting.add(connections.into_iter().map(Ended::alone))?;
    let find = |connection| Judging::of(connection, Wanted::default())?.wait_before(frame);
    meeting.into_connections(1)?.into_iter().find_map(|connection| find(connection).transpose()).transpose()
}

/// Collects the results of a capture's connections, which are added one after the other.
#[derive(Debug, Default)]
pub struct Summaries {
    wants_intervals: bool,
    worths: Option<Vec<Worth>>,
    threads: usize,
    /// Connections whose judging has not started yet.
    coming: VecDeque<Ended>,
    /// All connections so far, until it is known which of them have the same hosts and overlap in time; `None` if each
    /// is judged alone.
    meeting: Option<Meeting>,
    /// Connections whose judging has started but is not complete.
    begun: Vec<Judging>,
    costs: Costs,
    failed: Failed,
    details: BTreeMap<u32, [Option<DirectionDetails>; 2]>,
}

impl Summaries {
    /// If `wants_intervals` is true, every interval becomes a row. If `worths` is set, it contains the thresholds of
    /// findings. In this case, accounts and notes are made as well, and the details of the largest costs are kept, for
    /// no more than `most` costs.
    #[must_use]
    pub fn new(wants_intervals: bool, worths: Option<Vec<Worth>>, most: usize) -> Self {
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self { wants_intervals, worths, threads, costs: Costs::new(most), ..Self::default() }
    }

    /// Sets the number of threads.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Judges each connection with the help of other connections between the same hosts, unless the capture has more
    /// than [`MAX_CONNECTIONS`] connections. The capture has at least `in_capture` connections. The waits of all
    /// connections are judged only after [`Self::complete`], and use at most `max_memory_bytes` of memory until then.
    #[must_use]
    pub fn with_neighbours(self, in_capture: usize, max_memory_bytes: usize) -> Self {
        let meeting = Meeting::of(in_capture, max_memory_bytes);
        Self { meeting: Some(meeting).filter(|meeting| !meeting.is_too_large()), ..self }
    }

    /// Adds connections that have ended, each with its waits.
    ///
    /// # Errors
    /// Waits cannot be written to the spool.
    pub fn add(&mut self, connections: impl IntoIterator<Item = (ConnectionRow, EndedWaits)>) -> io::Result<()> {
        let connections = connections.into_iter().map(Ended::alone);
        match &mut self.meeting {
            Some(meeting) => meeting.add(connections)?,
            None => self.coming.extend(connections),
        }
        if self.meeting.as_ref().is_some_and(Meeting::is_too_large) {
            self.complete()?;
        }
        Ok(())
    }

    /// Marks the list of connections as complete. Returns whether connections are left to be judged.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub fn complete(&mut self) -> io::Result<bool> {
        let Some(meeting) = self.meeting.take() else { return Ok(false) };
        self.coming.extend(meeting.into_connections(self.threads)?);
        Ok(!self.coming.is_empty())
    }

    /// Judges the next waits and adds their rows to `rows`, in the order of the connections. Returns false if no waits
    /// are left.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub fn go_on(&mut self, rows: &mut JudgedRows) -> io::Result<bool> {
        let each = if self.wants_intervals { EACH_WITH_INTERVALS } else { EACH };
        let max_records = each.saturating_mul(self.threads.max(1) as u64);
        self.begin(max_records)?;
        let mut shares = Vec::new();
        let mut records = 0;
        for (place, judging) in self.begun.iter_mut().enumerate() {
            while records < max_records
                && let Some(share) = judging.shares.pop_front()
            {
                records += share.records;
                shares.push((place, share));
            }
        }
        self.by_shares(shares, Judging::judged, |judging, share, part| judging.add(share, part, rows))?;
        let unjudged = self.begun.iter().position(|judging| !judging.shares.is_empty()).unwrap_or(self.begun.len());
        let judged: Vec<_> = self.begun.drain(..unjudged).collect();
        let any = !judged.is_empty() || !self.begun.is_empty();
        self.end(judged, rows)?;
        Ok(any)
    }

    /// Computes the facts of further connections, until all started connections have about `max_records` waits.
    fn begin(&mut self, max_records: u64) -> io::Result<()> {
        let shares = self.begun.iter().flat_map(|judging| &judging.shares);
        let mut records: u64 = shares.map(|share| share.records).sum();
        let mut next = Vec::new();
        while records < max_records
            && self.begun.len() + next.len() < TOGETHER
            && let Some(connection) = self.coming.pop_front()
        {
            records += connection.waits.records();
            next.push(connection);
        }
        let (wants_costs, old, costs) = (self.worths.is_some(), self.begun.len(), &self.costs);
        let begun = by_threads(self.threads, next, |ended| {
            // A cause cannot take longer than the connection, so short connections need no details.
            let details = wants_costs && costs::life_ns(&ended.row).is_some_and(|life_ns| costs.may_take(life_ns));
            Judging::of(ended, Wanted { intervals: self.wants_intervals, notes: wants_costs, details })
        })?;
        self.begun.extend(begun);
        let unbounded = self.begun.iter().enumerate().skip(old).filter(|(_, judging)| judging.needs_pauses);
        let of_pauses =
            unbounded.flat_map(|(place, judging)| judging.shares.iter().map(move |share| (place, share.clone())));
        self.by_shares(of_pauses.collect(), Judging::pauses, Judging::add_pauses)?;
        self.begun.iter_mut().skip(old).filter(|judging| judging.needs_pauses).for_each(Judging::set_idle_bounds);
        Ok(())
    }

    /// Runs `work` on shares in several threads. Each share comes with the index of its connection in `begun`. When the
    /// work is done, the results are passed to `take_in`, in the order of the shares.
    fn by_shares<R: Send>(
        &mut self,
        shares: Vec<(usize, Share)>,
        work: impl Fn(&Judging, &Share) -> io::Result<R> + Sync,
        mut take_in: impl FnMut(&mut Judging, &Share, R),
    ) -> io::Result<()> {
        let begun = &self.begun;
        let results = by_threads(self.threads, shares, |(place, share)| {
            let result = begun.get(place).map(|judging| work(judging, &share)).transpose()?;
            Ok((place, share, result))
        })?;
        for (place, share, result) in results {
            if let Some((judging, result)) = self.begun.get_mut(place).zip(result) {
                take_in(judging, &share, result);
            }
        }
        Ok(())
    }

    /// Adds the results of connections whose waits are all judged.
    fn end(&mut self, judged: Vec<Judging>, rows: &mut JudgedRows) -> io::Result<()> {
        let Some(worths) = &self.worths else { return Ok(()) };
        let mut telling = Vec::new();
        for judging in judged {
            let (conn, sums) = (judging.row.conn, judging.sums());
            rows.accounts.push(AccountRow { conn, sums, rivals: judging.rivals() });
            let costly = sums.is_some_and(|sums| self.costs.add(&costs::worth_telling(&judging.row, &sums, worths)));
            let failed = costs::has_failed(&judging.row) && self.failed.add(&judging.row);
            if costly || failed {
                telling.push(judging);
            }
        }
        // Connections that end later can lose more time and replace connections that are kept now.
        let is_kept = |conn: u32| self.costs.has(conn) || self.failed.has(conn);
        telling.retain(|judging| is_kept(judging.row.conn));
        if !telling.is_empty() {
            self.details.extend(by_threads(self.threads, telling, Judging::into_details)?);
            self.details.retain(|conn, _| is_kept(*conn));
        }
        Ok(())
    }

    /// The details of the connections that lose the most time, and of the connections whose handshake failed. The
    /// details are in the order of connection numbers, with the client's direction before the server's.
    pub fn details(&self) -> impl Iterator<Item = (u32, &DirectionDetails)> {
        self.details.iter().flat_map(|(conn, sides)| sides.iter().flatten().map(|side| (*conn, side)))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use proptest::prelude::*;

    use super::Summaries;
    use crate::connection::{Kind, Revision};
    use crate::flows::{Accounting, ConnectionRow, Connections, SegmentRow};
    use crate::ledger::summary::costs::MOST;
    use crate::ledger::summary::rows::JudgedRows;
    use crate::ledger::{Cause, LiveWaits, Worth};
    use crate::nullable::Nullable;
    use crate::sender::{LONGEST_NS, Wait};
    use crate::wire::{FlowKey, Segment, TcpFlags};

    const MS: i64 = 1_000_000;

    /// Segment number `frame` of a connection with one segment every 10 ms. Even segments carry data of the client, and
    /// odd ones are ACKs of the server.
    fn segment(frame: u64) -> Segment {
        let host = |bits| IpAddr::V4(Ipv4Addr::from_bits(bits));
        let from_client = frame.is_multiple_of(2);
        let sent = (frame / 2) as u32 * 100;
        Segment {
            frame,
            ts_ns: Some(frame as i64 * 10 * MS),
            key: FlowKey::between([(host(1), 40_000), (host(2), 80)]),
            from_low: from_client,
            flags: TcpFlags(TcpFlags::ACK),
            seq: if from_client { sent } else { 1 },
            ack: if from_client { 1 } else { sent + 100 },
            payload_bytes: if from_client { 100 } else { 0 },
            captured_payload_bytes: if from_client { 100 } else { 0 },
            ..Segment::default()
        }
    }

    fn connection(segments: u64) -> (ConnectionRow, Vec<SegmentRow>) {
        let mut connections = Connections::of(None, Accounting::Kept);
        let mut rows = Vec::new();
        for frame in 2..segments + 2 {
            connections.take(&segment(frame), &mut rows);
        }
        (connections.take_rest().unwrap().remove(0), rows)
    }

    fn everything() -> Vec<Worth> {
        let worth = |cause| Worth { cause, ns: 1, share: 0.0, of_client_alone: false, of_data_alone: false };
        Cause::ALL.map(worth).to_vec()
    }

    /// All reported results of a connection, as text.
    fn described(row: &ConnectionRow, segments: &[SegmentRow], max_memory_bytes: usize, threads: usize) -> String {
        let mut live = LiveWaits::within(max_memory_bytes);
        for segment in segments {
            live.add(segment);
        }
        assert!(live.take_failure().is_none());
        let mut summaries = Summaries::new(true, Some(everything()), MOST).with_threads(threads);
        let mut rows = JudgedRows::default();
        summaries.add([(row.clone(), live.end(row.conn))]).unwrap();
        while summaries.go_on(&mut rows).unwrap() {}
        let JudgedRows { accounts, ledger, notes } = rows;
        format!("{accounts:?} {ledger:?} {notes:?} {:?}", summaries.details().collect::<Vec<_>>())
    }

    #[test]
    fn neither_threads_nor_the_spool_change_anything() {
        let (row, segments) = connection(6000);
        let alone = described(&row, &segments, usize::MAX, 1);
        assert!(segments.iter().filter(|segment| segment.departure.is_some()).count() == 3000);
        for threads in [2, 8] {
            assert!(described(&row, &segments, usize::MAX, threads) == alone);
        }
        assert!(described(&row, &segments, 700, 1) == alone);
        assert!(described(&row, &segments, 700, 3) == alone);
    }

    #[test]
    fn connections_judged_together_come_to_what_each_alone_does() {
        let ended = || {
            let connection = |(conn, segments)| {
                let (row, rows) = connection(segments);
                let mut live = LiveWaits::default();
                for segment in &rows {
                    live.add(segment);
                }
                let waits = live.end(row.conn);
                (ConnectionRow { conn, ..row }, waits)
            };
            (0..).zip([101, 2, 700, 31, 30, 6000, 5]).map(connection).collect::<Vec<_>>()
        };
        let words = |rows: JudgedRows, summaries: &Summaries| {
            let JudgedRows { accounts, ledger, notes } = rows;
            format!("{accounts:?} {ledger:?} {notes:?} {:?}", summaries.details().collect::<Vec<_>>())
        };
        let (mut alone, mut rows) = (Summaries::new(true, Some(everything()), MOST), JudgedRows::default());
        for (row, waits) in ended() {
            alone.add([(row, waits)]).unwrap();
            while alone.go_on(&mut rows).unwrap() {}
        }
        let alone = words(rows, &alone);
        for threads in [1, 2, 8] {
            let mut together = Summaries::new(true, Some(everything()), MOST).with_threads(threads);
            let mut rows = JudgedRows::default();
            together.add(ended()).unwrap();
            while together.go_on(&mut rows).unwrap() {}
            assert!(words(rows, &together) == alone, "{threads} threads");
        }
    }

    #[test]
    fn intervals_fill_the_life_of_both_directions_and_their_sums_are_the_account() {
        let (row, segments) = connection(101);
        let mut live = LiveWaits::default();
        for segment in &segments {
            live.add(segment);
        }
        let mut summaries = Summaries::new(true, Some(everything()), MOST);
        let mut rows = JudgedRows::default();
        summaries.add([(row.clone(), live.end(row.conn))]).unwrap();
        while summaries.go_on(&mut rows).unwrap() {}
        let life_ns = row.last_ts_ns.value() - row.first_ts_ns.value();
        for (from_client, side) in [(true, 0), (false, 1)] {
            let mut end_ns = row.first_ts_ns.value();
            for row in rows.ledger.iter().filter(|row| row.from_client == from_client) {
                assert_eq!(row.interval.start_ns, end_ns);
                end_ns += row.interval.ns;
            }
            assert_eq!(end_ns, row.last_ts_ns.value());
            assert_eq!(rows.accounts[0].sums.unwrap()[side].iter().sum::<i64>(), life_ns);
        }
        assert!(rows.ledger.is_sorted_by_key(|row| !row.from_client));
    }

    #[test]
    fn details_of_short_connections_are_those_that_all_waits_give() {
        let (row, segments) = connection(101);
        let details: Vec<_> = {
            let mut summaries = Summaries::new(false, Some(everything()), MOST);
            let mut live = LiveWaits::default();
            for segment in &segments {
                live.add(segment);
            }
            let mut rows = JudgedRows::default();
            summaries.add([(row.clone(), live.end(row.conn))]).unwrap();
            while summaries.go_on(&mut rows).unwrap() {}
            assert!(rows.ledger.is_empty());
            summaries.details().map(|(_, side)| side.clone()).collect()
        };
        assert_eq!(details.len(), 2);
        let life_ns = row.last_ts_ns.value() - row.first_ts_ns.value();
        for side in &details {
            assert_eq!(side.kinds.iter().map(|kind| kind.ns).sum::<i64>(), life_ns);
            let waits: u64 = side.kinds.iter().map(|kind| kind.waits).sum();
            assert!(side.waits.len() as u64 == waits);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        /// Random waits give the same results with several threads and with little memory.
        #[test]
        fn any_waits_come_to_the_same_by_any_way(
            waits in prop::collection::vec((0_i64..400, any::<bool>()), 500..900),
            most in 0_usize..4000,
            threads in 2_usize..5,
        ) {
            let (row, _) = connection(20);
            let mut ts_ns = row.first_ts_ns.value();
            let segments: Vec<SegmentRow> = (10..).zip(&waits).map(|(frame, (held_ms, from_client))| {
                ts_ns += held_ms * MS;
                let wait_ns: Nullable = Some(held_ms * MS).into();
                let departure = Some(Wait { wait_ns, smss_bytes: Some(1448).into(), ..Wait::default() });
                let kind = Kind::New;
                SegmentRow { frame, ts_ns: Some(ts_ns).into(), payload_bytes: 1448, from_client: *from_client, kind, departure, ..SegmentRow::default() }
            }).collect();
            let alone = described(&row, &segments, usize::MAX, 1);
            prop_assert!(described(&row, &segments, most, threads) == alone);
        }
    }

    #[test]
    fn the_judge_sees_what_later_segments_showed() {
        use crate::connection::{Confidence, Evidence};
        let (row, segments) = connection(20);
        let mut live = LiveWaits::default();
        for segment in &segments {
            live.add(segment);
        }
        let frame = segments.iter().rfind(|segment| segment.departure.is_some()).unwrap().frame;
        let (evidence, confidence) = (Evidence::Dsack, Confidence::Proved);
        live.revise(row.conn, &[Revision { frame, evidence_frame: frame, kind: Kind::Spurious, evidence, confidence }]);
        let mut summaries = Summaries::new(false, Some(everything()), MOST);
        let mut rows = JudgedRows::default();
        summaries.add([(row.clone(), live.end(row.conn))]).unwrap();
        while summaries.go_on(&mut rows).unwrap() {}
        let kept: Vec<_> = summaries.details().flat_map(|(_, side)| &side.waits).collect();
        let kinds: Vec<_> = kept
            .iter()
            .filter(|wait| wait.interval.frame_after == Some(frame))
            .map(|wait| wait.proof.unwrap().kind)
            .collect();
        assert!(!kinds.is_empty() && kinds.iter().all(|kind| *kind == Kind::Spurious));
    }

    /// The intervals of a connection with data and ACKs. The last segment comes `last_ns` after the first one.
    fn judged_life(last_ns: i64) -> Vec<(bool, Cause, i64)> {
        let mut connections = Connections::of(None, Accounting::Kept);
        let mut rows = Vec::new();
        for frame in 2..30 {
            let ts_ns = if frame < 20 { i64::MIN + frame as i64 * MS } else { i64::MIN + 2 * MS + last_ns };
            connections.take(&Segment { ts_ns: Some(ts_ns), ..segment(frame) }, &mut rows);
        }
        let mut live = LiveWaits::default();
        for row in &rows {
            live.add(row);
        }
        let row = connections.take_rest().unwrap().remove(0);
        let mut summaries = Summaries::new(true, Some(everything()), MOST);
        let mut judged = JudgedRows::default();
        let waits = live.end(row.conn);
        summaries.add([(row, waits)]).unwrap();
        while summaries.go_on(&mut judged).unwrap() {}
        let sums = judged.accounts[0].sums.unwrap();
        let life_ns = sums[0].iter().sum::<i64>();
        assert_eq!(sums[1].iter().sum::<i64>(), life_ns);
        for (_, side) in summaries.details() {
            assert_eq!(side.kinds.iter().map(|kind| kind.ns).sum::<i64>(), life_ns);
        }
        judged.ledger.iter().map(|row| (row.from_client, row.interval.cause, row.interval.ns)).collect()
    }

    #[test]
    fn a_connection_that_lasts_longer_than_any_is_unknown_in_both_directions() {
        for life_ns in [LONGEST_NS + 1, 1 << 60, i64::MAX] {
            let unknown = [true, false].map(|from_client| (from_client, Cause::Unknown, life_ns));
            assert_eq!(judged_life(life_ns), unknown);
        }
        assert!(judged_life(LONGEST_NS).len() > 2, "the longest life is judged as any other");
    }
}
