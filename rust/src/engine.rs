//! Drives the layers as a pipeline of three threads with bounded memory: one reads frames and takes them apart, one
//! concludes, and the caller's builds columns. Between them go a few chunks of fixed size.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};

use crate::capture::{Capture, CaptureInfo, LinkType};
use crate::connection::{ConnectionRow, Connections, DatagramRow, FlowRow, Flows, Only, SegmentRow};
use crate::error::{CaptureError, Problem};
use crate::table;
use crate::wire::{self, Dissector, Packet, PathNames, Stop};

/// Packets handed over at a time: few enough to stay in a core's cache, many enough to make the handing-over free.
const CHUNK_PACKETS: usize = 1024;
/// Chunks on their way between two threads.
const CHUNKS_IN_FLIGHT: usize = 4;
/// Reasons told one by one; past them unknown link types are counted together.
const MAX_STOPS: usize = 64;
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

/// The two ends of a channel that carries chunks of `size` items; used chunks go back and are filled again.
fn pipe<T>(size: usize) -> (Inlet<T, Vec<T>>, Outlet<T>) {
    let (full, taken) = sync_channel(CHUNKS_IN_FLIGHT);
    let (used, spare) = channel();
    (Inlet { chunk: Vec::with_capacity(size), size, full, spare }, Outlet { taken, used })
}

/// Where chunks are filled. `M` is what they travel as.
struct Inlet<T, M> {
    chunk: Vec<T>,
    size: usize,
    full: SyncSender<M>,
    spare: Receiver<Vec<T>>,
}

impl<T, M: From<Vec<T>>> Inlet<T, M> {
    /// Passes the chunk on if it is full. False when nobody listens any more.
    #[inline]
    fn pass_on_if_full(&mut self) -> bool {
        self.chunk.len() < self.size || self.pass_on()
    }

    fn pass_on(&mut self) -> bool {
        let next = self.spare.try_recv().unwrap_or_else(|_| Vec::with_capacity(self.size));
        let chunk = std::mem::replace(&mut self.chunk, next);
        chunk.is_empty() || self.full.send(chunk.into()).is_ok()
    }
}

/// Where chunks are used.
#[derive(Debug)]
struct Outlet<T> {
    taken: Receiver<Vec<T>>,
    used: Sender<Vec<T>>,
}

impl<T> Outlet<T> {
    /// The next chunk, never empty; `None` at the end.
    fn next(&self) -> Option<Vec<T>> {
        self.taken.recv().ok()
    }

    fn give_back(&self, mut chunk: Vec<T>) {
        chunk.clear();
        // The other end may be gone: then the chunk is of no more use.
        let _ = self.used.send(chunk);
    }
}

/// The reading thread: frames → segments, and the account of everything that was not one.
struct FrameReader {
    capture: Capture,
    /// Of other connections, nothing is passed on.
    only: Option<Arc<Only>>,
    dissector: Dissector,
    summary: Summary,
    /// Why frames gave no segment, each reason once.
    stops: Vec<(Stop, Problem)>,
    /// Errors that ended a file early.
    ends: Vec<Problem>,
    previous_ts_ns: Option<i64>,
}

impl FrameReader {
    fn new(capture: Capture, only: Option<Arc<Only>>) -> Self {
        Self {
            capture,
            only,
            dissector: Dissector::default(),
            summary: Summary::default(),
            stops: Vec::new(),
            ends: Vec::new(),
            previous_ts_ns: None,
        }
    }

    /// Reads to the end, or until nobody listens any more.
    fn run(mut self, to_concluding: &mut Inlet<Packet, Vec<Packet>>) -> Summary {
        loop {
            match self.capture.advance() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.ends.push(ended_early(&error));
                    continue;
                }
            }
            self.read_frame(&mut to_concluding.chunk);
            if !to_concluding.pass_on_if_full() {
                break;
            }
        }
        to_concluding.pass_on();
        self.account()
    }

    #[inline]
    fn read_frame(&mut self, packets: &mut Vec<Packet>) {
        let frame = self.capture.frame();
        let summary = &mut self.summary;
        summary.packets += 1;
        if let Some(ts_ns) = frame.ts_ns {
            summary.first_ts_ns = Some(summary.first_ts_ns.map_or(ts_ns, |first| first.min(ts_ns)));
            summary.last_ts_ns = Some(summary.last_ts_ns.map_or(ts_ns, |last| last.max(ts_ns)));
            summary.clock_steps += u64::from(self.previous_ts_ns.is_some_and(|previous| ts_ns < previous));
            self.previous_ts_ns = frame.ts_ns;
        }
        summary.snaplen_cut += u64::from((frame.data.len() as u64) < u64::from(frame.original_bytes));
        if let Some(link_type) = frame.link_type {
            match summary.link_types.get_mut(&link_type) {
                Some(packets) => *packets += 1,
                None => {
                    summary.link_types.insert(link_type, 1);
                }
            }
        }
        let before = packets.len();
        match self.dissector.read(&frame, packets) {
            Ok(()) => {
                for packet in packets.get(before..).unwrap_or_default() {
                    match packet {
                        Packet::Tcp(segment) => {
                            self.summary.tcp_segments += 1;
                            if segment.bad_data_offset {
                                stopped(&mut self.stops, Stop::BadDataOffset, frame.number);
                            }
                        }
                        Packet::Udp(_) => self.summary.udp_datagrams += 1,
                    }
                }
            }
            // A fragment that waits is no loss; one that waits in vain is told of at the end.
            Err(Stop::NotTcp | Stop::Fragment) => {}
            Err(stop) => stopped(&mut self.stops, stop, frame.number),
        }
        if let Some(only) = &self.only {
            while packets.len() > before && packets.last().is_some_and(|packet| !only.wants(packet)) {
                packets.pop();
            }
        }
        for stop in self.dissector.asides().filter(|stop| !matches!(stop, Stop::NotTcp | Stop::Fragment)) {
            stopped(&mut self.stops, stop, frame.number);
        }
    }

    fn account(self) -> Summary {
        let mut problems = self.ends;
        problems.extend(self.capture.problems());
        problems.extend(self.dissector.incidents().into_iter().map(|incident| Problem {
            what: incident.what.into(),
            path: String::new(),
            frame: Some(incident.first_frame),
            offset: None,
            count: incident.count,
            loses_data: true,
        }));
        problems.extend(self.stops.into_iter().map(|(_, problem)| problem));
        Summary { capture: self.capture.info(), problems, ..self.summary }
    }
}

fn stopped(stops: &mut Vec<(Stop, Problem)>, stop: Stop, frame: u64) {
    let is_one_of_many = stops.len() >= MAX_STOPS && matches!(stop, Stop::UnknownLink(_));
    let stop =
        if is_one_of_many && stops.iter().all(|(known, _)| *known != stop) { Stop::MoreUnknownLinks } else { stop };
    if let Some((_, problem)) = stops.iter_mut().find(|(known, _)| *known == stop) {
        problem.count += 1;
        return;
    }
    let (what, loses_data) = describe(stop);
    let problem = Problem { what, path: String::new(), frame: Some(frame), offset: None, count: 1, loses_data };
    stops.push((stop, problem));
}

fn ended_early(error: &CaptureError) -> Problem {
    let lengths = match (error.field, error.required, error.got) {
        (Some(field), Some(required), Some(got)) => {
            format!(" ({field} asks for {required} bytes, {got} are there)")
        }
        _ => String::new(),
    };
    Problem {
        what: format!("{}{lengths}; everything before it was read", error.what),
        path: error.path.clone(),
        frame: error.frame,
        offset: error.offset,
        count: 1,
        loses_data: true,
    }
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

/// What a stop means for people, and whether TCP may have been lost by it.
fn describe(stop: Stop) -> (String, bool) {
    match stop {
        Stop::NotTcp | Stop::Fragment => ("not TCP".into(), false),
        Stop::Cut(header) => (
            format!("only part of the {header} was captured (snap length too small?): these frames are not analyzed"),
            true,
        ),
        Stop::Malformed(header) => (
            format!("malformed {header} (its fields contradict each other or the length of the frame): not analyzed"),
            false,
        ),
        Stop::UnknownLink(link_type) => {
            (format!("link type {link_type} ({}) is not supported: not analyzed", wire::link_name(link_type)), true)
        }
        Stop::BadDataOffset => {
            ("the TCP header's length contradicts itself or the packet: analyzed without its data".into(), false)
        }
        Stop::DamagedPdu => ("AAL5 PDU that the link damaged, headers and all: not analyzed".into(), true),
        Stop::MoreUnknownLinks => ("more link types that are not supported: not analyzed".into(), true),
        Stop::TooDeep => ("more nested headers than any real packet has: not analyzed".into(), false),
    }
}
