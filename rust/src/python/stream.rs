//! Passes tables to and from Python through the Arrow `PyCapsule` interface, and turns engine errors into Python
//! exceptions.

use std::sync::{Mutex, PoisonError};

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

create_exception!(tcptrace_lab._core, EngineError, PyException);

/// Converts an error to a Python exception. A system error, such as a full disk, becomes an `OSError`.
pub(super) fn arrow_error(error: &ArrowError) -> PyErr {
    match error {
        ArrowError::IoError(what, error) => match error.raw_os_error() {
            Some(number) => PyOSError::new_err((number, what.clone())),
            None => PyOSError::new_err(what.clone()),
        },
        _ => EngineError::new_err(error.to_string()),
    }
}

/// A stream of record batches that can be read once.
#[pyclass(module = "tcptrace_lab._core", frozen)]
pub(super) struct ArrowStream {
    reader: Mutex<Option<Box<dyn RecordBatchReader + Send>>>,
}

impl ArrowStream {
    pub(super) fn new(reader: impl RecordBatchReader + Send + 'static) -> Self {
        Self { reader: Mutex::new(Some(Box::new(reader))) }
    }
}

#[pymethods]
impl ArrowStream {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // the Arrow PyCapsule interface permits ignoring it
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        let reader = reader.ok_or_else(|| EngineError::new_err("this stream is already consumed"))?;
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }
}

pub(super) fn stream(batches: Vec<RecordBatch>, schema: SchemaRef) -> ArrowStream {
    ArrowStream::new(RecordBatchIterator::new(batches.into_iter().map(Ok), schema))
}

/// A table as a stream of one batch.
pub(super) fn whole(table: RecordBatch) -> ArrowStream {
    let schema = table.schema();
    stream(vec![table], schema)
}

/// Reads a stream of another library. `rows` has the method `__arrow_c_stream__`.
#[allow(unsafe_code)] // the interface is a pointer in a capsule
pub(super) fn imported(rows: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let exported = rows.call_method0("__arrow_c_stream__")?;
    let pointer = exported.cast::<PyCapsule>()?.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: the Arrow PyCapsule interface guarantees a valid stream in a capsule of this name. `from_raw` moves the
    // stream out of the capsule and leaves an empty one, which the capsule can release.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.cast().as_ptr()) };
    RecordBatchStreamReader::try_new(stream).map_err(|error| arrow_error(&error))
}
