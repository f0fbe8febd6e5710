//! A buffer between a byte stream and a format reader. The buffer reads the stream in large blocks and returns each
//! record as contiguous bytes.
//!
//! A record is a slice of the buffer. A record that crosses the end of a block is first moved to the front of the
//! buffer. The buffer is as long as one block or as the longest record, whichever is longer. Each format limits the
//! length of its records. The stream is read without seeking, so files, FIFOs and stdin are read alike.

use std::ops::Range;

use super::compressed::Decoder;
use super::source::{Fault, Source, Stop, read_some};
use crate::error::{CaptureError, ErrorKind};

/// Bytes per read from a single capture. Blocks of more than 256 KiB save almost no time, but take L2 cache from the
/// processing of frames.
///
/// Measured with 10 million records of 112 bytes in the page cache and 1 MiB of L2 cache per core: 0.176 CPU seconds
/// with 32 KiB, 0.169 with 64 KiB, 0.163 with 128 KiB, 0.160 with 256 KiB, 0.159 with 1 MiB, 0.158 with 4 MiB.
pub(super) const BLOCK_BYTES: usize = 256 << 10;

pub(super) enum Input {
    Plain(Source),
    Compressed(Box<Decoder>),
}

impl Input {
    /// Reads at least one byte. Returns the number of bytes, or 0 at the end of the stream.
    fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        match self {
            Self::Plain(source) => read_some(source, out).map_err(|error| Fault::io(&error)),
            Self::Compressed(decoder) => decoder.read(out),
        }
    }
}

/// The buffer. `bytes[start..end]` is not consumed yet.
pub(super) struct Blocks {
    input: Input,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `bytes[0]` in the stream, after decompression.
    base: u64,
    ended: bool,
    fault: Option<Fault>,
}

impl Blocks {
    pub(super) fn new(input: Input, block_bytes: usize) -> Self {
        Self { input, bytes: vec![0; block_bytes], start: 0, end: 0, base: 0, ended: false, fault: None }
    }

    /// The buffered bytes that are not consumed yet.
    #[inline]
    pub(super) fn available(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Stream offset of the first byte of [`Self::available`].
    pub(super) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Stream offset of a range that `consume` returned.
    pub(super) fn offset_of(&self, range: &Range<usize>) -> u64 {
        self.base + range.start as u64
    }

    /// Consumes `count` available bytes. Returns their range in the buffer, which is valid until the next `fill_to`.
    #[inline]
    pub(super) fn consume(&mut self, count: usize) -> Range<usize> {
        let taken = self.start..self.end.min(self.start.saturating_add(count));
        self.start = taken.end;
        taken
    }

    /// The bytes of a range that `consume` returned.
    #[inline]
    pub(super) fn slice(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Reads until at least `count` bytes are available. Returns false if the stream ends first. The buffer grows only
    /// with bytes that really arrive, so a wrong length field cannot cause a large allocation.
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

    /// Moves the available bytes to the front of the buffer. If the buffer is still full, it becomes larger: up to
    /// twice as large, but not larger than `count` needs.
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

    /// Drops the next `count` bytes of the stream. Returns false if the stream has fewer bytes.
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

    /// The fault that ended the stream early, or `None` if there is no fault, or if the end of the stream is not
    /// reached yet.
    pub(super) fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// The fault in a compressed stream. The rest of the stream is read first, because a decompressor can return
    /// damaged bytes before it notices the damage.
    #[cold]
    pub(super) fn compression_fault(&mut self) -> Option<Fault> {
        if matches!(self.input, Input::Plain(_)) {
            return None;
        }
        self.skip(u64::MAX);
        match (&self.fault, &mut self.input) {
            (None, Input::Compressed(decoder)) => decoder.trailing_fault(),
            (fault, _) => fault.clone(),
        }
    }

    /// The error for an incomplete record that starts at `offset`.
    pub(super) fn cut(&self, what: &str, field: &'static str, required: u64, got: u64, offset: u64) -> Stop {
        let error = match &self.fault {
            Some(fault) => CaptureError::new(fault.kind, "", fault.what.clone()),
            None => CaptureError::new(ErrorKind::Cut, "", format!("the capture ends in the middle of {what}"))
                .lengths(field, required, got),
        };
        Box::new(error.at(offset))
    }

    /// The result for a stream that ends between two records: `Ok(false)`, or the fault that ended the stream.
    pub(super) fn end_between_records(&self) -> Result<bool, Stop> {
        match &self.fault {
            Some(fault) => Err(Box::new(CaptureError::new(fault.kind, "", fault.what.clone()).at(self.offset()))),
            None => Ok(false),
        }
    }

    /// The decompressor's message for users, if there is one.
    pub(super) fn remark(&self) -> Option<&'static str> {
        match &self.input {
            Input::Plain(_) => None,
            Input::Compressed(decoder) => decoder.remark(),
        }
    }

    /// The name of the compression, if the stream is compressed.
    pub(super) fn compression(&self) -> Option<&'static str> {
        match &self.input {
            Input::Plain(_) => None,
            Input::Compressed(decoder) => Some(decoder.name()),
        }
    }

    /// The available bytes, and the stream that continues after these bytes. The stream is `None` if it is compressed.
    pub(super) fn into_parts(self) -> (Vec<u8>, Option<Source>) {
        let ahead = self.available().to_vec();
        match self.input {
            Input::Plain(source) => (ahead, Some(source)),
            Input::Compressed(_) => (ahead, None),
        }
    }
}
