//! Reads the TCP header and its options (RFC 9293, RFC 7323, RFC 2018).

use super::cursor::{Cursor, Stop};
use super::segment::{FastOpen, FlowKey, IpEndpoints, IpFacts, Packet, Segment, TcpFlags, TcpOptions};
use crate::capture::Frame;

/// TCP's IP protocol number.
pub(super) const PROTOCOL: u8 = 6;

const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const FAST_OPEN: u8 = 34;
/// Kind of the experimental option (RFC 6994). TCP Fast Open has its own experiment identifier (RFC 7413, 4.1.1).
const EXPERIMENT: u8 = 254;
const FAST_OPEN_EXPERIMENT: [u8; 2] = [0xf9, 0x89];

/// Mask of the flags in the 16-bit word after the acknowledgment number.
pub(super) const FLAGS: u16 = 0x01ff;

/// Reads the TCP header at `cursor` and adds its segment to `packets`.
///
/// If the data offset is below 5 or beyond the end of the packet, the start of the data is unknown, and the segment is
/// added without data. Truncated options are read as far as the capture contains them.
#[inline]
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    frame: &Frame<'_>,
    ip: IpFacts,
    endpoints: &IpEndpoints,
    path: u16,
    packets: &mut Vec<Packet>,
) -> Result<(), Stop> {
    let h = cursor.take::<20>("TCP header")?;
    let (source_port, destination_port) = (u16::from_be_bytes([h[0], h[1]]), u16::from_be_bytes([h[2], h[3]]));
    let (key, from_low) = FlowKey::new(endpoints, source_port, destination_port);
    let option_bytes = (usize::from(h[12] >> 4) * 4).checked_sub(20).filter(|bytes| *bytes <= cursor.wire_bytes);
    let split_at = option_bytes.unwrap_or(cursor.data.len());
    let (options, payload) = cursor.data.split_at_checked(split_at).unwrap_or((cursor.data, &[]));
    packets.push(Packet::Tcp(Segment {
        frame: frame.number,
        ts_ns: frame.ts_ns,
        key,
        from_low,
        seq: u32::from_be_bytes([h[4], h[5], h[6], h[7]]),
        ack: u32::from_be_bytes([h[8], h[9], h[10], h[11]]),
        flags: TcpFlags(u16::from_be_bytes([h[12], h[13]]) & FLAGS),
        window: u16::from_be_bytes([h[14], h[15]]),
        urgent: u16::from_be_bytes([h[18], h[19]]),
        frame_bytes: frame.original_bytes,
        payload_bytes: option_bytes.map_or(0, |option_bytes| (cursor.wire_bytes - option_bytes) as u32),
        captured_payload_bytes: payload.len() as u32,
        payload_start: payload.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes)),
        options: match option_bytes {
            Some(bytes) if bytes == options.len() => read_options(options),
            Some(_) => TcpOptions { cut: true, ..read_options(options) },
            None => TcpOptions::default(),
        },
        ip,
        path,
        atm: None,
        header_bytes: header_bytes(frame, cursor.data, option_bytes),
        bad_data_offset: option_bytes.is_none(),
        damaged: false,
    }));
    Ok(())
}

/// Offset of the payload in the frame. The offset is 0 if `options` are not in the frame, because the packet was
/// reassembled.
#[inline]
fn header_bytes(frame: &Frame<'_>, options: &[u8], option_bytes: Option<usize>) -> u16 {
    let start = options.as_ptr().addr().wrapping_sub(frame.data.as_ptr().addr());
    if start > frame.data.len() {
        return 0;
    }
    option_bytes.and_then(|bytes| u16::try_from(start + bytes).ok()).unwrap_or(0)
}

#[inline]
pub(super) fn read_options(options: &[u8]) -> TcpOptions {
    // Nearly every segment of a connection with timestamps has exactly these options.
    if let [NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10, times @ ..] = options
        && let Ok(times) = times.try_into()
    {
        return TcpOptions { timestamps: Some(two_words(times)), ..TcpOptions::default() };
    }
    if options.is_empty() { TcpOptions::default() } else { walk_options(options) }
}

fn walk_options(mut rest: &[u8]) -> TcpOptions {
    let mut found = TcpOptions::default();
    let mut place = 0;
    while let [kind, tail @ ..] = rest {
        found.kinds |= u64::from((*kind).min(14) + 1).checked_shl(place).unwrap_or(0);
        place += 4;
        match *kind {
            END_OF_OPTIONS => break,
            NO_OPERATION => {
                rest = tail;
                continue;
            }
            _ => {}
        }
        let Some(length) = tail.first().map(|length| usize::from(*length)).filter(|length| *length >= 2) else { break };
        let Some((option, after)) = rest.split_at_checked(length) else { break };
        read_option(option, &mut found);
        rest = after;
    }
    found
}

fn read_option(option: &[u8], found: &mut TcpOptions) {
    match *option {
        [MSS, 4, high, low] => found.mss = Some(u16::from_be_bytes([high, low])),
        [WINDOW_SCALE, 3, shift] => found.window_scale = Some(shift),
        [SACK_PERMITTED, 2] => found.sack_permitted = true,
        [TIMESTAMPS, 10, ref times @ ..] => found.timestamps = times.first_chunk().copied().map(two_words),
        [FAST_OPEN, _, ref cookie @ ..] => found.fast_open = Some(fast_open(cookie)),
        [EXPERIMENT, _, high, low, ref cookie @ ..] if [high, low] == FAST_OPEN_EXPERIMENT => {
            found.fast_open = Some(fast_open(cookie));
        }
        [SACK, _, ref blocks @ ..] => {
            for (left, right) in blocks.as_chunks().0.iter().copied().map(two_words) {
                found.sack.push(left, right);
            }
        }
        _ => {}
    }
}

fn fast_open(cookie: &[u8]) -> FastOpen {
    if cookie.is_empty() { FastOpen::Request } else { FastOpen::Cookie }
}

#[inline]
fn two_words(bytes: [u8; 8]) -> (u32, u32) {
    let both = u64::from_be_bytes(bytes);
    ((both >> 32) as u32, both as u32)
}
