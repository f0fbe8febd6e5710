//! Reads the headers of serial lines: HDLC, Frame Relay, SLIP, AX.25, and bytes that drivers leave before IP.

use super::super::cursor::{Cursor, Stop};
use super::super::layers::Layer;

const PPP_ADDRESS_AND_CONTROL: [u8; 2] = [0xff, 0x03];
/// Control byte of HDLC's unnumbered information.
const UNNUMBERED: u8 = 0x03;

/// Reads the link type RAW, which is IP or PPP. Linux drivers of the 1990s for PPP and ISDN wrote PPP with this link
/// type. Some of these drivers put one byte or a made-up MAC address before PPP. While the line is down, the drivers
/// write ten zero bytes before IP. The checks have the same order as in Wireshark.
pub(super) fn raw(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const LINE_DOWN: [u8; 10] = [0; 10];
    let ppp_at = |at: usize| cursor.data.get(at..).is_some_and(|rest| rest.starts_with(&PPP_ADDRESS_AND_CONTROL));
    if let Some(before) = [0, 6, 1].into_iter().find(|at| ppp_at(*at)) {
        cursor.take_slice(before, "ISDN header")?;
        return Ok(Layer::PPP);
    }
    if cursor.data.starts_with(&LINE_DOWN) {
        cursor.take::<{ LINE_DOWN.len() }>("ISDN header")?;
    }
    Ok(Layer::Ip)
}

/// Distinguishes the HDLC framing of PPP and of Cisco by the address byte. The address byte is 15 or 143 in Cisco HDLC,
/// and 255 or absent in PPP.
pub(crate) fn hdlc(sent: Option<bool>, cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    match cursor.data.first() {
        Some(0x0f | 0x8f) => cisco_hdlc(cursor),
        _ => Ok(Layer::Ppp { sent }),
    }
}

/// Reads a Cisco HDLC header: address, control, Ethernet type.
pub(crate) fn cisco_hdlc(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<4>("Cisco HDLC header")?;
    Ok(Layer::EtherType(u16::from_be_bytes([header[2], header[3]])))
}

/// Reads a Frame Relay header. The Q.922 address ends with a byte whose lowest bit is set. After the address come
/// control and NLPID (RFC 2427), or an Ethernet type (Cisco).
pub(crate) fn frame_relay(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const LAST: u8 = 1;
    while cursor.take::<1>("Frame Relay address")?[0] & LAST == 0 {}
    if cursor.data.first() == Some(&UNNUMBERED) {
        cursor.take::<1>("Frame Relay header")?;
        return nlpid(cursor);
    }
    let ether_type = cursor.take::<2>("Frame Relay header")?;
    Ok(Layer::EtherType(u16::from_be_bytes(*ether_type)))
}

/// Reads a network-layer protocol identifier (NLPID; RFC 2427, 2684, 2364). IP and PPP have their own identifiers. The
/// identifier of SNAP is followed by an Ethernet type or a code for bridged frames.
pub(crate) fn nlpid(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const PAD: u8 = 0x00;
    const SNAP: u8 = 0x80;
    if cursor.data.first() == Some(&PAD) {
        cursor.take::<1>("NLPID pad")?;
    }
    match cursor.take::<1>("NLPID")? {
        [0xcc] => Ok(Layer::Ipv4),
        [0x8e] => Ok(Layer::Ipv6),
        [0xcf] => Ok(Layer::PPP),
        [SNAP] => match cursor.take::<5>("SNAP header")? {
            [0, 0, 0, high, low] => Ok(Layer::EtherType(u16::from_be_bytes([*high, *low]))),
            // A bridged Ethernet frame, with or without its checksum (RFC 2427, 4.2).
            [0x00, 0x80, 0xc2, 0x00, 0x01 | 0x07] => Ok(Layer::Ethernet),
            _ => Err(Stop::NotTcp),
        },
        _ => Err(Stop::NotTcp),
    }
}

/// Reads a SLIP header in libpcap's form: one byte for the direction, then 15 bytes for the compressed header. After
/// the header comes IP.
pub(super) fn slip(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    cursor.take::<16>("SLIP header")?;
    Ok(Layer::Ip)
}

/// Reads an AX.25 header (amateur packet radio, version 2.2). Each address has seven bytes, and the lowest bit of the
/// last byte marks the last address. After the addresses comes a control byte. Information frames also have a protocol
/// byte.
pub(super) fn ax25(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const LAST: u8 = 1;
    const SUPERVISORY_OR_UNNUMBERED: u8 = 1;
    const POLL: u8 = 0x10;
    const IP: u8 = 0xcc;
    while cursor.take::<7>("AX.25 address")?[6] & LAST == 0 {}
    let &[control, protocol] = cursor.take::<2>("AX.25 header")?;
    let informs = control & SUPERVISORY_OR_UNNUMBERED == 0 || control & !POLL == UNNUMBERED;
    if informs && protocol == IP { Ok(Layer::Ipv4) } else { Err(Stop::NotTcp) }
}

/// Reads a KISS byte and an AX.25 header. The lower half of the KISS byte is 0 in frames with data.
pub(super) fn ax25_kiss(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const COMMAND: u8 = 0x0f;
    const DATA: u8 = 0;
    let &[kiss] = cursor.take::<1>("KISS header")?;
    if kiss & COMMAND == DATA { ax25(cursor) } else { Err(Stop::NotTcp) }
}
