//! Decompresses zstd frames (RFC 8878) and lz4 frames. A file can contain several frames of both kinds, and skippable
//! frames between any two of them.

use std::io::Read;

use lz4_flex::frame::FrameDecoder as Lz4;
use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder as Zstd};

use super::super::source::Fault;
use super::raw::{Raw, WRONG_CHECKSUM};
use super::step::{MAX_WINDOW_BYTES, Step};
use crate::error::ErrorKind;

/// Magic number of a zstd frame (RFC 8878, 3.1.1).
const ZSTD_MAGIC: u32 = 0xFD2F_B528;
/// Magic number of an lz4 frame (LZ4 frame format 1.6, "Magic Number").
const LZ4_MAGIC: u32 = 0x184D_2204;
/// Magic number of an lz4 frame in the legacy format (LZ4 frame format 1.6, "Legacy frame"). A legacy frame ends where
/// the file ends.
const LZ4_LEGACY_MAGIC: u32 = 0x184C_2102;
/// The first of 16 magic numbers for skippable frames, which contain no data. The 16 numbers differ only in the last
/// four bits, and are the same in zstd and lz4 (RFC 8878, 3.1.2).
const SKIPPABLE_MAGIC: u32 = 0x184D_2A50;
const SKIPPABLE_MASK: u32 = 0xFFFF_FFF0;

/// An empty raw block with the mark of a last block (RFC 8878, 3.1.1.2), and space for a checksum. With this block at
/// the end of a truncated frame, the decoder returns the data that is still in its window.
const ZSTD_LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// The fault if a frame is followed by bytes that are not a frame.
const NO_FRAME: &str = "no valid frame follows a frame";

/// Whether `head` begins with a magic number of zstd or lz4.
pub(super) fn is_magic(head: &[u8]) -> bool {
    head.first_chunk().is_some_and(|magic| {
        let magic = u32::from_le_bytes(*magic);
        matches!(magic, ZSTD_MAGIC | LZ4_MAGIC | LZ4_LEGACY_MAGIC) || magic & SKIPPABLE_MASK == SKIPPABLE_MAGIC
    })
}

/// What is being decompressed.
enum Place {
    Between,
    Zstd,
    /// `true` for the legacy format.
    Lz4(bool),
    End,
}

pub(super) struct Framed {
    /// The lz4 decoder, which owns the compressed bytes even while a zstd frame is read.
    lz4: Lz4<Raw>,
    zstd: Zstd,
    place: Place,
    name: Option<&'static str>,
    /// A fault that is reported after the zstd decoder has returned all its bytes.
    pending: Option<Fault>,
}

impl Framed {
    pub(super) fn new(raw: Raw) -> Self {
        let mut zstd = Zstd::new();
        zstd.set_max_window_size(MAX_WINDOW_BYTES);
        Self { lz4: Lz4::new(raw), zstd, place: Place::Between, name: None, pending: None }
    }

    pub(super) fn raw(&self) -> &Raw {
        self.lz4.get_ref()
    }

    pub(super) fn name(&self) -> &'static str {
        self.name.unwrap_or("zstd")
    }

    pub(super) fn read(&mut self, out: &mut [u8]) -> Step {
        loop {
            let step = match self.place {
                Place::End => return Step { bytes: 0, fault: self.raw().end_fault() },
                Place::Between => self.next_frame(),
                Place::Zstd => self.read_zstd(out),
                Place::Lz4(legacy) => self.read_lz4(out, legacy),
            };
            match step {
                Ok(0) => {}
                Ok(bytes) => return Step::bytes(bytes),
                Err(fault) => return Step::fault(fault),
            }
        }
    }

    /// Prepares the decoder for the next frame, or skips this frame. Returns 0, because no data is decompressed yet.
    fn next_frame(&mut self) -> Result<usize, Fault> {
        let name = self.name();
        let raw = self.lz4.get_mut();
        let Some(magic) = raw.peek(4).first_chunk().map(|magic| u32::from_le_bytes(*magic)) else {
            self.place = Place::End;
            return if raw.peek(1).is_empty() { Ok(0) } else { Err(raw.fault(name, NO_FRAME)) };
        };
        match magic {
            ZSTD_MAGIC => {
                self.name.get_or_insert("zstd");
                let begun = self.zstd.init(self.lz4.get_mut());
                begun.map_err(|error| self.zstd_fault(&error))?;
                self.place = Place::Zstd;
            }
            LZ4_MAGIC | LZ4_LEGACY_MAGIC => {
                self.name.get_or_insert("lz4");
                // The crate's decoder chooses the size of its buffers by the first frame, so each frame gets a new
                // decoder.
                let old = std::mem::replace(&mut self.lz4, Lz4::new(Raw::empty()));
                self.lz4 = Lz4::new(old.into_inner());
                self.place = Place::Lz4(magic == LZ4_LEGACY_MAGIC);
            }
            _ if magic & SKIPPABLE_MASK == SKIPPABLE_MAGIC => {
                let size = raw.peek(8).get(4..).and_then(<[u8]>::first_chunk).map(|size| u32::from_le_bytes(*size));
                if !size.is_some_and(|size| raw.skip(8 + u64::from(size))) {
                    return Err(raw.fault(name, ""));
                }
            }
            _ => return Err(raw.fault(name, NO_FRAME)),
        }
        Ok(0)
    }

    fn read_zstd(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        while self.zstd.can_collect() == 0 && !self.zstd.is_finished() {
            let decoded = self.zstd.decode_blocks(self.lz4.get_mut(), BlockDecodingStrategy::UptoBlocks(1));
            if let Err(error) = decoded {
                let fault = self.zstd_fault(&error);
                let closed = self.zstd.decode_blocks(&ZSTD_LAST_BLOCK[..], BlockDecodingStrategy::UptoBlocks(1));
                if closed.is_err() {
                    return Err(fault);
                }
                self.pending = Some(fault);
            }
        }
        let bytes = self.zstd.read(out).map_err(|error| self.raw().fault("zstd", &error.to_string()))?;
        if bytes == 0 && self.zstd.can_collect() == 0 {
            if let Some(fault) = self.pending.take() {
                return Err(fault);
            }
            let said = self.zstd.get_checksum_from_data();
            if said.is_some() && said != self.zstd.get_calculated_checksum() {
                return Err(self.raw().fault("zstd", WRONG_CHECKSUM));
            }
            self.place = Place::Between;
        }
        Ok(bytes)
    }

    fn zstd_fault(&self, error: &FrameDecoderError) -> Fault {
        match error {
            FrameDecoderError::WindowSizeTooBig { requested, .. } => Fault::new(
                ErrorKind::Unsupported,
                format!("the zstd data need a window of {requested} bytes, more than {MAX_WINDOW_BYTES}"),
            ),
            FrameDecoderError::DictNotProvided { dict_id } => {
                Fault::new(ErrorKind::Unsupported, format!("the zstd data need the dictionary {dict_id}"))
            }
            _ => self.raw().fault("zstd", &error.to_string()),
        }
    }

    /// Reads from an lz4 frame. The lz4 crate returns 0 bytes at the end mark of a frame, and also at the end of a file
    /// that ends between two blocks.
    fn read_lz4(&mut self, out: &mut [u8], legacy: bool) -> Result<usize, Fault> {
        let bytes = self.lz4.read(out).map_err(|error| self.raw().fault("lz4", &error.to_string()))?;
        if bytes == 0 {
            if self.raw().ended() && !legacy {
                return Err(self.raw().fault("lz4", ""));
            }
            self.place = if legacy { Place::End } else { Place::Between };
        }
        Ok(bytes)
    }
}
