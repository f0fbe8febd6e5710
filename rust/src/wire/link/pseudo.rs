//! Reads pseudo-headers, which operating systems and capture tools put before a captured packet. Pseudo-headers are
//! never transmitted.

use super::super::cursor::{Cursor, Stop};
use super::super::ethernet::{ETHER_IPV4, ETHER_IPV6, ETHER_MAX_LENGTH};
use super::super::layers::Layer;
use super::super::wifi;
use super::lan;

/// Protocol field of a Linux cooked header before an 802.3 frame, which has no Ethernet type.
const SLL_802_3: u16 = 1;
/// Protocol field of a Linux cooked header before an 802.2 frame, which has no Ethernet type.
const SLL_802_2: u16 = 4;

/// Reads a header of link type NULL: an address family in the capturing host's byte order, or a PPP header on the
/// loopback interface of Linux 2.1.
pub(super) fn null(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    if cursor.data.starts_with(&[0xff, 0x03]) { Ok(Layer::PPP) } else { bsd_loopback(cursor) }
}

/// Reads a BSD loopback header, which is an address family. The family is in the capturing host's byte order (NULL) or
/// in network byte order (LOOP).
pub(super) fn bsd_loopback(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<4>("loopback header")?;
    let family = match *header {
        [0, 0, high, low] => u16::from_be_bytes([high, low]),
        [low, high, 0, 0] => u16::from_le_bytes([low, high]),
        // Some tools write an Ethernet type into the last two bytes of the header.
        [_, _, high, low] if u16::from_be_bytes([high, low]) > ETHER_MAX_LENGTH => u16::from_be_bytes([high, low]),
        _ => return Err(Stop::Malformed("loopback header")),
    };
    match family {
        ETHER_IPV4 | ETHER_IPV6 => Ok(Layer::EtherType(family)),
        _ => address_family(u32::from(family)),
    }
}

/// The layer of an address family. The family of IPv4 is 2 on all systems. The family of IPv6 is 10 (Linux), 24
/// (NetBSD, OpenBSD), 26 (Solaris), 28 (FreeBSD) or 30 (macOS).
fn address_family(family: u32) -> Result<Layer, Stop> {
    match family {
        2 => Ok(Layer::Ipv4),
        10 | 24 | 26 | 28 | 30 => Ok(Layer::Ipv6),
        _ => Err(Stop::NotTcp),
    }
}

/// Reads a Linux cooked header of 16 bytes, whose last field is the protocol.
pub(super) fn cooked(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<16>("Linux cooked header")?;
    Ok(cooked_protocol(u16::from_be_bytes([header[14], header[15]])))
}

/// Reads a Linux cooked header of version 2, which has 20 bytes and begins with the protocol.
pub(super) fn cooked_v2(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<20>("Linux cooked header")?;
    Ok(cooked_protocol(u16::from_be_bytes([header[0], header[1]])))
}

fn cooked_protocol(protocol: u16) -> Layer {
    match protocol {
        SLL_802_2 | SLL_802_3 => Layer::Llc,
        other => Layer::EtherType(other),
    }
}

/// Reads a header of OpenBSD's packet filter log, which begins with its length (without padding to four bytes) and an
/// address family.
pub(super) fn pflog(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let &[length, family] = cursor.take::<2>("PFLOG header")?;
    let rest = usize::from(length).next_multiple_of(4).checked_sub(2).ok_or(Stop::Malformed("PFLOG header"))?;
    cursor.take_slice(rest, "PFLOG header")?;
    address_family(u32::from(family))
}

/// Reads OpenBSD's header for decrypted `IPsec`: address family, security parameter index, flags. The address family
/// occurs in both byte orders.
pub(super) fn enc(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let &[a, b, c, d, ..] = cursor.take::<12>("ENC header")?;
    let family = u32::from_be_bytes([a, b, c, d]);
    address_family(family.min(family.swap_bytes()))
}

/// Reads a Solaris IPNET header: version, address family (Solaris's numbers), hook, length, two interfaces, two zones.
pub(super) fn ipnet(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<24>("IPNET header")?;
    cursor.limit(u32::from_be_bytes([header[4], header[5], header[6], header[7]]) as usize);
    address_family(u32::from(header[1]))
}

/// Reads a header of Symantec's firewall, version 2, which has 44 bytes and contains an Ethernet type. In version 3,
/// the type is 0.
pub(super) fn symantec(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<44>("Symantec firewall header")?;
    Ok(Layer::EtherType(u16::from_be_bytes([header[6], header[7]])))
}

/// Reads a header of Netfilter's log: family, version, resource, then values. Each value begins with its length and
/// type in the capturing host's byte order. One of the values is the packet.
pub(super) fn nflog(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const PAYLOAD: u16 = 9;
    cursor.take::<4>("NFLOG header")?;
    loop {
        let &[a, b, c, d] = cursor.take::<4>("NFLOG value")?;
        let (length, kind) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        // A type above 255 in little-endian byte order shows that the header is big-endian.
        let (length, kind) =
            if kind > 0xff { (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])) } else { (length, kind) };
        let Some(body_bytes) = usize::from(length).checked_sub(4) else {
            return Err(Stop::Malformed("NFLOG value"));
        };
        if kind == PAYLOAD {
            cursor.limit(body_bytes);
            return Ok(Layer::Ip);
        }
        cursor.take_slice(body_bytes.next_multiple_of(4), "NFLOG value")?;
    }
}

/// Reads the start of an mPacket (IEEE 802.3br): a preamble and a delimiter. The delimiter marks the frame as express
/// or preemptable. After the delimiter come the frame and its checksum.
///
/// A preempted frame is sent in parts, which are not reassembled. The first part is recognized by its frame checksum,
/// which is not valid.
pub(super) fn mpacket(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const PREAMBLE: u8 = 0x55;
    const MAX_PREAMBLE_BYTES: usize = 7;
    const EXPRESS: u8 = 0xd5;
    const STARTS: [u8; 4] = [0xe6, 0x4c, 0x7f, 0xb3];
    const PREEMPTED: Stop = Stop::NotRead("part of an Ethernet frame that was preempted (IEEE 802.3br)");
    const CONTINUATIONS: [u8; 4] = [0x61, 0x52, 0x9e, 0x2a];
    let preamble_bytes = cursor.data.iter().take(MAX_PREAMBLE_BYTES).take_while(|byte| **byte == PREAMBLE).count();
    if preamble_bytes == 0 {
        return Ok(Layer::Ethernet);
    }
    cursor.take_slice(preamble_bytes, "Ethernet preamble")?;
    match cursor.take::<1>("Ethernet preamble")? {
        [EXPRESS] => Ok(Layer::Ethernet),
        [start] if STARTS.contains(start) => {
            if has_frame_checksum(cursor) {
                Ok(Layer::Ethernet)
            } else {
                Err(PREEMPTED)
            }
        }
        [part] if CONTINUATIONS.contains(part) => Err(PREEMPTED),
        _ => Err(Stop::NotTcp),
    }
}

/// Whether the last four bytes are a correct frame checksum, or were not captured.
fn has_frame_checksum(cursor: &Cursor<'_>) -> bool {
    if cursor.data.len() < cursor.wire_bytes {
        return true;
    }
    cursor.data.split_last_chunk::<4>().is_some_and(|(frame, checksum)| {
        let mut crc = flate2::Crc::new();
        crc.update(frame);
        crc.sum() == u32::from_le_bytes(*checksum)
    })
}

const TZSP_HEADER: &str = "TZSP header";

/// Whether `data` begins like a packet of the `TaZmen` Sniffer Protocol (TZSP): version 1, type "received" or "sent", a
/// known link type.
pub(crate) fn is_tzsp(data: &[u8]) -> bool {
    matches!(data, [1, 0 | 1, 0, 1 | 2 | 4 | 5 | 7 | 18 | 119 | 127, ..])
}

/// Reads a header of the `TaZmen` Sniffer Protocol (TZSP), which `MikroTik`, Aruba and others use. The header has a
/// version, a type, the packet's link type, and values. The last value has type 1.
pub(crate) fn tzsp(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const PADDING: u8 = 0;
    const END: u8 = 1;
    const SENT: u8 = 1;
    let &[_, kind, high, low] = cursor.take::<4>(TZSP_HEADER)?;
    loop {
        match cursor.take::<1>(TZSP_HEADER)? {
            [PADDING] => {}
            [END] => break,
            _ => {
                let &[length] = cursor.take::<1>(TZSP_HEADER)?;
                cursor.take_slice(usize::from(length), TZSP_HEADER)?;
            }
        }
    }
    if kind > SENT {
        return Err(Stop::NotTcp);
    }
    match u16::from_be_bytes([high, low]) {
        1 => Ok(Layer::Ethernet),
        2 => lan::token_ring(cursor),
        4 => Ok(Layer::HDLC),
        5 => lan::fddi(cursor),
        7 => Ok(Layer::Ip),
        18 => Ok(Layer::WIFI),
        119 => wifi::prism(cursor),
        127 => wifi::avs(cursor),
        _ => Err(Stop::NotTcp),
    }
}
