//! Reads the content of AAL5 PDUs (RFC 2684, RFC 2225), and the headers that capture tools put before a PDU.

use super::aal5::{Channel, aal5_cells};
use super::cursor::{Cursor, Stop};
use super::layers::Layer;
use super::segment::AtmFacts;

/// Channel and number of cells of a PDU that was captured without its cell headers.
pub(super) fn facts(channel: Option<Channel>, payload_bytes: usize) -> AtmFacts {
    AtmFacts { channel, cells: aal5_cells(payload_bytes).min(usize::from(u16::MAX)) as u16 }
}

/// Reads a `SunATM` pseudo-header: direction and traffic type in one byte, then VPI and VCI.
pub(super) fn sun(cursor: &mut Cursor<'_>, atm: &mut Option<AtmFacts>) -> Result<Layer, Stop> {
    const LANE: u8 = 1;
    const MANAGEMENT: u8 = 5;
    const SIGNALLING: u8 = 6;
    let header = cursor.take::<4>("SunATM header")?;
    *atm = Some(facts(Some((u16::from(header[1]), u16::from_be_bytes([header[2], header[3]]))), cursor.wire_bytes));
    match header[0] & 0x0f {
        LANE => {
            cursor.take::<2>("LANE header")?;
            Ok(Layer::Ethernet)
        }
        MANAGEMENT | SIGNALLING => Err(Stop::NotTcp),
        // Traffic type 2 is LLC multiplexing. The driver does not document the other types, so the content decides.
        _ => Ok(Layer::Aal5),
    }
}

/// Recognizes the first layer in an AAL5 PDU: LLC, a bridged frame, PPP or IP. A PDU without an LLC header comes from a
/// channel that carries only one protocol (VC multiplexing, Fore IP).
pub(super) fn payload(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    match cursor.data {
        // On a channel for bridged frames only, a PDU begins with two bytes of padding (RFC 2684, 6.2).
        [0, 0, ..] => {
            cursor.take::<2>("bridged AAL5 header")?;
            Ok(Layer::Ethernet)
        }
        // On a channel for PPP only, a PDU begins with the PPP protocol number (RFC 2364, 4).
        [0, 0x21 | 0x57, ..] => Ok(Layer::PPP),
        [first, ..] if first >> 4 == 4 => Ok(Layer::Ipv4),
        [first, ..] if first >> 4 == 6 => Ok(Layer::Ipv6),
        _ => Ok(Layer::Llc),
    }
}
