//! Reads the most common kind of frame at once: Ethernet II, IPv4 without options, and TCP, with complete headers.
//! Reading the headers one by one gives the same result, but takes longer.

use super::segment::{Ecn, FlowKey, IpFacts, Packet, Segment, TcpFlags};
use super::{ethernet, ip, layers, tcp};
use crate::capture::Frame;

/// The ends of the Ethernet, IPv4 and TCP headers as offsets in the frame, without IP and TCP options.
const ETHERNET_BYTES: usize = 14;
const IP_END: usize = ETHERNET_BYTES + 20;
const HEADERS_BYTES: usize = IP_END + 20;
/// First byte of an IPv4 header without options: version 4, length 5 words.
const NO_IP_OPTIONS: u8 = 0x45;

/// The parts of a frame that the fast path can read.
struct Usual<'a> {
    headers: &'a [u8; HEADERS_BYTES],
    key: FlowKey,
    from_low: bool,
    options: &'a [u8],
    /// Length of the TCP payload on the wire. `payload` has only the captured bytes.
    payload_bytes: usize,
    payload: &'a [u8],
}

#[inline]
fn two(high: u8, low: u8) -> u16 {
    u16::from_be_bytes([high, low])
}

#[inline]
fn four([a, b, c, d]: [u8; 4]) -> u32 {
    u32::from_be_bytes([a, b, c, d])
}

impl<'a> Usual<'a> {
    /// Reads the headers of a frame; `None` if the fast path does not handle the frame.
    #[allow(clippy::inline_always)] // lets the compiler drop the work for fields that a caller ignores
    #[inline(always)]
    fn of(frame: &Frame<'a>) -> Option<Self> {
        let (h, rest) = frame.data.split_first_chunk::<HEADERS_BYTES>()?;
        let is_fragment = two(h[20], h[21]) & (ip::MORE_FRAGMENTS | ip::FRAGMENT_UNITS) != 0;
        if two(h[12], h[13]) != ethernet::ETHER_IPV4 || h[14] != NO_IP_OPTIONS || h[23] != tcp::PROTOCOL || is_fragment
        {
            return None;
        }
        let behind_ethernet = (frame.original_bytes as usize).max(frame.data.len()) - ETHERNET_BYTES;
        let ip_bytes = usize::from(two(h[16], h[17])).min(behind_ethernet);
        let tcp_bytes = usize::from(h[46] >> 4) * 4;
        // `left` counts the bytes after the first 20 bytes of the TCP header. The first `option_bytes` of these bytes
        // are options.
        let left = ip_bytes.checked_sub(HEADERS_BYTES - ETHERNET_BYTES)?;
        let option_bytes = tcp_bytes.checked_sub(HEADERS_BYTES - IP_END)?;
        let (options, payload) = rest.get(..left).unwrap_or(rest).split_at_checked(option_bytes)?;
        let source = (four([h[26], h[27], h[28], h[29]]), two(h[34], h[35]));
        let destination = (four([h[30], h[31], h[32], h[33]]), two(h[36], h[37]));
        let (key, from_low) = FlowKey::v4(source, destination);
        Some(Self { headers: h, key, from_low, options, payload_bytes: left - option_bytes, payload })
    }
}

/// The flow of the segment in an Ethernet frame, or `None` if the fast path cannot read the frame.
#[inline]
pub(super) fn flow(frame: &Frame<'_>) -> Option<FlowKey> {
    Usual::of(frame).map(|usual| usual.key)
}

/// Adds the segment in an Ethernet frame to `packets`. Returns false if the fast path cannot read the frame.
#[inline]
pub(super) fn read(frame: &Frame<'_>, packets: &mut Vec<Packet>) -> bool {
    let Some(Usual { headers: h, key, from_low, options, payload_bytes, payload }) = Usual::of(frame) else {
        return false;
    };
    packets.push(Packet::Tcp(Segment {
        frame: frame.number,
        ts_ns: frame.ts_ns,
        key,
        from_low,
        seq: four([h[38], h[39], h[40], h[41]]),
        ack: four([h[42], h[43], h[44], h[45]]),
        flags: TcpFlags(two(h[46], h[47]) & tcp::FLAGS),
        window: two(h[48], h[49]),
        urgent: two(h[52], h[53]),
        frame_bytes: frame.original_bytes,
        payload_bytes: payload_bytes as u32,
        captured_payload_bytes: payload.len() as u32,
        payload_start: payload.first_chunk::<4>().map_or(0, |bytes| four(*bytes)),
        options: tcp::read_options(options),
        ip: IpFacts { id: Some(two(h[18], h[19])), ttl: h[22], ecn: Ecn(h[15] & 3) },
        path: layers::ETHERNET_IP_TCP,
        atm: None,
        header_bytes: (HEADERS_BYTES + options.len()) as u16,
        bad_data_offset: false,
        damaged: false,
    }));
    true
}

#[cfg(test)]
mod tests {
    use super::super::{Dissector, Layer, Trust};
    use super::*;
    use crate::wire::Cursor;
    use proptest::prelude::*;

    proptest! {
        /// Random bytes would almost never take the fast path. The fields that select the fast path therefore have
        /// their usual values, and `odd` changes one byte in 30% of the cases.
        #[test]
        fn the_header_by_header_path_gives_the_same_packets(
            mut data in prop::collection::vec(any::<u8>(), 50..130),
            ip_bytes in prop_oneof![Just(0_u16), 38..140_u16, any::<u16>()],
            tcp_words in 4..16_u8,
            timestamps: bool,
            more_bytes in 0..2000_u32,
            odd in prop::option::weighted(0.3, (12..54_usize, any::<u8>())),
        ) {
            data[12..15].copy_from_slice(&[8, 0, 0x45]);
            data[16..18].copy_from_slice(&ip_bytes.to_be_bytes());
            data[20..22].copy_from_slice(&[0x40, 0]);
            data[23] = 6;
            data[46] = tcp_words << 4 | data[46] & 15;
            if timestamps && data.len() >= 58 {
                data[54..58].copy_from_slice(&[1, 1, 8, 10]);
            }
            if let Some((at, byte)) = odd.filter(|(at, _)| *at < data.len()) {
                data[at] = byte;
            }
            let original_bytes = (data.len() as u32).saturating_sub(3) + more_bytes;
            let frame =
                Frame { number: 7, ts_ns: Some(9), link_type: Some(super::super::link::ETHERNET), original_bytes, data: &data };
            let mut packets = Vec::new();
            let flow = flow(&frame);
            if read(&frame, &mut packets) {
                prop_assert!(matches!(packets.as_slice(), [Packet::Tcp(segment)] if Some(segment.key) == flow));
                let wire_bytes = (original_bytes as usize).max(data.len());
                let mut cursor = Cursor { data: &data, wire_bytes, trust: Trust::Whole };
                let mut header_by_header = Vec::new();
                let end = Dissector::default().inside(Layer::Ethernet, &mut cursor, &frame, &mut header_by_header);
                prop_assert_eq!(end, Ok(()));
                prop_assert_eq!(format!("{packets:?}"), format!("{header_by_header:?}"));
            } else {
                prop_assert!(packets.is_empty() && flow.is_none());
            }
        }
    }
}
