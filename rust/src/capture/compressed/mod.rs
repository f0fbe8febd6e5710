//! Compressed captures: recognised by content, decoded as they are read, in bounded memory.
//!
//! A compressed file that is cut gives everything that could be decoded before the cut; the fault comes after it.

mod framed;
mod gzip;
mod raw;
mod xz;

use super::Source;
use super::blocks::Fault;
use crate::error::ErrorKind;
use framed::Framed;
use gzip::Gzip;
use raw::Raw;
use xz::Xz;

/// Largest history window that a zstd frame or an xz block may ask for. `zstd --ultra -22 --long=27` and `xz -9`
/// stay within it; it is also zstd's own default limit for decoding (`ZSTD_WINDOWLOG_LIMIT_DEFAULT`, 27 bits).
const MAX_WINDOW_BYTES: u64 = 128 << 20;

/// Decoded bytes allowed for each compressed byte. Deflate cannot exceed 1,032 (RFC 1951: 258 bytes in 2 bits); real
/// captures stay below 200; zstd and xz bombs reach 30,000 and more. A bound chosen between, not a measured one.
const MAX_RATIO: u64 = 4_096;

/// Decoded bytes that are always allowed, so that tiny files are not judged by their headers.
const RATIO_FREE_BYTES: u64 = 64 << 20;

/// The kind of compression, from the first bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Gzip,
    /// zstd or lz4 frames, skippable frames between them.
    Framed,
    Xz,
}

impl Codec {
    /// The compression that `head` (at least 6 bytes, if the file has them) begins with.
    pub(super) fn detect(head: &[u8]) -> Option<Self> {
        match head {
            // RFC 1952 2.3: magic, then method 8 (deflate), the only one there is.
            [0x1f, 0x8b, 0x08, ..] => Some(Self::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0x00, ..] => Some(Self::Xz),
            _ => framed::is_magic(head).then_some(Self::Framed),
        }
    }
}

enum Decoding {
    Gzip(Box<Gzip>),
    Framed(Box<Framed>),
    Xz(Box<Xz>),
}

/// A stream of decoded bytes.
pub(super) struct Decoder {
    decoding: Decoding,
    produced: u64,
    /// Kept until everything before it was handed out.
    fault: Option<Fault>,
}

impl Decoder {
    /// `ahead` is what was already read of `source`.
    pub(super) fn new(codec: Codec, ahead: Vec<u8>, source: Source) -> Self {
        let raw = Raw::new(ahead, source);
        let decoding = match codec {
            Codec::Gzip => Decoding::Gzip(Box::new(Gzip::new(raw))),
            Codec::Framed => Decoding::Framed(Box::new(Framed::new(raw))),
            Codec::Xz => Decoding::Xz(Box::new(Xz::new(raw))),
        };
        Self { decoding, produced: 0, fault: None }
    }

    /// Decodes some bytes; 0 is the end.
    ///
    /// # Errors
    /// `Cut` where the compressed bytes end too early, `Damaged` where they contradict themselves or expand beyond
    /// [`MAX_RATIO`], `Unsupported` where they need more memory than [`MAX_WINDOW_BYTES`].
    pub(super) fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let step = match &mut self.decoding {
            Decoding::Gzip(gzip) => gzip.read(out),
            Decoding::Framed(framed) => framed.read(out),
            Decoding::Xz(xz) => xz.read(out),
        };
        self.produced += step.bytes as u64;
        self.fault = step.fault.or_else(|| self.bomb());
        match &self.fault {
            Some(fault) if step.bytes == 0 => Err(fault.clone()),
            _ => Ok(step.bytes),
        }
    }

    fn bomb(&self) -> Option<Fault> {
        let allowed = RATIO_FREE_BYTES.saturating_add(self.raw().consumed().saturating_mul(MAX_RATIO));
        (self.produced > allowed).then(|| {
            let what = format!("{} data expand more than {MAX_RATIO} times: refused as a bomb", self.name());
            Fault::new(ErrorKind::Damaged, what)
        })
    }

    fn raw(&self) -> &Raw {
        match &self.decoding {
            Decoding::Gzip(gzip) => &gzip.raw,
            Decoding::Framed(framed) => framed.raw(),
            Decoding::Xz(xz) => &xz.raw,
        }
    }

    /// The name that stands before the format's.
    pub(super) fn name(&self) -> &'static str {
        match &self.decoding {
            Decoding::Gzip(_) => "gzip",
            Decoding::Framed(framed) => framed.name(),
            Decoding::Xz(_) => "xz",
        }
    }

    /// What was survived, if anything.
    pub(super) fn remark(&self) -> Option<&'static str> {
        match &self.decoding {
            Decoding::Gzip(gzip) => gzip.remark(),
            _ => None,
        }
    }
}

/// What one decoding step gave: bytes, and perhaps the fault that stands behind them.
struct Step {
    bytes: usize,
    fault: Option<Fault>,
}

impl Step {
    fn bytes(bytes: usize) -> Self {
        Self { bytes, fault: None }
    }

    fn fault(fault: Fault) -> Self {
        Self { bytes: 0, fault: Some(fault) }
    }
}
