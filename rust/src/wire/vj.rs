//! Decompresses TCP/IP headers on PPP links with Van Jacobson compression (RFC 1144, RFC 1332).
//!
//! A compressed header contains only the changes since the connection's previous segment in this direction. An
//! uncompressed header contains all fields, with the connection number in the IP protocol field. A decompressed header
//! is used only if the TCP checksum is correct. A wrong checksum means that an earlier segment is missing or damaged.
//! After a wrong checksum, the connection is unreadable until its next uncompressed header.
//!
//! Each direction has its own state, so the link type must record which host sent a frame. The packets themselves do
//! not show the direction. Both ends use the same connection numbers, and the checksum stays correct if the two hosts
//! are swapped.

use std::collections::BTreeMap;

use super::cursor::{Cursor, Stop, Trust};
use super::tcp;

const NO_DIRECTION: &str =
    "a TCP header compressed by Van Jacobson's method, on a link that does not record who sent it";
const NOT_CONFIRMED: &str = "a TCP header compressed by Van Jacobson's method that cannot be rebuilt";

/// Offset of the protocol field in an IPv4 header.
const PROTOCOL_AT: usize = 9;
/// Flags in the first byte of a compressed header. Each flag means that a field has changed (RFC 1144, 3.2.2).
const NEW_CONNECTION: u8 = 0x40;
const NEW_ID: u8 = 0x20;
const PUSH: u8 = 0x10;
const NEW_SEQ: u8 = 0x08;
const NEW_ACK: u8 = 0x04;
const NEW_WINDOW: u8 = 0x02;
const URGENT: u8 = 0x01;
/// Two combinations of flags have special meanings: `ECHO` for echoed characters, `DATA` for data in one direction.
const SPECIAL: u8 = NEW_SEQ | NEW_ACK | NEW_WINDOW | URGENT;
const ECHO: u8 = NEW_SEQ | NEW_WINDOW | URGENT;
const DATA: u8 = SPECIAL;
const TCP_PUSH: u8 = 0x08;
const TCP_URGENT: u8 = 0x20;

/// Whether a packet has a compressed header, and its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub compressed: bool,
    /// Whether the capturing host sent the packet; `None` if the link type does not record the direction.
    pub sent: Option<bool>,
}

/// The state of a link with header compression: one part for each direction.
#[derive(Debug, Default)]
pub(super) struct Decompressor {
    received: Line,
    sent: Line,
}

#[derive(Debug, Default)]
struct Line {
    connections: BTreeMap<u8, Headers>,
    /// The connection number of the last packet.
    current: Option<u8>,
}

/// The IP and TCP headers of a connection's last packet.
#[derive(Debug)]
struct Headers {
    ip: [u8; 20],
    ip_options: Vec<u8>,
    tcp: [u8; 20],
    tcp_options: Vec<u8>,
    payload_bytes: u16,
}

impl Decompressor {
    /// Returns the IP packet at `cursor` with complete headers, and its length on the wire.
    pub(super) fn read(&mut self, form: Form, cursor: &Cursor<'_>) -> Result<(Vec<u8>, usize), Stop> {
        let line = form.sent.map(|sent| if sent { &mut self.sent } else { &mut self.received });
        if !form.compressed {
            return Ok((uncompressed(line, cursor)?, cursor.wire_bytes));
        }
        let line = line.ok_or(Stop::NotRead(NO_DIRECTION))?;
        let packet = line.compressed(*cursor).ok_or(Stop::NotRead(NOT_CONFIRMED))?;
        let bytes = packet.len();
        Ok((packet, bytes))
    }
}

/// Reads a packet with an uncompressed header, whose fields become the connection's state.
fn uncompressed(line: Option<&mut Line>, cursor: &Cursor<'_>) -> Result<Vec<u8>, Stop> {
    let mut packet = cursor.data.to_vec();
    let Some(protocol) = packet.get_mut(PROTOCOL_AT) else {
        // The connection number was not captured. The packet possibly changed the state of any connection.
        if let Some(line) = line {
            *line = Line::default();
        }
        return Err(Stop::Cut("IPv4 header"));
    };
    let number = std::mem::replace(protocol, tcp::PROTOCOL);
    if let Some(line) = line {
        line.current = Some(number);
        match Headers::of(&packet) {
            Some(headers) => drop(line.connections.insert(number, headers)),
            None => drop(line.connections.remove(&number)),
        }
    }
    Ok(packet)
}

impl Line {
    /// Decompresses the header of a packet. A wrong checksum gives `None` and removes the connection's state.
    fn compressed(&mut self, mut cursor: Cursor<'_>) -> Option<Vec<u8>> {
        let Some(changes) = self.changes(&mut cursor) else {
            // The connection number is missing, so the packet possibly belongs to any connection.
            *self = Self::default();
            return None;
        };
        let number = self.current?;
        let packet = self.connections.get_mut(&number)?.next(changes, &mut cursor);
        if packet.is_none() {
            self.connections.remove(&number);
        }
        packet
    }

    /// Reads the byte of flags. If a connection number follows, it becomes the current connection number.
    fn changes(&mut self, cursor: &mut Cursor<'_>) -> Option<u8> {
        let changes = byte(cursor)?;
        if changes & NEW_CONNECTION != 0 {
            self.current = Some(byte(cursor)?);
        }
        Some(changes)
    }
}

impl Headers {
    /// Reads the headers at the start of an IP packet. Returns `None` if the headers are incomplete, or if the IP
    /// checksum is wrong.
    fn of(packet: &[u8]) -> Option<Self> {
        let mut cursor = Cursor { data: packet, wire_bytes: packet.len(), trust: Trust::Whole };
        let ip = *cursor.take::<20>("").ok()?;
        let ip_options = cursor.take_slice((usize::from(ip[0] & 0x0f) * 4).checked_sub(20)?, "").ok()?.to_vec();
        let tcp = *cursor.take::<20>("").ok()?;
        let tcp_options = cursor.take_slice((usize::from(tcp[12] >> 4) * 4).checked_sub(20)?, "").ok()?.to_vec();
        let header_bytes = u16::try_from(40 + ip_options.len() + tcp_options.len()).ok()?;
        let payload_bytes = u16::from_be_bytes([ip[2], ip[3]]).checked_sub(header_bytes)?;
        let is_right = fold(sum(&ip) + sum(&ip_options)) == 0xffff;
        is_right.then_some(Self { ip, ip_options, tcp, tcp_options, payload_bytes })
    }

    /// Applies the changes at `cursor` to the headers. Returns the packet if its checksum is correct.
    fn next(&mut self, changes: u8, cursor: &mut Cursor<'_>) -> Option<Vec<u8>> {
        let (ip, tcp) = (&mut self.ip, &mut self.tcp);
        [tcp[16], tcp[17]] = *cursor.take::<2>("").ok()?;
        let mut seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        let mut ack = u32::from_be_bytes([tcp[8], tcp[9], tcp[10], tcp[11]]);
        tcp[13] = tcp[13] & !TCP_PUSH | if changes & PUSH == 0 { 0 } else { TCP_PUSH };
        let previous_bytes = u32::from(self.payload_bytes);
        match changes & SPECIAL {
            ECHO => (seq, ack) = (seq.wrapping_add(previous_bytes), ack.wrapping_add(previous_bytes)),
            DATA => seq = seq.wrapping_add(previous_bytes),
            _ => {
                tcp[13] &= !TCP_URGENT;
                if changes & URGENT != 0 {
                    tcp[13] |= TCP_URGENT;
                    [tcp[18], tcp[19]] = difference(cursor)?.to_be_bytes();
                }
                if changes & NEW_WINDOW != 0 {
                    let window = u16::from_be_bytes([tcp[14], tcp[15]]);
                    [tcp[14], tcp[15]] = window.wrapping_add(difference(cursor)?).to_be_bytes();
                }
                if changes & NEW_ACK != 0 {
                    ack = ack.wrapping_add(u32::from(difference(cursor)?));
                }
                if changes & NEW_SEQ != 0 {
                    seq = seq.wrapping_add(u32::from(difference(cursor)?));
                }
            }
        }
        [tcp[4], tcp[5], tcp[6], tcp[7]] = seq.to_be_bytes();
        [tcp[8], tcp[9], tcp[10], tcp[11]] = ack.to_be_bytes();
        let id_step = if changes & NEW_ID == 0 { 1 } else { difference(cursor)? };
        [ip[4], ip[5]] = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(id_step).to_be_bytes();
        self.confirmed(cursor)
    }

    /// Returns the packet with the payload at `cursor`. The payload must be complete, and the TCP checksum correct.
    fn confirmed(&mut self, cursor: &Cursor<'_>) -> Option<Vec<u8>> {
        let payload = cursor.data;
        if payload.len() < cursor.wire_bytes {
            return None;
        }
        self.payload_bytes = u16::try_from(payload.len()).ok()?;
        let tcp_bytes = u16::try_from(20 + self.tcp_options.len() + payload.len()).ok()?;
        let total_bytes = u16::try_from(20 + self.ip_options.len() + usize::from(tcp_bytes)).ok()?;
        [self.ip[2], self.ip[3]] = total_bytes.to_be_bytes();
        let pseudo_header = sum(&self.ip[12..20]) + u32::from(tcp::PROTOCOL) + u32::from(tcp_bytes);
        if fold(pseudo_header + sum(&self.tcp) + sum(&self.tcp_options) + sum(payload)) != 0xffff {
            return None;
        }
        Some([&self.ip, self.ip_options.as_slice(), &self.tcp, &self.tcp_options, payload].concat())
    }
}

fn byte(cursor: &mut Cursor<'_>) -> Option<u8> {
    cursor.take::<1>("").ok().map(|[byte]| *byte)
}

/// Reads the change of a field. A change is one byte, or 0 and two bytes (RFC 1144, 3.2.2).
fn difference(cursor: &mut Cursor<'_>) -> Option<u16> {
    match byte(cursor)? {
        0 => Some(u16::from_be_bytes(*cursor.take::<2>("").ok()?)),
        small => Some(u16::from(small)),
    }
}

/// The sum of the 16-bit words (RFC 1071). 32 bits suffice for the words of 65,535 bytes.
fn sum(bytes: &[u8]) -> u32 {
    let (words, last) = bytes.as_chunks();
    let odd = last.first().map_or(0, |byte| u32::from(*byte) << 8);
    words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum::<u32>() + odd
}

fn fold(sum: u32) -> u32 {
    let once = (sum & 0xffff) + (sum >> 16);
    (once & 0xffff) + (once >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An uncompressed packet without payload from 10.0.0.1:1 to 10.0.0.2:2, with sequence number 1000, acknowledgment
    /// number 5000, window 100, IP identification 7 and connection number 3.
    fn uncompressed_header() -> Vec<u8> {
        let mut ip = [0x45, 0, 0, 40, 0, 7, 0, 0, 64, tcp::PROTOCOL, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        [ip[10], ip[11]] = (!(fold(sum(&ip)) as u16)).to_be_bytes();
        ip[PROTOCOL_AT] = 3;
        let tcp = [0, 1, 0, 2, 0, 0, 3, 0xe8, 0, 0, 0x13, 0x88, 0x50, 0x10, 0, 100, 0, 0, 0, 0];
        [ip, tcp].concat()
    }

    fn read(line: &mut Decompressor, compressed: bool, data: &[u8]) -> Result<Vec<u8>, Stop> {
        let cursor = Cursor { data, wire_bytes: data.len(), trust: Trust::Whole };
        line.read(Form { compressed, sent: Some(true) }, &cursor).map(|(packet, _)| packet)
    }

    /// TCP checksum of a packet like [`uncompressed_header`], but with these numbers and this payload.
    fn checksum(seq: u32, ack: u32, flags: u8, window: u16, payload: &[u8]) -> [u8; 2] {
        let numbers = [seq.to_be_bytes(), ack.to_be_bytes()].concat();
        let ends = sum(&[10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2]);
        let rest =
            sum(&numbers) + sum(&[0x50, flags]) + u32::from(window) + 6 + 20 + payload.len() as u32 + sum(payload);
        (!(fold(ends + rest) as u16)).to_be_bytes()
    }

    #[test]
    fn differences_are_added_and_the_next_packet_is_based_on_them() {
        let mut line = Decompressor::default();
        read(&mut line, false, &uncompressed_header()).unwrap();
        let [high, low] = checksum(1001, 5300, 0x18, 90, b"abc");
        // Compressed header: PSH, sequence number + 1, acknowledgment number + 300 (three bytes), window − 10 (three
        // bytes).
        let changed = [0x1e, high, low, 0, 0xff, 0xf6, 0, 1, 44, 1, b'a', b'b', b'c'];
        let packet = read(&mut line, true, &changed).unwrap();
        assert_eq!(packet[2..6], [0, 43, 0, 8], "total length and identification");
        assert_eq!(packet[24..36], [0, 0, 3, 0xe9, 0, 0, 0x14, 0xb4, 0x50, 0x18, 0, 90]);
        let [high, low] = checksum(1004, 5300, 0x10, 90, b"d");
        let packet = read(&mut line, true, &[DATA, high, low, b'd']).unwrap();
        assert_eq!(packet[24..28], 1004_u32.to_be_bytes(), "after three bytes");
        let [high, low] = checksum(1005, 5301, 0x10, 90, b"e");
        let packet = read(&mut line, true, &[ECHO | NEW_ID, high, low, 5, b'e']).unwrap();
        assert_eq!((packet[4..6].to_vec(), packet[28..32].to_vec()), (vec![0, 14], 5301_u32.to_be_bytes().to_vec()));
    }

    #[test]
    fn a_lost_packet_ends_its_connection_until_the_next_uncompressed_header() {
        let mut line = Decompressor::default();
        read(&mut line, false, &uncompressed_header()).unwrap();
        let [high, low] = checksum(1004, 5000, 0x10, 100, b"d");
        let after_a_loss = [DATA, high, low, b'd'];
        assert_eq!(read(&mut line, true, &after_a_loss), Err(Stop::NotRead(NOT_CONFIRMED)));
        let [high, low] = checksum(1000, 5000, 0x10, 100, b"d");
        let right = [DATA, high, low, b'd'];
        assert_eq!(read(&mut line, true, &right), Err(Stop::NotRead(NOT_CONFIRMED)));
        read(&mut line, false, &uncompressed_header()).unwrap();
        assert!(read(&mut line, true, &right).is_ok());
    }

    #[test]
    fn a_packet_too_short_to_name_its_connection_ends_all_of_its_direction() {
        for short in [&[][..], &[NEW_CONNECTION]] {
            let mut line = Decompressor::default();
            read(&mut line, false, &uncompressed_header()).unwrap();
            assert!(read(&mut line, true, short).is_err());
            assert!(line.sent.connections.is_empty());
        }
    }

    #[test]
    fn a_packet_of_unknown_direction_is_not_rebuilt() {
        let mut line = Decompressor::default();
        let data = uncompressed_header();
        let cursor = Cursor { data: &data, wire_bytes: data.len(), trust: Trust::Whole };
        let form = Form { compressed: false, sent: None };
        assert_eq!(line.read(form, &cursor).unwrap().0[PROTOCOL_AT], tcp::PROTOCOL);
        assert_eq!(line.read(Form { compressed: true, ..form }, &cursor), Err(Stop::NotRead(NO_DIRECTION)));
    }
}
