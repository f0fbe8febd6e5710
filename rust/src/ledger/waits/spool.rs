//! The spool: one unnamed temporary file for logs that use too much memory. Each chunk of a log stores the position of
//! the previous chunk.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of bytes that are collected before they are written, so that even small logs need few system calls.
const WRITE_BYTES: usize = if cfg!(feature = "small-limits") { 1 << 10 } else { 1 << 20 };
/// The file begins with these bytes, so that no chunk has position 0.
const MAGIC: &[u8; 8] = b"waits\0\0\0";
/// Size of a chunk header: position of the previous chunk of its log (0: none), number of records, number of bytes.
const HEADER_BYTES: usize = 16;
/// Maximum number of file names to try. Files with some of these names may exist already.
const MAX_NAMES: u64 = 1000;

/// Creates an unnamed file. The file's name is removed immediately, and the file disappears when it is closed.
fn nameless_file() -> io::Result<File> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let folder = std::env::temp_dir();
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..MAX_NAMES {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("tcptrace-lab-waits-{}-{count}", std::process::id()));
        match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

#[derive(Debug)]
pub(crate) struct Spool {
    file: Arc<File>,
    /// Bytes that are not written yet.
    unwritten: Vec<u8>,
    /// The position in the file at which `unwritten` begins.
    begin: u64,
}

impl Spool {
    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }

    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { file: Arc::new(nameless_file()?), unwritten: MAGIC.to_vec(), begin: 0 })
    }

    /// Appends a chunk of `records` records; `before` is the previous chunk of the same log. Returns the position of
    /// the new chunk.
    pub(super) fn append(&mut self, before: Option<NonZeroU64>, records: u32, bytes: &[u8]) -> io::Result<NonZeroU64> {
        let at = NonZeroU64::MIN.saturating_add(self.begin + self.unwritten.len() as u64 - 1);
        self.unwritten.extend_from_slice(&before.map_or(0, NonZeroU64::get).to_le_bytes());
        self.unwritten.extend_from_slice(&records.to_le_bytes());
        self.unwritten.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.unwritten.extend_from_slice(bytes);
        if self.unwritten.len() >= WRITE_BYTES {
            self.write()?;
        }
        Ok(at)
    }

    /// Appends a block without a link to a previous chunk.
    pub(super) fn append_alone(&mut self, records: u32, bytes: &[u8]) -> io::Result<Chunk> {
        let at = self.append(None, records, bytes)?;
        Ok(Chunk { records, begin: at.get() + HEADER_BYTES as u64, bytes: bytes.len() as u32 })
    }

    /// Writes the collected bytes. The bytes can be read only after they are written.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        (&*self.file).write_all(&self.unwritten)?;
        self.begin += self.unwritten.len() as u64;
        self.unwritten.clear();
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub records: u32,
    begin: u64,
    bytes: u32,
}

impl Chunk {
    pub(super) fn read(&self, file: &File) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.bytes as usize];
        file.read_exact_at(&mut bytes, self.begin)?;
        Ok(bytes)
    }
}

/// The chunk at a position in the spool, and the position of the previous chunk of its log.
pub(super) fn chunk(file: &File, at: NonZeroU64) -> io::Result<(Chunk, Option<NonZeroU64>)> {
    let mut header = [0; HEADER_BYTES];
    file.read_exact_at(&mut header, at.get())?;
    let ([before, counts], _) = header.as_chunks::<8>() else { return Err(io::ErrorKind::InvalidData.into()) };
    let counts = u64::from_le_bytes(*counts);
    let begin = at.get() + HEADER_BYTES as u64;
    let chunk = Chunk { records: counts as u32, begin, bytes: (counts >> 32) as u32 };
    Ok((chunk, NonZeroU64::new(u64::from_le_bytes(*before))))
}
