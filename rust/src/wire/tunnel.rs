//! Reads the headers of tunnels, which carry packets in packets. Only an unambiguous header counts as a tunnel; a port
//! number is not enough.

use super::cursor::{Cursor, Stop};
use super::layers::Layer;
use super::vj;

const ETHER_TRANSPARENT_BRIDGING: u16 = 0x6558;
const ETHER_PPP: u16 = 0x880b;
const ETHER_WCCP: u16 = 0x883e;
const ETHER_MPLS: [u16; 2] = [0x8847, 0x8848];
const ETHER_PPPOE_SESSION: u16 = 0x8864;
const ETHER_ERSPAN_2: u16 = 0x88be;
const ETHER_ERSPAN_3: u16 = 0x22eb;
/// Ethernet type of IEEE 802.1ah. A tag of 4 bytes and a whole Ethernet frame follow.
const ETHER_PBB: u16 = 0x88e7;
/// Ethernet type of Cisco `FabricPath`. A tag of 2 bytes and a whole Ethernet frame follow.
const ETHER_FABRIC_PATH: u16 = 0x8903;
/// Ethernet type of Intel Centrino cards for 802.11 frames of other stations.
const ETHER_CENTRINO: u16 = 0x2452;
/// Aruba access points number their GRE tunnels with these Ethernet types. 802.11 frames follow.
const ETHER_ARUBA: std::ops::RangeInclusive<u16> = 0x8200..=0x83ff;
/// Ethernet type of `MikroTik`'s Ethernet over IP in GRE.
const ETHER_EOIP: u16 = 0x6400;
/// Ethernet type of Cisco metadata with a security group tag.
const ETHER_METADATA: u16 = 0x8909;
/// Ethernet type of High-availability Seamless Redundancy (HSR, IEC 62439-3).
const ETHER_HSR: u16 = 0x892f;
/// `MACsec` (IEEE 802.1AE).
const ETHER_MACSEC: u16 = 0x88e5;
/// Network Service Header (RFC 8300).
const ETHER_NSH: u16 = 0x894f;
/// TRILL (RFC 6325).
const ETHER_TRILL: u16 = 0x22f3;

/// The layer for an Ethernet type that is neither IP nor a VLAN tag.
pub(super) fn ether_type(value: u16) -> Result<Layer, Stop> {
    match value {
        ETHER_TRANSPARENT_BRIDGING => Ok(Layer::Ethernet),
        ETHER_PPP => Ok(Layer::PPP),
        ETHER_PPPOE_SESSION => Ok(Layer::Pppoe),
        ETHER_CENTRINO => Ok(Layer::WIFI_OPENED),
        ETHER_PBB => Ok(Layer::Backbone),
        ETHER_FABRIC_PATH => Ok(Layer::FabricPath),
        ETHER_METADATA => Ok(Layer::Metadata),
        ETHER_HSR => Ok(Layer::Hsr),
        ETHER_MACSEC => Ok(Layer::Macsec),
        ETHER_NSH => Ok(Layer::Nsh),
        ETHER_TRILL => Ok(Layer::Trill),
        mpls if ETHER_MPLS.contains(&mpls) => Ok(Layer::Mpls),
        _ => Err(Stop::NotTcp),
    }
}

pub(super) fn backbone(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    cursor.take::<4>("802.1ah tag")?;
    Ok(Layer::Ethernet)
}

pub(super) fn fabric_path(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    cursor.take::<2>("FabricPath tag")?;
    Ok(Layer::Ethernet)
}

/// Reads Cisco metadata: version, length, options, Ethernet type. The only known option has four bytes.
pub(super) fn metadata(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    match cursor.take::<8>("Cisco metadata")? {
        [1, 1, _, _, _, _, high, low] => Ok(Layer::EtherType(u16::from_be_bytes([*high, *low]))),
        _ => Err(Stop::NotTcp),
    }
}

/// Reads an HSR tag: path and length, sequence number, Ethernet type.
pub(super) fn hsr(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let tag = cursor.take::<6>("HSR tag")?;
    Ok(Layer::EtherType(u16::from_be_bytes([tag[4], tag[5]])))
}

/// Reads a `MACsec` tag: flags, length, packet number, optional channel, Ethernet type. Encrypted frames are not read.
pub(super) fn macsec(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const ENCRYPTED_OR_CHANGED: u8 = 0x0c;
    const HAS_CHANNEL: u8 = 0x20;
    let tag = cursor.take::<6>("MACsec tag")?;
    if tag[0] & ENCRYPTED_OR_CHANGED != 0 {
        return Err(Stop::NotTcp);
    }
    if tag[0] & HAS_CHANNEL != 0 {
        cursor.take::<8>("MACsec tag")?;
    }
    Ok(Layer::EtherType(u16::from_be_bytes(*cursor.take::<2>("Ethernet type behind MACsec")?)))
}

/// Reads a Network Service Header: flags and length in words, next protocol, service path.
pub(super) fn nsh(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const LENGTH: u8 = 0x3f;
    let &[_, length, _, next] = cursor.take::<4>("NSH header")?;
    let rest = (usize::from(length & LENGTH) * 4).checked_sub(4).ok_or(Stop::Malformed("NSH header"))?;
    cursor.take_slice(rest, "NSH header")?;
    service_protocol(next)
}

/// The layer for a protocol number of NSH or VXLAN-GPE (RFC 8300, 2.2).
pub(super) fn service_protocol(number: u8) -> Result<Layer, Stop> {
    match number {
        1 => Ok(Layer::Ipv4),
        2 => Ok(Layer::Ipv6),
        3 => Ok(Layer::Ethernet),
        4 => Ok(Layer::Nsh),
        5 => Ok(Layer::Mpls),
        _ => Err(Stop::NotTcp),
    }
}

/// Reads a TRILL header: flags, length of the options in words, hop count, two nicknames. After the header comes an
/// Ethernet frame.
pub(super) fn trill(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const OPTION_WORDS: u16 = 0x07c0;
    let &[high, low, ..] = cursor.take::<6>("TRILL header")?;
    let words = (u16::from_be_bytes([high, low]) & OPTION_WORDS) >> 6;
    cursor.take_slice(usize::from(words) * 4, "TRILL options")?;
    Ok(Layer::Ethernet)
}

/// The layer for an IP protocol number other than TCP.
pub(super) fn ip_protocol(protocol: u8) -> Result<Layer, Stop> {
    match protocol {
        4 => Ok(Layer::Ipv4),
        17 => Ok(Layer::Udp),
        41 => Ok(Layer::Ipv6),
        47 => Ok(Layer::Gre),
        97 => Ok(Layer::EtherIp),
        137 => Ok(Layer::Mpls),
        _ => Err(Stop::NotTcp),
    }
}

/// Reads a header of PPP over Ethernet in the session stage (RFC 2516).
pub(super) fn pppoe(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const VERSION_AND_TYPE: u8 = 0x11;
    let header = cursor.take::<6>("PPPoE header")?;
    if header[0] != VERSION_AND_TYPE || header[1] != 0 {
        return Err(Stop::NotTcp);
    }
    cursor.limit(usize::from(u16::from_be_bytes([header[4], header[5]])));
    Ok(Layer::PPP)
}

/// Reads a PPP header. Senders can omit address and control, and the first byte of a protocol number below 256 (RFC
/// 1661, 2).
pub(super) fn ppp(sent: Option<bool>, cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const ADDRESS_AND_CONTROL: [u8; 2] = [0xff, 0x03];
    if cursor.data.starts_with(&ADDRESS_AND_CONTROL) {
        cursor.take::<2>("PPP header")?;
    }
    let &[first] = cursor.take::<1>("PPP header")?;
    let protocol = if first & 1 == 1 {
        u16::from(first)
    } else {
        let &[second] = cursor.take::<1>("PPP header")?;
        u16::from_be_bytes([first, second])
    };
    match protocol {
        // Some implementations write the Ethernet type 0x0800, which is not a valid PPP protocol number (RFC 1661, 2).
        0x0021 | 0x0800 => Ok(Layer::Ipv4),
        0x0057 => Ok(Layer::Ipv6),
        0x002d => Ok(Layer::VanJacobson(vj::Form { compressed: true, sent })),
        0x002f => Ok(Layer::VanJacobson(vj::Form { compressed: false, sent })),
        0x0031 => bridged(cursor),
        0x003d => multilink(sent, cursor),
        0x0281 | 0x0283 => Ok(Layer::Mpls),
        _ => Err(Stop::NotTcp),
    }
}

/// Reads the header of a bridged frame in PPP (RFC 3518): flags, kind of network, optional network number.
fn bridged(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const HAS_NETWORK: u8 = 0x40;
    const CONTROL: u8 = 0x10;
    const ETHERNET: u8 = 1;
    let &[flags, kind] = cursor.take::<2>("PPP bridging header")?;
    if flags & CONTROL != 0 || kind != ETHERNET {
        return Err(Stop::NotTcp);
    }
    if flags & HAS_NETWORK != 0 {
        cursor.take::<4>("PPP bridging header")?;
    }
    Ok(Layer::Ethernet)
}

/// Reads a header of PPP Multilink (RFC 1990) with long sequence numbers. Only unfragmented packets are read.
fn multilink(sent: Option<bool>, cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const FIRST_AND_LAST: u8 = 0xc0;
    let header = cursor.take::<4>("PPP multilink header")?;
    if header[0] != FIRST_AND_LAST {
        return Err(Stop::NotRead("part of a packet in PPP multilink"));
    }
    Ok(Layer::Ppp { sent })
}

/// Reads a header of Ethernet in IP (`EtherIP`, RFC 3378).
pub(super) fn ether_ip(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const VERSION: u8 = 3;
    let header = cursor.take::<2>("EtherIP header")?;
    if header[0] >> 4 == VERSION { Ok(Layer::Ethernet) } else { Err(Stop::NotTcp) }
}

/// Reads MPLS labels down to the bottom of the stack. The first four bits after the labels show the next protocol: 4 or
/// 6 for IP, and 0 for the control word of a pseudowire (RFC 4385), which mostly carries Ethernet.
pub(super) fn mpls(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const BOTTOM: u8 = 1;
    while cursor.take::<4>("MPLS label")?[2] & BOTTOM == 0 {}
    match cursor.data.first().map(|byte| byte >> 4) {
        Some(4) => Ok(Layer::Ipv4),
        Some(6) => Ok(Layer::Ipv6),
        Some(0) => {
            cursor.take::<4>("pseudowire control word")?;
            Ok(Layer::Ethernet)
        }
        Some(_) => Err(Stop::NotTcp),
        None => Err(Stop::Cut("packet behind MPLS labels")),
    }
}

/// Reads a GRE header of version 0 (RFC 2784, 2890) or 1 (PPTP, RFC 2637).
pub(super) fn gre(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const CHECKSUM: u8 = 0x80;
    const ROUTING: u8 = 0x40;
    const KEY: u8 = 0x20;
    const SEQUENCE: u8 = 0x10;
    const ACKNOWLEDGMENT: u8 = 0x80;
    let &[first, second, high, low] = cursor.take::<4>("GRE header")?;
    let version = second & 7;
    if first & ROUTING != 0 && version == 0 {
        return Err(Stop::NotRead("GRE packet with source routes (RFC 1701)"));
    }
    if first & ROUTING != 0 || version > 1 {
        return Err(Stop::NotTcp);
    }
    let acknowledged = version == 1 && second & ACKNOWLEDGMENT != 0;
    let words = [first & CHECKSUM != 0, first & KEY != 0, first & SEQUENCE != 0, acknowledged];
    for _ in words.iter().filter(|present| **present) {
        cursor.take::<4>("GRE header")?;
    }
    let ether_type = u16::from_be_bytes([high, low]);
    if version == 1 && ether_type == ETHER_EOIP {
        return Ok(Layer::Ethernet);
    }
    if version == 1 && first & SEQUENCE == 0 {
        return Err(Stop::NotTcp); // the packet is only an acknowledgment
    }
    match ether_type {
        ETHER_ERSPAN_2 => Ok(Layer::Erspan2 { sequenced: first & SEQUENCE != 0 }),
        ETHER_ERSPAN_3 => Ok(Layer::Erspan3),
        ETHER_WCCP => Ok(Layer::Wccp),
        aruba if ETHER_ARUBA.contains(&aruba) => Ok(Layer::WIFI),
        other => Ok(Layer::EtherType(other)),
    }
}

/// Reads a header of ERSPAN type II. Type I has no GRE sequence number and no header.
pub(super) fn erspan_2(sequenced: bool, cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    if sequenced {
        cursor.take::<8>("ERSPAN header")?;
    }
    Ok(Layer::Ethernet)
}

pub(super) fn erspan_3(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const PLATFORM_HEADER: u8 = 1;
    let header = cursor.take::<12>("ERSPAN header")?;
    if header[11] & PLATFORM_HEADER != 0 {
        cursor.take::<8>("ERSPAN platform header")?;
    }
    Ok(Layer::Ethernet)
}

/// Reads a WCCP header. In version 2, four bytes precede the redirected IPv4 packet; in version 1, none.
pub(super) fn wccp(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    if cursor.data.first().is_none_or(|byte| byte >> 4 != 4) {
        cursor.take::<4>("WCCP header")?;
    }
    Ok(Layer::Ipv4)
}
