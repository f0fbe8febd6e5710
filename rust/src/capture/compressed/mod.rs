//! Decompresses captures while they are read, in limited memory. The content of the file shows how the file is
//! compressed.
//!
//! A truncated file first returns all bytes that can be decompressed, and then the fault.

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

/// Maximum ratio of decompressed to compressed bytes, as a protection against decompression bombs. The ratio of real
/// captures is below 200. Deflate cannot exceed 1,032 (RFC 1951: 258 bytes in 2 bits). Bombs in zstd and xz reach
/// 30,000 and more.
const MAX_RATIO: u64 = 4_096;

/// The ratio is limited only after this number of decompressed bytes. Fewer bytes do no harm at any ratio.
const RATIO_FREE_BYTES: u64 = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Gzip,
    /// zstd or lz4 frames, with skippable frames between them.
    Framed,
    Xz,
}

impl Codec {
    /// The compression of a stream that begins with `head`. `head` has at least 6 bytes unless the file is shorter.
    pub(super) fn detect(head: &[u8]) -> Option<Self> {
        match head {
            // The magic number of gzip, then compression method 8 (deflate), the only defined method (RFC 1952, 2.3).
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

pub(super) struct Decoder {
    decoding: Decoding,
    produced: u64,
    /// A fault that is reported after all bytes before the fault have been returned.
    fault: Option<Fault>,
}

impl Decoder {
    /// A decoder for `ahead`, and then for `source`. `ahead` contains bytes that were already read from `source`.
    pub(super) fn new(codec: Codec, ahead: Vec<u8>, source: Source) -> Self {
        let raw = Raw::new(ahead, source);
        let decoding = match codec {
            Codec::Gzip => Decoding::Gzip(Box::new(Gzip::new(raw))),
            Codec::Framed => Decoding::Framed(Box::new(Framed::new(raw))),
            Codec::Xz => Decoding::Xz(Box::new(Xz::new(raw))),
        };
        Self { decoding, produced: 0, fault: None }
    }

    /// Decompresses at least one byte. Returns the number of bytes, or 0 at the end of the stream.
    ///
    /// # Errors
    /// `Cut` if the compressed bytes end early, `Damaged` if they contradict themselves or expand beyond [`MAX_RATIO`],
    /// `Unsupported` if they need more memory than [`step::MAX_WINDOW_BYTES`].
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

    /// The name of the compression, which reports write before the name of the capture format.
    pub(super) fn name(&self) -> &'static str {
        match &self.decoding {
            Decoding::Gzip(_) => "gzip",
            Decoding::Framed(framed) => framed.name(),
            Decoding::Xz(_) => "xz",
        }
    }

    /// The fault for bytes after the end of the compressed data, if there are any.
    pub(super) fn trailing_fault(&mut self) -> Option<Fault> {
        match &mut self.decoding {
            Decoding::Gzip(gzip) => gzip.trailing_fault(),
            _ => None,
        }
    }

    /// The decoder's message for users, if there is one.
    pub(super) fn remark(&self) -> Option<&'static str> {
        match &self.decoding {
            Decoding::Gzip(gzip) => gzip.remark(),
            _ => None,
        }
    }
}
