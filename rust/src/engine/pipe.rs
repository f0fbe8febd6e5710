//! Channels between the threads. A full chunk goes to the receiver, and comes back empty for reuse.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use super::shards::shard_of;
use crate::table::SegmentRows;
use crate::wire::Packet;

/// Maximum number of chunks that wait between two threads.
pub(super) const CHUNKS_IN_FLIGHT: usize = 4;

/// A chunk of packets, with the number of each packet's flow table.
#[derive(Debug)]
pub(super) struct Packets {
    pub packets: Vec<Packet>,
    pub shards: Vec<u8>,
}

impl Packets {
    fn with_capacity(size: usize) -> Self {
        Self { packets: Vec::with_capacity(size), shards: Vec::with_capacity(size) }
    }
}

/// Collects packets for all workers. Each worker gets all packets, and processes only the packets of its own flow
/// tables.
pub(super) struct Spread {
    chunk: Packets,
    size: usize,
    full: Vec<SyncSender<Arc<Packets>>>,
    spare: Receiver<Packets>,
}

/// The receiving end of a worker's channel.
#[derive(Debug)]
pub(super) struct Outlet {
    taken: Receiver<Arc<Packets>>,
    used: Sender<Packets>,
}

/// Creates the channels from the reading thread to `readers` workers, with chunks of `size` packets. Used chunks come
/// back through a separate channel.
pub(super) fn spread(size: usize, readers: usize) -> (Spread, Vec<Outlet>) {
    let (used, spare) = channel();
    let (full, outlets) = (0..readers)
        .map(|_| {
            let (full, taken) = sync_channel(CHUNKS_IN_FLIGHT);
            (full, Outlet { taken, used: used.clone() })
        })
        .unzip();
    (Spread { chunk: Packets::with_capacity(size), size, full, spare }, outlets)
}

impl Spread {
    /// Packets are added to this vector.
    #[inline]
    pub(super) fn packets(&mut self) -> &mut Vec<Packet> {
        &mut self.chunk.packets
    }

    /// Sends the chunk if it is full. Returns false if the receiver was dropped.
    #[inline]
    pub(super) fn pass_on_if_full(&mut self) -> bool {
        self.chunk.packets.len() < self.size || self.pass_on()
    }

    pub(super) fn pass_on(&mut self) -> bool {
        if self.chunk.packets.is_empty() {
            return true;
        }
        let next = self.spare.try_recv().unwrap_or_else(|_| Packets::with_capacity(self.size));
        let mut chunk = std::mem::replace(&mut self.chunk, next);
        chunk.shards.extend(chunk.packets.iter().map(shard_of));
        let chunk = Arc::new(chunk);
        self.full.iter().all(|full| full.send(Arc::clone(&chunk)).is_ok())
    }
}

impl Outlet {
    /// Receives the next chunk, which has at least one packet, or `None` at the end.
    pub(super) fn next(&self) -> Option<Arc<Packets>> {
        self.taken.recv().ok()
    }

    /// Returns a used chunk, which is reused after the last worker has returned it.
    pub(super) fn give_back(&self, chunk: Arc<Packets>) {
        if let Some(mut chunk) = Arc::into_inner(chunk) {
            chunk.packets.clear();
            chunk.shards.clear();
            // Sending fails if the receiver was dropped. In this case, the chunk is not reused.
            let _ = self.used.send(chunk);
        }
    }
}

/// Collects segment rows, and sends them in messages of type `M`.
pub(super) struct Inlet<M> {
    pub(super) rows: SegmentRows,
    size: usize,
    pub(super) full: SyncSender<M>,
    spare: Receiver<SegmentRows>,
}

impl<M: From<SegmentRows>> Inlet<M> {
    /// An inlet that sends chunks of `size` rows to `full`, and reuses chunks from `spare`.
    pub(super) fn new(size: usize, full: SyncSender<M>, spare: Receiver<SegmentRows>) -> Self {
        Self { rows: SegmentRows::default(), size, full, spare }
    }

    /// Sends the rows if the chunk is full. Returns false if the receiver was dropped.
    #[inline]
    pub(super) fn pass_on_if_full(&mut self) -> bool {
        self.rows.len() < self.size || self.pass_on()
    }

    pub(super) fn pass_on(&mut self) -> bool {
        if self.rows.is_empty() {
            return true;
        }
        let next = self.spare.try_recv().unwrap_or_default();
        let rows = std::mem::replace(&mut self.rows, next);
        self.full.send(rows.into()).is_ok()
    }
}
