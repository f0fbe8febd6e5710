//! The input of a decompressor: a buffer that counts the consumed bytes.

use std::io::{self, Read};

use super::super::source::{Fault, Source, read_some};
use crate::error::ErrorKind;

const RAW_BLOCK_BYTES: usize = 128 << 10;

/// The fault if only the checksum at the end of the compressed data reveals the damage.
pub(super) const WRONG_CHECKSUM: &str = "wrong checksum: what was read may be wrong";

pub(super) struct Raw {
    source: Source,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    consumed: u64,
    ended: bool,
    error: Option<Fault>,
}

impl Raw {
    /// A buffer for `ahead`, and then for `source`. `ahead` contains bytes that were already read from `source`.
    pub(super) fn new(ahead: Vec<u8>, source: Source) -> Self {
        let end = ahead.len();
        Self { source, bytes: ahead, start: 0, end, consumed: 0, ended: false, error: None }
    }

    /// An empty stream as a placeholder.
    pub(super) fn empty() -> Self {
        Self::new(Vec::new(), Box::new(io::empty()))
    }

    pub(super) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Returns at least `count` bytes without consuming them, or fewer bytes if the stream ends earlier.
    pub(super) fn peek(&mut self, count: usize) -> &[u8] {
        while self.end - self.start < count && !self.ended {
            self.refill();
        }
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    fn refill(&mut self) {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.bytes.len() < RAW_BLOCK_BYTES {
            self.bytes.resize(RAW_BLOCK_BYTES, 0);
        }
        match read_some(&mut self.source, self.bytes.get_mut(self.end..).unwrap_or_default()) {
            Ok(0) => self.ended = true,
            Ok(more) => self.end = self.bytes.len().min(self.end.saturating_add(more)),
            Err(error) => {
                self.error = Some(Fault::io(&error));
                self.ended = true;
            }
        }
    }

    pub(super) fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.consumed += count as u64;
    }

    /// Skips `count` bytes. Returns false if the stream has fewer bytes.
    pub(super) fn skip(&mut self, mut count: u64) -> bool {
        while count > 0 {
            let there = self.peek(1).len();
            if there == 0 {
                return false;
            }
            let step = usize::try_from(count).unwrap_or(usize::MAX).min(there);
            self.consume(step);
            count -= step as u64;
        }
        true
    }

    /// Whether the decompressor wanted more bytes than the stream has.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// The fault for a failed decoder: a system error if one occurred, `Cut` if the compressed bytes ended too early,
    /// otherwise `Damaged`. A decoder can notice damage late, so the text says that the damage is *before* the current
    /// position.
    pub(super) fn fault(&self, codec: &str, why: &str) -> Fault {
        match &self.error {
            Some(error) => error.clone(),
            None if self.ended => Fault::new(ErrorKind::Cut, format!("the {codec} data end too early")),
            None => {
                let bound = self.consumed;
                let what = format!("the {codec} data are damaged before byte {bound} of the compressed file ({why})");
                Fault::new(ErrorKind::Damaged, what)
            }
        }
    }

    /// The system error that ended the stream, if there was one.
    pub(super) fn end_fault(&self) -> Option<Fault> {
        self.error.clone()
    }
}

impl Read for Raw {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let there = self.peek(1);
        let count = there.len().min(out.len());
        if let (Some(to), Some(from)) = (out.get_mut(..count), there.get(..count)) {
            to.copy_from_slice(from);
        }
        self.consume(count);
        Ok(count)
    }
}
