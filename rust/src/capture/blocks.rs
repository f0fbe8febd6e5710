//! One reusable buffer between a byte stream and a format reader: large reads in, contiguous records out.
//!
//! A record is handed out as a slice of the buffer. Only a record that straddles the end of a block is moved, to the
//! front, before the rest of it is read behind it. Nothing seeks, so files, FIFOs and stdin take the same road, and
//! memory is one block (or one record, where a record is larger; the formats bound those).

use std::ops::Range;

use super::compressed::Decoder;
use super::{Source, Stop};
use crate::error::{CaptureError, ErrorKind};

/// Bytes read at once when one capture is read. Measured on 10 million records of 112 bytes in the page cache (1 MiB of
/// second-level cache a core), processor seconds: 32 KiB 0.176, 64 KiB 0.169, 128 KiB 0.163, 256 KiB 0.160, 1 MiB
/// 0.159, 4 MiB 0.158. On that plateau the small one leaves most of the cache to what is done with the frames.
pub(super) const BLOCK_BYTES: usize = 256 << 10;

/// Why a stream ended before its time.
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

/// Where the bytes come from.
pub(super) enum Input {
    Plain(Source),
    Compressed(Box<Decoder>),
}

impl Input {
    /// Reads some bytes; 0 is the end.
    fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        match self {
            Self::Plain(source) => read_some(source, out).map_err(|error| Fault::io(&error)),
            Self::Compressed(decoder) => decoder.read(out),
        }
    }
}

/// One `read` that a signal does not end.
pub(super) fn read_some(source: &mut Source, out: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match source.read(out) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// The buffer. `bytes[start..end]` was read and not yet consumed.
pub(super) struct Blocks {
    input: Input,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset in the (decompressed) stream of `bytes[0]`.
    base: u64,
    ended: bool,
    fault: Option<Fault>,
}

impl Blocks {
    pub(super) fn new(input: Input, block_bytes: usize) -> Self {
        Self { input, bytes: vec![0; block_bytes], start: 0, end: 0, base: 0, ended: false, fault: None }
    }

    /// What was read and not yet consumed.
    #[inline]
    pub(super) fn available(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Stream offset of the first byte of [`Self::available`].
    pub(super) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Stream offset of a range that `consume` gave out.
    pub(super) fn offset_of(&self, range: &Range<usize>) -> u64 {
        self.base + range.start as u64
    }

    /// Consumes `count` available bytes and gives their place in the buffer, which holds until the next `fill_to`.
    #[inline]
    pub(super) fn consume(&mut self, count: usize) -> Range<usize> {
        let taken = self.start..self.end.min(self.start.saturating_add(count));
        self.start = taken.end;
        taken
    }

    /// The bytes of a range that `consume` gave out.
    #[inline]
    pub(super) fn slice(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Reads until at least `count` bytes are available; false if the stream ends before. The buffer grows only as
    /// fast as bytes really arrive, so a length field alone cannot make it allocate.
    #[cold]
    #[inline(never)]
    pub(super) fn fill_to(&mut self, count: usize) -> bool {
        while self.end - self.start < count {
            if self.ended {
                return false;
            }
            self.make_room(count);
            let space = self.bytes.get_mut(self.end..).unwrap_or_default();
            match self.input.read(space) {
                Ok(0) => self.ended = true,
                Ok(more) => self.end = self.bytes.len().min(self.end.saturating_add(more)),
                Err(fault) => {
                    self.fault = Some(fault);
                    self.ended = true;
                }
            }
        }
        true
    }

    /// Moves what is left to the front; doubles a buffer that is full and still too small.
    fn make_room(&mut self, count: usize) {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.base += self.start as u64;
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.bytes.len() {
            let larger = self.bytes.len().saturating_mul(2).min(count.max(self.bytes.len() + 1));
            self.bytes.resize(larger, 0);
        }
    }

    /// Consumes `count` bytes without keeping them; false if the stream ends before.
    pub(super) fn skip(&mut self, mut count: u64) -> bool {
        while count > 0 {
            if !self.fill_to(1) {
                return false;
            }
            let step = usize::try_from(count).unwrap_or(usize::MAX).min(self.end - self.start);
            self.start += step;
            count -= step as u64;
        }
        true
    }

    /// What ended the stream early, once its end was met.
    pub(super) fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// The error for a record that starts at `offset` and is not all there.
    pub(super) fn cut(&self, what: &str, field: &'static str, required: u64, got: u64, offset: u64) -> Stop {
        let error = match &self.fault {
            Some(fault) => CaptureError::new(fault.kind, "", fault.what.clone()),
            None => CaptureError::new(ErrorKind::Cut, "", format!("the capture ends in the middle of {what}"))
                .lengths(field, required, got),
        };
        Box::new(error.at(offset))
    }

    /// The end of the stream between two records: clean, or the fault that ended it there.
    pub(super) fn end_between_records(&self) -> Result<bool, Stop> {
        match &self.fault {
            Some(fault) => Err(Box::new(CaptureError::new(fault.kind, "", fault.what.clone()).at(self.offset()))),
            None => Ok(false),
        }
    }

    /// What the decompressor survived, if there is one.
    pub(super) fn remark(&self) -> Option<&'static str> {
        match &self.input {
            Input::Plain(_) => None,
            Input::Compressed(decoder) => decoder.remark(),
        }
    }

    /// The name of the compression, if there is one.
    pub(super) fn compression(&self) -> Option<&'static str> {
        match &self.input {
            Input::Plain(_) => None,
            Input::Compressed(decoder) => Some(decoder.name()),
        }
    }

    /// Takes the buffer apart into what was read ahead and the stream behind it (plain streams only).
    pub(super) fn into_parts(self) -> (Vec<u8>, Option<Source>) {
        let ahead = self.available().to_vec();
        match self.input {
            Input::Plain(source) => (ahead, Some(source)),
            Input::Compressed(_) => (ahead, None),
        }
    }
}
