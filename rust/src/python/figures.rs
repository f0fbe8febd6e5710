//! The data of a report's figures for Python.

use arrow_schema::ArrowError;
use pyo3::prelude::*;

use super::stream::{ArrowStream, arrow_error, imported, whole};
use crate::figures;
use crate::table::figures as tables;

type StateTuple = (Option<i64>, Option<i64>, Option<i64>);
type DrawnStream = (u64, ArrowStream);

/// The series of one direction: bursts, lines, marks, throughput, bands of causes.
type FigureStreams = (ArrowStream, Vec<DrawnStream>, Vec<DrawnStream>, ArrowStream, Vec<(i64, i64, &'static str)>);

/// Tracks one direction through the segments of its connection.
#[pyclass(module = "tcptrace_lab._core")]
pub(super) struct Tracker(figures::Tracker);

#[pymethods]
impl Tracker {
    #[new]
    #[pyo3(signature = (first_ts_ns, from_client, state = (None, None, None)))]
    fn new(first_ts_ns: i64, from_client: bool, state: StateTuple) -> Self {
        let (sent, acked, edge) = state;
        Self(figures::Tracker::new(first_ts_ns, from_client, figures::State { sent, acked, edge }))
    }

    /// Processes the next segments of the connection. Returns the columns that tracking adds to these segments.
    fn follow(&mut self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<ArrowStream> {
        let rows = imported(rows)?;
        let read = || -> Result<_, ArrowError> {
            let mut tracked = Vec::new();
            for batch in rows {
                tracked.extend(tables::segments(&batch?)?.map(|segment| self.0.follow(&segment)));
            }
            tables::tracked(&tracked)
        };
        py.detach(read).map(whole).map_err(|error| arrow_error(&error))
    }

    /// The state after all segments so far: highest sent offset, highest acknowledged offset, right edge of the window.
    #[getter]
    fn state(&self) -> StateTuple {
        let figures::State { sent, acked, edge } = self.0.state();
        (sent, acked, edge)
    }
}

/// Collects the series of one direction.
#[pyclass(module = "tcptrace_lab._core")]
pub(super) struct Series {
    series: figures::Series,
    strip: figures::Strip,
}

#[pymethods]
impl Series {
    #[new]
    fn new(bin_ns: i64, run: i64, silence_ns: i64, pixel_ns: i64) -> Self {
        let limits = figures::Limits { bin_ns: bin_ns.max(1), run: run.max(1), silence_ns };
        Self { series: figures::Series::new(limits), strip: figures::Strip::new(pixel_ns) }
    }

    /// Adds the next tracked rows of the connection.
    fn add(&mut self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        self.take(py, rows, figures::Series::add)
    }

    /// Processes the rows before the drawn section.
    fn skip(&mut self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        self.take(py, rows, figures::Series::skip)
    }

    /// Adds the next waits of the direction.
    fn add_waits(&mut self, py: Python<'_>, waits: &Bound<'_, PyAny>) -> PyResult<()> {
        let waits = imported(waits)?;
        let read = || -> Result<_, ArrowError> {
            for batch in waits {
                tables::waits(&batch?)?.for_each(|wait| self.strip.add(wait));
            }
            Ok(())
        };
        py.detach(read).map_err(|error| arrow_error(&error))
    }

    /// Number of marks of each name so far.
    fn mark_counts(&self) -> Vec<u64> {
        self.series.mark_counts().to_vec()
    }

    /// Returns the series, and starts again without points. `keep` is the approximate number of points per line.
    /// `granted` contains the maximum number of marks of each name.
    #[allow(clippy::needless_pass_by_value)] // Python hands over owned values
    fn finish(&mut self, py: Python<'_>, keep: usize, granted: Vec<usize>) -> PyResult<FigureStreams> {
        let read = || -> Result<_, ArrowError> {
            let drawn = self.series.take(keep, &granted);
            let lines = drawn.lines.iter().map(|line| Ok((line.count, tables::line(&line.points)?)));
            let marks = drawn.marks.iter().map(|marks| Ok((marks.count, tables::marks(&marks.points)?)));
            Ok((
                tables::bursts(&drawn.bursts)?,
                lines.collect::<Result<Vec<_>, ArrowError>>()?,
                marks.collect::<Result<Vec<_>, ArrowError>>()?,
                tables::throughput(&drawn.throughput)?,
                self.strip.take(),
            ))
        };
        let (bursts, lines, marks, throughput, bands) = py.detach(read).map_err(|error| arrow_error(&error))?;
        let streams = |series: Vec<(u64, _)>| series.into_iter().map(|(count, table)| (count, whole(table))).collect();
        let bands = bands.into_iter().map(|band| (band.start_ns, band.end_ns, band.cause.name())).collect();
        Ok((whole(bursts), streams(lines), streams(marks), whole(throughput), bands))
    }
}

impl Series {
    fn take(
        &mut self,
        py: Python<'_>,
        rows: &Bound<'_, PyAny>,
        take: fn(&mut figures::Series, &figures::Segment, &figures::Tracked),
    ) -> PyResult<()> {
        let rows = imported(rows)?;
        let read = || -> Result<_, ArrowError> {
            for batch in rows {
                let batch = batch?;
                let tracked = tables::tracked_rows(&batch)?;
                for (segment, tracked) in tables::segments(&batch)?.zip(tracked) {
                    take(&mut self.series, &segment, &tracked);
                }
            }
            Ok(())
        };
        py.detach(read).map_err(|error| arrow_error(&error))
    }
}

/// Selects about `keep` points of a line. The columns are `t_ns`, `y` and `frame`.
#[pyfunction]
pub(super) fn line_points(py: Python<'_>, points: &Bound<'_, PyAny>, keep: usize) -> PyResult<ArrowStream> {
    let points = imported(points)?;
    let read = || -> Result<_, ArrowError> {
        let mut all = Vec::new();
        for batch in points {
            all.extend(tables::points(&batch?)?);
        }
        tables::line(&figures::line_points(&all, keep))
    };
    py.detach(read).map(whole).map_err(|error| arrow_error(&error))
}
