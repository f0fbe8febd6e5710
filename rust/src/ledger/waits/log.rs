//! A log contains the waits of one direction until its connection ends.
//!
//! A log is a sequence of blocks that can be read independently. Blocks are in memory at first, and move to the spool
//! when all logs together use too much memory.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;

use super::super::direction::PauseCounts;
use super::encoding::{Decoder, Encoder};
use super::record::WaitRecord;
use super::spool::{self, Spool};
use crate::connection::Kind;

/// Size of a block in bytes, for a few thousand records. A block of this size is large enough to be read in one call,
/// and small enough to be distributed among threads.
const BLOCK_BYTES: usize = if cfg!(test) {
    2 << 10
} else if cfg!(feature = "small-limits") {
    256
} else {
    128 << 10
};

/// Initial capacity of a block in bytes: one or two records, which suffices for most connections.
const FIRST_BYTES: usize = 120;

/// Consecutive encoded records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    pub records: u32,
    pub bytes: Vec<u8>,
}

/// The waits of one direction of an open connection. The struct takes only 64 bytes, because there may be a hundred
/// thousand logs.
#[derive(Debug, Default)]
pub(super) struct WaitLog {
    open: Option<Box<OpenBlock>>,
    /// Blocks in memory that get no more records.
    full: Vec<Block>,
    /// The newest block in the spool. Each block in the spool contains the position of the previous block.
    spooled: Option<NonZeroU64>,
    longest_ns: i64,
    pauses: PauseCounts,
    records: u32,
}

/// The block to which the next record is appended.
#[derive(Debug, Default)]
struct OpenBlock {
    block: Block,
    /// The last record of the block.
    before: WaitRecord,
}

impl WaitLog {
    /// Adds a record. Returns the number of bytes by which the memory of the log grew.
    #[inline]
    pub(super) fn add(&mut self, record: &mut WaitRecord, from_client: bool, encoder: &mut Encoder) -> usize {
        let mut more_bytes = if self.open.is_none() { size_of::<OpenBlock>() } else { 0 };
        let OpenBlock { block, before } = &mut **self.open.get_or_insert_default();
        let capacity = block.bytes.capacity();
        self.longest_ns = self.longest_ns.max(record.wait.wait_ns.get().unwrap_or(0));
        self.pauses.add(record, from_client);
        if capacity == 0 {
            block.bytes.reserve(FIRST_BYTES);
        }
        encoder.put(record, before, &mut block.bytes);
        more_bytes += block.bytes.capacity() - capacity;
        block.records += 1;
        self.records = self.records.saturating_add(1);
        *before = *record;
        if block.bytes.len() >= BLOCK_BYTES {
            let block = std::mem::take(block);
            *before = WaitRecord::default();
            self.full.push(block);
        }
        more_bytes
    }

    /// Closes the open block, which frees its copy of the last record. Returns the number of bytes by which the memory
    /// shrank.
    pub(super) fn compact(&mut self) -> usize {
        let before_bytes = self.memory_bytes();
        if let Some(open) = self.open.take() {
            let mut block = open.block;
            block.bytes.shrink_to_fit();
            self.full.reserve_exact(1);
            self.full.push(block);
        }
        before_bytes.saturating_sub(self.memory_bytes())
    }

    /// Bytes of memory that the log uses, besides the struct itself.
    pub(super) fn memory_bytes(&self) -> usize {
        let open_bytes = self.open.as_deref().map_or(0, |open| size_of::<OpenBlock>() + open.block.bytes.capacity());
        self.full.iter().fold(open_bytes, |sum, block| sum + block.bytes.capacity())
    }

    fn take_blocks(&mut self) -> Vec<Block> {
        let mut blocks = std::mem::take(&mut self.full);
        blocks.extend(self.open.take().map(|open| open.block).filter(|block| block.records > 0));
        blocks
    }

    /// Moves everything in memory to the spool.
    pub(super) fn spill(&mut self, spool: &mut Spool) -> io::Result<()> {
        for block in self.take_blocks() {
            self.spooled = Some(spool.append(self.spooled, block.records, &block.bytes)?);
        }
        Ok(())
    }

    fn ended(mut self, spool: Option<&Arc<File>>) -> EndedLog {
        let later = self.take_blocks().into_iter().map(StoredBlock::InMemory).collect();
        let Self { longest_ns, pauses, records, .. } = self;
        EndedLog { spooled: self.spooled.zip(spool.cloned()), later, longest_ns, pauses, records }
    }
}

/// The waits of one direction of a connection that has ended.
#[derive(Debug, Default)]
pub struct EndedLog {
    /// The newest block in the spool of open connections.
    spooled: Option<(NonZeroU64, Arc<File>)>,
    /// The blocks that follow the blocks in the spool.
    later: Vec<StoredBlock>,
    pub(crate) longest_ns: i64,
    pub(crate) pauses: PauseCounts,
    records: u32,
}

impl EndedLog {
    /// Calls `take` with each record, in order of time.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub fn each_record(&self, mut take: impl FnMut(&WaitRecord)) -> io::Result<()> {
        let earlier = self.earlier_blocks()?;
        earlier.iter().chain(&self.later).try_for_each(|block| block.each(&mut take))
    }

    pub(crate) fn records(&self) -> u32 {
        self.records
    }

    /// The blocks, in order of time. Blocks in the spool are not read yet.
    pub(crate) fn into_blocks(self) -> io::Result<Vec<StoredBlock>> {
        let mut blocks = self.earlier_blocks()?;
        blocks.extend(self.later);
        Ok(blocks)
    }

    /// The blocks in the spool of open connections, in order of time.
    fn earlier_blocks(&self) -> io::Result<Vec<StoredBlock>> {
        let Some((newest, file)) = &self.spooled else { return Ok(Vec::new()) };
        let mut blocks = Vec::new();
        let mut next = Some(*newest);
        while let Some(at) = next {
            let (chunk, before) = spool::chunk(file, at)?;
            blocks.push(StoredBlock::Spooled(chunk, Arc::clone(file)));
            next = before;
        }
        blocks.reverse();
        Ok(blocks)
    }
}

#[derive(Debug)]
pub(crate) enum StoredBlock {
    InMemory(Block),
    Spooled(spool::Chunk, Arc<File>),
}

impl StoredBlock {
    pub(crate) fn records(&self) -> u64 {
        match self {
            Self::InMemory(block) => block.records.into(),
            Self::Spooled(chunk, _) => chunk.records.into(),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Self::InMemory(block) => block.bytes.capacity(),
            Self::Spooled(..) => 0,
        }
    }

    /// Moves the records of the block to a spool, if they are in memory.
    fn spill(&mut self, spool: &mut Spool) -> io::Result<()> {
        if let Self::InMemory(block) = self {
            *self = Self::Spooled(spool.append_alone(block.records, &block.bytes)?, Arc::clone(spool.file()));
        }
        Ok(())
    }

    pub(crate) fn each(&self, take: impl FnMut(&WaitRecord)) -> io::Result<()> {
        match self {
            Self::InMemory(block) => Decoder::new(&block.bytes).each(take),
            Self::Spooled(chunk, file) => Decoder::new(&chunk.read(file)?).each(take),
        }
        Ok(())
    }
}

/// The waits of an open connection.
#[derive(Debug, Default)]
pub(super) struct ConnectionLog {
    /// The client's log, then the server's.
    pub directions: [WaitLog; 2],
    /// Frames that later proved to be of another kind, in the order of discovery.
    pub revised: Vec<(u64, Kind)>,
}

impl ConnectionLog {
    pub(super) fn ended(self, spool: Option<&Arc<File>>) -> EndedWaits {
        EndedWaits { directions: self.directions.map(|log| log.ended(spool)), revised: Revised::new(self.revised) }
    }
}

/// The waits of a connection that has ended.
#[derive(Debug, Default)]
pub struct EndedWaits {
    /// The client's log, then the server's.
    pub directions: [EndedLog; 2],
    /// Frames of this connection that later proved to be of another kind.
    pub revised: Revised,
}

impl EndedWaits {
    /// Number of waits of both directions together.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.directions.iter().map(|log| u64::from(log.records)).sum()
    }

    /// Bytes of memory of the records of both directions together.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.directions.iter().flat_map(|log| &log.later).map(StoredBlock::memory_bytes).sum()
    }

    /// Moves all records to a spool. The records can be read again when the spool has been written.
    pub(crate) fn spill(&mut self, spool: &mut Spool) -> io::Result<()> {
        self.directions.iter_mut().flat_map(|log| &mut log.later).try_for_each(|block| block.spill(spool))
    }
}

/// The final kind of each frame that later proved to be of another kind.
#[derive(Clone, Debug, Default)]
pub struct Revised(Vec<(u64, Kind)>);

impl Revised {
    /// Keeps the last kind that was found for each frame.
    fn new(mut verdicts: Vec<(u64, Kind)>) -> Self {
        verdicts.sort_by_key(|(frame, _)| *frame);
        verdicts.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 = later.1;
            }
            same
        });
        Self(verdicts)
    }

    /// The kind of the record's segment, after revision.
    #[inline]
    pub(crate) fn of(&self, record: &WaitRecord) -> Kind {
        if self.0.is_empty() {
            return record.kind;
        }
        let found = self.0.binary_search_by_key(&record.frame, |(frame, _)| *frame).ok();
        found.and_then(|at| self.0.get(at)).map_or(record.kind, |(_, kind)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::Revised;
    use crate::connection::Kind;
    use crate::ledger::WaitRecord;

    #[test]
    fn the_last_verdict_on_a_frame_counts() {
        let (resent, spurious) = (Kind::Retransmit, Kind::Spurious);
        let revised = Revised::new(vec![(9, spurious), (4, spurious), (9, resent), (4, resent), (4, spurious)]);
        let kind = |frame| revised.of(&WaitRecord { frame, kind: Kind::New, ..WaitRecord::default() });
        assert_eq!([4, 5, 9].map(kind), [spurious, Kind::New, resent]);
    }
}
