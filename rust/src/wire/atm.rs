//! What AAL5 PDUs carry, and the headers that capture tools put before them (RFC 2684, RFC 2225).

use super::aal5::{Channel, aal5_cells};
use super::segment::AtmFacts;
use super::{Cursor, Layer, Stop, link};

/// What the line carried for a PDU of which only the payload was captured.
pub(super) fn facts(channel: Option<Channel>, payload_bytes: usize) -> AtmFacts {
    AtmFacts { channel, cells: aal5_cells(payload_bytes).min(usize::from(u16::MAX)) as u16 }
}

/// `SunATM`: a pseudo-header with direction and traffic type, VPI, VCI.
pub(super) fn sun(cursor: &mut Cursor<'_>, atm: &mut Option<AtmFacts>) -> Result<Layer, Stop> {
    const LANE: u8 = 1;
    const LLC_MULTIPLEXED: u8 = 2;
    let header = cursor.take::<4>("SunATM header")?;
    *atm = Some(facts(Some((u16::from(header[1]), u16::from_be_bytes([header[2], header[3]]))), cursor.wire_bytes));
    match header[0] & 0x0f {
        LLC_MULTIPLEXED => Ok(Layer::Aal5),
        LANE => {
            cursor.take::<2>("LANE header")?;
            Ok(Layer::Ethernet)
        }
        _ => Err(Stop::NotTcp),
    }
}

/// What an AAL5 PDU holds: routed or bridged by LLC/SNAP, by NLPID, or IP at once (VC multiplexing, Fore IP).
pub(super) fn payload(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    /// LLC, and the organization of IEEE 802.1 (RFC 2684, 5.2).
    const BRIDGED: [u8; 6] = [0xaa, 0xaa, 0x03, 0x00, 0x80, 0xc2];
    const ETHERNET_WITH_FCS: [u8; 2] = [0, 1];
    const ETHERNET: [u8; 2] = [0, 7];
    const OSI: [u8; 3] = [0xfe, 0xfe, 0x03];
    /// RFC 2684, 6.2: a bridged PDU on a channel of its own begins with the padding alone.
    const BRIDGED_ALONE: [u8; 2] = [0, 0];
    if cursor.data.starts_with(&BRIDGED) {
        let header = cursor.take::<10>("bridged AAL5 header")?;
        return match [header[6], header[7]] {
            ETHERNET | ETHERNET_WITH_FCS => Ok(Layer::Ethernet),
            _ => Err(Stop::NotTcp),
        };
    }
    if cursor.data.starts_with(&OSI) {
        cursor.take::<3>("AAL5 LLC header")?;
        return link::nlpid(cursor);
    }
    if cursor.data.starts_with(&BRIDGED_ALONE) {
        cursor.take::<2>("bridged AAL5 header")?;
        return Ok(Layer::Ethernet);
    }
    match cursor.data.first().map(|byte| byte >> 4) {
        Some(4) => Ok(Layer::Ipv4),
        Some(6) => Ok(Layer::Ipv6),
        _ => Ok(Layer::Llc),
    }
}
