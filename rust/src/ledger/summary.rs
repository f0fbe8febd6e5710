//! What is reported of connections that have ended: their waits judged, added up, and the details of those that lose time.
//!
//! To judge a wait needs nothing but its record and the final facts of its direction, so the blocks of a long log are judged by several
//! threads. What each block comes to is put together in the order of time: the results do not depend on the number of threads.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::thread;

use super::costs::{self, Costs, Failed, Sums, Worth};
use super::direction::{Direction, LEAST_IDLE_NS, Pauses};
use super::edges::{Edge, edges};
use super::evidence;
use super::intervals::Interval;
use super::judge::judge;
use super::judged::Note;
use super::kinds::{Kind, Lengths};
use super::locks::{LateWait, Lock, Locks};
use super::log::{EndedWaits, Revised, StoredBlock};
use super::longest::{KeptWait, Longest, Proof};
use super::record::WaitRecord;
use crate::flows::ConnectionRow;

/// A connection with more waits than this is judged by several threads, and others by one thread each.
pub const PARALLEL_RECORDS: u64 = if cfg!(test) {
    500
} else if cfg!(feature = "small-limits") {
    20
} else {
    10_000
};
/// Blocks that one thread judges at a time.
const BLOCKS_AT_A_TIME: usize = 4;
/// Details are made at once of a connection with more records than this: to judge it twice would take longer.
const DETAILS_AT_ONCE_RECORDS: u64 = if cfg!(feature = "small-limits") { 30 } else { 4096 };

/// What tells a stall from a wait in one direction, and a late ACK from one in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// From this length on a wait is a stall.
    pub threshold_ns: i64,
    /// Shortest round trip between the hosts, from which that follows.
    pub rtt_ns: i64,
    /// Shortest round trip of a segment of this direction; 0 where it is not known.
    pub rtt_min_ns: i64,
}

impl Bounds {
    /// Those of a direction.
    #[must_use]
    pub fn of(direction: &Direction) -> Self {
        let (threshold_ns, rtt_min_ns) = (evidence::Evidence::stall_ns(direction), direction.rtt_min_ns.unwrap_or(0));
        Self { threshold_ns, rtt_ns: direction.rtt_ns, rtt_min_ns }
    }
}

/// Where the time of a connection's directions went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountRow {
    /// The connection.
    pub conn: u32,
    /// The client's, the server's; `None` without times.
    pub sums: Option<[Sums; 2]>,
}

/// An interval of one direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct LedgerRow {
    pub conn: u32,
    pub from_client: bool,
    pub interval: Interval,
    /// What its sender knew; `None` before the first departure of a direction and after its last.
    pub proof: Option<Proof>,
    pub bounds: Bounds,
}

/// What messages have to know of a departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct NoteRow {
    pub conn: u32,
    pub frame: u64,
    pub note: Note,
    pub caused_ns: i64,
}

/// Rows that were made of judged connections.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct JudgedRows {
    pub accounts: Vec<AccountRow>,
    pub ledger: Vec<LedgerRow>,
    pub notes: Vec<NoteRow>,
}

impl JudgedRows {
    /// Adds those of other connections.
    fn append(&mut self, others: &mut Self) {
        self.accounts.append(&mut others.accounts);
        self.ledger.append(&mut others.ledger);
        self.notes.append(&mut others.notes);
    }
}

/// The details of one direction of a connection.
#[derive(Clone, Debug)]
pub struct DirectionDetails {
    /// The final facts of the direction.
    pub direction: Direction,
    /// Its causes.
    pub kinds: Vec<Kind>,
    /// Its longest intervals, in order of time.
    pub waits: Vec<KeptWait>,
    /// Its throughput deadlock.
    pub lock: Option<Lock>,
}

/// Tells both directions of a connection from which length on their silences are idle.
fn set_idle_bounds(directions: &mut [Option<Direction>; 2], blocks: &[Vec<StoredBlock>; 2]) -> io::Result<()> {
    let mut bounds_ns = [0; 2];
    for ((blocks, bound_ns), from_client) in blocks.iter().zip(&mut bounds_ns).zip([true, false]) {
        let mut pauses = Pauses::default();
        blocks.iter().try_for_each(|block| block.each(|record| pauses.add(record, from_client)))?;
        *bound_ns = pauses.idle_after_ns();
    }
    let [client_ns, server_ns] = bounds_ns;
    for (direction, own_ns, other_ns) in directions
        .iter_mut()
        .zip([(client_ns, server_ns), (server_ns, client_ns)])
        .map(|(one, (own, other))| (one, own, other))
    {
        if let Some(direction) = direction {
            (direction.idle_after_ns, direction.receiver_idle_after_ns) = (own_ns, other_ns);
        }
    }
    Ok(())
}

/// What is wanted of waits beside their sums.
#[derive(Clone, Copy, Debug, Default)]
struct Wanted {
    intervals: bool,
    notes: bool,
    details: bool,
}

/// What some waits of one direction come to.
#[derive(Debug, Default)]
struct Part {
    sums: Sums,
    intervals: Vec<(Interval, Option<Proof>)>,
    notes: Vec<NoteRow>,
    details: Option<Box<Evidence>>,
}

/// What the details of a direction are made of.
#[derive(Debug, Default)]
struct Evidence {
    lengths: Lengths,
    longest: Longest,
    late: Vec<LateWait>,
    locks: Locks,
}

impl Part {
    fn new(wanted: Wanted) -> Self {
        Self { details: wanted.details.then(Box::default), ..Self::default() }
    }

    #[inline]
    fn add(&mut self, interval: &Interval, record: Option<&WaitRecord>, wanted: Wanted) {
        if let Some(sum) = self.sums.get_mut(interval.cause as usize) {
            *sum = sum.saturating_add(interval.ns);
        }
        if wanted.intervals {
            self.intervals.push((*interval, record.map(Proof::of)));
        }
        if let Some(details) = &mut self.details {
            details.lengths.add(interval);
            details.longest.add(interval, record);
        }
    }

    fn add_edge(&mut self, edge: Option<&Edge>, wanted: Wanted) {
        for interval in edge.into_iter().flat_map(Interval::of_edge) {
            self.add(&interval, None, wanted);
        }
    }

    /// Adds what later waits of the same direction come to.
    fn append(&mut self, mut later: Self, direction: &Direction) {
        for (own, other) in self.sums.iter_mut().zip(later.sums) {
            *own = own.saturating_add(other);
        }
        self.intervals.append(&mut later.intervals);
        self.notes.append(&mut later.notes);
        if let Some((own, other)) = self.details.as_mut().zip(later.details.as_mut()) {
            own.lengths.append(&mut other.lengths);
            own.longest.append(&mut other.longest);
            other.late.iter().for_each(|late| own.locks.add(late, direction.max_window_bytes));
        }
    }

    /// Moves the rows that are made by now to `rows`.
    fn pass_on(&mut self, conn: u32, direction: &Direction, rows: &mut JudgedRows) {
        let (from_client, bounds) = (direction.from_client, Bounds::of(direction));
        let row = |(interval, proof)| LedgerRow { conn, from_client, interval, proof, bounds };
        rows.ledger.extend(self.intervals.drain(..).map(row));
        rows.notes.append(&mut self.notes);
    }
}

/// What the waits of one direction are judged by.
#[derive(Clone, Copy)]
struct Facts<'a> {
    conn: u32,
    direction: &'a Direction,
    revised: &'a Revised,
    wanted: Wanted,
}

impl Facts<'_> {
    /// Judges the waits of some blocks.
    fn judged(&self, blocks: &[StoredBlock]) -> io::Result<Part> {
        let mut part = Part::new(self.wanted);
        blocks.iter().try_for_each(|block| block.each(|record| self.judge(record, &mut part)))?;
        Ok(part)
    }

    #[inline]
    fn judge(&self, record: &WaitRecord, part: &mut Part) {
        let kind = self.revised.of(record);
        let revised = if kind == record.kind { None } else { Some(WaitRecord { kind, ..*record }) };
        let record = revised.as_ref().unwrap_or(record);
        let judged = judge(record, self.direction);
        for interval in Interval::of_wait(record, &judged) {
            part.add(&interval, Some(record), self.wanted);
        }
        if let Some(note) = judged.note.filter(|_| self.wanted.notes) {
            part.notes.push(NoteRow { conn: self.conn, frame: record.frame, note, caused_ns: judged.caused_ns });
        }
        if let Some(details) = &mut part.details {
            details.late.extend(LateWait::of(record, &judged));
        }
    }

    /// Judges blocks with several threads; the results come in the order of the blocks.
    fn judged_by(&self, threads: usize, blocks: &[StoredBlock]) -> io::Result<Vec<Part>> {
        if threads < 2 {
            return Ok(vec![self.judged(blocks)?]);
        }
        thread::scope(|scope| {
            let start =
                |blocks| thread::Builder::new().name("judge".into()).spawn_scoped(scope, move || self.judged(blocks));
            let judging =
                blocks.chunks(blocks.len().div_ceil(threads).max(1)).map(start).collect::<io::Result<Vec<_>>>()?;
            judging
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }
}

/// A connection that has ended, while its waits are judged.
#[derive(Debug)]
pub struct Judging {
    row: ConnectionRow,
    revised: Revised,
    directions: [Option<Direction>; 2],
    blocks: [Vec<StoredBlock>; 2],
    parts: [Part; 2],
    wanted: Wanted,
    threads: usize,
    side: usize,
    next_block: usize,
}

impl Judging {
    fn of(row: ConnectionRow, waits: EndedWaits, wanted: Wanted, threads: usize) -> io::Result<Self> {
        let [client, server] = waits.directions;
        let is_idle_for_long = client.longest_ns.max(server.longest_ns) >= LEAST_IDLE_NS;
        let mut directions = [0, 1].map(|side| Direction::of(&row, side));
        let broken = directions.iter().flatten().any(Direction::lasts_too_long);
        let blocks = if broken { Default::default() } else { [client.into_blocks()?, server.into_blocks()?] };
        let records: u64 = blocks.iter().flatten().map(StoredBlock::records).sum();
        let wanted = Wanted { details: wanted.details && records > DETAILS_AT_ONCE_RECORDS, ..wanted };
        if is_idle_for_long {
            set_idle_bounds(&mut directions, &blocks)?;
        }
        let parts = [Part::new(wanted), Part::new(wanted)];
        let revised = waits.revised;
        Ok(Self { row, revised, directions, blocks, parts, wanted, threads, side: 0, next_block: 0 })
    }

    /// Judges the next waits, and adds the rows that they give to `rows`. False when there are no more.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub fn go_on(&mut self, rows: &mut JudgedRows) -> io::Result<bool> {
        let (conn, side) = (self.row.conn, self.side);
        let (Some(direction), Some(blocks), Some(part)) =
            (self.directions.get(side), self.blocks.get(side), self.parts.get_mut(side))
        else {
            return Ok(false);
        };
        let Some(direction) = direction else {
            self.side += 1;
            return Ok(true);
        };
        let [before, after] = edges(direction);
        if self.next_block == 0 {
            part.add_edge(before.as_ref(), self.wanted);
        }
        let records: u64 = blocks.iter().map(StoredBlock::records).sum();
        let threads = if records > PARALLEL_RECORDS { self.threads } else { 1 };
        let last = blocks.len().min(self.next_block + threads * BLOCKS_AT_A_TIME);
        let facts = Facts { conn, direction, revised: &self.revised, wanted: self.wanted };
        for later in facts.judged_by(threads, blocks.get(self.next_block..last).unwrap_or_default())? {
            part.append(later, direction);
        }
        self.next_block = last;
        if last == blocks.len() {
            part.add_edge(after.as_ref(), self.wanted);
            (self.side, self.next_block) = (side + 1, 0);
        }
        part.pass_on(conn, direction, rows);
        Ok(true)
    }

    /// Judges everything again, for the details alone.
    fn again_for_details(&mut self) -> io::Result<()> {
        self.wanted = Wanted { details: true, ..Wanted::default() };
        self.parts = [Part::new(self.wanted), Part::new(self.wanted)];
        self.side = 0;
        let mut none = JudgedRows::default();
        while self.go_on(&mut none)? {}
        Ok(())
    }

    /// Nanoseconds of each cause in either direction; `None` without times.
    fn sums(&self) -> Option<[Sums; 2]> {
        let known = self.directions.iter().all(Option::is_some);
        known.then(|| self.parts.each_ref().map(|part| part.sums))
    }

    fn into_details(self) -> [Option<DirectionDetails>; 2] {
        let Self { directions: [client, server], parts: [of_client, of_server], .. } = self;
        [details(client, of_client), details(server, of_server)]
    }
}

fn details(direction: Option<Direction>, part: Part) -> Option<DirectionDetails> {
    let (direction, evidence) = (direction?, *part.details?);
    let life_ns = direction.life_ns();
    let Evidence { lengths, longest, locks, .. } = evidence;
    let waits = longest.kept(life_ns, Bounds::of(&direction).threshold_ns);
    Some(DirectionDetails { direction, kinds: lengths.kinds(), waits, lock: locks.most_expensive() })
}

/// Connections, divided into at most so many parts that have about as many waits each, in their order.
fn shared_out(connections: Vec<(ConnectionRow, EndedWaits)>, parts: usize) -> Vec<Vec<(ConnectionRow, EndedWaits)>> {
    let weight = |(_, waits): &(ConnectionRow, EndedWaits)| waits.records() + 1;
    let each = connections.iter().map(weight).sum::<u64>().div_ceil(parts.max(1) as u64);
    let (mut shared, mut sum) = (Vec::<Vec<_>>::new(), 0);
    for connection in connections {
        if sum >= each * shared.len() as u64 {
            shared.push(Vec::new());
        }
        sum += weight(&connection);
        if let Some(part) = shared.last_mut() {
            part.push(connection);
        }
    }
    shared
}

/// What a capture's connections come to, one after the other.
#[derive(Debug, Default)]
pub struct Summaries {
    wants_intervals: bool,
    worths: Option<Vec<Worth>>,
    threads: usize,
    costs: Costs,
    failed: Failed,
    details: BTreeMap<u32, [Option<DirectionDetails>; 2]>,
}

impl Summaries {
    /// With every interval if `wants_intervals`; and with accounts, notes and the details of so many costs, if it is told what is
    /// worth a finding.
    #[must_use]
    pub fn new(wants_intervals: bool, worths: Option<Vec<Worth>>, most: usize) -> Self {
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self { wants_intervals, worths, threads, costs: Costs::new(most), ..Self::default() }
    }

    /// Judges with this many threads.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Begins to judge a connection.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub fn begin(&self, row: ConnectionRow, waits: EndedWaits) -> io::Result<Judging> {
        let told = self.worths.is_some();
        let wanted = Wanted { intervals: self.wants_intervals, notes: told, details: told };
        Judging::of(row, waits, wanted, self.threads)
    }

    /// Judges some connections, each by one of the threads, and takes in what they came to, in their order.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn judge_all(
        &mut self,
        connections: Vec<(ConnectionRow, EndedWaits)>,
        rows: &mut JudgedRows,
    ) -> io::Result<()> {
        let mut parts = shared_out(connections, self.threads);
        let rest = parts.pop().unwrap_or_default();
        let summaries = &*self;
        let judged = thread::scope(|scope| {
            let begin =
                |part| thread::Builder::new().name("judge".into()).spawn_scoped(scope, || summaries.whole(part));
            let started = parts.into_iter().map(begin).collect::<io::Result<Vec<_>>>()?;
            let last = summaries.whole(rest);
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            started.into_iter().map(join).chain([last]).collect::<io::Result<Vec<_>>>()
        })?;
        for (judging, mut own) in judged.into_iter().flatten() {
            rows.append(&mut own);
            self.end(judging, rows)?;
        }
        Ok(())
    }

    /// Judges whole connections.
    fn whole(&self, connections: Vec<(ConnectionRow, EndedWaits)>) -> io::Result<Vec<(Judging, JudgedRows)>> {
        let judge = |(row, waits)| {
            let (mut judging, mut rows) = (self.begin(row, waits)?, JudgedRows::default());
            while judging.go_on(&mut rows)? {}
            Ok((judging, rows))
        };
        connections.into_iter().map(judge).collect()
    }

    /// Takes in what a connection came to, of which all waits are judged.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub fn end(&mut self, mut judging: Judging, rows: &mut JudgedRows) -> io::Result<()> {
        let Some(worths) = &self.worths else { return Ok(()) };
        let (conn, sums) = (judging.row.conn, judging.sums());
        rows.accounts.push(AccountRow { conn, sums });
        let costly = sums.is_some_and(|sums| self.costs.add(&costs::worth_telling(&judging.row, &sums, worths)));
        let failed = costs::has_failed(&judging.row) && self.failed.add(&judging.row);
        if !costly && !failed {
            return Ok(());
        }
        if !judging.wanted.details {
            judging.again_for_details()?;
        }
        self.details.insert(conn, judging.into_details());
        let (costs, failed) = (&self.costs, &self.failed);
        self.details.retain(|conn, _| costs.has(*conn) || failed.has(*conn));
        Ok(())
    }

    /// The details of the connections that lose most time, and of those whose handshake failed; by number, the client's direction and
    /// the server's.
    pub fn details(&self) -> impl Iterator<Item = (u32, &DirectionDetails)> {
        self.details.iter().flat_map(|(conn, sides)| sides.iter().flatten().map(|side| (*conn, side)))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use proptest::prelude::*;

    use super::{JudgedRows, Summaries};
    use crate::connection::{Kind, Revision};
    use crate::flows::{Accounting, ConnectionRow, Connections, SegmentRow};
    use crate::ledger::costs::MOST;
    use crate::ledger::{Cause, LiveWaits, Worth};
    use crate::nullable::Nullable;
    use crate::sender::{LONGEST_NS, Wait};
    use crate::wire::{FlowKey, Segment, TcpFlags};

    const MS: i64 = 1_000_000;

    /// Data of the client, and ACKs of the server, every 10 ms.
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

    /// All that is said of a connection, in words.
    fn told(row: &ConnectionRow, segments: &[SegmentRow], most_memory_bytes: usize, threads: usize) -> String {
        let mut live = LiveWaits::within(most_memory_bytes);
        for segment in segments {
            live.add(segment);
        }
        assert!(live.take_failure().is_none());
        let mut summaries = Summaries::new(true, Some(everything()), MOST).with_threads(threads);
        let mut rows = JudgedRows::default();
        let mut judging = summaries.begin(row.clone(), live.end(row.conn)).unwrap();
        while judging.go_on(&mut rows).unwrap() {}
        summaries.end(judging, &mut rows).unwrap();
        let JudgedRows { accounts, ledger, notes } = rows;
        format!("{accounts:?} {ledger:?} {notes:?} {:?}", summaries.details().collect::<Vec<_>>())
    }

    #[test]
    fn neither_threads_nor_the_spool_change_anything() {
        let (row, segments) = connection(6000);
        let alone = told(&row, &segments, usize::MAX, 1);
        assert!(segments.iter().filter(|segment| segment.departure.is_some()).count() == 3000);
        for threads in [2, 8] {
            assert!(told(&row, &segments, usize::MAX, threads) == alone);
        }
        assert!(told(&row, &segments, 700, 1) == alone);
        assert!(told(&row, &segments, 700, 3) == alone);
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
            let mut judging = alone.begin(row, waits).unwrap();
            while judging.go_on(&mut rows).unwrap() {}
            alone.end(judging, &mut rows).unwrap();
        }
        let alone = words(rows, &alone);
        for threads in [1, 2, 8] {
            let mut together = Summaries::new(true, Some(everything()), MOST).with_threads(threads);
            let mut rows = JudgedRows::default();
            together.judge_all(ended(), &mut rows).unwrap();
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
        let mut judging = summaries.begin(row.clone(), live.end(row.conn)).unwrap();
        while judging.go_on(&mut rows).unwrap() {}
        summaries.end(judging, &mut rows).unwrap();
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
            let mut judging = summaries.begin(row.clone(), live.end(row.conn)).unwrap();
            while judging.go_on(&mut rows).unwrap() {}
            summaries.end(judging, &mut rows).unwrap();
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

        /// Waits of any length, of kinds that are revised later.
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
                let held_ns: Nullable = Some(held_ms * MS).into();
                let departure = Some(Wait { held_ns, full_bytes: Some(1448).into(), ..Wait::default() });
                let kind = Kind::New;
                SegmentRow { frame, ts_ns: Some(ts_ns).into(), payload_bytes: 1448, from_client: *from_client, kind, departure, ..SegmentRow::default() }
            }).collect();
            let alone = told(&row, &segments, usize::MAX, 1);
            prop_assert!(told(&row, &segments, most, threads) == alone);
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
        let mut judging = summaries.begin(row.clone(), live.end(row.conn)).unwrap();
        while judging.go_on(&mut rows).unwrap() {}
        summaries.end(judging, &mut rows).unwrap();
        let kept: Vec<_> = summaries.details().flat_map(|(_, side)| &side.waits).collect();
        let kinds: Vec<_> = kept
            .iter()
            .filter(|wait| wait.interval.frame_after == Some(frame))
            .map(|wait| wait.proof.unwrap().kind)
            .collect();
        assert!(!kinds.is_empty() && kinds.iter().all(|kind| *kind == Kind::Spurious));
    }

    /// Data and ACKs until `last_ns` after the first; then all of that is judged.
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
        summaries.judge_all(vec![(row, waits)], &mut judged).unwrap();
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
