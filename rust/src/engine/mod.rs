//! Drives the layers as a pipeline of three threads with bounded memory: one reads frames and takes them apart, one
//! concludes, and the caller's builds columns. Between them go a few chunks of fixed size.

mod pipe;
mod reader;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use pipe::{Inlet, Outlet, pipe};
use reader::FrameReader;

use crate::capture::{Capture, CaptureInfo, LinkType};
use crate::connection::{ConnectionRow, Connections, DatagramRow, FlowRow, Flows, Only, SegmentRow};
use crate::error::{CaptureError, Problem};
use crate::table;
use crate::wire::{Packet, PathNames};

/// Packets handed over at a time: few enough to stay in a core's cache, many enough to make the handing-over free.
const CHUNK_PACKETS: usize = 1024;
/// Chunks on their way between two threads.
const CHUNKS_IN_FLIGHT: usize = 4;
/// Rows per batch where the caller does not say: as many as fit a core's second-level cache.
pub const DEFAULT_BATCH_ROWS: usize = 4096;

/// What a pass over a capture should give.
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
    /// Whether rows of connections that are closed to make room are wanted.
    pub closed_connections: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { batch_rows: DEFAULT_BATCH_ROWS, columns: None, only: None, datagrams: false, closed_connections: true }
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
    columns: Option<Vec<String>>,
    paths: PathNames,
    rows: Receiver<Rows>,
    used_rows: Sender<Vec<SegmentRow>>,
    concluding: Option<JoinHandle<Conclusion>>,
    conclusion: Conclusion,
}

/// A batch of one of the two tables that are read row by row.
#[derive(Debug)]
pub enum Batch {
    /// Of the segments table.
    Segments(RecordBatch),
    /// Of the datagrams table.
    Datagrams(RecordBatch),
    /// Of the connections table: some that were closed to make room for others.
    Connections(RecordBatch),
}

/// Rows on their way to the caller.
#[derive(Debug)]
enum Rows {
    Segments(Vec<SegmentRow>),
    Datagrams(Vec<DatagramRow>),
    Connections(Vec<ConnectionRow>),
}

impl From<Vec<SegmentRow>> for Rows {
    fn from(rows: Vec<SegmentRow>) -> Self {
        Self::Segments(rows)
    }
}

/// What the threads leave behind at the end.
#[derive(Debug, Default)]
struct Conclusion {
    connections: Connections,
    flows: Flows,
    summary: Summary,
}

impl Engine {
    /// Opens `paths` (one capture, or several merged by time; `-` is stdin) and starts to read.
    ///
    /// # Errors
    /// A file that cannot be opened or is not a capture.
    pub fn open(paths: &[String], options: Options) -> Result<Self, CaptureError> {
        let capture = Capture::open(paths)?;
        let Options { batch_rows, columns, only, datagrams, closed_connections } = options;
        let only = only.map(Arc::new);
        let reader = FrameReader::new(capture, only.clone());
        let path_names = reader.dissector.path_names();
        let (mut to_concluding, packets) = pipe(CHUNK_PACKETS);
        let (full, rows) = sync_channel(CHUNKS_IN_FLIGHT);
        let (used_rows, spare) = channel();
        let batch_rows = batch_rows.max(1);
        let segments = Inlet { chunk: Vec::with_capacity(batch_rows), size: batch_rows, full, spare };
        let wanted = Wanted { segments, only, datagrams, closed_connections };
        let spawn_error = |error| CaptureError::io(&paths.join(", "), &error);
        let reading = std::thread::Builder::new()
            .name("read".into())
            .spawn(move || reader.run(&mut to_concluding))
            .map_err(spawn_error)?;
        let concluding = std::thread::Builder::new()
            .name("conclude".into())
            .spawn(move || {
                let (connections, flows) = conclude(&packets, wanted);
                drop(packets);
                let mut summary = Summary { connections: connections.len(), ..join(reading) };
                summary.problems.extend(closed_early(&connections));
                Conclusion { connections, flows, summary }
            })
            .map_err(spawn_error)?;
        Ok(Self {
            columns,
            paths: path_names,
            rows,
            used_rows,
            concluding: Some(concluding),
            conclusion: Conclusion::default(),
        })
    }

    /// The schema of the segment batches.
    ///
    /// # Errors
    /// None in practice; see [`table::segments`].
    pub fn schema(&self) -> Result<SchemaRef, ArrowError> {
        table::segments_schema(self.columns.as_deref())
    }

    /// The next batch of rows; `None` at the end.
    ///
    /// # Errors
    /// None in practice; see [`table::segments`].
    pub fn next_batch(&mut self) -> Result<Option<Batch>, ArrowError> {
        let batch = match self.rows.recv() {
            Ok(Rows::Segments(mut rows)) => {
                let batch = table::segments(&rows, &self.paths, self.columns.as_deref());
                rows.clear();
                // The other end may be gone: then the rows are of no more use.
                let _ = self.used_rows.send(rows);
                Batch::Segments(batch?)
            }
            Ok(Rows::Datagrams(rows)) => Batch::Datagrams(table::datagrams(&rows, &self.paths)?),
            Ok(Rows::Connections(rows)) => Batch::Connections(table::connections(&rows)?),
            Err(_) => {
                self.finish();
                return Ok(None);
            }
        };
        Ok(Some(batch))
    }

    /// Hands out the rows of all UDP flows, by number; none before the batches are exhausted.
    #[must_use]
    pub fn flow_rows(&self) -> Vec<FlowRow> {
        self.conclusion.flows.rows().collect()
    }

    /// Hands out the rows of all connections, by number, some at a time; none before the batches are exhausted, and none
    /// the second time.
    pub fn take_connection_rows(&mut self) -> impl Iterator<Item = Vec<ConnectionRow>> + use<> {
        std::mem::take(&mut self.conclusion.connections).into_rows()
    }

    /// What was read; empty before the batches are exhausted.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.conclusion.summary
    }

    fn finish(&mut self) {
        if let Some(concluding) = self.concluding.take() {
            self.conclusion = join(concluding);
        }
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
    segments: Inlet<SegmentRow, Rows>,
    only: Option<Arc<Only>>,
    datagrams: bool,
    closed_connections: bool,
}

/// The concluding thread: packets → rows, until there are no more or nobody wants them.
fn conclude(packets: &Outlet<Packet>, wanted: Wanted) -> (Connections, Flows) {
    let Wanted { mut segments, only, datagrams, closed_connections } = wanted;
    let (mut connections, mut flows) = (Connections::of(only), Flows::default());
    while let Some(chunk) = packets.next() {
        let mut datagram_rows = Vec::new();
        for packet in &chunk {
            match packet {
                Packet::Tcp(segment) => {
                    connections.take(segment, &mut segments.chunk);
                    if !segments.pass_on_if_full() {
                        return (connections, flows);
                    }
                }
                Packet::Udp(datagram) if datagrams => datagram_rows.push(flows.take(datagram)),
                Packet::Udp(_) => {}
            }
        }
        packets.give_back(chunk);
        if let Some(closed) = connections.take_closed()
            && closed_connections
            && segments.full.send(Rows::Connections(closed)).is_err()
        {
            break;
        }
        if !datagram_rows.is_empty() && segments.full.send(Rows::Datagrams(datagram_rows)).is_err() {
            break;
        }
    }
    segments.pass_on();
    (connections, flows)
}

fn closed_early(connections: &Connections) -> Option<Problem> {
    let count = connections.closed_early();
    let what = "more connections at a time than are followed: the longest silent was closed; what it still sent counts as \
                another connection";
    (count > 0).then(|| Problem {
        what: what.into(),
        path: String::new(),
        frame: None,
        offset: None,
        count,
        loses_data: false,
    })
}
