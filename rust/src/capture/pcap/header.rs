//! The file header of pcap.

use super::super::bytes::Order;

/// The kind of pcap file, according to its first four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Magic {
    Microseconds,
    Nanoseconds,
    /// libpcap with Alexey Kuznetsov's patches of 1999, with longer record headers.
    Modified,
    /// Ixia's hardware: timestamps in nanoseconds, and a total length after the file header.
    IxiaNanoseconds,
    /// Ixia's software: timestamps in microseconds, and a total length after the file header.
    IxiaMicroseconds,
}

impl Magic {
    /// The magic number at the start of `head`, with the byte order of the file.
    pub(crate) fn detect(head: &[u8]) -> Option<(Self, Order)> {
        let bytes = *head.first_chunk()?;
        [Order::Little, Order::Big].into_iter().find_map(|order| {
            let magic = match order.u32(bytes) {
                0xA1B2_C3D4 => Self::Microseconds,
                0xA1B2_3C4D => Self::Nanoseconds,
                0xA1B2_CD34 => Self::Modified,
                0x1C00_01AC => Self::IxiaNanoseconds,
                0x1C00_01AB => Self::IxiaMicroseconds,
                _ => return None,
            };
            Some((magic, order))
        })
    }

    /// Number of bytes between the file header and the first record.
    pub(super) fn extra_bytes(self) -> usize {
        match self {
            Self::IxiaNanoseconds | Self::IxiaMicroseconds => 4,
            _ => 0,
        }
    }
}

/// The fields of the pcap file header that the reader uses.
pub(super) struct FileHeader {
    pub(super) magic: Magic,
    pub(super) order: Order,
    pub(super) version: (u16, u16),
    pub(super) snaplen: u32,
    pub(super) network: u32,
}
