//! How many bytes of a capture's files were read, for an observer in another thread.

use std::fs::File;
use std::io::{Read, Seek};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::source::Source;

/// A byte stream that counts the bytes read from it.
pub(super) struct Counted {
    source: Source,
    consumed: Consumed,
}

/// How much of one file was read.
#[derive(Clone, Debug)]
pub(super) struct Consumed {
    bytes: Arc<AtomicU64>,
    /// Size in bytes; `None` if it is no regular file.
    total: Option<u64>,
}

impl Counted {
    /// A file or standard input. For a regular file, the size is known; bytes read earlier are subtracted.
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
        // The value is only displayed, so no ordering is needed.
        self.consumed.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// How much of a capture's files was read.
#[derive(Clone, Debug)]
pub struct Progress {
    files: Vec<Consumed>,
}

impl Progress {
    pub(super) fn of(files: Vec<Consumed>) -> Self {
        Self { files }
    }

    /// Bytes read so far; compressed bytes for compressed files.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.files.iter().map(|file| file.bytes.load(Ordering::Relaxed)).sum()
    }

    /// Size in bytes when the files were opened; `None` if one of them is no regular file.
    #[must_use]
    pub fn bytes_total(&self) -> Option<u64> {
        self.files.iter().map(|file| file.total).sum()
    }
}
