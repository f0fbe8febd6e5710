//! Runs the layers as a pipeline of threads in limited memory. One thread reads and dissects frames, workers track
//! connections, and the caller's thread builds columns. At most a few chunks of fixed size wait between two threads.
//!
//! ```text
//! read ─┬─ track (flow tables 0, 2, 4, 6) ─┬─ caller: numbers connections, judges their waits, builds columns
//!       └─ track (flow tables 1, 3, 5, 7) ─┘
//! ```
//!
//! There is a fixed number of flow tables, and each connection belongs to one of them. The flow tables are divided
//! among the workers, one worker per processor. Segment rows must be in the order of the capture, so a pass with
//! segment rows has only one worker.

mod batch;
mod judged;
mod numbers;
mod pipe;
mod reader;
mod shards;
mod summary;
mod worker;

pub use summary::Summary;

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
pub use batch::Batch;
use judged::Judged;
use numbers::Numbers;
use pipe::{CHUNKS_IN_FLIGHT, Inlet, spread};
use reader::FrameReader;
use shards::SHARDS;
use worker::{Epoch, Rows, UdpRows, Wanted, Worker, WorkerResult, ended};

use crate::capture::{Capture, Progress};
use crate::connection::{MAX_REVISIONS, Revision, Revisions};
use crate::error::{CaptureError, Problem};
use crate::flows::{Accounting, ConnectionRow, Connections, Only};
use crate::ledger::summary::costs::MOST;
use crate::ledger::summary::rows::DirectionDetails;
use crate::ledger::waits::live::MAX_MEMORY_BYTES;
use crate::ledger::{EndedWaits, Worth};
use crate::table::{self, SegmentRows, Segments};
use crate::wire::PathNames;

/// Number of packets per chunk. A chunk fits into a core's cache, but is so large that passing it to another thread
/// costs little per packet.
const CHUNK_PACKETS: usize = 1024;
/// Default number of rows per batch, so that a batch fits into a core's second-level cache.
pub const DEFAULT_BATCH_ROWS: usize = 4096;

/// In a pass without segment rows, at most this many reports of each worker wait for the caller. A report can contain
/// thousands of connections.
const EPOCHS_IN_FLIGHT: usize = 2;

/// Approximate number of rows per batch of remaining connections, after the end of the capture.
const REST_ROWS: usize = 1024;

/// What a pass over a capture produces.
#[allow(clippy::struct_excessive_bools)] // each of them is a separate, named option
#[derive(Debug)]
pub struct Options {
    /// Rows per batch.
    pub batch_rows: usize,
    /// Columns of the segments table, or `None` for all columns. An empty list gives no segment rows.
    pub columns: Option<Vec<String>>,
    /// The requested connections of an earlier pass, or `None` for all connections.
    pub only: Option<Only>,
    /// Whether to produce rows of UDP datagrams.
    pub datagrams: bool,
    /// Whether to produce rows of UDP flows.
    pub flows: bool,
    /// Whether to produce rows of connections.
    pub summaries: bool,
    /// Columns of the ledger, or `None` for no ledger. An empty list gives rows without columns, one for each interval.
    pub ledger: Option<Vec<String>>,
    /// Thresholds for findings. If there are thresholds, the pass produces accounts and the evidence for findings
    /// ([`Engine::details`]).
    pub worth: Option<Vec<Worth>>,
    /// Maximum number of costs whose evidence is kept. If more costs exceed the thresholds, the evidence of the largest
    /// costs is kept.
    pub most: usize,
    /// Number of connections in the whole capture, or 0 if unknown. A second pass needs this number, because `only` can
    /// exclude connections.
    ///
    /// Up to [`MAX_CONNECTIONS`](crate::ledger::summary::MAX_CONNECTIONS) connections are judged together, because
    /// connections can share a path. `only` must be `None` if connections are judged together.
    pub in_capture: usize,
    /// Memory limit for the waits of open connections. An equal limit applies to the waits of ended connections. Waits
    /// beyond a limit go to a temporary file.
    pub waits_memory_bytes: usize,
    /// Number of workers in a pass without segment rows, or `None` for one per processor.
    pub threads: Option<NonZeroUsize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            batch_rows: DEFAULT_BATCH_ROWS,
            columns: None,
            only: None,
            datagrams: false,
            flows: false,
            summaries: true,
            ledger: None,
            worth: None,
            most: MOST,
            in_capture: 0,
            waits_memory_bytes: MAX_MEMORY_BYTES,
            threads: None,
        }
    }
}

/// One pass over one capture.
///
/// ```
/// use tcptrace_lab_core::engine::{Batch, Engine, Options};
///
/// let columns = Some(vec!["frame".to_owned(), "kind".to_owned()]);
/// let mut engine = Engine::open(&["../captures/ethernet-loss.pcapng"], Options { columns, ..Options::default() })?;
/// let (mut segments, mut connections) = (0, 0);
/// while let Some(batch) = engine.next_batch()? {
///     match batch {
///         Batch::Segments(rows) => segments += rows.num_rows(),
///         Batch::Connections(rows) => connections += rows.num_rows(),
///         _ => {}
///     }
/// }
/// assert_eq!((segments, connections), (505, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Engine {
    segments: Segments,
    wants_rows: bool,
    summaries: bool,
    flows: bool,
    paths: PathNames,
    rows: Vec<Receiver<Rows>>,
    /// Index of the worker whose rows are received next. An epoch is a fixed number of chunks. All workers' reports on
    /// an epoch are received before any report on the next epoch.
    turn: usize,
    epochs: Vec<Epoch>,
    numbers: Numbers,
    used_rows: Sender<SegmentRows>,
    threads: Option<Threads>,
    ended: Ended,
    progress: Progress,
    segments_seen: u64,
    datagrams_seen: u64,
    judged: Judged,
}

#[derive(Debug)]
struct Threads {
    reading: JoinHandle<Summary>,
    workers: Vec<JoinHandle<WorkerResult>>,
}

/// The results of the threads after their end.
#[derive(Debug, Default)]
struct Ended {
    threads: Vec<WorkerResult>,
    /// Index of the next flow table with remaining rows.
    shard: usize,
    revisions: Revisions,
    summary: Summary,
}

impl Engine {
    /// Opens the captures `paths` and starts to read. Several captures are merged by time. The path `-` is stdin.
    ///
    /// # Errors
    /// A file cannot be opened or is not a capture.
    pub fn open(paths: &[impl AsRef<OsStr>], options: Options) -> Result<Self, CaptureError> {
        Self::of(Capture::open(paths)?, options)
    }

    /// Starts to read an opened capture.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn of(capture: Capture, options: Options) -> Result<Self, CaptureError> {
        let progress = capture.progress();
        // At this point, only the file headers are known. The rest of the summary is added at the end of the capture.
        let summary = Summary { capture: capture.info(), ..Summary::default() };
        let judged =
            Judged::new(options.ledger, options.worth, options.most, options.in_capture, options.waits_memory_bytes);
        let only = options.only.map(Arc::new);
        let reader = FrameReader::new(capture, only.clone());
        let path_names = reader.dissector.path_names();
        let table = Segments::new(options.columns.as_deref());
        let wants_rows = options.columns.is_none_or(|columns| !columns.is_empty());
        let summaries = options.summaries;
        let counted = summaries || judged.wanted() || table.has_departures();
        let accounts = if counted { Accounting::Kept } else { Accounting::Omitted };
        let waits_memory_bytes = judged.wanted().then_some(options.waits_memory_bytes);
        let threads = options.threads.map_or_else(processors, NonZeroUsize::get).min(SHARDS);
        let count = if wants_rows { 1 } else { threads };
        let numbers = Numbers::of(if count > 1 && only.is_none() { count } else { 0 });
        let flows = options.flows;
        let udp = UdpRows { datagrams: options.datagrams, flows };
        let wanted = Wanted { only, accounts, udp, summaries, segments: wants_rows, waits_memory_bytes };
        let (mut to_workers, outlets) = spread(CHUNK_PACKETS, count);
        let (used_rows, spare) = channel();
        let mut spare = Some(spare);
        let spawn_error = |error| CaptureError::io("", &error);
        let reading = std::thread::Builder::new()
            .name("read".into())
            .spawn(move || reader.run(&mut to_workers))
            .map_err(spawn_error)?;
        let (mut rows, mut workers) = (Vec::new(), Vec::new());
        for (thread, outlet) in outlets.into_iter().enumerate() {
            let (full, taken) = sync_channel(if wants_rows { CHUNKS_IN_FLIGHT } else { EPOCHS_IN_FLIGHT });
            let spare = spare.take().unwrap_or_else(|| channel().1);
            let inlet = Inlet::new(options.batch_rows.max(1), full, spare);
            let worker = Worker::new(thread, count, wanted.clone(), inlet);
            let started = std::thread::Builder::new().name("track".into()).spawn(move || worker.run(&outlet));
            workers.push(started.map_err(spawn_error)?);
            rows.push(taken);
        }
        Ok(Self {
            segments: table,
            wants_rows,
            summaries,
            flows,
            paths: path_names,
            rows,
            turn: 0,
            epochs: Vec::new(),
            numbers,
            used_rows,
            threads: Some(Threads { reading, workers }),
            ended: Ended { summary, ..Ended::default() },
            progress,
            segments_seen: 0,
            datagrams_seen: 0,
            judged,
        })
    }

    /// The schema of ledger batches.
    ///
    /// # Errors
    /// No error occurs in practice, because the batch behind the schema is empty.
    pub fn ledger_schema(&self) -> Result<SchemaRef, ArrowError> {
        self.judged.ledger_schema()
    }

    /// The schema of segment batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.segments.schema()
    }

    /// The next batch of rows, or `None` at the end.
    ///
    /// # Errors
    /// [`ArrowError::IoError`] if waits cannot be stored in temporary files. Other errors do not occur in practice (see
    /// [`Segments::batch`]).
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
                    Rest::None if self.judged.complete()? => continue,
                    Rest::None => return Ok(None),
                    Rest::Some(batch) => batch,
                },
            };
            if batch.is_some() {
                return Ok(batch);
            }
        }
    }

    /// Receives the report of one worker. After the report of the last worker, numbers the new connections and returns
    /// the finished ones.
    fn epoch(&mut self, mut epoch: Epoch) -> Result<Option<Batch>, ArrowError> {
        if let Some(error) = epoch.failure.take() {
            self.rows.clear();
            return Err(self.judged.fail(error));
        }
        self.segments_seen += epoch.segments;
        self.datagrams_seen += epoch.datagrams;
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

    /// An empty batch if the next segment row may be far away, so that the caller can show progress. The result is
    /// `None` if segment rows follow each other without long waits.
    fn nothing(&self) -> Option<Batch> {
        (!self.wants_rows || self.datagrams_seen > 0)
            .then(|| Batch::Segments(RecordBatch::new_empty(self.segments.schema())))
    }

    fn segments(&mut self, mut rows: SegmentRows) -> Result<Batch, ArrowError> {
        let batch = self.segments.batch(&rows, &self.paths)?;
        rows.clear();
        // Sending fails if the receiver was dropped. In this case, the rows are not reused.
        let _ = self.used_rows.send(rows);
        Ok(Batch::Segments(batch))
    }

    /// The batch of finished connections, if the caller wants it. The waits of the connections are queued for judging.
    fn connections(&mut self, rows: Vec<ConnectionRow>, waits: Vec<EndedWaits>) -> Result<Option<Batch>, ArrowError> {
        let resolution_ns = self.ended.summary.capture.resolution_ns;
        let batch =
            self.summaries.then(|| table::connections(&rows, resolution_ns)).transpose()?.map(Batch::Connections);
        self.judged.add(rows, waits)?;
        Ok(batch)
    }

    /// Returns the remaining connections and flows at the end of the capture.
    fn rest(&mut self) -> Result<Rest, ArrowError> {
        if let Some(threads) = self.threads.take() {
            // Dropping the receivers ends a worker that is waiting to send rows.
            self.rows.clear();
            self.ended = Ended::of(threads);
        }
        if !self.summaries && !self.flows && !self.judged.wanted() {
            return Ok(Rest::None);
        }
        let (mut rows, mut waits) = (Vec::new(), Vec::new());
        while self.ended.shard < SHARDS && rows.len() < REST_ROWS {
            let (shard, threads) = (self.ended.shard, self.ended.threads.len());
            let thread = shard % threads;
            let Some(result) = self.ended.threads.get_mut(thread) else { break };
            match result.tables.get_mut(shard / threads).and_then(Connections::take_rest) {
                Some(mut some) => {
                    waits.append(&mut ended(result.waits.as_mut(), &some));
                    self.numbers.renumber(thread, &mut some);
                    rows.append(&mut some);
                }
                None => self.ended.shard += 1,
            }
        }
        if !rows.is_empty() {
            return self.connections(rows, waits).map(Rest::Some);
        }
        let flows = self.ended.threads.first_mut().and_then(|first| first.flows.take_rest());
        match flows.filter(|_| self.flows) {
            Some(rows) => Ok(Rest::Some(Some(Batch::Flows(table::flows(&rows)?)))),
            None => Ok(Rest::None),
        }
    }

    /// The evidence for findings. It covers the connections that lose the most time, and failed handshakes. The
    /// evidence is complete as soon as [`Engine::next_batch`] has returned `None`.
    pub fn details(&self) -> impl Iterator<Item = (u32, &DirectionDetails)> {
        self.judged.details()
    }

    /// The number of bytes read from the files.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Number of segments up to the last batch, with or without segment rows.
    #[must_use]
    pub fn segments_seen(&self) -> u64 {
        self.segments_seen
    }

    /// Number of datagrams up to the last batch, or 0 if neither datagrams nor flows are requested.
    #[must_use]
    pub fn datagrams_seen(&self) -> u64 {
        self.datagrams_seen
    }

    /// The revised kinds of earlier segments. The list is empty until [`Engine::next_batch`] has returned `None`.
    #[must_use]
    pub fn revisions(&self) -> &[Revision] {
        self.ended.revisions.as_slice()
    }

    /// The summary of the capture. Until [`Engine::next_batch`] has returned `None`, the summary contains only data
    /// from the file headers.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.ended.summary
    }
}

enum Rest {
    None,
    /// The batch of the processed rows, if there is one. More rows can follow.
    Some(Option<Batch>),
}

/// Waits for a thread and returns its result. A panic of the thread continues in the caller.
fn join<T>(thread: JoinHandle<T>) -> T {
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

impl Ended {
    fn of(Threads { reading, workers }: Threads) -> Self {
        let mut threads: Vec<_> = workers.into_iter().map(join).collect();
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

/// The flow tables of all workers.
fn tables(threads: &[WorkerResult]) -> impl Iterator<Item = &Connections> {
    threads.iter().flat_map(|thread| &thread.tables)
}

/// Number of threads that this machine can run at the same time.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// The problems for connections and flows that were closed before they had ended.
fn closed_early(threads: &[WorkerResult]) -> impl Iterator<Item = Problem> + use<> {
    let counts = [
        (
            tables(threads).map(Connections::closed_for_room).sum(),
            "more connections at a time than are followed: the longest idle one was closed; its later segments count as \
             another connection",
        ),
        (
            tables(threads).map(Connections::closed_idle).sum(),
            "a connection among many was silent for more than 2 hours: it was closed; its later segments count as another \
             connection",
        ),
        (
            threads.iter().map(|thread| thread.flows.closed_early()).sum(),
            "more UDP flows at a time than are followed: a long idle one was closed; its later datagrams count as \
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
            "more than {MAX_REVISIONS} segments got another kind later: the rest keep their first kind; the counts are correct"
        ),
        path: OsString::new(),
        frame: None,
        offset: None,
        count,
        loses_data: false,
    })
}
