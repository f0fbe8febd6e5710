//! Variants of pcap with the same magic number but different record headers. As in Wireshark, the first records are
//! read with each possible layout. The layout with the fewest implausible values is chosen.

use super::super::blocks::Blocks;
use super::super::stream::MAX_RECORD_BYTES;
use super::header::{FileHeader, Magic};

/// Number of records to check at the start of the file.
const TRIED_RECORDS: usize = 3;

/// A larger original length is implausible. As in Wireshark, the limit is the size of the largest D-Bus packet.
const PLAUSIBLE_ORIGINAL_BYTES: u32 = 128 << 20;

/// A larger interface index is implausible in a Linux file of 1999.
const PLAUSIBLE_INTERFACES: u32 = 10_000;

/// `PACKET_OUTGOING`, the largest packet type of Linux in 1999.
const LARGEST_PACKET_TYPE: u8 = 4;

/// The order of the two length fields in a record header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lengths {
    CapturedFirst,
    /// Versions before 2.3, and version 543.0 of DG/UX.
    OriginalFirst,
    /// Files of version 2.3 have either order. The captured length cannot exceed the original length, so the smaller
    /// length is the captured length.
    SmallerIsCaptured,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) header_bytes: u32,
    pub(super) unit_ns: u32,
    pub(super) units_per_s: u32,
    pub(super) lengths: Lengths,
    /// AIX wrote the file, with interface types (RFC 1573) instead of link types.
    aix: bool,
}

const MICROSECONDS: Variant = Variant {
    name: "pcap",
    header_bytes: 16,
    unit_ns: 1_000,
    units_per_s: 1_000_000,
    lengths: Lengths::CapturedFirst,
    aix: false,
};
const NANOSECONDS: Variant = Variant { unit_ns: 1, units_per_s: 1_000_000_000, ..MICROSECONDS };
/// After timestamp and lengths, the record header has an interface index, a protocol, a packet type and one byte of
/// padding (Kuznetsov's patches of 1999-04-17 and 1999-10-29).
const KUZNETZOV: Variant = Variant { name: "modified pcap", header_bytes: 24, ..MICROSECONDS };
/// Like [`KUZNETZOV`], but with five bytes of padding (Kuznetsov's patch of 1999-09-15, in `SuSE` Linux 6.3).
const KUZNETZOV_LONG: Variant = Variant { header_bytes: 28, ..KUZNETZOV };
/// After the lengths, the record header has four unknown bytes.
const NOKIA: Variant = Variant { name: "Nokia pcap", header_bytes: 20, ..MICROSECONDS };
const AIX: Variant = Variant { name: "AIX pcap", aix: true, ..NANOSECONDS };

impl Variant {
    /// Determines the layout of the records after `header`.
    pub(super) fn guess(header: &FileHeader, blocks: &mut Blocks) -> Self {
        let lengths = match header.version {
            (2, minor) if minor < 3 => Lengths::OriginalFirst,
            (2, 3) => Lengths::SmallerIsCaptured,
            (543, _) => Lengths::OriginalFirst,
            _ => Lengths::CapturedFirst,
        };
        match header.magic {
            Magic::Nanoseconds | Magic::IxiaNanoseconds => Self { lengths, ..NANOSECONDS },
            Magic::IxiaMicroseconds => Self { lengths, ..MICROSECONDS },
            Magic::Microseconds if header.version == (2, 2) && aix_link_type(header.network).is_some() => {
                Self { lengths, ..AIX }
            }
            Magic::Microseconds if lengths != Lengths::CapturedFirst => Self { lengths, ..MICROSECONDS },
            Magic::Microseconds => {
                // The first check uses only the bytes that came with the file header, so that the reader of a live pipe
                // does not wait for three records.
                if MICROSECONDS.implausibility(header, blocks, false) == 0 {
                    return MICROSECONDS;
                }
                least_implausible(&[MICROSECONDS, KUZNETZOV, NOKIA], header, blocks)
            }
            Magic::Modified => least_implausible(&[KUZNETZOV, KUZNETZOV_LONG], header, blocks),
        }
    }

    /// The link type for the value of the `network` field.
    pub(super) fn link_type(&self, network: u32) -> u32 {
        if self.aix { aix_link_type(network).unwrap_or(network) } else { network }
    }

    /// Number of implausible values in the first records, read with this layout. If `wait` is set, the function waits
    /// for bytes that have not arrived yet.
    fn implausibility(&self, header: &FileHeader, blocks: &mut Blocks, wait: bool) -> u32 {
        let (mut wrong, mut at) = (0, 0);
        let header_bytes = self.header_bytes as usize;
        for _ in 0..TRIED_RECORDS {
            let whole = |blocks: &mut Blocks, bytes: usize| {
                if wait {
                    blocks.fill_to(bytes);
                }
                blocks.available().len() >= bytes
            };
            if wait && !whole(blocks, at + 1) {
                break;
            }
            if !whole(blocks, at + header_bytes) {
                return wrong + u32::from(wait);
            }
            let record = blocks.available().get(at..at + header_bytes).unwrap_or_default();
            let [_, fraction, captured, original, rest @ ..] = record.as_chunks().0 else {
                return wrong;
            };
            let word = |bytes: &[u8; 4]| header.order.u32(*bytes);
            let (captured, original) = (word(captured), word(original));
            wrong += u32::from(word(fraction) >= self.units_per_s)
                + u32::from(captured > MAX_RECORD_BYTES)
                + u32::from(captured > header.snaplen)
                + u32::from(original > PLAUSIBLE_ORIGINAL_BYTES)
                + u32::from(captured > original)
                + self.extra_implausibility(header, rest);
            if captured > MAX_RECORD_BYTES {
                break;
            }
            at += header_bytes + captured as usize;
            if wait && !whole(blocks, at) {
                return wrong + 1;
            }
        }
        wrong
    }

    /// Number of implausible values in the fields after the lengths.
    fn extra_implausibility(&self, header: &FileHeader, rest: &[[u8; 4]]) -> u32 {
        match (self.header_bytes, rest) {
            (24 | 28, [interface, [a, b, packet_type, _], ..]) => {
                let protocol = header.order.u16([*a, *b]);
                // Ethernet types are plausible, and so are Linux's internal protocol numbers that occur in captures.
                let known = protocol >= 0x0600 || matches!(protocol, 0..=0x17 | 0x60 | 0x200 | 0x400);
                u32::from(header.order.u32(*interface) > PLAUSIBLE_INTERFACES)
                    + u32::from(!known)
                    + u32::from(*packet_type > LARGEST_PACKET_TYPE)
            }
            (20, [unknown, ..]) => {
                // In real files, this value is 0 (written by Wireshark), or its hexadecimal form is `?fbf??0?`
                // (Wireshark's wiretap/libpcap.c). The four `?` are, in order: 9 or b, b or d, 6 or 9, 1 or 2.
                let value = header.order.u32(*unknown);
                let seen = value & 0x0FFF_00F0 == 0x0FBF_0000
                    && matches!(value >> 28, 0x9 | 0xB)
                    && matches!(value >> 12 & 0xF, 0xB | 0xD)
                    && matches!(value >> 8 & 0xF, 0x6 | 0x9)
                    && matches!(value & 0xF, 1 | 2);
                u32::from(!seen && value != 0)
            }
            _ => 0,
        }
    }
}

fn aix_link_type(network: u32) -> Option<u32> {
    match network {
        6 => Some(1),
        9 => Some(6),
        15 => Some(10),
        24 => Some(0),
        _ => None,
    }
}

/// The layout with the fewest implausible values. If several layouts have equally few, the first one is chosen.
fn least_implausible(variants: &[Variant], header: &FileHeader, blocks: &mut Blocks) -> Variant {
    let mut best = (u32::MAX, MICROSECONDS);
    for variant in variants {
        let wrong = variant.implausibility(header, blocks, true);
        if wrong < best.0 {
            best = (wrong, *variant);
        }
    }
    best.1
}
