//! Byte streams, and the faults that end a stream early.

use std::io::Read;

use crate::error::{CaptureError, ErrorKind};

/// A byte stream that is read from start to end without seeking.
pub(super) type Source = Box<dyn Read + Send + Sync>;

/// The error that ends a file early. The caller adds the file's name and the frame number.
pub(super) type Stop = Box<CaptureError>;

#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) kind: ErrorKind,
    pub(super) what: String,
}

impl Fault {
    pub(super) fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into() }
    }

    pub(super) fn io(error: &std::io::Error) -> Self {
        Self::new(ErrorKind::Io, error.to_string())
    }
}

/// Calls `read`, and calls it again if a signal interrupts it.
pub(super) fn read_some(source: &mut Source, out: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match source.read(out) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// The error for contradictory bytes at `offset`.
pub(super) fn damaged(what: String, offset: u64) -> Stop {
    Box::new(CaptureError::new(ErrorKind::Damaged, "", what).at(offset))
}
