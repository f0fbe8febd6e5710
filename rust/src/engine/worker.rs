//! The worker threads turn packets into rows. Each worker has its own flow tables.

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

/// Number of chunks between two reports of a worker.
const EPOCH_CHUNKS: u32 = 16;
/// Marks a flow table of another worker.
const NOT_MINE: u8 = u8::MAX;

/// What a worker sends to the caller.
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

/// The report of one worker on an epoch, which is a fixed number of chunks. All workers report on the same chunks.
#[derive(Debug, Default)]
pub(super) struct Epoch {
    /// Number of segments, with or without segment rows.
    pub segments: u64,
    /// Number of datagrams, or 0 if neither datagrams nor flows are requested.
    pub datagrams: u64,
    /// Indices of the packets that opened connections. The indices count all packets of the epoch, including the
    /// packets of other workers.
    pub opened: Vec<u32>,
    pub over: Vec<Over>,
    /// The error that prevented the storing of waits. The worker stops after such an error.
    pub failure: Option<io::Error>,
}

/// Finished connections of one flow table.
#[derive(Debug)]
pub(super) struct Over {
    pub shard: usize,
    pub rows: Vec<ConnectionRow>,
    /// The waits of each finished connection; empty if waits are not kept.
    pub waits: Vec<EndedWaits>,
}

/// The UDP rows that the caller wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct UdpRows {
    pub datagrams: bool,
    pub flows: bool,
}

/// The results that the caller wants from the workers.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub only: Option<Arc<Only>>,
    pub accounts: Accounting,
    pub udp: UdpRows,
    pub summaries: bool,
    /// Whether the caller wants segment rows.
    pub segments: bool,
    /// Memory limit for the waits of open connections, or `None` if waits are not kept.
    pub waits_memory_bytes: Option<usize>,
}

/// The state of a worker after its last packet.
#[derive(Debug)]
pub(super) struct WorkerResult {
    pub tables: Vec<Connections>,
    pub flows: Flows,
    pub waits: Option<LiveWaits>,
}

pub(super) struct Worker {
    /// The index of each flow table in `tables`, or [`NOT_MINE`].
    mine: [u8; SHARDS],
    /// The numbers of the flow tables in `tables`.
    shards: Vec<usize>,
    tables: Vec<Connections>,
    flows: Flows,
    sink: Sink,
    /// Number of connections that this worker has opened.
    count: u32,
    /// Number of packets in this epoch, including the packets of other workers.
    packets: u32,
    epoch: Epoch,
    wanted: Wanted,
}

impl Worker {
    /// Worker number `thread` of `threads`.
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

    /// Processes packets until the capture ends or the receiver is dropped.
    pub(super) fn run(mut self, packets: &Outlet) -> WorkerResult {
        let mut chunks = 0_u32;
        while let Some(chunk) = packets.next() {
            let may_continue = self.take(&chunk);
            packets.give_back(chunk);
            chunks = chunks.wrapping_add(1);
            if !may_continue || (chunks.is_multiple_of(EPOCH_CHUNKS) && !self.end_epoch()) {
                break;
            }
        }
        let _ = self.sink.rows.pass_on() && self.end_epoch(); // the receiver was possibly dropped
        WorkerResult { tables: self.tables, flows: self.flows, waits: self.sink.waits }
    }

    /// Processes a chunk. Returns false if the receiver was dropped.
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
                Packet::Udp(datagram) if self.wanted.udp.datagrams || self.wanted.udp.flows => {
                    self.epoch.datagrams += 1;
                    let row = self.flows.take(datagram);
                    if self.wanted.udp.datagrams {
                        datagram_rows.push(row);
                    }
                }
                Packet::Udp(_) => {}
            }
        }
        datagram_rows.is_empty() || self.sink.rows.full.send(Rows::Datagrams(datagram_rows)).is_ok()
    }

    #[inline]
    fn take_segment(&mut self, segment: &Segment, at: usize) {
        let Some(table) = self.tables.get_mut(at) else { return };
        self.epoch.segments += 1;
        let before = table.len();
        table.number_from(self.count);
        table.take(segment, &mut self.sink);
        if table.len() > before {
            self.count = self.count.wrapping_add(1);
            self.epoch.opened.push(self.packets);
        }
        self.sink.revise(at, table.revisions());
    }

    /// Ends an epoch. If there are enough rows of finished connections and flows, sends these rows after the rows of
    /// segments and datagrams. Returns false if the receiver was dropped, or if waits cannot be stored.
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
        let may_continue = epoch.failure.is_none();
        let flows = self.flows.take_closed().filter(|_| self.wanted.udp.flows).map(Rows::Flows);
        let behind_segments = (!epoch.over.is_empty() || flows.is_some()) && !self.sink.rows.pass_on();
        let full = &self.sink.rows.full;
        !behind_segments
            && flows.into_iter().chain([Rows::Epoch(epoch)]).all(|rows| full.send(rows).is_ok())
            && may_continue
    }
}

/// The waits of finished connections; empty if waits are not kept.
pub(super) fn ended(waits: Option<&mut LiveWaits>, rows: &[ConnectionRow]) -> Vec<EndedWaits> {
    waits.map_or_else(Vec::new, |waits| rows.iter().map(|row| waits.end(row.conn)).collect())
}

/// Receives segment rows and keeps only the requested columns. Storing whole rows would take longer than the
/// classification of the segments.
struct Sink {
    rows: Inlet<Rows>,
    wants_rows: bool,
    /// The waits of open connections, or `None` if waits are not kept.
    waits: Option<LiveWaits>,
    /// Connection number of the last row.
    conn: u32,
    /// For each flow table, the number of its revisions that are already applied to `waits`.
    revised: Vec<usize>,
}

impl Sink {
    /// Applies new revisions of flow table `at` to the waits. All new revisions concern earlier segments of the last
    /// row's connection.
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
    fn over(&mut self, conn: u32) {
        if let Some(waits) = &mut self.waits {
            waits.compact(conn);
        }
    }

    #[expect(
        clippy::inline_always,
        reason = "measured: otherwise the row is built in memory before its columns are filled"
    )]
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
