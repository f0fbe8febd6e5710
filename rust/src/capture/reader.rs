//! Reads one capture file of any supported format and compression.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsFd;

use super::blocks::{Blocks, Input};
use super::compressed::{Codec, Decoder};
use super::erf::{self, Erf};
use super::notes::Notes;
use super::pcap::{Magic, Pcap};
use super::pcapng::Pcapng;
use super::progress::{Consumed, Counted};
use super::sniff::{self, SNIFFED_BYTES};
use super::stream::{Record, Stream};
use crate::error::{CaptureError, ErrorKind, Problem};

pub(super) const STDIN: &str = "-";

/// Length of the longest magic number of a capture or compression format. A live pipe is opened as soon as this many
/// bytes have arrived.
pub(super) const MAGIC_BYTES: usize = 6;

/// The first four bytes of every pcapng file, which are the type of its first block.
const PCAPNG_MAGIC: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
    Erf(Erf),
    /// The file has ended, or an error has stopped the reader.
    Ended,
}

/// Properties of a file, which stay available after the last frame.
#[derive(Clone, Debug, Default)]
pub(super) struct FileInfo {
    pub(super) format: String,
    pub(super) snaplen_bytes: u32,
    pub(super) resolution_ns: i64,
    pub(super) kernel_drops: Option<u64>,
}

/// An open file with its current frame.
pub(super) struct Reader {
    path: OsString,
    stream: Stream,
    format: Format,
    name: String,
    last_info: FileInfo,
    consumed: Consumed,
}

impl Reader {
    /// Opens `path` and reads the file header. The path `-` is stdin.
    ///
    /// # Errors
    /// See [`super::Capture::open`].
    pub(super) fn open(path: &OsStr, block_bytes: usize) -> Result<Self, CaptureError> {
        let source = open_source(path).map_err(|error| CaptureError::io(path, &error))?;
        if source.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            return Err(CaptureError::new(ErrorKind::Io, path, "is a directory, not a capture"));
        }
        Self::new(path, Counted::file(source), block_bytes)
    }

    /// Reads the file header from `source`. Errors name the file `path`.
    pub(super) fn new(path: &OsStr, source: Counted, block_bytes: usize) -> Result<Self, CaptureError> {
        let consumed = source.consumed();
        let mut blocks = Blocks::new(Input::Plain(Box::new(source)), block_bytes);
        blocks.fill_to(MAGIC_BYTES);
        if let Some(codec) = Codec::detect(blocks.available()) {
            blocks = decompressed(blocks, codec, block_bytes);
            blocks.fill_to(MAGIC_BYTES);
            if Codec::detect(blocks.available()).is_some() {
                let what = "is compressed twice; decompress it once";
                return Err(CaptureError::new(ErrorKind::NotACapture, path, what));
            }
        }
        let mut stream = Stream { blocks, notes: Notes::default(), record: Record::default() };
        let head = stream.blocks.available();
        let opened = if head.starts_with(&PCAPNG_MAGIC) {
            Pcapng::open(&mut stream.blocks).map(|pcapng| (Format::Pcapng(pcapng), "pcapng"))
        } else if let Some((magic, order)) = Magic::detect(head) {
            Pcap::open(&mut stream, magic, order).map(|pcap| {
                let name = pcap.name();
                (Format::Pcap(pcap), name)
            })
        } else if is_erf(&mut stream.blocks) {
            Ok((Format::Erf(Erf::default()), "erf"))
        } else {
            return Err(not_a_capture(path, &stream.blocks));
        };
        let (format, name) = opened.map_err(|stop| caused(*stop, &mut stream.blocks, path))?;
        let compression = stream.blocks.compression();
        let name = compression.map_or_else(|| name.to_owned(), |compression| format!("{compression} {name}"));
        Ok(Self { path: path.to_owned(), stream, format, name, last_info: FileInfo::default(), consumed })
    }

    /// Moves to the next frame. Returns false at the end of the file, and on every later call.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<bool, CaptureError> {
        let moved = match &mut self.format {
            Format::Pcap(pcap) => pcap.advance(&mut self.stream),
            Format::Pcapng(pcapng) => pcapng.advance(&mut self.stream),
            Format::Erf(erf) => erf.advance(&mut self.stream),
            Format::Ended => Ok(false),
        };
        match moved {
            Ok(true) => {
                self.stream.record.number += 1;
                Ok(true)
            }
            Ok(false) => {
                self.end();
                Ok(false)
            }
            Err(stop) => Err(self.end_with(*stop)),
        }
    }

    #[cold]
    fn end(&mut self) {
        self.last_info = self.info();
        self.format = Format::Ended;
        self.stream.record = Record::default();
    }

    #[cold]
    fn end_with(&mut self, stop: CaptureError) -> CaptureError {
        let frame = self.stream.record.number + 1;
        self.end();
        caused(stop, &mut self.stream.blocks, &self.path).in_frame(frame)
    }

    #[inline]
    pub(super) fn record(&self) -> &Record {
        &self.stream.record
    }

    #[inline]
    pub(super) fn data(&self) -> &[u8] {
        self.stream.blocks.slice(self.stream.record.data.clone())
    }

    /// The path of the file, and the offset of the current frame in the decompressed file.
    pub(super) fn place(&self) -> (&OsStr, u64) {
        (&self.path, self.stream.blocks.offset_of(&self.stream.record.data))
    }

    pub(super) fn consumed(&self) -> &Consumed {
        &self.consumed
    }

    pub(super) fn info(&self) -> FileInfo {
        let format = self.name.clone();
        match &self.format {
            Format::Pcap(pcap) => FileInfo {
                format,
                snaplen_bytes: pcap.snaplen_bytes(),
                resolution_ns: pcap.resolution_ns(),
                kernel_drops: None,
            },
            Format::Pcapng(pcapng) => FileInfo {
                format,
                snaplen_bytes: pcapng.snaplen_bytes(),
                resolution_ns: pcapng.resolution_ns(),
                kernel_drops: pcapng.kernel_drops(),
            },
            Format::Erf(erf) => {
                FileInfo { format, snaplen_bytes: 0, resolution_ns: erf::RESOLUTION_NS, kernel_drops: erf.lost() }
            }
            Format::Ended => self.last_info.clone(),
        }
    }

    pub(super) fn problems(&self) -> impl Iterator<Item = Problem> {
        let remark = self.stream.blocks.remark().map(|what| Problem {
            what: what.to_owned(),
            path: self.path.clone(),
            frame: None,
            offset: None,
            count: 1,
            loses_data: false,
        });
        self.stream.notes.of(&self.path).chain(remark)
    }
}

/// Opens a file. The standard library's stdin has a buffer that would copy all bytes once more, so stdin is read
/// through its file descriptor.
pub(super) fn open_source(path: &OsStr) -> std::io::Result<File> {
    if *path == *STDIN { std::io::stdin().as_fd().try_clone_to_owned().map(File::from) } else { File::open(path) }
}

pub(super) fn decompressed(blocks: Blocks, codec: Codec, block_bytes: usize) -> Blocks {
    let (ahead, source) = blocks.into_parts();
    let source = source.unwrap_or_else(|| Box::new(std::io::empty()));
    Blocks::new(Input::Compressed(Box::new(Decoder::new(codec, ahead, source))), block_bytes)
}

/// Whether a stream is in ERF format. ERF has no magic number, so all other formats are tried first.
fn is_erf(blocks: &mut Blocks) -> bool {
    blocks.fill_to(SNIFFED_BYTES);
    !sniff::is_recognized(blocks.available()) && erf::detect(blocks)
}

/// The error that stopped the reader. If a fault of the decompressor caused this error, the fault is returned instead,
/// without an offset.
fn caused(stop: CaptureError, blocks: &mut Blocks, path: &OsStr) -> CaptureError {
    match blocks.compression_fault() {
        Some(fault) => CaptureError::new(fault.kind, path, fault.what),
        None => CaptureError { path: path.to_owned(), ..stop },
    }
}

/// The error for a stream in an unsupported format. The error names the fault that ended the stream, or the format if
/// it is recognized.
fn not_a_capture(path: &OsStr, blocks: &Blocks) -> CaptureError {
    let head = blocks.available();
    if let Some(fault) = blocks.fault() {
        return CaptureError::new(fault.kind, path, fault.what.clone()).at(head.len() as u64);
    }
    // The limit makes the result independent of the number of bytes that have arrived.
    let seen = head.get(..SNIFFED_BYTES).unwrap_or(head);
    match blocks.compression() {
        Some(name) if head.is_empty() => {
            CaptureError::new(ErrorKind::NotACapture, path, format!("is {name} data without content"))
        }
        _ => sniff::refuse(path, seen),
    }
}
