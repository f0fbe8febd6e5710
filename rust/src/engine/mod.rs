//! Drives the layers as a pipeline of three threads with bounded memory: one reads frames and takes them apart, one
//! concludes, and the caller's builds columns. Between them go a few chunks of fixed size.

mod batch;
mod judged;
mod pipe;
mod reader;
mod selection;
mod summary;

pub use summary::Summary;

use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
pub use batch::Batch;
use judged::Judged;
use pipe::{CHUNKS_IN_FLIGHT, Inlet, Outlet, pipe};
use reader::FrameReader;
use selection::Selection;

use crate::capture::{Capture, Progress};
use crate::connection::{MAX_REVISIONS, Revision, Revisions};
use crate::error::{CaptureError, Problem};
use crate::flows::{Accounting, ConnectionRow, Connections, DatagramRow, FlowRow, Flows, Only};
use crate::ledger::costs::MOST;
use crate::ledger::live::MOST_MEMORY_BYTES;
use crate::ledger::summary::DirectionDetails;
use crate::ledger::{EndedWaits, LiveWaits, Worth};
use crate::table::{self, Sample, SegmentRows, Segments};
use crate::wire::{Packet, PathNames};

/// Packets handed over at a time: few enough to stay in a core's cache, many enough to make the handing-over free.
const CHUNK_PACKETS: usize = 1024;
/// Rows per batch where the caller does not say: as many as fit a core's second-level cache.
pub const DEFAULT_BATCH_ROWS: usize = 4096;

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
    /// Whether times are wanted ([`Engine::take_samples`]).
    pub samples: bool,
    /// The columns of the ledger, if every interval of every direction is wanted; none is one of them if empty.
    pub ledger: Option<Vec<String>>,
    /// What is worth a finding, if accounts and what findings are made of are wanted ([`Engine::details`]).
    pub worth: Option<Vec<Worth>>,
    /// How many costs that are worth a finding are kept, the largest ones.
    pub most: usize,
    /// Memory that the waits of live connections may take together; beyond it, they go to a temporary file.
    pub waits_memory_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            batch_rows: DEFAULT_BATCH_ROWS,
            columns: None,
            only: None,
            datagrams: false,
            summaries: true,
            samples: false,
            ledger: None,
            worth: None,
            most: MOST,
            waits_memory_bytes: MOST_MEMORY_BYTES,
        }
    }
}

/// One pass over one capture.
#[derive(Debug)]
pub struct Engine {
    segments: Segments,
    summaries: bool,
    paths: PathNames,
    rows: Receiver<Rows>,
    used_rows: Sender<SegmentRows>,
    concluding: Option<JoinHandle<Conclusion>>,
    conclusion: Conclusion,
    progress: Progress,
    samples: Vec<Sample>,
    segments_seen: u64,
    judged: Judged,
}

/// Rows on their way to the caller.
#[derive(Debug)]
enum Rows {
    Segments(SegmentRows),
    Datagrams(Vec<DatagramRow>),
    /// With the waits of each, if they will be judged.
    Connections(Vec<ConnectionRow>, Vec<EndedWaits>),
    Flows(Vec<FlowRow>),
    /// Waits could not be kept: nothing more will come.
    Failed(std::io::Error),
}

impl From<SegmentRows> for Rows {
    fn from(rows: SegmentRows) -> Self {
        Self::Segments(rows)
    }
}

/// What the threads leave behind at the end.
#[derive(Debug, Default)]
struct Conclusion {
    connections: Connections,
    revisions: Revisions,
    waits: Option<LiveWaits>,
    flows: Flows,
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
            samples,
            ledger,
            worth,
            most,
            waits_memory_bytes,
        } = options;
        let judged = Judged::new(ledger, worth, most);
        let only = only.map(Arc::new);
        let reader = FrameReader::new(capture, only.clone());
        let path_names = reader.dissector.path_names();
        let (mut to_concluding, packets) = pipe(CHUNK_PACKETS);
        let (full, rows) = sync_channel(CHUNKS_IN_FLIGHT);
        let (used_rows, spare) = channel();
        let segments = Inlet::new(batch_rows.max(1), full, spare);
        let table = Segments::new(columns.as_deref());
        let counted = summaries || judged.wanted() || table.has_departures();
        let accounts = if counted { Accounting::Kept } else { Accounting::Omitted };
        let waits = judged.wanted().then(|| LiveWaits::within(waits_memory_bytes));
        let nothing = columns.as_ref().is_some_and(Vec::is_empty);
        let selection = Selection::new(samples, nothing, waits);
        let wanted = Wanted { segments, selection, only, accounts, datagrams, summaries };
        let spawn_error = |error| CaptureError::io("", &error);
        let reading = std::thread::Builder::new()
            .name("read".into())
            .spawn(move || reader.run(&mut to_concluding))
            .map_err(spawn_error)?;
        let concluding = std::thread::Builder::new()
            .name("conclude".into())
            .spawn(move || {
                let Concluded { mut connections, flows, waits } = conclude(&packets, wanted);
                drop(packets);
                let mut summary = Summary { connections: connections.len(), ..join(reading) };
                summary.problems.extend(closed_early(&connections, &flows));
                let revisions = connections.take_revisions();
                summary.problems.extend(not_revised(&revisions));
                Conclusion { connections, revisions, waits, flows, summary }
            })
            .map_err(spawn_error)?;
        Ok(Self {
            segments: table,
            summaries,
            paths: path_names,
            rows,
            used_rows,
            concluding: Some(concluding),
            conclusion: Conclusion { summary, ..Conclusion::default() },
            progress,
            samples: Vec::new(),
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
            let batch = match self.rows.recv() {
                Ok(Rows::Segments(rows)) => Some(self.segments(rows)?),
                Ok(Rows::Datagrams(rows)) => Some(Batch::Datagrams(table::datagrams(&rows, &self.paths)?)),
                Ok(Rows::Connections(rows, waits)) => self.connections(rows, waits)?,
                Ok(Rows::Flows(rows)) => Some(Batch::Flows(table::flows(&rows)?)),
                Ok(Rows::Failed(error)) => return Err(self.judged.fail(error)),
                Err(_) => match self.rest()? {
                    Rest::None => return Ok(None),
                    Rest::Some(batch) => batch,
                },
            };
            if batch.is_some() {
                return Ok(batch);
            }
        }
    }

    fn segments(&mut self, mut rows: SegmentRows) -> Result<Batch, ArrowError> {
        let batch = if rows.is_empty() {
            RecordBatch::new_empty(self.segments.schema())
        } else {
            self.segments.batch(&rows, &self.paths)?
        };
        self.samples.append(&mut rows.samples);
        self.segments_seen += rows.seen;
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
        if let Some(concluding) = self.concluding.take() {
            self.conclusion = join(concluding);
        }
        if !self.summaries && !self.judged.wanted() {
            return Ok(Rest::None);
        }
        let Conclusion { connections, waits, flows, .. } = &mut self.conclusion;
        if let Some(rows) = connections.take_rest() {
            let waits = ended(waits.as_mut(), &rows);
            return self.connections(rows, waits).map(Rest::Some);
        }
        match flows.take_rest().filter(|_| self.summaries) {
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

    /// The times of the batches so far, each once; none unless they were wanted.
    #[must_use]
    pub fn take_samples(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.samples)
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

/// The waits of connections that are over, if waits are kept.
fn ended(waits: Option<&mut LiveWaits>, rows: &[ConnectionRow]) -> Vec<EndedWaits> {
    waits.map_or_else(Vec::new, |waits| rows.iter().map(|row| waits.end(row.conn)).collect())
}

/// A thread's result; its panic goes on in this one.
fn join<T>(thread: JoinHandle<T>) -> T {
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// What the caller wants of the conclusions.
struct Wanted {
    segments: Inlet<SegmentRows, Rows>,
    selection: Selection,
    only: Option<Arc<Only>>,
    accounts: Accounting,
    datagrams: bool,
    summaries: bool,
}

/// What the concluding thread leaves behind.
struct Concluded {
    connections: Connections,
    flows: Flows,
    waits: Option<LiveWaits>,
}

/// The concluding thread: packets → rows, until there are no more or nobody wants them.
fn conclude(packets: &Outlet<Packet>, wanted: Wanted) -> Concluded {
    let Wanted { mut segments, mut selection, only, accounts, datagrams, summaries } = wanted;
    let (mut connections, mut flows) = (Connections::of(only, accounts), Flows::default());
    'chunks: while let Some(chunk) = packets.next() {
        let mut datagram_rows = Vec::new();
        for packet in &chunk {
            match packet {
                Packet::Tcp(segment) => {
                    connections.take(segment, &mut selection.onto(&mut segments.chunk));
                    selection.revise(connections.revisions());
                    if !segments.pass_on_if_full() {
                        break 'chunks;
                    }
                }
                Packet::Udp(datagram) if datagrams => datagram_rows.push(flows.take(datagram)),
                Packet::Udp(_) => {}
            }
        }
        packets.give_back(chunk);
        let full = &segments.full;
        if !datagram_rows.is_empty() && full.send(Rows::Datagrams(datagram_rows)).is_err() {
            break;
        }
        if let Some(error) = selection.waits.as_mut().and_then(LiveWaits::take_failure) {
            let _ = segments.full.send(Rows::Failed(error)); // the other end may be gone
            break;
        }
        if !hand_out_closed(&mut connections, &mut flows, &mut segments, &mut selection, summaries) {
            break;
        }
    }
    segments.pass_on();
    Concluded { connections, flows, waits: selection.waits }
}

/// Passes on the rows of connections and flows that are over, once they are many, behind their segments and datagrams.
/// False when nobody listens any more.
fn hand_out_closed(
    connections: &mut Connections,
    flows: &mut Flows,
    segments: &mut Inlet<SegmentRows, Rows>,
    selection: &mut Selection,
    wanted: bool,
) -> bool {
    let over = connections.take_closed();
    selection.forget(over.as_deref().unwrap_or_default());
    let connections_over = over.filter(|_| wanted || selection.waits.is_some()).map(|rows| {
        let waits = ended(selection.waits.as_mut(), &rows);
        Rows::Connections(rows, waits)
    });
    let closed = [connections_over, flows.take_closed().filter(|_| wanted).map(Rows::Flows)];
    closed.into_iter().flatten().all(|rows| segments.pass_on() && segments.full.send(rows).is_ok())
}

/// What was let go of before it was over.
fn closed_early(connections: &Connections, flows: &Flows) -> impl Iterator<Item = Problem> + use<> {
    let counts = [
        (
            connections.closed_for_room(),
            "more connections at a time than are followed: the longest silent was closed; what it still sent counts as \
             another connection",
        ),
        (
            connections.closed_idle(),
            "a connection among many was silent for more than 2 hours and was closed; what it still sent counts as \
             another connection",
        ),
        (
            flows.closed_early(),
            "more UDP flows at a time than are followed: a long silent one was closed; what it still sent counts as \
             another flow",
        ),
    ];
    counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| Problem {
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
