//! Capture files → frames. One [`Capture`] is one or several files (or stdin), merged by time.

use crate::error::{CaptureError, Problem};

/// A link type as pcap numbers it (`LINKTYPE_…`).
pub type LinkType = u32;

/// One captured frame, borrowed from the reader's buffer until the next [`Capture::advance`].
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// 1-based; equals Wireshark's `frame.number` (so blocks that Wireshark numbers but that hold no packet count too).
    pub number: u64,
    /// Nanoseconds since 1970; `None` where the format has no time (simple packet blocks).
    pub ts_ns: Option<i64>,
    /// Link type of the frame; `None` for numbered blocks that hold no packet.
    pub link_type: Option<LinkType>,
    /// Bytes that were on the wire.
    pub original_bytes: u32,
    /// Bytes that were captured.
    pub data: &'a [u8],
}

/// What the files said about themselves, over all of them, as far as they were read.
#[derive(Clone, Debug, Default)]
pub struct CaptureInfo {
    /// `pcap`, `pcapng`, …, with the compression before it: `gzip pcapng`; several distinct ones joined by `, `.
    pub format: String,
    /// Largest snap length declared (0 = none declared).
    pub snaplen_bytes: u32,
    /// Coarsest timestamp resolution of the interfaces, in nanoseconds (at least 1).
    pub resolution_ns: i64,
    /// Packets the capturing kernel says it dropped (pcapng interface statistics); `None` where nobody said.
    pub kernel_drops: Option<u64>,
}

/// An opened capture.
pub struct Capture {}

impl Capture {
    /// Opens `paths` (`-` is stdin) and reads as far as the first frame of each.
    ///
    /// # Errors
    /// A file that is missing, a directory, or not a capture.
    pub fn open(paths: &[String]) -> Result<Self, CaptureError> {
        let _ = paths;
        Ok(Self {})
    }

    /// Moves to the next frame; false at the end.
    ///
    /// # Errors
    /// The error that ended one of the files early. It is given once; calling again goes on with the other files.
    pub fn advance(&mut self) -> Result<bool, CaptureError> {
        Ok(false)
    }

    /// The frame moved to. Before the first `advance` and after the end: an empty frame.
    #[must_use]
    pub fn frame(&self) -> Frame<'_> {
        Frame { number: 0, ts_ns: None, link_type: None, original_bytes: 0, data: &[] }
    }

    /// What the files said about themselves so far.
    #[must_use]
    pub fn info(&self) -> CaptureInfo {
        CaptureInfo::default()
    }

    /// What the readers survived so far, with counts.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        Vec::new()
    }
}
