//! AAL5 PDUs as captured on ATM interfaces (RFC 2684, RFC 2225).

use super::{Cursor, Layer, Stop, link};

/// `SunATM`: a pseudo-header: direction and traffic type, VPI, VCI.
pub(super) fn sun(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const LANE: u8 = 1;
    const LLC_MULTIPLEXED: u8 = 2;
    let header = cursor.take::<4>("SunATM header")?;
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
pub(super) fn aal5(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    /// LLC, and the organization of IEEE 802.1 (RFC 2684, 5.2).
    const BRIDGED: [u8; 6] = [0xaa, 0xaa, 0x03, 0x00, 0x80, 0xc2];
    const ETHERNET_WITH_FCS: [u8; 2] = [0, 1];
    const ETHERNET: [u8; 2] = [0, 7];
    const OSI: [u8; 3] = [0xfe, 0xfe, 0x03];
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
    match cursor.data.first().map(|byte| byte >> 4) {
        Some(4) => Ok(Layer::Ipv4),
        Some(6) => Ok(Layer::Ipv6),
        _ => Ok(Layer::Llc),
    }
}
