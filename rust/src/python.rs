//! The compiled module `tcptrace_lab._core`, with its types declared in `_core.pyi`. Only this part of the engine
//! depends on Python.

mod figures;
mod stream;

use std::ffi::OsString;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::capture::Unpacker;
use crate::engine::{self, Batch, DEFAULT_BATCH_ROWS, Options};
use crate::error::{CaptureError, ErrorKind, Problem};
use crate::flows::{Known, Only};
use crate::ledger::summary::costs::MOST;
use crate::ledger::waits::live::MAX_MEMORY_BYTES;
use crate::ledger::{Cause, Worth};
use crate::messages;
use crate::table;
use crate::wire::{link_name, link_supported};
use stream::{ArrowStream, EngineError, arrow_error, imported, stream, whole};

type Shared = Arc<Mutex<Pass>>;

/// A connection of an earlier pass: number, one endpoint, the other endpoint, (first frame, last frame).
type KnownTuple = (u32, (IpAddr, u16), (IpAddr, u16), (u64, u64));

fn known_connection((conn, one, other, frames): KnownTuple) -> Known {
    Known { conn, ends: [one, other], frames }
}

/// Locks the engine. A poisoned lock is ignored, because Python already has the panic.
fn lock(engine: &Shared) -> MutexGuard<'_, Pass> {
    engine.lock().unwrap_or_else(PoisonError::into_inner)
}

fn to_python(py: Python<'_>, error: &CaptureError) -> PyErr {
    let kind = match error.kind {
        ErrorKind::Io => "io",
        ErrorKind::NotACapture => "not_a_capture",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Cut => "cut",
        ErrorKind::Damaged => "damaged",
    };
    let exception = EngineError::new_err(error.to_string());
    let value = exception.value(py);
    let set = || -> PyResult<()> {
        value.setattr("kind", kind)?;
        value.setattr("what", &error.what)?;
        value.setattr("path", &error.path)?;
        value.setattr("offset", error.offset)?;
        value.setattr("frame", error.frame)
    };
    set().err().unwrap_or(exception)
}

/// The engine, and the batches of connections and flows that came while the caller requested only segments.
struct Pass {
    engine: engine::Engine,
    connections: Vec<RecordBatch>,
    flows: Vec<RecordBatch>,
}

impl Pass {
    /// Returns the next batch of segments or datagrams. Batches of connections and flows that come earlier are stored.
    fn next_batch(&mut self) -> Result<Option<Batch>, ArrowError> {
        loop {
            match self.engine.next_batch()? {
                Some(Batch::Connections(batch)) => self.connections.push(batch),
                Some(Batch::Flows(batch)) => self.flows.push(batch),
                Some(Batch::Accounts(_) | Batch::Ledger(_) | Batch::Notes(_)) => {}
                other => return Ok(other),
            }
        }
    }

    /// Reads the capture to its end. Batches of connections and flows are stored.
    fn read_to_end(&mut self) -> Result<(), ArrowError> {
        while self.next_batch()?.is_some() {}
        Ok(())
    }
}

/// The batches of one call of `pull`. `rows` is the total weight of these batches, expressed in segment rows.
#[derive(Default)]
struct Pulled {
    segments: Vec<RecordBatch>,
    datagrams: Vec<RecordBatch>,
    connections: Vec<RecordBatch>,
    flows: Vec<RecordBatch>,
    accounts: Vec<RecordBatch>,
    ledger: Vec<RecordBatch>,
    notes: Vec<RecordBatch>,
    rows: usize,
}

impl Pulled {
    /// Weight of a connection's row, expressed in segment rows.
    const ROWS_PER_CONNECTION: usize = 32;
    /// Weight of a flow's row, expressed in segment rows.
    const ROWS_PER_FLOW: usize = 4;
    /// Weight of a connection's account, expressed in segment rows.
    const ROWS_PER_ACCOUNT: usize = 4;

    fn add(&mut self, batch: Batch) {
        let (table, batch, weight) = match batch {
            Batch::Segments(batch) => (&mut self.segments, batch, 1),
            Batch::Datagrams(batch) => (&mut self.datagrams, batch, 1),
            Batch::Connections(batch) => (&mut self.connections, batch, Self::ROWS_PER_CONNECTION),
            Batch::Flows(batch) => (&mut self.flows, batch, Self::ROWS_PER_FLOW),
            Batch::Accounts(batch) => (&mut self.accounts, batch, Self::ROWS_PER_ACCOUNT),
            Batch::Ledger(batch) => (&mut self.ledger, batch, 1),
            Batch::Notes(batch) => (&mut self.notes, batch, 1),
        };
        self.rows += weight * batch.num_rows();
        table.push(batch);
    }
}

/// Streams of segments, ledger, datagrams, connections, flows, accounts and notes. Segments and ledger always have a
/// stream. Any other table without rows is `None`.
type PulledStreams = (
    ArrowStream,
    ArrowStream,
    Option<ArrowStream>,
    Option<ArrowStream>,
    Option<ArrowStream>,
    Option<ArrowStream>,
    Option<ArrowStream>,
);

/// The batches of a table as a stream, or `None` if there are no batches.
fn some(batches: Vec<RecordBatch>) -> Option<ArrowStream> {
    let schema = batches.first()?.schema();
    Some(stream(batches, schema))
}

/// A threshold for findings: code of the cause, minimum time in ns, minimum share of a direction's lifetime, whether it
/// applies only to the client's direction, whether it applies only to directions with data.
type WorthTuple = (u8, i64, f64, bool, bool);

fn worth((cause, ns, share, of_client_alone, of_data_alone): WorthTuple) -> PyResult<Worth> {
    let cause = Cause::ALL.get(usize::from(cause)).copied();
    let cause = cause.ok_or_else(|| PyValueError::new_err("unknown cause"))?;
    Ok(Worth { cause, ns, share, of_client_alone, of_data_alone })
}

/// Iterates over the next batches of segments, up to a number of rows.
struct SegmentBatches {
    engine: Shared,
    schema: SchemaRef,
    rows_left: usize,
}

impl Iterator for SegmentBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rows_left == 0 {
            return None;
        }
        loop {
            match lock(&self.engine).next_batch() {
                Ok(Some(Batch::Segments(batch))) => {
                    self.rows_left = self.rows_left.saturating_sub(batch.num_rows());
                    return Some(Ok(batch));
                }
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl RecordBatchReader for SegmentBatches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// One pass over one capture.
#[pyclass(module = "tcptrace_lab._core", frozen)]
struct Engine {
    engine: Shared,
}

#[pymethods]
impl Engine {
    #[new]
    #[allow(clippy::needless_pass_by_value)] // Python hands over owned values
    #[pyo3(signature = (paths, batch_rows = DEFAULT_BATCH_ROWS, columns = None, only = None, datagrams = false, flows = false, summaries = true, ledger = None, worth = None, most = MOST, in_capture = 0, waits_memory_bytes = MAX_MEMORY_BYTES, threads = None))]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)] // Python passes them by name
    fn new(
        py: Python<'_>,
        paths: Vec<OsString>,
        batch_rows: usize,
        columns: Option<Vec<String>>,
        only: Option<Vec<KnownTuple>>,
        datagrams: bool,
        flows: bool,
        summaries: bool,
        ledger: Option<Vec<String>>,
        worth: Option<Vec<WorthTuple>>,
        most: usize,
        in_capture: usize,
        waits_memory_bytes: usize,
        threads: Option<NonZeroUsize>,
    ) -> PyResult<Self> {
        let known = |name: &String| table::segment_column_names().any(|column| column == name);
        if let Some(unknown) = columns.iter().flatten().find(|name| !known(name)) {
            return Err(PyValueError::new_err(format!("the segments table has no column {unknown:?}")));
        }
        if let Some(unknown) =
            ledger.iter().flatten().find(|name| !table::ledger_column_names().contains(&name.as_str()))
        {
            return Err(PyValueError::new_err(format!("the ledger has no column {unknown:?}")));
        }
        let only = only.map(|known| Only::new(known.into_iter().map(known_connection)));
        let worth = worth.map(|worth| worth.into_iter().map(self::worth).collect::<PyResult<Vec<_>>>()).transpose()?;
        let options = Options {
            batch_rows,
            columns,
            only,
            datagrams,
            flows,
            summaries,
            ledger,
            worth,
            most,
            in_capture,
            waits_memory_bytes,
            threads,
        };
        let opened = py.detach(|| engine::Engine::open(&paths, options));
        let engine = opened.map_err(|error| to_python(py, &error))?;
        let pass = Pass { engine, connections: Vec::new(), flows: Vec::new() };
        Ok(Self { engine: Arc::new(Mutex::new(pass)) })
    }

    #[pyo3(signature = (max_rows = None))]
    fn segments(&self, max_rows: Option<usize>) -> ArrowStream {
        let schema = lock(&self.engine).engine.schema();
        let rows_left = max_rows.unwrap_or(usize::MAX);
        ArrowStream::new(SegmentBatches { engine: Arc::clone(&self.engine), schema, rows_left })
    }

    /// Returns the next rows of all tables, at most about `max_rows` together, or `None` at the end.
    fn pull(&self, py: Python<'_>, max_rows: usize) -> PyResult<Option<PulledStreams>> {
        let read = || -> Result<_, ArrowError> {
            let mut pass = lock(&self.engine);
            let mut pulled = Pulled::default();
            let packets_seen = |pass: &Pass| pass.engine.segments_seen() + pass.engine.datagrams_seen();
            let seen = packets_seen(&pass);
            let most_seen = seen.saturating_add(Self::SEEN_PER_ROW.saturating_mul(max_rows as u64));
            let mut goes_on = false;
            while pulled.rows < max_rows
                && packets_seen(&pass) < most_seen
                && let Some(batch) = pass.engine.next_batch()?
            {
                goes_on = true;
                pulled.add(batch);
            }
            if !goes_on && packets_seen(&pass) == seen {
                return Ok(None);
            }
            Ok(Some((
                stream(pulled.segments, pass.engine.schema()),
                stream(pulled.ledger, pass.engine.ledger_schema()?),
                some(pulled.datagrams),
                some(pulled.connections),
                some(pulled.flows),
                some(pulled.accounts),
                some(pulled.notes),
            )))
        };
        py.detach(read).map_err(|error| arrow_error(&error))
    }

    /// Returns all UDP flows that `pull` has not returned.
    fn flows(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        self.kept(py, |pass| std::mem::take(&mut pass.flows), table::flows_schema)
    }

    /// Returns all connections that `pull` has not returned.
    fn connections(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        self.kept(py, |pass| std::mem::take(&mut pass.connections), table::connections_schema)
    }

    /// Returns the revised kinds of earlier segments.
    fn revisions(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        let read = || -> Result<_, ArrowError> {
            let mut pass = lock(&self.engine);
            pass.read_to_end()?;
            table::revisions(pass.engine.revisions())
        };
        py.detach(read).map(whole).map_err(|error| arrow_error(&error))
    }

    /// Returns the time of each cause.
    fn kinds(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        self.detailed(py, |engine| table::kinds(engine.details()))
    }

    /// Returns the longest waits, with their evidence.
    fn waits(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        self.detailed(py, |engine| table::waits(engine.details()))
    }

    /// Returns the throughput deadlocks.
    fn locks(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        self.detailed(py, |engine| table::locks(engine.details()))
    }

    /// Returns the capture point and the base RTT of each direction.
    fn directions(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        self.detailed(py, |engine| table::direction_facts(engine.details()))
    }

    /// Reads and drops all batches. Returns the number of segment and datagram rows.
    fn drain(&self, py: Python<'_>) -> PyResult<u64> {
        let drained = py.detach(|| {
            let mut pass = lock(&self.engine);
            let mut rows = 0;
            while let Some(batch) = pass.engine.next_batch()? {
                if let Batch::Segments(batch) | Batch::Datagrams(batch) = batch {
                    rows += batch.num_rows() as u64;
                }
            }
            Ok(rows)
        });
        drained.map_err(|error| arrow_error(&error))
    }

    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let pass = lock(&self.engine);
        let summary = pass.engine.summary();
        let links = PyList::empty(py);
        for (link_type, packets) in &summary.link_types {
            let link = PyDict::new(py);
            link.set_item("id", link_type)?;
            link.set_item("name", link_name(*link_type))?;
            link.set_item("packets", packets)?;
            link.set_item("supported", link_supported(*link_type))?;
            links.append(link)?;
        }
        let info = PyDict::new(py);
        info.set_item("format", &summary.capture.format)?;
        info.set_item("link_types", links)?;
        info.set_item("packets", summary.packets)?;
        info.set_item("tcp_segments", summary.tcp_segments)?;
        info.set_item("udp_datagrams", summary.udp_datagrams)?;
        info.set_item("connections", summary.connections)?;
        info.set_item("first_ts_ns", summary.first_ts_ns)?;
        info.set_item("last_ts_ns", summary.last_ts_ns)?;
        info.set_item("complete", summary.complete())?;
        info.set_item("snaplen_bytes", summary.capture.snaplen_bytes)?;
        info.set_item("truncated_packets", summary.truncated_packets)?;
        info.set_item("backward_timestamps", summary.backward_timestamps)?;
        info.set_item("largest_step_back_ns", summary.largest_step_back_ns)?;
        let resolution_ns = summary.capture.resolution_ns.max(summary.tick_ns.unwrap_or(0));
        info.set_item("resolution_ns", resolution_ns)?;
        info.set_item("kernel_drops", summary.capture.kernel_drops)?;
        info.set_item("bytes_read", pass.engine.progress().bytes_read())?;
        info.set_item("bytes_total", pass.engine.progress().bytes_total())?;
        Ok(info)
    }

    /// Number of segments read so far, with or without their rows.
    fn segments_seen(&self) -> u64 {
        lock(&self.engine).engine.segments_seen()
    }

    fn problems<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        lock(&self.engine).engine.summary().problems.iter().map(|problem| problem_dict(py, problem)).collect()
    }
}

impl Engine {
    /// Maximum number of segments that a call of `pull` reads per requested row. The limit makes `pull` return
    /// regularly, even in a pass with few or no segment rows.
    const SEEN_PER_ROW: u64 = 4;

    /// Reads the capture to its end. Returns the stored batches of a table.
    fn kept(
        &self,
        py: Python<'_>,
        take: fn(&mut Pass) -> Vec<RecordBatch>,
        schema: fn() -> Result<SchemaRef, ArrowError>,
    ) -> PyResult<ArrowStream> {
        let read = || -> Result<_, ArrowError> {
            let mut pass = lock(&self.engine);
            pass.read_to_end()?;
            Ok(stream(take(&mut pass), schema()?))
        };
        py.detach(read).map_err(|error| arrow_error(&error))
    }

    /// Reads the capture to its end. Returns a table about the connections that lose the most time.
    fn detailed(
        &self,
        py: Python<'_>,
        table: fn(&engine::Engine) -> Result<RecordBatch, ArrowError>,
    ) -> PyResult<ArrowStream> {
        let read = || -> Result<_, ArrowError> {
            let mut pass = lock(&self.engine);
            pass.read_to_end()?;
            table(&pass.engine)
        };
        py.detach(read).map(whole).map_err(|error| arrow_error(&error))
    }
}

/// Reconstructs application messages from segments.
#[pyclass(module = "tcptrace_lab._core", frozen)]
struct Messages {
    messages: Mutex<messages::Messages>,
}

impl Messages {
    fn lock(&self) -> MutexGuard<'_, messages::Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Messages {
    #[new]
    fn new(py: Python<'_>, notes: &Bound<'_, PyAny>) -> PyResult<Self> {
        let notes = imported(notes)?;
        let read = || -> Result<_, ArrowError> {
            let mut all = Vec::new();
            for batch in notes {
                all.extend(table::noted(&batch?)?);
            }
            Ok(messages::Messages::new(all))
        };
        let messages = py.detach(read).map_err(|error| arrow_error(&error))?;
        Ok(Self { messages: Mutex::new(messages) })
    }

    /// Adds the next segments, and returns the messages that are final.
    fn add(&self, py: Python<'_>, segments: &Bound<'_, PyAny>) -> PyResult<ArrowStream> {
        let segments = imported(segments)?;
        let read = || -> Result<_, ArrowError> {
            let mut messages = self.lock();
            for batch in segments {
                table::segments_of_messages(&batch?)?.for_each(|segment| messages.add(&segment));
            }
            table::messages(&messages.settled())
        };
        py.detach(read).map(whole).map_err(|error| arrow_error(&error))
    }

    /// Returns the messages that `add` has not returned.
    fn rest(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        py.detach(|| table::messages(&self.lock().rest())).map(whole).map_err(|error| arrow_error(&error))
    }
}

fn problem_dict<'py>(py: Python<'py>, problem: &Problem) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("what", &problem.what)?;
    dict.set_item("path", &problem.path)?;
    dict.set_item("frame", problem.frame)?;
    dict.set_item("offset", problem.offset)?;
    dict.set_item("count", problem.count)?;
    dict.set_item("loses_data", problem.loses_data)?;
    Ok(dict)
}

/// Decompresses one file into another. Returns the reason if decompression ended early.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // Python hands over owned values
fn unpack(py: Python<'_>, source: OsString, target: OsString) -> PyResult<Option<String>> {
    let mut unpacker = Unpacker::open(&source).map_err(|error| to_python(py, &error))?;
    let mut file = std::fs::OpenOptions::new().write(true).open(target)?;
    while py.detach(|| unpacker.write_some(&mut file))? > 0 {
        py.check_signals()?;
    }
    Ok(unpacker.fault().map(str::to_owned))
}

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::figures::{Series, Tracker, line_points};
    #[pymodule_export]
    use super::stream::{ArrowStream, EngineError};
    #[pymodule_export]
    use super::{Engine, Messages, unpack};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn constants(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("LINES", crate::figures::LINES.to_vec())?;
        module.add("MARKS", crate::figures::MARKS.to_vec())?;
        module.add("MAX_NEIGHBOURS", crate::ledger::summary::MAX_CONNECTIONS)
    }
}
