//! A connection that has ended, while its waits are judged.
//!
//! Judging a wait needs only its record and the final facts of its direction. Several threads can therefore judge the
//! waits of one connection. Each thread takes a share, which consists of several blocks. The results of the shares are
//! combined in order of time, so they do not depend on the number of threads.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use super::super::cause::Cause;
use super::super::direction::{DirectionFacts, MIN_IDLE_NS, PauseCounts, Pauses};
use super::super::edges::{Edge, edges};
use super::super::intervals::Interval;
use super::super::judge::judge;
use super::super::rivals::{Rivals, TimeOfRivals};
use super::super::waits::log::{Revised, StoredBlock};
use super::super::waits::record::WaitRecord;
use super::costs::Sums;
use super::kinds::Lengths;
use super::locks::{LateWait, Locks};
use super::longest::{Longest, Proof};
use super::meeting::Ended;
use super::rows::{Bounds, DirectionDetails, JudgedRows, LedgerRow, NoteRow};
use crate::flows::ConnectionRow;

/// A share has at least this many waits (one or two blocks), unless its direction has fewer.
const SHARE_RECORDS: u64 = if cfg!(test) {
    100
} else if cfg!(feature = "small-limits") {
    5
} else {
    2048
};
/// If a connection has more waits than this, its details are computed while it is judged, because judging it twice
/// would take longer.
const DETAILS_AT_ONCE_RECORDS: u64 = if cfg!(feature = "small-limits") { 30 } else { 4096 };

/// The results about waits that the caller wants in addition to their sums.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted {
    pub intervals: bool,
    pub notes: bool,
    pub details: bool,
}

/// A share: consecutive blocks of one direction.
#[derive(Clone, Debug)]
pub(super) struct Share {
    /// The sender of the direction: 0 client, 1 server.
    side: usize,
    blocks: Range<usize>,
    pub records: u64,
    /// Whether this share is the first of its direction.
    is_first: bool,
    is_last: bool,
}

/// The results of some waits of one direction.
#[derive(Debug, Default)]
pub(super) struct Part {
    sums: Sums,
    rivals: TimeOfRivals,
    ledger: Vec<LedgerRow>,
    notes: Vec<NoteRow>,
    details: Option<Box<Evidence>>,
}

/// The data from which the details of a direction are computed.
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

    /// Creates an empty part for later waits of the same direction.
    fn behind(&self) -> Self {
        let details = self
            .details
            .as_ref()
            .map(|details| Box::new(Evidence { longest: details.longest.beyond(), ..Evidence::default() }));
        Self { details, ..Self::default() }
    }

    /// Adds the results of later waits of the same direction, and moves their rows to `rows`.
    fn append(&mut self, mut later: Self, max_window_bytes: Option<i64>, rows: &mut JudgedRows) {
        for (own, other) in self.sums.iter_mut().zip(later.sums) {
            *own = own.saturating_add(other);
        }
        self.rivals.append(std::mem::take(&mut later.rivals));
        rows.ledger.append(&mut later.ledger);
        rows.notes.append(&mut later.notes);
        if let Some((own, other)) = self.details.as_mut().zip(later.details.as_mut()) {
            own.lengths.append(&mut other.lengths);
            own.longest.append(&mut other.longest);
            other.late.iter().for_each(|late| own.locks.add(late, max_window_bytes));
        }
    }
}

/// The facts with which the waits of one direction are judged.
struct Facts<'a> {
    conn: u32,
    direction: &'a DirectionFacts,
    bounds: Bounds,
    revised: &'a Revised,
    wanted: Wanted,
}

impl Facts<'_> {
    #[inline]
    fn add(&self, interval: &Interval, record: Option<&WaitRecord>, part: &mut Part) {
        if let Some(sum) = part.sums.get_mut(interval.cause as usize) {
            *sum = sum.saturating_add(interval.ns);
        }
        if interval.cause == Cause::Unknown {
            part.rivals.add(interval.rivals, interval.ns);
        }
        if self.wanted.intervals {
            let (conn, from_client, bounds) = (self.conn, self.direction.from_client, self.bounds);
            part.ledger.push(LedgerRow {
                conn,
                from_client,
                interval: *interval,
                proof: record.map(Proof::of),
                bounds,
            });
        }
        if let Some(details) = &mut part.details {
            details.lengths.add(interval);
            details.longest.add(interval, record);
        }
    }

    fn add_edge(&self, edge: Option<&Edge>, part: &mut Part) {
        for interval in edge.into_iter().flat_map(Interval::of_edge) {
            self.add(&interval, None, part);
        }
    }

    #[inline]
    fn judge(&self, record: &WaitRecord, part: &mut Part) {
        let kind = self.revised.of(record);
        let revised = if kind == record.kind { None } else { Some(WaitRecord { kind, ..*record }) };
        let record = revised.as_ref().unwrap_or(record);
        let judged = judge(record, self.direction);
        for interval in Interval::of_wait(record, &judged) {
            self.add(&interval, Some(record), part);
        }
        if let Some(note) = judged.note.filter(|_| self.wanted.notes) {
            part.notes.push(NoteRow { conn: self.conn, frame: record.frame, note, caused_ns: judged.caused_ns });
        }
        if let Some(details) = &mut part.details {
            details.late.extend(LateWait::of(record, &judged));
        }
    }
}

#[derive(Debug)]
pub(super) struct Judging {
    pub row: ConnectionRow,
    revised: Revised,
    directions: [Option<DirectionFacts>; 2],
    blocks: [Vec<StoredBlock>; 2],
    /// Shares that are not judged yet, in order.
    pub shares: VecDeque<Share>,
    /// Whether the lengths of all pauses are needed to decide whether a long wait of the connection is idle.
    pub needs_pauses: bool,
    pauses: [Pauses; 2],
    parts: [Part; 2],
    wanted: Wanted,
}

impl Judging {
    /// Computes the facts of a connection. Blocks in the spool are not read yet.
    pub(super) fn of(Ended { row, waits, neighbours }: Ended, wanted: Wanted) -> io::Result<Self> {
        let [client, server] = waits.directions;
        let may_idle = client.longest_ns.max(server.longest_ns) >= MIN_IDLE_NS;
        let mut directions = [0, 1].map(|side| DirectionFacts::of(&row, side));
        for (direction, neighbours) in directions.iter_mut().flatten().zip(neighbours) {
            direction.neighbours = neighbours;
        }
        let is_sound = |direction: &Option<DirectionFacts>| direction.as_ref().is_some_and(|one| !one.lasts_too_long());
        let sound = directions.iter().all(is_sound);
        let pauses = if sound { [client.pauses, server.pauses] } else { Default::default() };
        let blocks = if sound { [client.into_blocks()?, server.into_blocks()?] } else { Default::default() };
        let shares: VecDeque<_> = blocks.iter().zip(0..).flat_map(|(blocks, side)| shares(blocks, side)).collect();
        let records: u64 = shares.iter().map(|share| share.records).sum();
        let wanted = Wanted { details: wanted.details && records > DETAILS_AT_ONCE_RECORDS, ..wanted };
        let needs_pauses = match pauses.map(PauseCounts::idle_after_ns) {
            [Some(client_ns), Some(server_ns)] if may_idle => {
                set_idle_bounds(&mut directions, [client_ns, server_ns]);
                false
            }
            _ => may_idle,
        };
        let (parts, pauses) = ([Part::new(wanted), Part::new(wanted)], Default::default());
        Ok(Self { row, revised: waits.revised, directions, blocks, shares, needs_pauses, pauses, parts, wanted })
    }

    fn each(&self, share: &Share, mut take: impl FnMut(&WaitRecord)) -> io::Result<()> {
        let blocks = self.blocks.get(share.side).and_then(|blocks| blocks.get(share.blocks.clone()));
        blocks.unwrap_or_default().iter().try_for_each(|block| block.each(&mut take))
    }

    pub(super) fn pauses(&self, share: &Share) -> io::Result<Pauses> {
        let mut pauses = Pauses::default();
        self.each(share, |record| pauses.add(record, share.side == 0))?;
        Ok(pauses)
    }

    pub(super) fn add_pauses(&mut self, share: &Share, mut pauses: Pauses) {
        if let Some(own) = self.pauses.get_mut(share.side) {
            own.append(&mut pauses);
        }
    }

    /// Sets how long silence must last to be idle, in both directions.
    pub(super) fn set_idle_bounds(&mut self) {
        let bounds_ns = std::mem::take(&mut self.pauses).map(Pauses::idle_after_ns);
        set_idle_bounds(&mut self.directions, bounds_ns);
    }

    /// Judges the waits of a share. The first share includes the time before the first segment of the direction; the
    /// last share includes the time after the last segment.
    pub(super) fn judged(&self, share: &Share) -> io::Result<Part> {
        let mut part = self.parts.get(share.side).map_or_else(Part::default, Part::behind);
        let Some(direction) = self.directions.get(share.side).and_then(Option::as_ref) else { return Ok(part) };
        let (conn, bounds) = (self.row.conn, Bounds::of(direction));
        let facts = Facts { conn, direction, bounds, revised: &self.revised, wanted: self.wanted };
        let [before, after] = edges(direction);
        facts.add_edge(before.as_ref().filter(|_| share.is_first), &mut part);
        self.each(share, |record| facts.judge(record, &mut part))?;
        facts.add_edge(after.as_ref().filter(|_| share.is_last), &mut part);
        Ok(part)
    }

    /// Returns the wait that ended with `frame`, with the revised kind of its segment, and the facts of its direction.
    pub(super) fn wait_before(mut self, frame: u64) -> io::Result<Option<(WaitRecord, DirectionFacts)>> {
        let shares = std::mem::take(&mut self.shares);
        if self.needs_pauses {
            for share in &shares {
                self.add_pauses(share, self.pauses(share)?);
            }
            self.set_idle_bounds();
        }
        let (mut found, mut side) = (None, 0);
        for share in &shares {
            self.each(share, |record| {
                if record.frame == frame {
                    (found, side) = (Some(WaitRecord { kind: self.revised.of(record), ..*record }), share.side);
                }
            })?;
        }
        Ok(found.zip(self.directions.into_iter().nth(side).flatten()))
    }

    /// Adds the results of the next share, and its rows to `rows`.
    pub(super) fn add(&mut self, share: &Share, part: Part, rows: &mut JudgedRows) {
        let direction = self.directions.get(share.side).and_then(Option::as_ref);
        if let Some(own) = self.parts.get_mut(share.side) {
            own.append(part, direction.and_then(|direction| direction.max_window_bytes), rows);
        }
    }

    /// Nanoseconds of each cause, per direction; `None` if the connection has no times.
    pub(super) fn sums(&self) -> Option<[Sums; 2]> {
        let known = self.directions.iter().all(Option::is_some);
        known.then(|| self.parts.each_ref().map(|part| part.sums))
    }

    /// For each direction, the rivals that have more than half of its unknown time.
    pub(super) fn rivals(&self) -> [Rivals; 2] {
        self.parts.each_ref().map(|part| part.rivals.of_most())
    }

    /// The connection number and the details of a connection whose waits are all judged.
    pub(super) fn into_details(mut self) -> io::Result<(u32, [Option<DirectionDetails>; 2])> {
        if !self.wanted.details {
            self.judge_again_for_details()?;
        }
        let Self { row, directions: [client, server], parts: [of_client, of_server], .. } = self;
        Ok((row.conn, [details(client, of_client), details(server, of_server)]))
    }

    fn judge_again_for_details(&mut self) -> io::Result<()> {
        self.wanted = Wanted { details: true, ..Wanted::default() };
        self.parts = [Part::new(self.wanted), Part::new(self.wanted)];
        for side in 0..2 {
            for share in self.blocks.get(side).map_or_else(Vec::new, |blocks| shares(blocks, side)) {
                self.add(&share, self.judged(&share)?, &mut JudgedRows::default());
            }
        }
        Ok(())
    }
}

/// Sets how long silence must last to be idle. The bounds are given for the client's direction first, and for the
/// server's direction second.
fn set_idle_bounds(directions: &mut [Option<DirectionFacts>; 2], [client_ns, server_ns]: [i64; 2]) {
    for (direction, bounds_ns) in directions.iter_mut().zip([(client_ns, server_ns), (server_ns, client_ns)]) {
        if let Some(direction) = direction {
            (direction.idle_after_ns, direction.receiver_idle_after_ns) = bounds_ns;
        }
    }
}

/// Divides the blocks of a direction into shares. There is always at least one share, because the edges of the
/// direction belong to a share.
fn shares(blocks: &[StoredBlock], side: usize) -> Vec<Share> {
    let mut shares = vec![Share { side, blocks: 0..0, records: 0, is_first: true, is_last: false }];
    for (block, place) in blocks.iter().zip(0..) {
        if shares.last().is_none_or(|share| share.records >= SHARE_RECORDS) {
            shares.push(Share { side, blocks: place..place, records: 0, is_first: false, is_last: false });
        }
        if let Some(share) = shares.last_mut() {
            share.blocks.end = place + 1;
            share.records += block.records();
        }
    }
    if let Some(share) = shares.last_mut() {
        share.is_last = true;
    }
    shares
}

fn details(direction: Option<DirectionFacts>, part: Part) -> Option<DirectionDetails> {
    let (direction, evidence) = (direction?, *part.details?);
    let life_ns = direction.life_ns();
    let Evidence { lengths, longest, locks, .. } = evidence;
    let waits = longest.kept(life_ns, Bounds::of(&direction).threshold_ns);
    Some(DirectionDetails { direction, kinds: lengths.kinds(), waits, lock: locks.most_expensive() })
}
