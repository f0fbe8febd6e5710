//! IEEE 802.11 data frames, and the headers that cards put before them.

use super::cursor::{Cursor, Stop};
use super::ethernet;
use super::layers::Layer;

/// Radiotap: version, padding, length in little-endian, fields.
pub(super) fn radiotap(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<4>("radiotap header")?;
    let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
    let Some(rest) = length.checked_sub(4) else { return Err(Stop::Malformed("radiotap header")) };
    let fields = cursor.take_slice(rest, "radiotap header")?;
    Ok(Layer::Wifi { padded: has_padding(fields), opened: false })
}

/// Whether the flags say that the frame's header is padded to a multiple of four. `fields` begins with the
/// bitmap words; the first fields are the time (eight bytes, aligned) and the flags.
fn has_padding(fields: &[u8]) -> bool {
    const MORE_WORDS: u8 = 0x80;
    const TIME: u8 = 1;
    const FLAGS: u8 = 2;
    const PADDED: u8 = 0x20;
    let (words, _) = fields.as_chunks::<4>();
    let word_count = words.iter().take_while(|word| word[3] & MORE_WORDS != 0).count() + 1;
    let Some([present, ..]) = words.first() else { return false };
    // Alignment counts from the first byte of the header, four bytes before `fields`.
    let time_end = if present & TIME == 0 { 4 * word_count } else { (4 * word_count + 4).next_multiple_of(8) + 8 - 4 };
    present & FLAGS != 0 && fields.get(time_end).is_some_and(|flags| flags & PADDED != 0)
}

/// Prism: 144 bytes; or the AVS header, recognized by its magic.
pub(super) fn prism(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    if cursor.data.starts_with(&AVS_MAGIC) {
        return avs(cursor);
    }
    // Old drivers omitted the header. A frame begins with version 0 and type data; a Prism header begins with
    // 0x41 or 0x44 in either byte order.
    if !matches!(cursor.data, [0x41 | 0x44, 0, 0, 0, ..] | [0, 0, 0, 0x41 | 0x44, ..]) {
        return Ok(Layer::WIFI);
    }
    cursor.take::<144>("Prism header")?;
    Ok(Layer::WIFI)
}

/// The AVS magic without the version, which is in its last four bits.
const AVS_MAGIC: [u8; 3] = [0x80, 0x21, 0x10];

/// AVS: a magic with version, then the length of the header.
pub(super) fn avs(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let &[a, b, c, _, length @ ..] = cursor.take::<8>("AVS header")?;
    let rest = (u32::from_be_bytes(length) as usize).checked_sub(8);
    let Some(rest) = rest.filter(|_| [a, b, c] == AVS_MAGIC) else { return Err(Stop::Malformed("AVS header")) };
    cursor.take_slice(rest, "AVS header")?;
    Ok(Layer::WIFI)
}

/// An unencrypted or decrypted data frame. All others carry no readable IP. Frames with a part of a packet, or
/// with several packets, are not read.
pub(super) fn data(padded: bool, opened: bool, cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const DATA: u8 = 2;
    const NO_DATA: u8 = 4;
    const QOS: u8 = 8;
    const BOTH_DISTRIBUTION_SYSTEMS: u8 = 3;
    const FROM_DISTRIBUTION_SYSTEM: u8 = 2;
    const PROTECTED: u8 = 0x40;
    const ORDER: u8 = 0x80;
    const MORE_FRAGMENTS: u8 = 0x04;
    const FRAGMENT_NUMBER: u8 = 0x0f;
    const AGGREGATE: u8 = 0x80;
    let before = cursor.wire_bytes;
    let header = cursor.take::<24>("802.11 header")?;
    let (kind, subtype, flags) = ((header[0] >> 2) & 3, header[0] >> 4, header[1]);
    let is_protected = flags & PROTECTED != 0;
    if kind != DATA || subtype & NO_DATA != 0 || is_protected && !opened {
        return Err(Stop::NotTcp);
    }
    if flags & MORE_FRAGMENTS != 0 || header[22] & FRAGMENT_NUMBER != 0 {
        return Err(Stop::NotRead("part of an 802.11 frame in fragments"));
    }
    if flags & BOTH_DISTRIBUTION_SYSTEMS == BOTH_DISTRIBUTION_SYSTEMS {
        cursor.take::<6>("802.11 fourth address")?;
    }
    if subtype & QOS != 0 {
        if cursor.take::<2>("802.11 QoS control")?[0] & AGGREGATE != 0 {
            return Err(Stop::NotRead("802.11 frame with several packets (A-MSDU)"));
        }
        if flags & ORDER != 0 {
            cursor.take::<4>("802.11 HT control")?;
        }
    }
    if padded {
        let header_bytes = before - cursor.wire_bytes;
        cursor.take_slice(header_bytes.next_multiple_of(4) - header_bytes, "802.11 header's padding")?;
    }
    if is_protected {
        initialization_vector(cursor)?;
    }
    // Some drivers return the original Ethernet frame after the 802.11 header. Its source is then the
    // station's.
    let source = if flags & FROM_DISTRIBUTION_SYSTEM == 0 { header.get(10..16) } else { header.get(16..22) };
    if source == cursor.data.get(6..12) {
        return ethernet::ethernet(cursor);
    }
    Ok(Layer::Llc)
}

/// Takes off the initialization vector: 4 bytes for WEP, 8 for TKIP and CCMP, distinguished by a bit.
fn initialization_vector(cursor: &mut Cursor<'_>) -> Result<(), Stop> {
    const EXTENDED: u8 = 0x20;
    if cursor.take::<4>("802.11 initialization vector")?[3] & EXTENDED != 0 {
        cursor.take::<4>("802.11 initialization vector")?;
    }
    Ok(())
}
