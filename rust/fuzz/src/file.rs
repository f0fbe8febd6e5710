//! Target: the bytes of a capture file.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Cursor, Read};
use std::sync::Arc;

use tcptrace_lab_core::capture::{Capture, Frame};
use tcptrace_lab_core::error::{CaptureError, ErrorKind};

use crate::bounds;
use crate::pipeline::{Account, Pipeline};

/// Largest history window of a zstd frame or xz block.
pub(crate) const MAX_WINDOW_BYTES: usize = 128 << 20;
/// Numbers of bytes that a slow source returns at a time.
const DRIBS: [usize; 5] = [1, 2, 7, 64, 1000];

/// Reads a capture from arbitrary bytes and builds its tables. A second pass reads the capture from a source that
/// returns a few bytes at a time, and must find equal frames.
pub fn file(input: &[u8]) -> Account {
    let bytes: Arc<[u8]> = input.into();
    let window_bytes = if is_compressed(input) { MAX_WINDOW_BYTES } else { 0 };
    let account = bounds::hold(input, window_bytes, || {
        let mut pipeline = Pipeline::default();
        if let Ok(mut capture) = Capture::from_stream("whole", Cursor::new(bytes.clone())) {
            each_frame(&mut capture, 1, |frame| pipeline.take(frame));
        }
        pipeline.finish()
    });
    let whole = frames_of(Cursor::new(bytes.clone()));
    let slow = frames_of(Dribbling { bytes: Cursor::new(bytes), reads: 0 });
    // The variant of a pcap file is guessed from the bytes that arrive with its header. The guess must not wait for
    // more bytes of a live pipe, so a slow source can give another variant.
    if slow.format == whole.format {
        assert_eq!(slow, whole, "short reads give other frames");
    }
    account
}

pub(crate) fn is_compressed(input: &[u8]) -> bool {
    matches!(input, [0x28, 0xb5, 0x2f, 0xfd, ..] | [0xfd, b'7', b'z', ..]) || matches!(input, [0x50..=0x5f, 0x2a, ..])
}

/// Passes every frame to `take`. Returns the errors that ended files early.
pub(crate) fn each_frame(capture: &mut Capture, files: usize, mut take: impl FnMut(&Frame<'_>)) -> Vec<CaptureError> {
    let mut ends: Vec<CaptureError> = Vec::new();
    let mut number = 0;
    loop {
        match capture.advance() {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                let is_new = ends.iter().all(|known| known.path != error.path);
                assert!(is_new && ends.len() < files, "a file ends once, not by {ends:?} and by {error}");
                ends.push(error);
                continue;
            }
        }
        let frame = capture.frame();
        assert!(ends.len() < files, "frame {} behind the end", frame.number);
        assert!(frame.number > number, "frame {} after frame {number}", frame.number);
        number = frame.number;
        take(&frame);
    }
    assert!(matches!(capture.advance(), Ok(false)), "the end is no end");
    assert!(capture.frame().data.is_empty(), "a frame behind the end");
    assert!(capture.info().resolution_ns >= 1, "resolution {} ns", capture.info().resolution_ns);
    for problem in capture.problems() {
        assert!(problem.count >= 1 && !problem.what.is_empty(), "a problem without content: {problem:?}");
    }
    ends
}

/// Summary of a pass over a file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Frames {
    format: String,
    count: u64,
    /// Digest of all fields of all frames.
    digest: u64,
    /// The error that ended the file early.
    ended_by: Option<ErrorKind>,
}

fn frames_of(stream: impl Read + Send + Sync + 'static) -> Frames {
    // A file can be damaged and also not be a capture. The error for such a file depends on the number of bytes that
    // have arrived, so it is not compared.
    let Ok(mut capture) = Capture::from_stream("frames", stream) else { return Frames::default() };
    let mut digest = DefaultHasher::new();
    let mut count = 0;
    let ends = each_frame(&mut capture, 1, |frame| {
        count += 1;
        (frame.number, frame.ts_ns, frame.link_type, frame.original_bytes, frame.data).hash(&mut digest);
    });
    let format = capture.info().format;
    Frames { format, count, digest: digest.finish(), ended_by: ends.first().map(|error| error.kind) }
}

/// A source that returns a few bytes at a time, like a slow pipe.
struct Dribbling {
    bytes: Cursor<Arc<[u8]>>,
    reads: usize,
}

impl Read for Dribbling {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let bytes = DRIBS[self.reads % DRIBS.len()].min(out.len());
        self.reads += 1;
        self.bytes.read(&mut out[..bytes])
    }
}
