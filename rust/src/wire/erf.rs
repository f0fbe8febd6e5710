//! Reads records of Endace's Extensible Record Format (ERF). Each captured packet or cell follows a record header.

use super::cursor::{Cursor, Stop};
use super::layers::Layer;

/// The bit of the type field that is set if extension headers follow.
const EXTENSION_HEADERS: u8 = 0x80;
/// Length of the record header: time, type, flags, lengths and loss counter.
const HEADER_BYTES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// A packet that begins with this layer.
    Layer(Layer),
    /// One ATM cell: a header of 4 bytes (without HEC) and 48 bytes of payload.
    Cell,
    /// An ATM header of 4 bytes, then an AAL5 PDU with padding and trailer.
    Aal5,
}

/// Reads the record header and everything else before the packet. Returns the kind of content.
pub(super) fn record(cursor: &mut Cursor<'_>) -> Result<Record, Stop> {
    let header = cursor.take::<HEADER_BYTES>("ERF header")?;
    let (kind, wire_bytes) = (header[8], u16::from_be_bytes([header[14], header[15]]));
    let mut more = kind & EXTENSION_HEADERS;
    while more != 0 {
        more = cursor.take::<8>("ERF extension header")?[0] & EXTENSION_HEADERS;
    }
    let record = match kind & !EXTENSION_HEADERS {
        // Record types 1, 10, 15 and 19 contain HDLC, whose first byte distinguishes PPP and Cisco HDLC.
        1 | 10 | 15 | 19 => Record::Layer(Layer::HDLC),
        5 | 17 => {
            cursor.take::<4>("ERF channel header")?;
            Record::Layer(Layer::HDLC)
        }
        2 | 11 | 16 | 20 => {
            cursor.take::<2>("ERF Ethernet padding")?;
            Record::Layer(Layer::Ethernet)
        }
        3 => Record::Cell,
        4 => Record::Aal5,
        7 => {
            cursor.take::<4>("ERF channel header")?;
            Record::Cell
        }
        9 => {
            cursor.take::<4>("ERF channel header")?;
            Record::Aal5
        }
        22 => Record::Layer(Layer::Ipv4),
        23 => Record::Layer(Layer::Ipv6),
        _ => return Err(Stop::NotTcp),
    };
    // A record is padded to a multiple of eight bytes after its packet.
    if record != Record::Cell {
        cursor.limit(usize::from(wire_bytes));
    }
    Ok(record)
}
