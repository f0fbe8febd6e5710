//! Errors and problems of a capture: what happened, where, and which field of the file shows it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;

/// The category of a [`CaptureError`]. Python has an exception class and an exit code for each category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The operating system reported an error, such as a missing file or no permission.
    Io,
    /// The bytes are not a capture in any format that this engine can read.
    NotACapture,
    /// The file is a capture in a format or variant that this engine cannot read.
    Unsupported,
    /// The capture ends in the middle of a record. All earlier records were read.
    Cut,
    /// A length or tag in the capture contradicts its context, so the reader stops.
    Damaged,
}

/// An error with its place in the capture.
///
/// ```
/// use tcptrace_lab_core::error::{CaptureError, ErrorKind};
///
/// let error = CaptureError::new(ErrorKind::Cut, "a.pcap", "the capture ends inside a packet");
/// let error = error.lengths("incl_len", 1514, 96).in_frame(12);
/// let text = "a.pcap: the capture ends inside a packet (96 of 1514 bytes are present), frame 12";
/// assert_eq!(error.to_string(), text);
/// ```
#[derive(Clone, Debug)]
pub struct CaptureError {
    /// The category.
    pub kind: ErrorKind,
    /// What happened, as a phrase without the place.
    pub what: String,
    /// Path of the file, as the caller wrote it.
    pub path: OsString,
    /// Byte offset in the decompressed stream.
    pub offset: Option<u64>,
    /// 1-based number of the frame that could not be read.
    pub frame: Option<u64>,
    /// The length in `field`, in bytes.
    pub required: Option<u64>,
    /// Number of bytes present.
    pub got: Option<u64>,
    /// The header field with the required length, such as `incl_len`.
    pub field: Option<&'static str>,
}

impl CaptureError {
    /// An error without a place.
    pub fn new(kind: ErrorKind, path: impl AsRef<OsStr>, what: impl Into<String>) -> Self {
        Self {
            kind,
            what: what.into(),
            path: path.as_ref().to_owned(),
            offset: None,
            frame: None,
            required: None,
            got: None,
            field: None,
        }
    }

    /// An operating-system error on `path`.
    #[must_use]
    pub fn io(path: impl AsRef<OsStr>, error: &io::Error) -> Self {
        Self::new(ErrorKind::Io, path, error.to_string())
    }

    /// Adds the byte offset.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    /// Adds the frame number.
    #[must_use]
    pub fn in_frame(mut self, frame: u64) -> Self {
        self.frame = Some(frame);
        self
    }

    /// Text to append to `what`: how many of the required bytes the file contains; empty if the error is not about a
    /// length.
    #[must_use]
    pub fn shortfall(&self) -> String {
        match (self.required, self.got) {
            (Some(required), Some(got)) => format!(" ({got} of {required} bytes are present)"),
            _ => String::new(),
        }
    }

    /// Adds the number of bytes that `field` requires, and the number of bytes in the file.
    #[must_use]
    pub fn lengths(mut self, field: &'static str, required: u64, got: u64) -> Self {
        self.field = Some(field);
        self.required = Some(required);
        self.got = Some(got);
        self
    }
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)?;
        f.write_str(&self.shortfall())?;
        if let Some(frame) = self.frame {
            write!(f, ", frame {frame}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", byte {offset}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CaptureError {}

/// A problem that did not stop the reader. Problems of one kind are counted together, with the place of the first one.
#[derive(Clone, Debug)]
pub struct Problem {
    /// What was found and how it was handled, for users.
    pub what: String,
    /// Path of the file, as the caller wrote it; empty if the problem is in packets.
    pub path: OsString,
    /// 1-based frame number of the first occurrence.
    pub frame: Option<u64>,
    /// Byte offset of the first occurrence in the decompressed stream.
    pub offset: Option<u64>,
    /// How often the problem occurred.
    pub count: u64,
    /// Whether some data of the capture was lost to the analysis (exit code 4).
    pub loses_data: bool,
}
