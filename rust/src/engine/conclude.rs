//! The threads that conclude: packets → rows, each those of its own flow tables.

#![allow(clippy::inline_always)] // as in `table::rows`: else rows are put together first, and taken apart again

use std::io;
use std::sync::Arc;

use super::pipe::{Inlet, Outlet, Packets};
use super::shards::{SHARD_BITS, SHARDS};
use crate::connection::Revisions;
use crate::flows::{
    Accounting, ConnectionRow, Connections, DatagramRow, FlowRow, Flows, Only, SegmentRow, SegmentSink,
};
use crate::ledger::{EndedWaits, LiveWaits};
use crate::table::SegmentRows;
use crate::wire::{Packet, Segment};

/// Chunks of packets after which each thread tells what it has concluded.
const EPOCH_CHUNKS: u32 = 16;
/// No table of this thread.
const NOT_MINE: u8 = u8::MAX;

/// Rows on their way to the caller.
#[derive(Debug)]
pub(super) enum Rows {
    Segments(SegmentRows),
    Datagrams(Vec<DatagramRow>),
    Flows(Vec<FlowRow>),
    Epoch(Epoch),
}

impl From<SegmentRows> for Rows {
    fn from(rows: SegmentRows) -> Self {
        Self::Segments(rows)
    }
}

/// What one thread tells of some chunks, the same for all threads.
#[derive(Debug, Default)]
pub(super) struct Epoch {
    /// Segments, wanted or not.
    pub seen: u64,
    /// Places, among all packets of these chunks, of those that opened connections.
    pub opened: Vec<u32>,
    /// Connections that are over.
    pub over: Vec<Over>,
    /// Why waits could not be kept, if so: nothing more will come.
    pub failure: Option<io::Error>,
}

/// Connections of one flow table that are over.
#[derive(Debug)]
pub(super) struct Over {
    pub shard: usize,
    pub rows: Vec<ConnectionRow>,
    /// The waits of each, if they will be judged.
    pub waits: Vec<EndedWaits>,
}

/// What the caller wants of the conclusions.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub only: Option<Arc<Only>>,
    pub accounts: Accounting,
    pub datagrams: bool,
    pub summaries: bool,
    /// Whether rows of segments are wanted.
    pub segments: bool,
    /// Memory of the waits of live connections, if they will be judged.
    pub waits_memory_bytes: Option<usize>,
}

/// What a thread leaves behind.
#[derive(Debug)]
pub(super) struct Concluded {
    /// Its flow tables.
    pub tables: Vec<Connections>,
    pub flows: Flows,
    pub waits: Option<LiveWaits>,
}

/// One of the threads.
pub(super) struct Worker {
    /// Flow table → its place among `tables`.
    mine: [u8; SHARDS],
    /// The numbers of `tables`.
    shards: Vec<usize>,
    tables: Vec<Connections>,
    flows: Flows,
    sink: Sink,
    /// Connections that its tables have opened.
    count: u32,
    /// Packets of this epoch, of all threads.
    packets: u32,
    epoch: Epoch,
    wanted: Wanted,
}

impl Worker {
    /// That of number `thread` of so many.
    pub(super) fn new(thread: usize, threads: usize, wanted: Wanted, rows: Inlet<Rows>) -> Self {
        let shards: Vec<_> = (thread..SHARDS).step_by(threads).collect();
        let mut mine = [NOT_MINE; SHARDS];
        for (shard, at) in shards.iter().zip(0..) {
            if let Some(place) = mine.get_mut(*shard) {
                *place = at;
            }
        }
        let table = |_: &usize| Connections::one_of(SHARD_BITS, wanted.only.clone(), wanted.accounts);
        let tables: Vec<_> = shards.iter().map(table).collect();
        let waits = wanted.waits_memory_bytes.map(|bytes| LiveWaits::within(bytes / threads));
        let sink = Sink { rows, waits, wants_rows: wanted.segments, conn: 0, revised: vec![0; tables.len()] };
        let (flows, epoch) = (Flows::default(), Epoch::default());
        Self { mine, shards, tables, flows, sink, count: 0, packets: 0, epoch, wanted }
    }

    /// Takes packets until there are no more or nobody wants them.
    pub(super) fn run(mut self, packets: &Outlet) -> Concluded {
        let mut chunks = 0_u32;
        while let Some(chunk) = packets.next() {
            let goes_on = self.take(&chunk);
            packets.give_back(chunk);
            chunks = chunks.wrapping_add(1);
            if !goes_on || (chunks.is_multiple_of(EPOCH_CHUNKS) && !self.end_epoch()) {
                break;
            }
        }
        let _ = self.sink.rows.pass_on() && self.end_epoch(); // the other end may be gone
        Concluded { tables: self.tables, flows: self.flows, waits: self.sink.waits }
    }

    /// False when nobody listens any more.
    fn take(&mut self, chunk: &Packets) -> bool {
        let mut datagram_rows = Vec::new();
        for (packet, shard) in chunk.packets.iter().zip(&chunk.shards) {
            self.packets += 1;
            let at = self.mine.get(usize::from(*shard)).copied().unwrap_or(NOT_MINE);
            if at == NOT_MINE {
                continue;
            }
            match packet {
                Packet::Tcp(segment) => {
                    self.take_segment(segment, at.into());
                    if !self.sink.rows.pass_on_if_full() {
                        return false;
                    }
                }
                Packet::Udp(datagram) if self.wanted.datagrams => datagram_rows.push(self.flows.take(datagram)),
                Packet::Udp(_) => {}
            }
        }
        datagram_rows.is_empty() || self.sink.rows.full.send(Rows::Datagrams(datagram_rows)).is_ok()
    }

    #[inline]
    fn take_segment(&mut self, segment: &Segment, at: usize) {
        let Some(table) = self.tables.get_mut(at) else { return };
        self.epoch.seen += 1;
        let before = table.len();
        table.number_from(self.count);
        table.take(segment, &mut self.sink);
        if table.len() > before {
            self.count = self.count.wrapping_add(1);
            self.epoch.opened.push(self.packets);
        }
        self.sink.revise(at, table.revisions());
    }

    /// Passes on the rows of connections and flows that are over, once they are many, behind their segments and datagrams. False when
    /// nobody listens any more, or waits cannot be kept.
    fn end_epoch(&mut self) -> bool {
        let mut epoch = std::mem::take(&mut self.epoch);
        self.packets = 0;
        let waits = &mut self.sink.waits;
        let wanted = self.wanted.summaries || waits.is_some();
        for (table, shard) in self.tables.iter_mut().zip(&self.shards) {
            if let Some(rows) = table.take_closed().filter(|_| wanted) {
                epoch.over.push(Over { shard: *shard, waits: ended(waits.as_mut(), &rows), rows });
            }
        }
        epoch.failure = waits.as_mut().and_then(LiveWaits::take_failure);
        let goes_on = epoch.failure.is_none();
        let flows = self.flows.take_closed().filter(|_| self.wanted.summaries).map(Rows::Flows);
        let behind_segments = (!epoch.over.is_empty() || flows.is_some()) && !self.sink.rows.pass_on();
        let full = &self.sink.rows.full;
        !behind_segments && flows.into_iter().chain([Rows::Epoch(epoch)]).all(|rows| full.send(rows).is_ok()) && goes_on
    }
}

/// The waits of connections that are over, if waits are kept.
pub(super) fn ended(waits: Option<&mut LiveWaits>, rows: &[ConnectionRow]) -> Vec<EndedWaits> {
    waits.map_or_else(Vec::new, |waits| rows.iter().map(|row| waits.end(row.conn)).collect())
}

/// Where concluded rows go. They are picked out at once, because to carry all rows up to where they can be looked at costs more than to
/// conclude them.
struct Sink {
    rows: Inlet<Rows>,
    wants_rows: bool,
    /// The waits of live connections, if they will be judged.
    waits: Option<LiveWaits>,
    /// The connection of the last row.
    conn: u32,
    /// Revisions of each flow table that `waits` knows of.
    revised: Vec<usize>,
}

impl Sink {
    /// Remembers what the last segment, of the flow table at `at`, showed of earlier ones of its connection, if it did.
    #[inline]
    fn revise(&mut self, at: usize, revisions: &Revisions) {
        let known = revisions.as_slice();
        if let Some(waits) = &mut self.waits
            && let Some(revised) = self.revised.get_mut(at)
            && let Some(new) = known.get(*revised..).filter(|new| !new.is_empty())
        {
            waits.revise(self.conn, new);
            *revised = known.len();
        }
    }
}

impl SegmentSink for Sink {
    #[inline(always)]
    fn push(&mut self, row: SegmentRow) {
        if let Some(waits) = &mut self.waits {
            self.conn = row.conn;
            waits.add(&row);
        }
        if self.wants_rows {
            self.rows.rows.push(row);
        }
    }
}
