//! Compressed captures: recognized by content, decompressed while they are read, in limited memory.
//!
//! A truncated file yields everything that can be decompressed before the end; the fault follows.

mod framed;
mod gzip;
mod raw;
mod step;
mod xz;

use super::source::{Fault, Source};
use crate::error::ErrorKind;
use framed::Framed;
use gzip::Gzip;
use raw::Raw;
use xz::Xz;

/// Decompressed bytes allowed per compressed byte. Deflate cannot exceed 1,032 (RFC 1951: 258 bytes in 2 bits).
/// Real captures stay below 200; zstd and xz bombs reach 30,000 and more. The bound is chosen between these,
/// not measured.
const MAX_RATIO: u64 = 4_096;

/// Decompressed bytes that are always allowed, so that the headers of tiny files do not count.
const RATIO_FREE_BYTES: u64 = 64 << 20;

/// The kind of compression, from the first bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Gzip,
    /// zstd or lz4 frames, with skippable frames between them.
    Framed,
    Xz,
}

impl Codec {
    /// The compression of a stream that begins with `head` (at least 6 bytes, unless the file is shorter).
    pub(super) fn detect(head: &[u8]) -> Option<Self> {
        match head {
            // Magic, then method 8 (deflate), the only one defined (RFC 1952, 2.3).
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

/// A stream of decompressed bytes.
pub(super) struct Decoder {
    decoding: Decoding,
    produced: u64,
    /// Reported after all bytes before it were returned.
    fault: Option<Fault>,
}

impl Decoder {
    /// A decoder for `source`, of which `ahead` was already read.
    pub(super) fn new(codec: Codec, ahead: Vec<u8>, source: Source) -> Self {
        let raw = Raw::new(ahead, source);
        let decoding = match codec {
            Codec::Gzip => Decoding::Gzip(Box::new(Gzip::new(raw))),
            Codec::Framed => Decoding::Framed(Box::new(Framed::new(raw))),
            Codec::Xz => Decoding::Xz(Box::new(Xz::new(raw))),
        };
        Self { decoding, produced: 0, fault: None }
    }

    /// Decompresses some bytes; 0 means the end.
    ///
    /// # Errors
    /// `Cut` if the compressed bytes end early, `Damaged` if they are contradictory or expand beyond
    /// [`MAX_RATIO`], `Unsupported` if they need more memory than [`step::MAX_WINDOW_BYTES`].
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
            let what = format!(
                "the {} data expands more than {MAX_RATIO} times: refused as a decompression bomb",
                self.name()
            );
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

    /// The name to put before that of the format.
    pub(super) fn name(&self) -> &'static str {
        match &self.decoding {
            Decoding::Gzip(_) => "gzip",
            Decoding::Framed(framed) => framed.name(),
            Decoding::Xz(_) => "xz",
        }
    }

    /// Why the bytes that ended the stream were not read, if there were any.
    pub(super) fn trailing_fault(&mut self) -> Option<Fault> {
        match &mut self.decoding {
            Decoding::Gzip(gzip) => gzip.trailing_fault(),
            _ => None,
        }
    }

    /// The decoder's problem, if there was one.
    pub(super) fn remark(&self) -> Option<&'static str> {
        match &self.decoding {
            Decoding::Gzip(gzip) => gzip.remark(),
            _ => None,
        }
    }
}
