//! Reads Ethernet headers (IEEE 802.3), VLAN tags (IEEE 802.1Q), and LLC with SNAP (IEEE 802.2).

use super::cursor::{Cursor, Stop};
use super::layers::Layer;
use super::link::nlpid;
use super::tunnel;

pub(super) const ETHER_IPV4: u16 = 0x0800;
pub(super) const ETHER_IPV6: u16 = 0x86dd;
/// The Ethernet types of VLAN tags: 802.1Q, 802.1ad, and two numbers from before 802.1ad.
const ETHER_VLAN: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
/// Up to this value, the type field of an Ethernet header contains the length of an 802.3 frame.
pub(super) const ETHER_MAX_LENGTH: u16 = 1500;
/// From this value on, the type field of an Ethernet header contains a type (IEEE 802.3, 3.2.6).
const ETHER_MIN_TYPE: u16 = 1536;

/// Reads an Ethernet II or IEEE 802.3 header.
#[inline]
pub(super) fn ethernet(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<14>("Ethernet header")?;
    let value = u16::from_be_bytes([header[12], header[13]]);
    if value < ETHER_MIN_TYPE { short(header, value, cursor) } else { Ok(Layer::EtherType(value)) }
}

/// Reads an Ethernet II header and returns the Ethernet type.
pub(super) fn ethernet_ii(cursor: &mut Cursor<'_>) -> Result<u16, Stop> {
    let header = cursor.take::<14>("Ethernet header")?;
    Ok(u16::from_be_bytes([header[12], header[13]]))
}

/// Reads a frame with a length instead of a type: an 802.3 frame, or a frame of Cisco's Inter-Switch Link (ISL). An ISL
/// header has 26 bytes and begins with a special multicast address. After the ISL header comes a whole Ethernet frame.
#[cold]
fn short(header: &[u8; 14], value: u16, cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const ISL_REST_BYTES: usize = 26 - 14;
    match *header {
        // The upper half of an ISL frame's sixth byte is 0 for Ethernet. The lower half contains user bits.
        [0x01 | 0x0c, 0x00, 0x0c, 0x00, 0x00, 0x00..=0x0f, ..] => {
            cursor.take::<ISL_REST_BYTES>("ISL header")?;
            Ok(Layer::Ethernet)
        }
        _ => Ok(type_or_length(value, cursor)),
    }
}

fn type_or_length(value: u16, cursor: &mut Cursor<'_>) -> Layer {
    if value > ETHER_MAX_LENGTH {
        return Layer::EtherType(value);
    }
    cursor.limit(usize::from(value));
    Layer::Llc
}

#[inline]
pub(super) fn ether_type(value: u16) -> Result<Layer, Stop> {
    match value {
        ETHER_IPV4 => Ok(Layer::Ipv4),
        ETHER_IPV6 => Ok(Layer::Ipv6),
        tag if ETHER_VLAN.contains(&tag) => Ok(Layer::Vlan),
        other => tunnel::ether_type(other),
    }
}

/// Reads a VLAN tag and the type or length after it.
pub(super) fn vlan(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let tag = cursor.take::<4>("VLAN tag")?;
    Ok(type_or_length(u16::from_be_bytes([tag[2], tag[3]]), cursor))
}

/// Reads an LLC header (IEEE 802.2). IP and OSI have their own SAP numbers. The SAP number of SNAP announces an
/// Ethernet type (RFC 1042, IEEE 802.1H) or a bridged frame (RFC 2684, 5.2).
pub(super) fn llc(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const SNAP: [u8; 3] = [0xaa, 0xaa, 0x03];
    const IP_SAP: [u8; 3] = [0x06, 0x06, 0x03];
    const OSI_SAP: [u8; 3] = [0xfe, 0xfe, 0x03];
    if cursor.data.starts_with(&SNAP) {
        let &[_, _, _, a, b, c, high, low] = cursor.take::<8>("SNAP header")?;
        return match ([a, b, c], [high, low]) {
            ([0, 0, 0 | 0xf8], ether_type) => Ok(Layer::EtherType(u16::from_be_bytes(ether_type))),
            ([0x00, 0x80, 0xc2], [0, 1 | 7]) => {
                cursor.take::<2>("padding before a bridged frame")?;
                Ok(Layer::Ethernet)
            }
            _ => Err(Stop::NotTcp),
        };
    }
    if cursor.data.starts_with(&IP_SAP) {
        cursor.take::<3>("LLC header")?;
        return Ok(Layer::Ipv4);
    }
    if cursor.data.starts_with(&OSI_SAP) {
        cursor.take::<3>("LLC header")?;
        return nlpid(cursor);
    }
    Err(Stop::NotTcp)
}
