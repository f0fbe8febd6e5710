//! Reads pcap files: a 24-byte file header, then records. Each record has a 16-byte header and a frame.
//!
//! The crate `pcap-parser` is slower and lacks the variants in `variant`. Measured with 10 million frames of 96 bytes
//! in the page cache and buffers of 256 KiB, `pcap-parser` 0.17.0 takes 0.190 CPU seconds for pcap and 0.364 for
//! pcapng. The readers of this engine take 0.148 and 0.158 CPU seconds. All four figures include about 0.09 s for
//! reading the file.
//!
//! The format is defined in draft-ietf-opsawg-pcap. Variants are read as in Wireshark's wiretap.

mod header;
mod variant;

use super::blocks::Blocks;
use super::bytes::Order;
use super::source::{Stop, damaged};
use super::stream::{Stream, record_limit};
use crate::error::{CaptureError, ErrorKind};
use header::FileHeader;
pub(super) use header::Magic;
use variant::{Lengths, Variant};

const FILE_HEADER_BYTES: usize = 24;

/// Mask of the link type in the `network` field. The upper half contains the length of the frame check sequence (FCS).
const LINK_TYPE_MASK: u32 = 0x0000_FFFF;

/// Bits of the `network` field that must be zero. The other bits of the upper half are the length of the FCS, and a
/// flag for a valid length.
const NETWORK_RESERVED_MASK: u32 = 0x0BFF_0000;

const NETWORK_RESERVED: &str = "reserved bits next to the link type in the file header are set: ignored";
const SUBSECOND_CARRIED: &str = "the fraction of a timestamp is a second or more: carried into its seconds";

const NS_PER_S: i64 = 1_000_000_000;

/// The reader of a pcap file after its file header.
pub(super) struct Pcap {
    order: Order,
    variant: Variant,
    link_type: u32,
    snaplen: u32,
    /// Largest captured length of a record. A larger length means that the file is damaged.
    limit: u32,
}

impl Pcap {
    /// Reads the file header.
    ///
    /// # Errors
    /// `Cut` if the file ends in its header, `Unsupported` for format versions before 2.
    pub(super) fn open(stream: &mut Stream, magic: Magic, order: Order) -> Result<Self, Stop> {
        let Stream { blocks, notes, .. } = stream;
        let header_bytes = FILE_HEADER_BYTES + magic.extra_bytes();
        blocks.fill_to(header_bytes);
        let available = blocks.available();
        let [_, version, _, _, snaplen, network, ..] = available.as_chunks().0 else {
            let got = available.len() as u64;
            return Err(blocks.cut("the file header", "file header", header_bytes as u64, got, 0));
        };
        let header = FileHeader {
            magic,
            order,
            version: order.halves(*version),
            snaplen: order.u32(*snaplen),
            network: order.u32(*network),
        };
        if header.version.0 < 2 {
            let (major, minor) = header.version;
            let what = format!("pcap version {major}.{minor} is not supported");
            return Err(Box::new(CaptureError::new(ErrorKind::Unsupported, "", what).at(4)));
        }
        blocks.consume(header_bytes);
        let variant = Variant::guess(&header, blocks);
        if header.network & NETWORK_RESERVED_MASK != 0 {
            notes.add(NETWORK_RESERVED, 0, 20);
        }
        Ok(Self {
            order,
            link_type: variant.link_type(header.network & LINK_TYPE_MASK),
            variant,
            snaplen: header.snaplen,
            limit: record_limit(header.snaplen),
        })
    }

    /// Moves to the next record. Returns false at the end of the file.
    #[inline]
    pub(super) fn advance(&mut self, stream: &mut Stream) -> Result<bool, Stop> {
        let Stream { blocks, notes, record } = stream;
        loop {
            let available = blocks.available();
            if let [seconds, fraction, first, second, ..] = available.as_chunks().0 {
                let (captured, original) = self.lengths(*first, *second);
                let whole = self.variant.header_bytes as usize + captured as usize;
                if captured <= self.limit && whole <= available.len() {
                    let fraction = self.order.u32(*fraction);
                    if fraction >= self.variant.units_per_s {
                        notes.add(SUBSECOND_CARRIED, record.number + 1, blocks.offset());
                    }
                    // The time fits into 64 bits although seconds and fraction have 32 bits each: 2^32 s + 2^32 µs <
                    // 2^63 ns.
                    let whole_ns = i64::from(self.order.u32(*seconds)) * NS_PER_S;
                    record.ts_ns = Some(whole_ns + i64::from(fraction) * i64::from(self.variant.unit_ns));
                    record.link_type = Some(self.link_type);
                    record.original_bytes = original;
                    let place = blocks.consume(whole);
                    record.data = place.start + self.variant.header_bytes as usize..place.end;
                    return Ok(true);
                }
            }
            if !self.fill(blocks)? {
                return Ok(false);
            }
        }
    }

    /// The captured length and the original length of a record. The file's version decides which field comes first.
    #[inline]
    fn lengths(&self, first: [u8; 4], second: [u8; 4]) -> (u32, u32) {
        let (first, second) = (self.order.u32(first), self.order.u32(second));
        match self.variant.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::OriginalFirst => (second, first),
            Lengths::SmallerIsCaptured => (first.min(second), first.max(second)),
        }
    }

    /// Reads the whole next record into the buffer. Returns false at the end of the file.
    #[cold]
    #[inline(never)]
    fn fill(&self, blocks: &mut Blocks) -> Result<bool, Stop> {
        if !blocks.fill_to(1) {
            return blocks.end_between_records();
        }
        let offset = blocks.offset();
        let header_bytes = self.variant.header_bytes as usize;
        blocks.fill_to(header_bytes);
        let got = blocks.available().len();
        let [_, _, first, second, ..] = blocks.available().as_chunks().0 else {
            return Err(blocks.cut("a record header", "record header", header_bytes as u64, got as u64, offset));
        };
        let (captured, _) = self.lengths(*first, *second);
        if got < header_bytes {
            return Err(blocks.cut("a record header", "record header", header_bytes as u64, got as u64, offset));
        }
        if captured > self.limit {
            let what = format!("a record claims {captured} captured bytes, more than the limit of {}", self.limit);
            return Err(damaged(what, offset));
        }
        let whole = header_bytes + captured as usize;
        if !blocks.fill_to(whole) {
            let got = (blocks.available().len() - header_bytes) as u64;
            return Err(blocks.cut("a frame", "incl_len", u64::from(captured), got, offset));
        }
        Ok(true)
    }

    pub(super) fn snaplen_bytes(&self) -> u32 {
        self.snaplen
    }

    pub(super) fn resolution_ns(&self) -> i64 {
        i64::from(self.variant.unit_ns)
    }

    pub(super) fn name(&self) -> &'static str {
        self.variant.name
    }
}
