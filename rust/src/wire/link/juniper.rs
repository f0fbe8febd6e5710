//! Reads the headers of Juniper routers: a magic number, flags and optional extensions. Some link types add a cookie of
//! the interface card. The cookies are not documented. They are read as in tcpdump and Wireshark, to which Juniper
//! developers contributed.

use super::super::cursor::{Cursor, Stop};
use super::super::ethernet::{ETHER_IPV4, ethernet_ii};
use super::super::layers::Layer;
use super::serial;
use crate::capture::LinkType;

const MLPPP: LinkType = 130;
const MLFR: LinkType = 131;
const GGSN: LinkType = 133;
const ATM2: LinkType = 135;
const SERVICES: LinkType = 136;
const ATM1: LinkType = 137;
const PPPOE: LinkType = 167;
const ETHER: LinkType = 178;
const PPP: LinkType = 179;
const FRELAY: LinkType = 180;
const CHDLC: LinkType = 181;
const VOICE: LinkType = 183;
const SECURE_TUNNEL: LinkType = 200;

/// Whether frames of this link type begin with a Juniper header.
pub(super) fn is_juniper(link_type: LinkType) -> bool {
    matches!(link_type, MLPPP..=MLFR | GGSN | ATM2..=ATM1 | PPPOE | ETHER..=CHDLC | VOICE | SECURE_TUNNEL)
}

struct Header {
    incoming: bool,
    /// Juniper's protocol number, if the router removed the link-layer header.
    protocol: Option<u8>,
}

pub(super) fn first_layer(link_type: LinkType, cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const VOICE_HEADER_BYTES: usize = 18;
    let header = header(cursor)?;
    if let Some(number) = header.protocol {
        return protocol(u16::from(number), cursor);
    }
    match link_type {
        PPPOE | ETHER => Ok(Layer::Ethernet),
        PPP => {
            cursor.take::<2>("Juniper PPP header")?;
            Ok(Layer::PPP)
        }
        FRELAY => serial::frame_relay(cursor),
        CHDLC => serial::cisco_hdlc(cursor),
        VOICE => {
            cursor.take::<VOICE_HEADER_BYTES>("Juniper voice header")?;
            Ok(Layer::Ipv4)
        }
        SERVICES => {
            cursor.take_slice(if header.incoming { 16 } else { 12 }, "Juniper services cookie")?;
            Ok(Layer::Ipv4)
        }
        GGSN => {
            let &[low, high, _, _] = cursor.take::<4>("Juniper GGSN header")?;
            protocol(u16::from_le_bytes([low, high]), cursor)
        }
        ATM1 => atm1(cursor),
        ATM2 => atm2(header.incoming, cursor),
        MLPPP => multilink_ppp(header.incoming, cursor),
        MLFR => multilink_frame_relay(cursor),
        SECURE_TUNNEL => secure_tunnel(cursor),
        other => Err(Stop::UnknownLink(other)),
    }
}

/// Reads the header that all Juniper link types share. Frames of old routers have neither this header nor its magic
/// number.
fn header(cursor: &mut Cursor<'_>) -> Result<Header, Stop> {
    const MAGIC: [u8; 3] = *b"MGC";
    const EXTENSIONS: u8 = 0x80;
    const NO_LINK_LAYER: u8 = 0x02;
    const INCOMING: u8 = 0x01;
    if !cursor.data.starts_with(&MAGIC) {
        return Ok(Header { incoming: false, protocol: None });
    }
    let &[_, _, _, flags] = cursor.take::<4>("Juniper header")?;
    if flags & EXTENSIONS != 0 {
        let length = u16::from_be_bytes(*cursor.take::<2>("Juniper header")?);
        cursor.take_slice(usize::from(length), "Juniper extensions")?;
    }
    let protocol = if flags & NO_LINK_LAYER == 0 {
        None
    } else {
        // The protocol number has four bytes in little-endian byte order. Only values up to 255 occur.
        Some(cursor.take::<4>("Juniper header")?[0])
    };
    Ok(Header { incoming: flags & INCOMING != 0, protocol })
}

/// The layer of Juniper's own protocol number.
fn protocol(number: u16, cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    match number {
        2 | 3 => Ok(Layer::Ipv4),
        6 | 7 => Ok(Layer::Ipv6),
        4 | 5 | 8 | 32 => Ok(Layer::Mpls),
        200 => Ok(Layer::PPP),
        201 => serial::nlpid(cursor),
        202 | 203 => Ok(Layer::Llc),
        204 => Ok(Layer::Ethernet),
        207 => serial::frame_relay(cursor),
        208 => serial::cisco_hdlc(cursor),
        _ => Err(Stop::NotTcp),
    }
}

/// Reads the cookie of the older ATM card, which has four bytes.
fn atm1(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const MANAGEMENT_CELL: u8 = 0x80;
    let cookie = cursor.take::<4>("Juniper ATM cookie")?;
    if cookie[0] == MANAGEMENT_CELL {
        return Err(Stop::NotTcp);
    }
    pdu(cursor)
}

/// Reads the cookie of the newer ATM card, which has eight bytes. A gap count in an outgoing packet's cookie announces
/// an Ethernet frame.
fn atm2(incoming: bool, cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const MANAGEMENT_CELL: u8 = 0x70;
    const GAP_COUNT: u8 = 0x3f;
    let cookie = cursor.take::<8>("Juniper ATM cookie")?;
    if cookie[7] & MANAGEMENT_CELL != 0 {
        return Err(Stop::NotTcp);
    }
    if begins_with_llc(cursor.data) {
        return Ok(Layer::Llc);
    }
    if !incoming && cookie[3] & GAP_COUNT != 0 {
        return Ok(Layer::Ethernet);
    }
    if begins_with_ppp(cursor.data) {
        return Ok(Layer::PPP);
    }
    pdu(cursor)
}

/// Recognizes the first layer in a PDU of an ATM card.
fn pdu(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const UNNUMBERED: u8 = 0x03;
    if begins_with_llc(cursor.data) {
        return Ok(Layer::Llc);
    }
    if cursor.data.first() == Some(&UNNUMBERED) {
        cursor.take::<1>("Juniper ATM PDU")?;
        return serial::nlpid(cursor);
    }
    Ok(Layer::Ip)
}

fn begins_with_llc(data: &[u8]) -> bool {
    matches!(data, [0xaa, 0xaa, 0x03, ..] | [0xfe, 0xfe, 0x03, ..])
}

/// Whether the data begins with a PPP protocol number for IPv4, IPv6 or MPLS.
fn begins_with_ppp(data: &[u8]) -> bool {
    matches!(data, [0x00, 0x21 | 0x57, ..] | [0x02, 0x81 | 0x83, ..])
}

/// The cookie of a services card, whose first byte identifies the kind of card.
enum Cookie {
    /// A link services card, whose cookie has four bytes.
    LinkServices,
    /// An adaptive services card, whose cookie has eight bytes. The upper half of the sixth byte is the protocol, and
    /// the low bits of the fifth byte are the direction.
    AdaptiveServices { protocol: u8, direction: u8 },
}

fn cookie(cursor: &mut Cursor<'_>) -> Result<Option<Cookie>, Stop> {
    const PROTOCOL: u8 = 0xf0;
    const DIRECTION: u8 = 0x03;
    Ok(match cursor.data.first() {
        Some(0x54) => {
            cursor.take::<4>("Juniper services cookie")?;
            Some(Cookie::LinkServices)
        }
        Some(0x40 | 0x47) => {
            let cookie = cursor.take::<8>("Juniper services cookie")?;
            Some(Cookie::AdaptiveServices { protocol: cookie[5] & PROTOCOL, direction: cookie[4] & DIRECTION })
        }
        _ => None,
    })
}

/// Value of the direction bits if a routing engine sent the packet.
const FROM_ENGINE: u8 = 0x03;

/// The layer for a protocol of [`Cookie::AdaptiveServices`] other than IPv4.
fn other_service(protocol: u8, cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    match protocol {
        0x10 => Ok(Layer::Ipv6),
        0x20 => Ok(Layer::Mpls),
        0x30 => serial::nlpid(cursor),
        _ => Err(Stop::NotTcp),
    }
}

fn multilink_ppp(incoming: bool, cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const CARD_COOKIE_BYTES: usize = 2;
    match cookie(cursor)? {
        Some(Cookie::LinkServices) => Ok(Layer::PPP),
        Some(Cookie::AdaptiveServices { protocol: 0, direction }) => {
            Ok(if incoming && direction != FROM_ENGINE { Layer::PPP } else { Layer::Ipv4 })
        }
        Some(Cookie::AdaptiveServices { protocol, .. }) => other_service(protocol, cursor),
        // Two kinds of frames have no services cookie. A frame from a plain member link has no cookie at all. A frame
        // from a multilink card has a cookie of two bytes.
        None => {
            if !cursor.data.starts_with(&[0xff, 0x03]) && !begins_with_ppp(cursor.data) {
                cursor.take::<CARD_COOKIE_BYTES>("Juniper multilink cookie")?;
            }
            Ok(Layer::PPP)
        }
    }
}

fn multilink_frame_relay(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const UNNUMBERED: u8 = 0x03;
    const CARD_COOKIE_BYTES: usize = 2;
    let known = cookie(cursor)?;
    match known {
        Some(Cookie::AdaptiveServices { protocol: 0, direction }) => {
            return if direction == FROM_ENGINE { Err(Stop::NotTcp) } else { Ok(Layer::Ipv4) };
        }
        Some(Cookie::AdaptiveServices { protocol, .. }) => return other_service(protocol, cursor),
        Some(Cookie::LinkServices) => {}
        None => {
            cursor.take::<CARD_COOKIE_BYTES>("Juniper multilink cookie")?;
        }
    }
    if cursor.data.starts_with(&[0, UNNUMBERED]) {
        cursor.take::<2>("Juniper multilink header")?;
    } else if cursor.data.first() == Some(&UNNUMBERED) {
        cursor.take::<1>("Juniper multilink header")?;
    }
    serial::nlpid(cursor)
}

/// Reads the headers of a decrypted `IPsec` tunnel: Ethernet, IPv4 and ESP as on the wire, then 16 unknown bytes. After
/// these bytes comes the inner packet.
fn secure_tunnel(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const ESP: u8 = 50;
    const ESP_AND_UNKNOWN_BYTES: usize = 8 + 16;
    if ethernet_ii(cursor)? != ETHER_IPV4 {
        return Err(Stop::NotTcp);
    }
    let ip = cursor.take::<20>("Juniper tunnel's IPv4 header")?;
    let options = (usize::from(ip[0] & 0x0f) * 4).checked_sub(20);
    cursor
        .take_slice(options.ok_or(Stop::Malformed("Juniper tunnel's IPv4 header"))?, "Juniper tunnel's IPv4 header")?;
    if ip[9] != ESP {
        return Err(Stop::NotTcp);
    }
    cursor.take::<ESP_AND_UNKNOWN_BYTES>("Juniper tunnel's ESP header")?;
    Ok(Layer::Ip)
}
