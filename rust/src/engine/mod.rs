//! Drives the layers as a pipeline of threads with bounded memory: one reads frames and takes them apart, others conclude, and the
//! caller's builds columns. Between them go a few chunks of fixed size.
//!
//! ```text
//! read ─┬─ conclude (flow tables 0, 2, 4, 6) ─┬─ caller: numbers connections, judges their waits, builds columns
//!       └─ conclude (flow tables 1, 3, 5, 7) ─┘
//! ```
//!
//! Connections are divided over a fixed number of flow tables, and these over as many threads as there are processors; over one thread
//! where rows of segments are wanted, because these are in the order of the capture.

mod batch;
mod conclude;
mod judged;
mod numbers;
mod pipe;
mod reader;
mod shards;
mod summary;

pub use summary::Summary;

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
pub use batch::Batch;
use conclude::{Concluded, Epoch, Rows, Wanted, Worker, ended};
use judged::Judged;
use numbers::Numbers;
use pipe::{CHUNKS_IN_FLIGHT, Inlet, spread};
use reader::FrameReader;
use shards::SHARDS;

use crate::capture::{Capture, Progress};
use crate::connection::{MAX_REVISIONS, Revision, Revisions};
use crate::error::{CaptureError, Problem};
use crate::flows::{Accounting, ConnectionRow, Connections, Only};
use crate::ledger::costs::MOST;
use crate::ledger::live::MOST_MEMORY_BYTES;
use crate::ledger::rows::DirectionDetails;
use crate::ledger::{EndedWaits, Worth};
use crate::table::{self, SegmentRows, Segments};
use crate::wire::PathNames;

/// Packets handed over at a time: few enough to stay in a core's cache, many enough to make the handing-over free.
const CHUNK_PACKETS: usize = 1024;
/// Rows per batch where the caller does not say: as many as fit a core's second-level cache.
pub const DEFAULT_BATCH_ROWS: usize = 4096;

/// Connections that are handed out at a time at the end, about.
const REST_ROWS: usize = 1024;

/// What a pass over a capture should give.
#[allow(clippy::struct_excessive_bools)] // each asks for something else, by name
#[derive(Debug)]
pub struct Options {
    /// Rows per batch.
    pub batch_rows: usize,
    /// Columns of the segments table; `None`: all; without any, no rows of it come.
    pub columns: Option<Vec<String>>,
    /// Connections, known from a pass before, whose segments are wanted; `None`: all.
    pub only: Option<Only>,
    /// Whether UDP datagrams are wanted, too.
    pub datagrams: bool,
    /// Whether the rows of connections and flows are wanted.
    pub summaries: bool,
    /// The columns of the ledger, if every interval of every direction is wanted; none is one of them if empty.
    pub ledger: Option<Vec<String>>,
    /// What is worth a finding, if accounts and what findings are made of are wanted ([`Engine::details`]).
    pub worth: Option<Vec<Worth>>,
    /// How many costs that are worth a finding are kept, the largest ones.
    pub most: usize,
    /// Memory that the waits of live connections may take together; beyond it, they go to a temporary file.
    pub waits_memory_bytes: usize,
    /// Threads that conclude, where no rows of segments are wanted; `None`: as many as there are processors.
    pub threads: Option<NonZeroUsize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            batch_rows: DEFAULT_BATCH_ROWS,
            columns: None,
            only: None,
            datagrams: false,
            summaries: true,
            ledger: None,
            worth: None,
            most: MOST,
            waits_memory_bytes: MOST_MEMORY_BYTES,
            threads: None,
        }
    }
}

/// One pass over one capture.
#[derive(Debug)]
pub struct Engine {
    segments: Segments,
    wants_rows: bool,
    summaries: bool,
    paths: PathNames,
    /// From each thread that concludes.
    rows: Vec<Receiver<Rows>>,
    /// Whose rows come next: each tells of the same chunks before any tells of later ones.
    turn: usize,
    epochs: Vec<Epoch>,
    numbers: Numbers,
    used_rows: Sender<SegmentRows>,
    threads: Option<Threads>,
    conclusion: Conclusion,
    progress: Progress,
    segments_seen: u64,
    judged: Judged,
}

/// The threads of a pass.
#[derive(Debug)]
struct Threads {
    reading: JoinHandle<Summary>,
    concluding: Vec<JoinHandle<Concluded>>,
}

/// What the threads leave behind at the end.
#[derive(Debug, Default)]
struct Conclusion {
    threads: Vec<Concluded>,
    /// The next flow table that is asked for what it has left.
    shard: usize,
    revisions: Revisions,
    summary: Summary,
}

impl Engine {
    /// Opens `paths` (one capture, or several merged by time; `-` is stdin) and starts to read.
    ///
    /// # Errors
    /// A file that cannot be opened or is not a capture.
    pub fn open(paths: &[impl AsRef<OsStr>], options: Options) -> Result<Self, CaptureError> {
        Self::of(Capture::open(paths)?, options)
    }

    /// Starts to read an opened capture.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn of(capture: Capture, options: Options) -> Result<Self, CaptureError> {
        let progress = capture.progress();
        // What the headers told is there from the start; the rest comes at the end.
        let summary = Summary { capture: capture.info(), ..Summary::default() };
        let Options {
            batch_rows,
            columns,
            only,
            datagrams,
            summaries,
            ledger,
            worth,
            most,
            waits_memory_bytes,
            threads,
        } = options;
        let judged = Judged::new(ledger, worth, most);
        let only = only.map(Arc::new);
        let reader = FrameReader::new(capture, only.clone());
        let path_names = reader.dissector.path_names();
        let table = Segments::new(columns.as_deref());
        let wants_rows = columns.is_none_or(|columns| !columns.is_empty());
        let counted = summaries || judged.wanted() || table.has_departures();
        let accounts = if counted { Accounting::Kept } else { Accounting::Omitted };
        let waits_memory_bytes = judged.wanted().then_some(waits_memory_bytes);
        let count = if wants_rows { 1 } else { threads.map_or_else(processors, NonZeroUsize::get).min(SHARDS) };
        let numbers = Numbers::of(if count > 1 && only.is_none() { count } else { 0 });
        let wanted = Wanted { only, accounts, datagrams, summaries, segments: wants_rows, waits_memory_bytes };
        let (mut to_concluding, outlets) = spread(CHUNK_PACKETS, count);
        let (used_rows, spare) = channel();
        let mut spare = Some(spare);
        let spawn_error = |error| CaptureError::io("", &error);
        let reading = std::thread::Builder::new()
            .name("read".into())
            .spawn(move || reader.run(&mut to_concluding))
            .map_err(spawn_error)?;
        let (mut rows, mut concluding) = (Vec::new(), Vec::new());
        for (thread, outlet) in outlets.into_iter().enumerate() {
            let (full, taken) = sync_channel(CHUNKS_IN_FLIGHT);
            let spare = spare.take().unwrap_or_else(|| channel().1);
            let inlet = Inlet::new(batch_rows.max(1), full, spare);
            let worker = Worker::new(thread, count, wanted.clone(), inlet);
            let started = std::thread::Builder::new().name("conclude".into()).spawn(move || worker.run(&outlet));
            concluding.push(started.map_err(spawn_error)?);
            rows.push(taken);
        }
        Ok(Self {
            segments: table,
            wants_rows,
            summaries,
            paths: path_names,
            rows,
            turn: 0,
            epochs: Vec::new(),
            numbers,
            used_rows,
            threads: Some(Threads { reading, concluding }),
            conclusion: Conclusion { summary, ..Conclusion::default() },
            progress,
            segments_seen: 0,
            judged,
        })
    }

    /// The schema of batches of the ledger.
    ///
    /// # Errors
    /// None in practice: the columns are those of an empty batch.
    pub fn ledger_schema(&self) -> Result<SchemaRef, ArrowError> {
        self.judged.ledger_schema()
    }

    /// The schema of the segment batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.segments.schema()
    }

    /// The next batch of rows; `None` at the end.
    ///
    /// # Errors
    /// Waits cannot be kept in temporary files ([`ArrowError::IoError`]); else none in practice: see [`Segments::batch`].
    pub fn next_batch(&mut self) -> Result<Option<Batch>, ArrowError> {
        loop {
            if let Some(batch) = self.judged.next_batch()? {
                return Ok(Some(batch));
            }
            let batch = match self.rows.get(self.turn).map(Receiver::recv) {
                Some(Ok(Rows::Segments(rows))) => Some(self.segments(rows)?),
                Some(Ok(Rows::Datagrams(rows))) => Some(Batch::Datagrams(table::datagrams(&rows, &self.paths)?)),
                Some(Ok(Rows::Flows(rows))) => Some(Batch::Flows(table::flows(&rows)?)),
                Some(Ok(Rows::Epoch(epoch))) => self.epoch(epoch)?,
                Some(Err(_)) | None => match self.rest()? {
                    Rest::None => return Ok(None),
                    Rest::Some(batch) => batch,
                },
            };
            if batch.is_some() {
                return Ok(batch);
            }
        }
    }

    /// A thread tells what it has concluded. Once all have, their connections are numbered, and those that are over are handed out.
    fn epoch(&mut self, mut epoch: Epoch) -> Result<Option<Batch>, ArrowError> {
        if let Some(error) = epoch.failure.take() {
            self.rows.clear();
            return Err(self.judged.fail(error));
        }
        self.segments_seen += epoch.seen;
        self.epochs.push(epoch);
        self.turn = self.epochs.len() % self.rows.len();
        if self.turn > 0 {
            return Ok(None);
        }
        let epochs = std::mem::take(&mut self.epochs);
        self.numbers.add(epochs.iter().map(|epoch| epoch.opened.as_slice()));
        let mut over = Vec::new();
        for (thread, epoch) in epochs.into_iter().enumerate() {
            over.extend(epoch.over.into_iter().map(|over| (thread, over)));
        }
        over.sort_by_key(|(_, over)| over.shard);
        let (mut rows, mut waits) = (Vec::new(), Vec::new());
        for (thread, mut over) in over {
            self.numbers.renumber(thread, &mut over.rows);
            rows.append(&mut over.rows);
            waits.append(&mut over.waits);
        }
        if rows.is_empty() { Ok(self.nothing()) } else { self.connections(rows, waits) }
    }

    /// Where no rows of segments are wanted, the caller hears now and then that reading goes on.
    fn nothing(&self) -> Option<Batch> {
        (!self.wants_rows).then(|| Batch::Segments(RecordBatch::new_empty(self.segments.schema())))
    }

    fn segments(&mut self, mut rows: SegmentRows) -> Result<Batch, ArrowError> {
        let batch = self.segments.batch(&rows, &self.paths)?;
        rows.clear();
        // The other end may be gone: then the rows are of no more use.
        let _ = self.used_rows.send(rows);
        Ok(Batch::Segments(batch))
    }

    /// Connections that are over: their batch, if it is wanted. Their waits are judged from now on.
    fn connections(&mut self, rows: Vec<ConnectionRow>, waits: Vec<EndedWaits>) -> Result<Option<Batch>, ArrowError> {
        let batch = if self.summaries { Some(Batch::Connections(table::connections(&rows)?)) } else { None };
        self.judged.add(rows, waits);
        Ok(batch)
    }

    /// What is left at the end: the connections and flows that are not yet handed out.
    fn rest(&mut self) -> Result<Rest, ArrowError> {
        if let Some(threads) = self.threads.take() {
            // A thread that waits for its rows to be taken would wait forever.
            self.rows.clear();
            self.conclusion = Conclusion::of(threads);
        }
        if !self.summaries && !self.judged.wanted() {
            return Ok(Rest::None);
        }
        let (mut rows, mut waits) = (Vec::new(), Vec::new());
        while self.conclusion.shard < SHARDS && rows.len() < REST_ROWS {
            let (shard, threads) = (self.conclusion.shard, self.conclusion.threads.len());
            let thread = shard % threads;
            let Some(concluded) = self.conclusion.threads.get_mut(thread) else { break };
            match concluded.tables.get_mut(shard / threads).and_then(Connections::take_rest) {
                Some(mut some) => {
                    waits.append(&mut ended(concluded.waits.as_mut(), &some));
                    self.numbers.renumber(thread, &mut some);
                    rows.append(&mut some);
                }
                None => self.conclusion.shard += 1,
            }
        }
        if !rows.is_empty() {
            return self.connections(rows, waits).map(Rest::Some);
        }
        let flows = self.conclusion.threads.first_mut().and_then(|first| first.flows.take_rest());
        match flows.filter(|_| self.summaries) {
            Some(rows) => Ok(Rest::Some(Some(Batch::Flows(table::flows(&rows)?)))),
            None => Ok(Rest::None),
        }
    }

    /// What findings are made of: the details of the connections that lose most time, and of those whose handshake failed; complete
    /// when the batches are exhausted.
    pub fn details(&self) -> impl Iterator<Item = (u32, &DirectionDetails)> {
        self.judged.details()
    }

    /// How much of the files was read by now.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// How many segments there were up to the last batch, wanted or not.
    #[must_use]
    pub fn segments_seen(&self) -> u64 {
        self.segments_seen
    }

    /// What later segments showed of earlier ones; none before the batches are exhausted.
    #[must_use]
    pub fn revisions(&self) -> &[Revision] {
        self.conclusion.revisions.as_slice()
    }

    /// What was read; before the batches are exhausted, only what the files' headers told.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.conclusion.summary
    }
}

/// What is left at the end.
enum Rest {
    None,
    /// Some rows; they may give no batch by themselves.
    Some(Option<Batch>),
}

/// A thread's result; its panic goes on in this one.
fn join<T>(thread: JoinHandle<T>) -> T {
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

impl Conclusion {
    /// What the threads leave behind, once they are done.
    fn of(Threads { reading, concluding }: Threads) -> Self {
        let mut threads: Vec<_> = concluding.into_iter().map(join).collect();
        let mut revisions = Revisions::default();
        for table in threads.iter_mut().flat_map(|thread| &mut thread.tables) {
            revisions.append(table.take_revisions());
        }
        let connections = tables(&threads).map(Connections::len).sum();
        let mut summary = Summary { connections, ..join(reading) };
        summary.problems.extend(closed_early(&threads));
        summary.problems.extend(not_revised(&revisions));
        Self { threads, shard: 0, revisions, summary }
    }
}

/// The flow tables of all threads.
fn tables(threads: &[Concluded]) -> impl Iterator<Item = &Connections> {
    threads.iter().flat_map(|thread| &thread.tables)
}

/// How many threads can run at a time.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// What was let go of before it was over.
fn closed_early(threads: &[Concluded]) -> impl Iterator<Item = Problem> + use<> {
    let counts = [
        (
            tables(threads).map(Connections::closed_for_room).sum(),
            "more connections at a time than are followed: the longest silent was closed; what it still sent counts as \
             another connection",
        ),
        (
            tables(threads).map(Connections::closed_idle).sum(),
            "a connection among many was silent for more than 2 hours and was closed; what it still sent counts as \
             another connection",
        ),
        (
            threads.iter().map(|thread| thread.flows.closed_early()).sum(),
            "more UDP flows at a time than are followed: a long silent one was closed; what it still sent counts as \
             another flow",
        ),
    ];
    counts.into_iter().filter(|(count, _): &(u64, _)| *count > 0).map(|(count, what)| Problem {
        what: what.into(),
        path: OsString::new(),
        frame: None,
        offset: None,
        count,
        loses_data: false,
    })
}

fn not_revised(revisions: &Revisions) -> Option<Problem> {
    let count = revisions.dropped();
    (count > 0).then(|| Problem {
        what: format!(
            "more than {MAX_REVISIONS} segments turned out later to be something else: the rest keep the kind that they had at first; \
             the counts are right"
        ),
        path: OsString::new(),
        frame: None,
        offset: None,
        count,
        loses_data: false,
    })
}
