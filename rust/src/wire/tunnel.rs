//! What carries packets inside packets. A tunnel is entered only where its header says without doubt that it is one:
//! a port number alone proves nothing.

use super::{Cursor, Layer, Stop};

const ETHER_TRANSPARENT_BRIDGING: u16 = 0x6558;
const ETHER_PPP: u16 = 0x880b;
const ETHER_WCCP: u16 = 0x883e;
const ETHER_MPLS: [u16; 2] = [0x8847, 0x8848];
const ETHER_PPPOE_SESSION: u16 = 0x8864;
const ETHER_ERSPAN_2: u16 = 0x88be;
const ETHER_ERSPAN_3: u16 = 0x22eb;
/// IEEE 802.1ah: a tag of 4 bytes, then a frame with its addresses.
const ETHER_PBB: u16 = 0x88e7;
/// Cisco `FabricPath`: a tag of 2 bytes, then a frame with its addresses.
const ETHER_FABRIC_PATH: u16 = 0x8903;
/// Intel's Centrino cards write 802.11 frames that they overheard behind this type.
const ETHER_CENTRINO: u16 = 0x2452;
/// Aruba's access points number their GRE tunnels upwards from here; 802.11 frames follow.
const ETHER_ARUBA: std::ops::RangeInclusive<u16> = 0x8200..=0x83ff;

/// What an Ethernet type that is neither IP nor a VLAN tag announces.
pub(super) fn ether_type(value: u16) -> Result<Layer, Stop> {
    match value {
        ETHER_TRANSPARENT_BRIDGING => Ok(Layer::Ethernet),
        ETHER_PPP => Ok(Layer::Ppp),
        ETHER_PPPOE_SESSION => Ok(Layer::Pppoe),
        ETHER_CENTRINO => Ok(Layer::Wifi),
        ETHER_PBB => Ok(Layer::Backbone),
        ETHER_FABRIC_PATH => Ok(Layer::FabricPath),
        mpls if ETHER_MPLS.contains(&mpls) => Ok(Layer::Mpls),
        _ => Err(Stop::NotTcp),
    }
}

/// The tag of IEEE 802.1ah.
pub(super) fn backbone(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    cursor.take::<4>("802.1ah tag")?;
    Ok(Layer::Ethernet)
}

/// The tag of `FabricPath`.
pub(super) fn fabric_path(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    cursor.take::<2>("FabricPath tag")?;
    Ok(Layer::Ethernet)
}

/// What an IP protocol other than TCP announces.
pub(super) fn ip_protocol(protocol: u8) -> Result<Layer, Stop> {
    match protocol {
        4 => Ok(Layer::Ipv4),
        17 => Ok(Layer::Udp),
        41 => Ok(Layer::Ipv6),
        47 => Ok(Layer::Gre),
        137 => Ok(Layer::Mpls),
        _ => Err(Stop::NotTcp),
    }
}

/// PPP over Ethernet, session stage (RFC 2516).
pub(super) fn pppoe(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const VERSION_AND_TYPE: u8 = 0x11;
    let header = cursor.take::<6>("PPPoE header")?;
    if header[0] != VERSION_AND_TYPE || header[1] != 0 {
        return Err(Stop::NotTcp);
    }
    cursor.limit(usize::from(u16::from_be_bytes([header[4], header[5]])));
    Ok(Layer::Ppp)
}

/// PPP: address and control may be left out, and so may the first byte of a protocol below 256 (RFC 1661, 2).
pub(super) fn ppp(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
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
        0x0021 => Ok(Layer::Ipv4),
        0x0057 => Ok(Layer::Ipv6),
        0x0281 | 0x0283 => Ok(Layer::Mpls),
        _ => Err(Stop::NotTcp),
    }
}

/// MPLS: labels down to the bottom of the stack. What follows is not named; IP shows its version, and a first nibble of
/// 0 is the control word of a pseudowire (RFC 4385), mostly with Ethernet behind.
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

/// GRE, versions 0 (RFC 2784, 2890) and 1 (PPTP, RFC 2637).
pub(super) fn gre(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const CHECKSUM: u8 = 0x80;
    const ROUTING: u8 = 0x40;
    const KEY: u8 = 0x20;
    const SEQUENCE: u8 = 0x10;
    const ACKNOWLEDGMENT: u8 = 0x80;
    let &[first, second, high, low] = cursor.take::<4>("GRE header")?;
    let version = second & 7;
    if first & ROUTING != 0 || version > 1 {
        return Err(Stop::NotTcp);
    }
    let acknowledged = version == 1 && second & ACKNOWLEDGMENT != 0;
    let words = [first & CHECKSUM != 0, first & KEY != 0, first & SEQUENCE != 0, acknowledged];
    for _ in words.iter().filter(|present| **present) {
        cursor.take::<4>("GRE header")?;
    }
    if version == 1 && first & SEQUENCE == 0 {
        return Err(Stop::NotTcp); // an acknowledgment alone
    }
    match u16::from_be_bytes([high, low]) {
        ETHER_ERSPAN_2 => Ok(Layer::Erspan2 { sequenced: first & SEQUENCE != 0 }),
        ETHER_ERSPAN_3 => Ok(Layer::Erspan3),
        ETHER_WCCP => Ok(Layer::Wccp),
        aruba if ETHER_ARUBA.contains(&aruba) => Ok(Layer::Wifi),
        other => Ok(Layer::EtherType(other)),
    }
}

/// ERSPAN type II has a header of its own, type I (without GRE's sequence number) has none.
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

/// WCCP version 2 puts 4 bytes before the redirected IPv4 packet, version 1 none.
pub(super) fn wccp(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    if cursor.data.first().is_none_or(|byte| byte >> 4 != 4) {
        cursor.take::<4>("WCCP header")?;
    }
    Ok(Layer::Ipv4)
}

/// What a UDP header is followed by.
pub(super) enum Udp {
    Tunnel(Layer),
    /// Nothing known: a datagram in its own right, from port to port.
    Ports((u16, u16)),
}

/// UDP (RFC 768): a tunnel where port and content say so.
pub(super) fn udp(cursor: &mut Cursor<'_>) -> Result<Udp, Stop> {
    const TEREDO: u16 = 3544;
    const AYIYA: u16 = 5072;
    const GTP_USER: u16 = 2152;
    const VXLAN: [u16; 2] = [4789, 8472];
    const GENEVE: u16 = 6081;
    let header = cursor.take::<8>("UDP header")?;
    let ports = [u16::from_be_bytes([header[0], header[1]]), u16::from_be_bytes([header[2], header[3]])];
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    if length >= 8 {
        cursor.limit(length - 8);
    }
    let inside = |port: u16| match port {
        vxlan if VXLAN.contains(&vxlan) => is_vxlan(cursor.data).then_some(Layer::Vxlan),
        GENEVE => is_geneve(cursor.data).then_some(Layer::Geneve),
        GTP_USER => is_gtp_user(cursor.data).then_some(Layer::Gtp),
        TEREDO => is_teredo(cursor.data).then_some(Layer::Teredo),
        AYIYA => is_ayiya(cursor.data).then_some(Layer::Ayiya),
        _ => None,
    };
    let tunnel = inside(ports[1]).or_else(|| inside(ports[0]));
    Ok(tunnel.map_or(Udp::Ports((ports[0], ports[1])), Udp::Tunnel))
}

/// VXLAN (RFC 7348): the flag that says that the network identifier counts is always set.
fn is_vxlan(data: &[u8]) -> bool {
    const HAS_IDENTIFIER: u8 = 0x08;
    data.first().is_some_and(|flags| flags & HAS_IDENTIFIER != 0)
}

pub(super) fn vxlan(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    cursor.take::<8>("VXLAN header")?;
    Ok(Layer::Ethernet)
}

/// GENEVE (RFC 8926), version 0.
fn is_geneve(data: &[u8]) -> bool {
    data.first().is_some_and(|byte| byte >> 6 == 0)
}

pub(super) fn geneve(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<8>("GENEVE header")?;
    cursor.take_slice(usize::from(header[0] & 0x3f) * 4, "GENEVE options")?;
    Ok(Layer::EtherType(u16::from_be_bytes([header[2], header[3]])))
}

/// GTP version 1, user plane (3GPP TS 29.281): a packet of a subscriber, behind optional fields and extension headers.
fn is_gtp_user(data: &[u8]) -> bool {
    const VERSION_AND_TYPE: u8 = 0x30;
    const USER_PACKET: u8 = 0xff;
    matches!(data, [first, USER_PACKET, ..] if first & 0xf0 == VERSION_AND_TYPE)
}

pub(super) fn gtp_user(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const OPTIONAL_FIELDS: u8 = 0x07;
    const EXTENDED: u8 = 0x04;
    let header = cursor.take::<8>("GTP header")?;
    if header[0] & OPTIONAL_FIELDS != 0 {
        let mut next = cursor.take::<4>("GTP header")?[3];
        while header[0] & EXTENDED != 0 && next != 0 {
            let words = usize::from(cursor.take::<1>("GTP extension header")?[0]);
            let Some(body_bytes) = (words * 4).checked_sub(1) else {
                return Err(Stop::Malformed("GTP extension header"));
            };
            let body = cursor.take_slice(body_bytes, "GTP extension header")?;
            next = body.last().copied().unwrap_or(0);
        }
    }
    Ok(Layer::Ip)
}

/// Teredo (RFC 4380): perhaps an authentication and an origin indication, then IPv6.
fn is_teredo(data: &[u8]) -> bool {
    matches!(data, [0, 0 | 1, ..]) || data.first().is_some_and(|byte| byte >> 4 == 6)
}

pub(super) fn teredo(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    if let [0, 1, client_bytes, value_bytes, ..] = *cursor.data {
        let length = 4 + usize::from(client_bytes) + usize::from(value_bytes) + 9;
        cursor.take_slice(length, "Teredo authentication")?;
    }
    if cursor.data.starts_with(&[0, 0]) {
        cursor.take::<8>("Teredo origin")?;
    }
    match cursor.data.first().map(|byte| byte >> 4) {
        Some(6) => Ok(Layer::Ipv6),
        _ => Err(Stop::NotTcp),
    }
}

/// AYIYA (Anything In Anything): identity and signature of stated lengths, then what an IP protocol number names.
fn is_ayiya(data: &[u8]) -> bool {
    const FORWARD: u8 = 1;
    data.get(2).is_some_and(|byte| byte & 0x0f == FORWARD)
}

pub(super) fn ayiya(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<8>("AYIYA header")?;
    let identity_bytes = 1usize << (header[0] >> 4);
    let signature_bytes = usize::from(header[1] >> 4) * 4;
    cursor.take_slice(identity_bytes + signature_bytes, "AYIYA identity and signature")?;
    Ok(Layer::IpProtocol(header[3]))
}
