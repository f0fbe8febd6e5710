//! Channels between the threads: chunks of items go one way, and come back empty to be filled again.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use super::CHUNKS_IN_FLIGHT;

/// The two ends of a channel that carries chunks of `size` items; used chunks go back and are filled again.
pub(super) fn pipe<T>(size: usize) -> (Inlet<T, Vec<T>>, Outlet<T>) {
    let (full, taken) = sync_channel(CHUNKS_IN_FLIGHT);
    let (used, spare) = channel();
    (Inlet { chunk: Vec::with_capacity(size), size, full, spare }, Outlet { taken, used })
}

/// Where chunks are filled. `M` is what they travel as.
pub(super) struct Inlet<T, M> {
    pub(super) chunk: Vec<T>,
    pub(super) size: usize,
    pub(super) full: SyncSender<M>,
    pub(super) spare: Receiver<Vec<T>>,
}

impl<T, M: From<Vec<T>>> Inlet<T, M> {
    /// Passes the chunk on if it is full. False when nobody listens any more.
    #[inline]
    pub(super) fn pass_on_if_full(&mut self) -> bool {
        self.chunk.len() < self.size || self.pass_on()
    }

    pub(super) fn pass_on(&mut self) -> bool {
        let next = self.spare.try_recv().unwrap_or_else(|_| Vec::with_capacity(self.size));
        let chunk = std::mem::replace(&mut self.chunk, next);
        chunk.is_empty() || self.full.send(chunk.into()).is_ok()
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
