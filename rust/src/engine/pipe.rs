//! Channels between the threads: chunks of items go one way, and come back empty to be filled again.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use crate::table::SegmentRows;

/// Chunks on their way between two threads.
pub(super) const CHUNKS_IN_FLIGHT: usize = 4;

/// What items are collected in.
pub(super) trait Chunk {
    /// An empty one for `size` items.
    fn for_items(size: usize) -> Self;
    /// Number of items.
    fn items(&self) -> usize;
}

impl<T> Chunk for Vec<T> {
    fn for_items(size: usize) -> Self {
        Self::with_capacity(size)
    }

    #[inline]
    fn items(&self) -> usize {
        self.len()
    }
}

impl Chunk for SegmentRows {
    /// Memory is taken as it is needed.
    fn for_items(_size: usize) -> Self {
        Self::default()
    }

    /// Samples count, because they may come without a row; and segments, where no row of them is wanted.
    #[inline]
    fn items(&self) -> usize {
        let seen = if self.is_empty() { self.seen as usize } else { 0 };
        self.len().max(self.samples.len()).max(seen)
    }
}

/// The two ends of a channel that carries chunks of `size` items; used chunks go back and are filled again.
pub(super) fn pipe<T>(size: usize) -> (Inlet<Vec<T>, Vec<T>>, Outlet<T>) {
    let (full, taken) = sync_channel(CHUNKS_IN_FLIGHT);
    let (used, spare) = channel();
    (Inlet::new(size, full, spare), Outlet { taken, used })
}

/// Where chunks are filled. `M` is what they travel as.
pub(super) struct Inlet<C, M> {
    pub(super) chunk: C,
    size: usize,
    pub(super) full: SyncSender<M>,
    spare: Receiver<C>,
}

impl<C: Chunk, M: From<C>> Inlet<C, M> {
    /// Chunks of `size` items go to `full` and come back by `spare`.
    pub(super) fn new(size: usize, full: SyncSender<M>, spare: Receiver<C>) -> Self {
        Self { chunk: C::for_items(size), size, full, spare }
    }

    /// Passes the chunk on if it is full. False when nobody listens any more.
    #[inline]
    pub(super) fn pass_on_if_full(&mut self) -> bool {
        self.chunk.items() < self.size || self.pass_on()
    }

    pub(super) fn pass_on(&mut self) -> bool {
        let next = self.spare.try_recv().unwrap_or_else(|_| C::for_items(self.size));
        let chunk = std::mem::replace(&mut self.chunk, next);
        chunk.items() == 0 || self.full.send(chunk.into()).is_ok()
    }
}

/// Where chunks are used.
#[derive(Debug)]
pub(super) struct Outlet<T> {
    taken: Receiver<Vec<T>>,
    used: Sender<Vec<T>>,
}

impl<T> Outlet<T> {
    /// The next chunk, never empty; `None` at the end.
    pub(super) fn next(&self) -> Option<Vec<T>> {
        self.taken.recv().ok()
    }

    pub(super) fn give_back(&self, mut chunk: Vec<T>) {
        chunk.clear();
        // The other end may be gone: then the chunk is of no more use.
        let _ = self.used.send(chunk);
    }
}
