//! Reads headers of IPv4 (RFC 791) and IPv6 (RFC 8200), with their options and extension headers.

use super::cursor::{Cursor, Stop, Trust};
use super::layers::{FragmentPlace, Layer};
use super::segment::{Ecn, IpEndpoints, IpFacts};
use super::tunnel;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;
pub(super) const MORE_FRAGMENTS: u16 = 0x2000;
/// Mask of the IPv4 fragment offset, which counts units of eight bytes.
pub(super) const FRAGMENT_UNITS: u16 = 0x1fff;
/// Type of the hop-by-hop option that contains the length of a packet of more than 65,535 bytes (RFC 2675).
const JUMBO_OPTION: u8 = 0xc2;

/// The layer IPv4 or IPv6, according to the version field in the first four bits.
#[inline]
pub(super) fn any(cursor: &Cursor<'_>) -> Result<Layer, Stop> {
    match cursor.data.first().map(|byte| byte >> 4) {
        Some(4) => Ok(Layer::Ipv4),
        Some(6) => Ok(Layer::Ipv6),
        Some(_) => Err(Stop::NotTcp),
        None => Err(Stop::Cut("IP header")),
    }
}

/// Reads an IPv4 header.
///
/// The total length is 0 in packets that were captured before segmentation offload, and in BIG TCP packets. Such a
/// packet is as long as its frame. If the total length exceeds the length of the frame, the length of the frame is used
/// too, as in Wireshark.
#[inline]
pub(super) fn v4(cursor: &mut Cursor<'_>, facts: &mut IpFacts, endpoints: &mut IpEndpoints) -> Result<Layer, Stop> {
    let start = *cursor;
    let h = cursor.take::<20>("IPv4 header")?;
    let header_bytes = usize::from(h[0] & 0x0f) * 4;
    if h[0] >> 4 != 4 || header_bytes < 20 {
        return Err(Stop::Malformed("IPv4 header"));
    }
    let total_bytes = match usize::from(u16::from_be_bytes([h[2], h[3]])) {
        0 => start.wire_bytes,
        total => total,
    };
    if total_bytes < header_bytes {
        return Err(Stop::Malformed("IPv4 header"));
    }
    cursor.limit(total_bytes - 20);
    let options = cursor.take_slice(header_bytes - 20, "IPv4 options")?;
    if start.trust != Trust::Whole && !(checksum_is_right(h, options) && fills(&start, total_bytes)) {
        return Err(Stop::Malformed("IPv4 header"));
    }
    *facts = IpFacts { id: Some(u16::from_be_bytes([h[4], h[5]])), ttl: h[8], ecn: Ecn(h[1] & 3) };
    *endpoints = IpEndpoints {
        source: [0, u64::from(u32::from_be_bytes([h[12], h[13], h[14], h[15]]))],
        destination: [0, u64::from(u32::from_be_bytes([h[16], h[17], h[18], h[19]]))],
        v6: false,
    };
    let fragment = u16::from_be_bytes([h[6], h[7]]);
    if fragment & (MORE_FRAGMENTS | FRAGMENT_UNITS) != 0 {
        return Ok(Layer::Fragment(FragmentPlace {
            identification: u32::from(u16::from_be_bytes([h[4], h[5]])),
            protocol: h[9],
            offset: (fragment & FRAGMENT_UNITS) << 3,
            more: fragment & MORE_FRAGMENTS != 0,
        }));
    }
    Ok(Layer::IpProtocol(h[9]))
}

/// Whether a packet of `total_bytes` fills its frame. The check applies only to a damaged PDU of known length. Random
/// data can look like an IP header, but rarely has a matching length. The frame may be longer than the packet by the
/// padding and the checksum of a bridged Ethernet frame.
fn fills(cursor: &Cursor<'_>, total_bytes: usize) -> bool {
    const MAX_PADDING: usize = 46 - 20 + 4;
    cursor.trust != Trust::LengthOnly
        || cursor.wire_bytes.checked_sub(total_bytes).is_some_and(|rest| rest <= MAX_PADDING)
}

/// Whether the header checksum is correct: all 16-bit words of the header add up to 0xffff (RFC 1071).
fn checksum_is_right(header: &[u8; 20], options: &[u8]) -> bool {
    let words = |bytes: &[u8]| bytes.as_chunks().0.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum::<u32>();
    let sum = words(header) + words(options);
    (sum & 0xffff) + (sum >> 16) == 0xffff
}

/// Reads an IPv6 header.
///
/// A payload length of 0 means a jumbogram, whose length is in a hop-by-hop option (RFC 2675). Linux's BIG TCP can omit
/// this option. A packet without the option is as long as its frame.
pub(super) fn v6(cursor: &mut Cursor<'_>, facts: &mut IpFacts, endpoints: &mut IpEndpoints) -> Result<Layer, Stop> {
    let start = *cursor;
    let h = cursor.take::<40>("IPv6 header")?;
    if h[0] >> 4 != 6 {
        return Err(Stop::Malformed("IPv6 header"));
    }
    let payload_bytes = usize::from(u16::from_be_bytes([h[4], h[5]]));
    if !fills(&start, payload_bytes + 40) {
        return Err(Stop::Malformed("IPv6 header"));
    }
    if payload_bytes != 0 {
        cursor.limit(payload_bytes);
    }
    *facts = IpFacts { id: None, ttl: h[7], ecn: Ecn((h[1] >> 4) & 3) };
    *endpoints = IpEndpoints { source: [word(h, 8), word(h, 16)], destination: [word(h, 24), word(h, 32)], v6: true };
    Ok(Layer::IpProtocol(h[6]))
}

fn word(header: &[u8; 40], at: usize) -> u64 {
    header.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// Reads an IPv6 extension header or an authentication header, which also occurs in IPv4. Any other protocol number
/// leads to the layer of that protocol.
pub(super) fn protocol(number: u8, cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    match number {
        HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY | HOST_IDENTITY | SHIM6 => {
            let head = cursor.take::<2>("IPv6 extension header")?;
            let body = cursor.take_slice(usize::from(head[1]) * 8 + 6, "IPv6 extension header")?;
            if number == HOP_BY_HOP {
                limit_to_jumbo(body, cursor);
            }
            Ok(Layer::IpProtocol(head[0]))
        }
        AUTHENTICATION => {
            let head = cursor.take::<2>("IP authentication header")?;
            cursor.take_slice(usize::from(head[1]) * 4 + 6, "IP authentication header")?;
            Ok(Layer::IpProtocol(head[0]))
        }
        FRAGMENT => {
            let head = cursor.take::<8>("IPv6 fragment header")?;
            let fragment = u16::from_be_bytes([head[2], head[3]]);
            // An atomic fragment (RFC 6946) has offset 0 and no "more fragments" flag, and is a complete packet.
            if fragment & 0xfff9 == 0 {
                return Ok(Layer::IpProtocol(head[0]));
            }
            Ok(Layer::Fragment(FragmentPlace {
                identification: u32::from_be_bytes([head[4], head[5], head[6], head[7]]),
                protocol: head[0],
                offset: fragment & 0xfff8,
                more: fragment & 1 != 0,
            }))
        }
        other => tunnel::ip_protocol(other),
    }
}

/// Applies the jumbo payload option, if the hop-by-hop header has one. `cursor` is at the end of the hop-by-hop header.
fn limit_to_jumbo(options: &[u8], cursor: &mut Cursor<'_>) {
    let mut rest = options;
    while let [kind, tail @ ..] = rest {
        if *kind == 0 {
            rest = tail;
            continue;
        }
        let [length, body @ ..] = tail else { return };
        if let (JUMBO_OPTION, 4, Some(bytes)) = (*kind, *length, body.first_chunk::<4>()) {
            let hop_by_hop_bytes = options.len() + 2;
            cursor.limit((u32::from_be_bytes(*bytes) as usize).saturating_sub(hop_by_hop_bytes));
        }
        rest = body.get(usize::from(*length)..).unwrap_or(&[]);
    }
}
