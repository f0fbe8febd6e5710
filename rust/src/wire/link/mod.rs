//! Link layers: the headers before IP. The numbers are those of the LINKTYPE registry of tcpdump.org, and older
//! ones that some systems used before it, as Wireshark reads them.

mod juniper;
mod lan;
mod names;
mod pseudo;
mod serial;

pub use names::link_name;
pub(super) use pseudo::{is_tzsp, tzsp};
pub(super) use serial::hdlc;

use super::segment::AtmFacts;
use super::{Cursor, Layer, Stop, Trust, atm, tunnel, wifi};
use crate::capture::LinkType;

pub(super) const ETHERNET: LinkType = 1;
pub(super) const ERF: LinkType = 197;
const PPI: LinkType = 192;
/// PKTAP as registered.
const PKTAP: LinkType = 258;
/// PKTAP as macOS writes it (USER2).
const PKTAP_MACOS: LinkType = 149;

pub(super) const ETHER_IPV4: u16 = 0x0800;
pub(super) const ETHER_IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad, and the two numbers used before 802.1ad.
const ETHER_VLAN: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
/// Up to this value, an Ethernet type field is the length of an 802.3 frame.
const ETHER_MAX_LENGTH: u16 = 1500;
/// From this value on, an Ethernet type field is a type (IEEE 802.3, 3.2.6).
const ETHER_MIN_TYPE: u16 = 1536;

/// Whether this engine reads frames of this link type.
#[must_use]
pub fn link_supported(link_type: LinkType) -> bool {
    let mut nothing = Cursor { data: &[], wire_bytes: 0, trust: Trust::Whole };
    link_type == ERF || !matches!(first_layer(link_type, &mut nothing, &mut None), Err(Stop::UnknownLink(_)))
}

/// Takes off the link header and names the next layer.
#[inline(never)]
pub(super) fn first_layer(
    link_type: LinkType,
    cursor: &mut Cursor<'_>,
    atm: &mut Option<AtmFacts>,
) -> Result<Layer, Stop> {
    match link_type {
        0 => pseudo::null(cursor),
        ETHERNET => Ok(Layer::Ethernet),
        3 => serial::ax25(cursor),
        6 => lan::token_ring(cursor),
        7 => lan::arcnet(cursor),
        8 => serial::slip(cursor),
        9 | 50 => Ok(Layer::Hdlc),
        10 => lan::fddi(cursor),
        // RFC 1483 and Classical IP, including the numbers of BSD, SuSE and Linux's ATM patches.
        11 | 16 | 18 | 19 | 100 | 106 => {
            *atm = Some(atm::facts(None, cursor.wire_bytes));
            Ok(Layer::Aal5)
        }
        // RAW, including the numbers of BSD and OpenBSD.
        12 | 14 | 101 => serial::raw(cursor),
        13 | 109 => pseudo::enc(cursor),
        51 => Ok(Layer::Pppoe),
        99 => pseudo::symantec(cursor),
        104 | 112 => serial::cisco_hdlc(cursor),
        105 => Ok(wifi::PLAIN),
        107 => serial::frame_relay(cursor),
        108 => pseudo::bsd_loopback(cursor),
        113 => pseudo::cooked(cursor),
        117 => pseudo::pflog(cursor),
        119 => wifi::prism(cursor),
        122 => lan::ip_over_fibre_channel(cursor),
        123 => atm::sun(cursor, atm),
        127 => wifi::radiotap(cursor),
        128 => tzsp(cursor),
        129 => lan::arcnet_linux(cursor),
        138 => lan::ip_over_1394(cursor),
        163 => wifi::avs(cursor),
        202 => serial::ax25_kiss(cursor),
        204 => {
            cursor.take::<1>("PPP direction")?;
            Ok(Layer::Hdlc)
        }
        226 => pseudo::ipnet(cursor),
        // The IP version in the packet counts, not the link type, as in Wireshark.
        228 | 229 => Ok(Layer::Ip),
        239 => pseudo::nflog(cursor),
        242 => lan::ip_over_infiniband(cursor),
        274 => pseudo::mpacket(cursor),
        276 => pseudo::cooked_v2(cursor),
        PPI => {
            let header = cursor.take::<8>("PPI header")?;
            let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
            inner_link(length.checked_sub(8), [header[4], header[5], header[6], header[7]], "PPI header", cursor, atm)
        }
        PKTAP | PKTAP_MACOS => {
            let &[a, b, c, d, _, _, _, _, link @ ..] = cursor.take::<12>("PKTAP header")?;
            let length = u32::from_le_bytes([a, b, c, d]) as usize;
            inner_link(length.checked_sub(12), link, "PKTAP header", cursor, atm)
        }
        other if juniper::is_juniper(other) => juniper::first_layer(other, cursor),
        other => Err(Stop::UnknownLink(other)),
    }
}

/// Reads the rest of a header that contains the link type of its content (little-endian), then that link's
/// header. Such headers do not nest.
fn inner_link(
    rest: Option<usize>,
    link_type: [u8; 4],
    header: &'static str,
    cursor: &mut Cursor<'_>,
    atm: &mut Option<AtmFacts>,
) -> Result<Layer, Stop> {
    cursor.take_slice(rest.ok_or(Stop::Malformed(header))?, header)?;
    match u32::from_le_bytes(link_type) {
        ETHERNET => Ok(Layer::Ethernet),
        PPI | PKTAP | PKTAP_MACOS => Err(Stop::Malformed(header)),
        other => first_layer(other, cursor, atm),
    }
}

/// Reads an Ethernet II or IEEE 802.3 header.
#[inline]
pub(super) fn ethernet(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<14>("Ethernet header")?;
    let value = u16::from_be_bytes([header[12], header[13]]);
    if value < ETHER_MIN_TYPE { short(header, value, cursor) } else { Ok(Layer::EtherType(value)) }
}

/// Reads an Ethernet II header. Returns its type.
fn ethernet_ii(cursor: &mut Cursor<'_>) -> Result<u16, Stop> {
    let header = cursor.take::<14>("Ethernet header")?;
    Ok(u16::from_be_bytes([header[12], header[13]]))
}

/// Reads a frame with a length instead of a type: 802.3, or Cisco's Inter-Switch Link, which begins with a
/// group address of its own and contains a whole frame after 26 bytes.
#[cold]
fn short(header: &[u8; 14], value: u16, cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const ISL_REST_BYTES: usize = 26 - 14;
    match *header {
        // The lower half of the sixth byte is the user's; the upper half 0 means Ethernet.
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

/// The layer of an Ethernet type.
#[inline]
pub(super) fn ether_type(value: u16) -> Result<Layer, Stop> {
    match value {
        ETHER_IPV4 => Ok(Layer::Ipv4),
        ETHER_IPV6 => Ok(Layer::Ipv6),
        tag if ETHER_VLAN.contains(&tag) => Ok(Layer::Vlan),
        other => tunnel::ether_type(other),
    }
}

/// Reads the tag after a VLAN type, and the next type.
pub(super) fn vlan(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let tag = cursor.take::<4>("VLAN tag")?;
    Ok(type_or_length(u16::from_be_bytes([tag[2], tag[3]]), cursor))
}

/// IEEE 802.2 LLC. SNAP contains an Ethernet type (RFC 1042, IEEE 802.1H) or announces a bridged frame (RFC
/// 2684, 5.2). IP and OSI have SAPs of their own.
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
        return serial::nlpid(cursor);
    }
    Err(Stop::NotTcp)
}
