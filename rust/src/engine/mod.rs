//! Drives the layers as a pipeline of three threads with bounded memory: one reads frames and takes them apart, one
//! concludes, and the caller's builds columns. Between them go a few chunks of fixed size.

mod pipe;
mod reader;
mod selection;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use pipe::{Inlet, Outlet, pipe};
use reader::FrameReader;
use selection::Selection;

use crate::capture::{Capture, CaptureInfo, LinkType, Progress};
use crate::connection::{
    Accounting, ConnectionRow, Connections, DatagramRow, FlowRow, Flows, MAX_REVISIONS, Only, Revision, Revisions,
};
use crate::error::{CaptureError, Problem};
use crate::table::{self, Sample, SegmentRows, Segments};
use crate::wire::{Packet, PathNames};

/// Packets handed over at a time: few enough to stay in a core's cache, many enough to make the handing-over free.
const CHUNK_PACKETS: usize = 1024;
/// Chunks on their way between two threads.
const CHUNKS_IN_FLIGHT: usize = 4;
/// Rows per batch where the caller does not say: as many as fit a core's second-level cache.
pub const DEFAULT_BATCH_ROWS: usize = 4096;

/// What a pass over a capture should give.
#[allow(clippy::struct_excessive_bools)] // each asks for something else, by name
#[derive(Debug)]
pub struct Options {
    /// Rows per batch.
    pub batch_rows: usize,
    /// Columns of the segments table; `None`: all.
    pub columns: Option<Vec<String>>,
    /// Connections, known from a pass before, whose segments are wanted; `None`: all.
    pub only: Option<Only>,
    /// Whether UDP datagrams are wanted, too.
    pub datagrams: bool,
    /// Whether the rows of connections and flows are wanted.
    pub summaries: bool,
    /// Whether of segments only those are wanted that ended a wait of their sender.
    pub departures: bool,
    /// Whether times are wanted ([`Engine::take_samples`]).
    pub samples: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            batch_rows: DEFAULT_BATCH_ROWS,
            columns: None,
            only: None,
            datagrams: false,
            summaries: true,
            departures: false,
            samples: false,
        }
    }
}

/// What was read so far.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// What the files said about themselves.
    pub capture: CaptureInfo,
    /// Link type → packets that had it.
    pub link_types: BTreeMap<LinkType, u64>,
    /// Frames, as Wireshark numbers them.
    pub packets: u64,
    /// TCP segments.
    pub tcp_segments: u64,
    /// Connections.
    pub connections: usize,
    /// UDP datagrams.
    pub udp_datagrams: u64,
    /// Earliest and latest capture time.
    pub first_ts_ns: Option<i64>,
    /// See `first_ts_ns`.
    pub last_ts_ns: Option<i64>,
    /// Frames of which the capture holds less than was on the wire.
    pub snaplen_cut: u64,
    /// Frames with a time before that of the frame before them.
    pub clock_steps: u64,
    /// What was survived.
    pub problems: Vec<Problem>,
}

impl Summary {
    /// Whether everything in the files could be used.
    #[must_use]
    pub fn complete(&self) -> bool {
        !self.problems.iter().any(|problem| problem.loses_data)
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
}

/// A batch of one of the tables. A connection and a flow come when they are over, behind their last segment or datagram.
#[derive(Debug)]
pub enum Batch {
    /// Of the segments table.
    Segments(RecordBatch),
    /// Of the datagrams table.
    Datagrams(RecordBatch),
    /// Of the connections table: some that were closed, or the rest at the end; not in the order of their numbers.
    Connections(RecordBatch),
    /// Of the flows table, likewise.
    Flows(RecordBatch),
}

/// Rows on their way to the caller.
#[derive(Debug)]
enum Rows {
    Segments(SegmentRows),
    Datagrams(Vec<DatagramRow>),
    Connections(Vec<ConnectionRow>),
    Flows(Vec<FlowRow>),
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
        let Options { batch_rows, columns, only, datagrams, summaries, departures, samples } = options;
        let only = only.map(Arc::new);
        let reader = FrameReader::new(capture, only.clone());
        let path_names = reader.dissector.path_names();
        let (mut to_concluding, packets) = pipe(CHUNK_PACKETS);
        let (full, rows) = sync_channel(CHUNKS_IN_FLIGHT);
        let (used_rows, spare) = channel();
        let segments = Inlet::new(batch_rows.max(1), full, spare);
        let table = Segments::new(columns.as_deref());
        let counted = summaries || departures || table.has_departures();
        let accounts = if counted { Accounting::Kept } else { Accounting::Omitted };
        let selection = Selection::new(departures, samples);
        let wanted = Wanted { segments, selection, only, accounts, datagrams, summaries };
        let spawn_error = |error| CaptureError::io("", &error);
        let reading = std::thread::Builder::new()
            .name("read".into())
            .spawn(move || reader.run(&mut to_concluding))
            .map_err(spawn_error)?;
        let concluding = std::thread::Builder::new()
            .name("conclude".into())
            .spawn(move || {
                let (mut connections, flows) = conclude(&packets, wanted);
                drop(packets);
                let mut summary = Summary { connections: connections.len(), ..join(reading) };
                summary.problems.extend(closed_early(&connections, &flows));
                let revisions = connections.take_revisions();
                summary.problems.extend(not_revised(&revisions));
                Conclusion { connections, revisions, flows, summary }
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
        })
    }

    /// The schema of the segment batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.segments.schema()
    }

    /// The next batch of rows; `None` at the end.
    ///
    /// # Errors
    /// None in practice; see [`Segments::batch`].
    pub fn next_batch(&mut self) -> Result<Option<Batch>, ArrowError> {
        let batch = match self.rows.recv() {
            Ok(Rows::Segments(mut rows)) => {
                let batch = self.segments.batch(&rows, &self.paths);
                self.samples.append(&mut rows.samples);
                self.segments_seen += rows.seen;
                rows.clear();
                // The other end may be gone: then the rows are of no more use.
                let _ = self.used_rows.send(rows);
                Batch::Segments(batch?)
            }
            Ok(Rows::Datagrams(rows)) => Batch::Datagrams(table::datagrams(&rows, &self.paths)?),
            Ok(Rows::Connections(rows)) => Batch::Connections(table::connections(&rows)?),
            Ok(Rows::Flows(rows)) => Batch::Flows(table::flows(&rows)?),
            Err(_) => return self.rest(),
        };
        Ok(Some(batch))
    }

    /// What is left at the end: the connections and flows that are not yet handed out.
    fn rest(&mut self) -> Result<Option<Batch>, ArrowError> {
        if let Some(concluding) = self.concluding.take() {
            self.conclusion = join(concluding);
        }
        if !self.summaries {
            return Ok(None);
        }
        let Conclusion { connections, flows, .. } = &mut self.conclusion;
        if let Some(rows) = connections.take_rest() {
            return table::connections(&rows).map(|batch| Some(Batch::Connections(batch)));
        }
        flows.take_rest().map(|rows| table::flows(&rows).map(Batch::Flows)).transpose()
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

/// The concluding thread: packets → rows, until there are no more or nobody wants them.
fn conclude(packets: &Outlet<Packet>, wanted: Wanted) -> (Connections, Flows) {
    let Wanted { mut segments, mut selection, only, accounts, datagrams, summaries } = wanted;
    let (mut connections, mut flows) = (Connections::of(only, accounts), Flows::default());
    while let Some(chunk) = packets.next() {
        let mut datagram_rows = Vec::new();
        for packet in &chunk {
            match packet {
                Packet::Tcp(segment) => {
                    connections.take(segment, &mut selection.onto(&mut segments.chunk));
                    if !segments.pass_on_if_full() {
                        return (connections, flows);
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
        if !hand_out_closed(&mut connections, &mut flows, &mut segments, &mut selection, summaries) {
            break;
        }
    }
    segments.pass_on();
    (connections, flows)
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
    let closed = [over.map(Rows::Connections), flows.take_closed().map(Rows::Flows)];
    closed.into_iter().flatten().all(|rows| !wanted || segments.pass_on() && segments.full.send(rows).is_ok())
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
