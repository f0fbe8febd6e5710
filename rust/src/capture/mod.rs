//! Reads frames from capture files. A [`Capture`] is one file, several files merged by timestamp, or stdin.
//!
//! The modules, from the lowest layer up:
//! - `source`: byte streams
//! - `progress`: the number of bytes read
//! - `compressed`: decompression
//! - `blocks`: the buffer between a byte stream and its reader
//! - `notes`: problems
//! - `stream`: a buffer, its problems and the current frame
//! - `pcap`, `pcapng`, `erf`: formats
//! - `reader`: one file of any format
//! - `merge`: several files
//!
//! `sniff` names the format of a file that cannot be read.

mod blocks;
mod bytes;
mod compressed;
mod erf;
mod granularity;
mod merge;
mod notes;
mod pcap;
mod pcapng;
mod progress;
mod reader;
mod sniff;
mod source;
mod stream;
mod unpack;

use std::ffi::OsStr;
use std::io::Read;

use crate::error::{CaptureError, ErrorKind, Problem};
use blocks::BLOCK_BYTES;
pub use granularity::Granularity;
use merge::Merge;
use progress::Counted;
pub use progress::Progress;
use reader::{Reader, STDIN};
pub use stream::LinkType;
use stream::Record;
pub use unpack::Unpacker;

/// Memory in bytes for the read buffers of all merged files together, and the smallest buffer of one file.
const MERGE_BYTES: usize = 64 << 20;
const MIN_BLOCK_BYTES: usize = 16 << 10;

/// One captured frame, whose bytes are borrowed from the reader's buffer until the next [`Capture::advance`].
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Frame number from 1, equal to Wireshark's `frame.number`. Wireshark also numbers some pcapng blocks without a
    /// packet.
    pub number: u64,
    /// Timestamp in nanoseconds since 1970, or `None` for a block without a timestamp, such as pcapng's simple packet
    /// block.
    pub ts_ns: Option<i64>,
    /// Link type of the frame, or `None` for a block that has a frame number but no packet.
    pub link_type: Option<LinkType>,
    /// Length on the wire, in bytes.
    pub original_bytes: u32,
    /// Captured bytes.
    pub data: &'a [u8],
}

/// Information from all file headers that have been read so far.
#[derive(Clone, Debug, Default)]
pub struct CaptureInfo {
    /// Name of the format (`pcap`, `pcapng`, `erf`, …). The name of a compression precedes the format, as in `gzip
    /// pcapng`. Several formats are joined by `, `.
    pub format: String,
    /// The largest declared snaplen, or 0 if no file declares one.
    pub snaplen_bytes: u32,
    /// The coarsest timestamp resolution of all interfaces, in nanoseconds, at least 1.
    pub resolution_ns: i64,
    /// Number of packets that the capturing kernel or card dropped, from pcapng interface statistics or ERF loss
    /// counters, or `None` if the files report no drops.
    pub kernel_drops: Option<u64>,
}

/// An opened capture.
///
/// ```
/// use tcptrace_lab_core::capture::Capture;
///
/// let mut capture = Capture::open(&["../captures/ethernet-loss.pcapng"])?;
/// let mut last_frame = 0;
/// while capture.advance()? {
///     last_frame = capture.frame().number;
/// }
/// assert_eq!(last_frame, 505);
/// # Ok::<(), tcptrace_lab_core::error::CaptureError>(())
/// ```
pub struct Capture {
    readers: Vec<Reader>,
    /// The merge state, or `None` for a single file.
    merge: Option<Merge>,
}

impl Capture {
    /// Opens `paths` and reads the file headers. The path `-` is stdin.
    ///
    /// # Errors
    /// `Io` if a path is missing, unreadable or a directory, if there is no path, or if stdin is given twice.
    /// `NotACapture` if a file is empty, text or of an unknown format. `Unsupported` for a known format that this
    /// engine cannot read. `Cut` or `Damaged` if a file header is incomplete.
    pub fn open(paths: &[impl AsRef<OsStr>]) -> Result<Self, CaptureError> {
        if paths.is_empty() {
            return Err(CaptureError::new(ErrorKind::Io, "", "no capture given"));
        }
        if paths.iter().filter(|path| *path.as_ref() == *STDIN).count() > 1 {
            return Err(CaptureError::new(ErrorKind::Io, STDIN, "standard input can be read only once"));
        }
        let block_bytes = block_bytes(paths.len());
        let readers =
            paths.iter().map(|path| Reader::open(path.as_ref(), block_bytes)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self::of(readers))
    }

    /// Reads one capture from any byte stream. Errors name the stream `path`.
    ///
    /// # Errors
    /// The errors of [`Self::open`], except the errors for paths.
    ///
    /// ```
    /// use tcptrace_lab_core::capture::Capture;
    /// use tcptrace_lab_core::error::ErrorKind;
    ///
    /// let error = Capture::from_stream("page.html", &b"<!DOCTYPE html>"[..]).err();
    /// assert_eq!(error.map(|error| error.kind), Some(ErrorKind::NotACapture));
    /// ```
    pub fn from_stream(
        path: impl AsRef<OsStr>,
        stream: impl Read + Send + Sync + 'static,
    ) -> Result<Self, CaptureError> {
        Self::from_streams([(path, stream)])
    }

    /// Reads several captures and merges them by timestamp. Each stream is paired with the name that errors use for
    /// this stream.
    ///
    /// # Errors
    /// The errors of [`Self::open`], except the errors for paths.
    pub fn from_streams<P: AsRef<OsStr>, S: Read + Send + Sync + 'static>(
        streams: impl IntoIterator<Item = (P, S), IntoIter: ExactSizeIterator>,
    ) -> Result<Self, CaptureError> {
        let streams = streams.into_iter();
        let block_bytes = block_bytes(streams.len());
        let readers = streams.map(|(path, stream)| Reader::new(path.as_ref(), Counted::stream(stream), block_bytes));
        Ok(Self::of(readers.collect::<Result<Vec<_>, _>>()?))
    }

    fn of(readers: Vec<Reader>) -> Self {
        let merge = (readers.len() > 1).then(Merge::new);
        Self { readers, merge }
    }

    /// Moves to the next frame. Returns false at the end.
    ///
    /// # Errors
    /// The error that ended one of the files early. Each error is returned once, and the next call continues with the
    /// other files. The frame number in the error counts only the frames of the named file.
    #[inline]
    pub fn advance(&mut self) -> Result<bool, CaptureError> {
        match (&mut self.merge, self.readers.as_mut_slice()) {
            (Some(merge), readers) => merge.advance(readers),
            (None, [reader, ..]) => reader.advance(),
            (None, []) => Ok(false),
        }
    }

    /// The current frame, or an empty frame before the first `advance` and after the end.
    #[must_use]
    #[inline]
    pub fn frame(&self) -> Frame<'_> {
        let current = match &self.merge {
            None => self.readers.first().map(|reader| (reader, reader.record().number)),
            Some(merge) => {
                merge.current().and_then(|(index, number)| self.readers.get(index).map(|reader| (reader, number)))
            }
        };
        let Some((reader, number)) = current else {
            return Frame { number: 0, ts_ns: None, link_type: None, original_bytes: 0, data: &[] };
        };
        let Record { ts_ns, link_type, original_bytes, .. } = *reader.record();
        Frame { number, ts_ns, link_type, original_bytes, data: reader.data() }
    }

    /// Information from all file headers that have been read so far.
    #[must_use]
    pub fn info(&self) -> CaptureInfo {
        let mut info = CaptureInfo::default();
        let mut formats: Vec<String> = Vec::new();
        for file in self.readers.iter().map(Reader::info) {
            info.snaplen_bytes = info.snaplen_bytes.max(file.snaplen_bytes);
            info.resolution_ns = info.resolution_ns.max(file.resolution_ns);
            info.kernel_drops = match (info.kernel_drops, file.kernel_drops) {
                (Some(one), Some(other)) => Some(one.saturating_add(other)),
                (one, other) => one.or(other),
            };
            if !formats.contains(&file.format) {
                formats.push(file.format);
            }
        }
        info.format = formats.join(", ");
        info.resolution_ns = info.resolution_ns.max(1);
        info
    }

    /// The file of the current frame, and the offset of the frame's bytes in this file, or `None` for merged files,
    /// where a frame number counts the frames of all files.
    #[must_use]
    pub fn place(&self) -> Option<(&OsStr, u64)> {
        match (&self.merge, self.readers.as_slice()) {
            (None, [reader]) => Some(reader.place()),
            _ => None,
        }
    }

    /// The progress of reading, which stays up to date while another thread reads the capture.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress::of(self.readers.iter().map(|reader| reader.consumed().clone()).collect())
    }

    /// The problems so far. A problem's frame number counts only the frames of the named file.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        self.readers.iter().flat_map(Reader::problems).collect()
    }
}

fn block_bytes(files: usize) -> usize {
    (MERGE_BYTES / files.max(1)).clamp(MIN_BLOCK_BYTES, BLOCK_BYTES)
}
