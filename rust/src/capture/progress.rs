//! Counts the bytes that were read from a capture's files, so that another thread can show the progress.

use std::fs::File;
use std::io::{Read, Seek};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::source::Source;

pub(super) struct Counted {
    source: Source,
    consumed: Consumed,
}

#[derive(Clone, Debug)]
pub(super) struct Consumed {
    bytes: Arc<AtomicU64>,
    /// Number of bytes to read, or `None` if the stream is not a regular file.
    total: Option<u64>,
}

impl Counted {
    /// A file or standard input. The total of a regular file is the number of bytes from its current position to its
    /// end.
    pub(super) fn file(mut file: File) -> Self {
        let regular = file.metadata().ok().filter(std::fs::Metadata::is_file);
        let total = regular.and_then(|regular| Some(regular.len().saturating_sub(file.stream_position().ok()?)));
        Self::new(Box::new(file), total)
    }

    /// Any other stream.
    pub(super) fn stream(stream: impl Read + Send + Sync + 'static) -> Self {
        Self::new(Box::new(stream), None)
    }

    fn new(source: Source, total: Option<u64>) -> Self {
        Self { source, consumed: Consumed { bytes: Arc::default(), total } }
    }

    pub(super) fn consumed(&self) -> Consumed {
        self.consumed.clone()
    }
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.source.read(out)?;
        // The number is only displayed, so relaxed ordering suffices.
        self.consumed.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// The progress of reading a capture's files.
#[derive(Clone, Debug)]
pub struct Progress {
    files: Vec<Consumed>,
}

impl Progress {
    pub(super) fn of(files: Vec<Consumed>) -> Self {
        Self { files }
    }

    /// Number of bytes read so far. In compressed files, the compressed bytes are counted.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.files.iter().map(|file| file.bytes.load(Ordering::Relaxed)).sum()
    }

    /// Total size of the files in bytes when they were opened, or `None` if one of them is not a regular file.
    #[must_use]
    pub fn bytes_total(&self) -> Option<u64> {
        self.files.iter().map(|file| file.total).sum()
    }
}
