//! Recognizes tunnels in UDP by the port and by the first bytes of the content.

use super::cursor::{Cursor, Stop};
use super::layers::Layer;
use super::{link, tunnel};

/// The content after a UDP header.
pub(super) enum Udp {
    Tunnel(Layer),
    /// No known tunnel. The value is (source port, destination port).
    Ports((u16, u16)),
}

/// Reads a UDP header (RFC 768). A tunnel is recognized only if both its port and its content match.
pub(super) fn udp(cursor: &mut Cursor<'_>) -> Result<Udp, Stop> {
    const TEREDO: u16 = 3544;
    const AYIYA: u16 = 5072;
    const GTP_USER: u16 = 2152;
    const VXLAN: [u16; 2] = [4789, 8472];
    const GENEVE: u16 = 6081;
    const L2TP: u16 = 1701;
    const LISP_DATA: u16 = 4341;
    const GRE: u16 = 4754;
    const VXLAN_GPE: u16 = 4790;
    const MPLS: u16 = 6635;
    const TZSP: u16 = 37_008;
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
        L2TP => is_l2tp(cursor.data).then_some(Layer::L2tp),
        LISP_DATA => is_lisp(cursor.data).then_some(Layer::Lisp),
        GRE => is_gre(cursor.data).then_some(Layer::Gre),
        VXLAN_GPE => is_vxlan(cursor.data).then_some(Layer::VxlanGpe),
        MPLS => is_mpls(cursor.data).then_some(Layer::Mpls),
        TZSP => link::is_tzsp(cursor.data).then_some(Layer::Tzsp),
        _ => None,
    };
    let tunnel = inside(ports[1]).or_else(|| inside(ports[0]));
    Ok(tunnel.map_or(Udp::Ports((ports[0], ports[1])), Udp::Tunnel))
}

/// Whether the data looks like VXLAN (RFC 7348), which always sets the flag for a valid network identifier.
fn is_vxlan(data: &[u8]) -> bool {
    const HAS_IDENTIFIER: u8 = 0x08;
    data.first().is_some_and(|flags| flags & HAS_IDENTIFIER != 0)
}

pub(super) fn vxlan(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    cursor.take::<8>("VXLAN header")?;
    Ok(Layer::Ethernet)
}

/// Reads a VXLAN-GPE header (draft-ietf-nvo3-vxlan-gpe). A flag announces a protocol number in the fourth byte.
pub(super) fn vxlan_gpe(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const NAMES_PROTOCOL: u8 = 0x04;
    let header = cursor.take::<8>("VXLAN-GPE header")?;
    if header[0] & NAMES_PROTOCOL == 0 { Ok(Layer::Ethernet) } else { tunnel::service_protocol(header[3]) }
}

/// Whether the data looks like a data message of L2TP version 2 (RFC 2661), whose reserved bits are 0.
fn is_l2tp(data: &[u8]) -> bool {
    const CONTROL_AND_RESERVED: u8 = 0x80 | 0x34;
    const VERSION: u8 = 2;
    matches!(data, [flags, VERSION, ..] if flags & CONTROL_AND_RESERVED == 0)
}

pub(super) fn l2tp(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const HAS_LENGTH: u8 = 0x40;
    const HAS_SEQUENCE: u8 = 0x08;
    const HAS_OFFSET: u8 = 0x02;
    let &[flags, _] = cursor.take::<2>("L2TP header")?;
    let fields = 4 + if flags & HAS_LENGTH == 0 { 0 } else { 2 } + if flags & HAS_SEQUENCE == 0 { 0 } else { 4 };
    cursor.take_slice(fields, "L2TP header")?;
    if flags & HAS_OFFSET != 0 {
        let offset = u16::from_be_bytes(*cursor.take::<2>("L2TP header")?);
        cursor.take_slice(usize::from(offset), "L2TP offset")?;
    }
    Ok(Layer::PPP)
}

/// Whether the data looks like LISP (RFC 9300): a header of eight bytes, then IPv4 or IPv6.
fn is_lisp(data: &[u8]) -> bool {
    matches!(data.get(8).map(|byte| byte >> 4), Some(4 | 6))
}

pub(super) fn lisp(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    cursor.take::<8>("LISP header")?;
    Ok(Layer::Ip)
}

/// Whether the data looks like GRE in UDP (RFC 8086): version 0, no routing, and IP or bridged Ethernet inside.
fn is_gre(data: &[u8]) -> bool {
    matches!(data, [first, 0, 0x08, 0x00, ..] | [first, 0, 0x86, 0xdd, ..] | [first, 0, 0x65, 0x58, ..] if first & 0x4f == 0)
}

/// Whether the data looks like MPLS in UDP (RFC 7510): a complete label stack, then IP.
fn is_mpls(data: &[u8]) -> bool {
    const BOTTOM: u8 = 1;
    let (labels, rest) = data.as_chunks::<4>();
    let depth = labels.iter().take_while(|label| label[2] & BOTTOM == 0).count();
    let behind = labels.get(depth + 1).map(|label| label[0]).or_else(|| rest.first().copied());
    depth < labels.len() && matches!(behind.map(|byte| byte >> 4), Some(4 | 6))
}

/// Whether the data looks like GENEVE (RFC 8926), version 0.
fn is_geneve(data: &[u8]) -> bool {
    data.first().is_some_and(|byte| byte >> 6 == 0)
}

pub(super) fn geneve(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<8>("GENEVE header")?;
    cursor.take_slice(usize::from(header[0] & 0x3f) * 4, "GENEVE options")?;
    Ok(Layer::EtherType(u16::from_be_bytes([header[2], header[3]])))
}

/// Whether the data looks like the user plane of GTP version 1 (3GPP TS 29.281).
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

/// Whether the data looks like Teredo (RFC 4380): optional authentication and origin indication, then IPv6.
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

/// Whether the data looks like AYIYA (Anything In Anything), whose header has an identity and a signature of variable
/// length, and the content's IP protocol number.
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
