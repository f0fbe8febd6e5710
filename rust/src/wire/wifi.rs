//! Reads IEEE 802.11 data frames, and the headers that capture cards put before these frames.

use super::cursor::{Cursor, Stop};
use super::ethernet;
use super::halt::Halt;
use super::layers::Layer;
use super::wifi_fragments::Place;

/// Reads a radiotap header: version, padding, length (little-endian), fields.
pub(super) fn radiotap(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<4>("radiotap header")?;
    let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
    let Some(rest) = length.checked_sub(4) else { return Err(Stop::Malformed("radiotap header")) };
    let flags = flags(cursor.take_slice(rest, "radiotap header")?);
    if flags & CHECKSUM != 0 {
        cursor.limit(cursor.wire_bytes.saturating_sub(CHECKSUM_BYTES));
    }
    Ok(Layer::Wifi { padded: flags & PADDED != 0, opened: false })
}

/// The radiotap flag of a frame that ends with its checksum.
const CHECKSUM: u8 = 0x10;
const CHECKSUM_BYTES: usize = 4;
/// The radiotap flag of a frame whose 802.11 header is padded to a multiple of four bytes.
const PADDED: u8 = 0x20;

/// The flags in a radiotap header, or 0 if the header has no flags. `fields` begins with bitmap words. After these
/// words come the time (eight bytes, aligned) and the flags, both optional.
fn flags(fields: &[u8]) -> u8 {
    const MORE_WORDS: u8 = 0x80;
    const TIME: u8 = 1;
    const FLAGS: u8 = 2;
    let (words, _) = fields.as_chunks::<4>();
    let word_count = words.iter().take_while(|word| word[3] & MORE_WORDS != 0).count() + 1;
    let Some([present, ..]) = words.first() else { return 0 };
    // Fields are aligned relative to the start of the header, four bytes before `fields`.
    let time_end = if present & TIME == 0 { 4 * word_count } else { (4 * word_count + 4).next_multiple_of(8) + 8 - 4 };
    if present & FLAGS == 0 { 0 } else { fields.get(time_end).copied().unwrap_or(0) }
}

/// Reads a Prism header of 144 bytes, or an AVS header. A magic number identifies AVS.
pub(super) fn prism(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    if cursor.data.starts_with(&AVS_MAGIC) {
        return avs(cursor);
    }
    // Old drivers omitted the Prism header. A Prism header begins with 0x41 or 0x44 as a 32-bit number in either byte
    // order, and an 802.11 data frame begins with other bytes.
    if !matches!(cursor.data, [0x41 | 0x44, 0, 0, 0, ..] | [0, 0, 0, 0x41 | 0x44, ..]) {
        return Ok(Layer::WIFI);
    }
    cursor.take::<144>("Prism header")?;
    Ok(Layer::WIFI)
}

/// The magic number of an AVS header, without the last four bits, which contain the version.
const AVS_MAGIC: [u8; 3] = [0x80, 0x21, 0x10];

/// Reads an AVS header: magic number, version, length of the header, other fields.
pub(super) fn avs(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let &[a, b, c, _, length @ ..] = cursor.take::<8>("AVS header")?;
    let rest = (u32::from_be_bytes(length) as usize).checked_sub(8);
    let Some(rest) = rest.filter(|_| [a, b, c] == AVS_MAGIC) else { return Err(Stop::Malformed("AVS header")) };
    cursor.take_slice(rest, "AVS header")?;
    Ok(Layer::WIFI)
}

/// Reads the header of a data frame that is unencrypted or decrypted. No other frame has readable IP. The walk halts at
/// a fragment, and at a frame with several packets (A-MSDU).
pub(super) fn data<'a>(padded: bool, opened: bool, cursor: &mut Cursor<'a>) -> Result<Layer, Halt<'a>> {
    const DATA: u8 = 2;
    const NO_DATA: u8 = 4;
    const QOS: u8 = 8;
    const BOTH_DISTRIBUTION_SYSTEMS: u8 = 3;
    const FROM_DISTRIBUTION_SYSTEM: u8 = 2;
    const PROTECTED: u8 = 0x40;
    const ORDER: u8 = 0x80;
    const MORE_FRAGMENTS: u8 = 0x04;
    const AGGREGATE: u8 = 0x80;
    const TRAFFIC: u8 = 0x0f;
    let before = cursor.wire_bytes;
    let header = cursor.take::<24>("802.11 header")?;
    let (kind, subtype, flags) = ((header[0] >> 2) & 3, header[0] >> 4, header[1]);
    let is_protected = flags & PROTECTED != 0;
    if kind != DATA || subtype & NO_DATA != 0 || is_protected && !opened {
        return Err(Stop::NotTcp.into());
    }
    if flags & BOTH_DISTRIBUTION_SYSTEMS == BOTH_DISTRIBUTION_SYSTEMS {
        cursor.take::<6>("802.11 fourth address")?;
    }
    let mut qos = None;
    if subtype & QOS != 0 {
        qos = Some(cursor.take::<2>("802.11 QoS control")?[0]);
        if flags & ORDER != 0 {
            cursor.take::<4>("802.11 HT control")?;
        }
    }
    if padded {
        let header_bytes = before - cursor.wire_bytes;
        cursor.take_slice(header_bytes.next_multiple_of(4) - header_bytes, "802.11 header's padding")?;
    }
    let &[.., sequence_low, sequence_high] = header;
    let (number, more) = (sequence_low & 0x0f, flags & MORE_FRAGMENTS != 0);
    let is_fragment = more || number != 0;
    let is_aggregate = qos.is_some_and(|qos| qos & AGGREGATE != 0);
    // A decrypted fragment ends with a check value of unknown length, so the fragment is not read. An A-MSDU is never
    // fragmented.
    if is_fragment && (is_protected || is_aggregate) {
        return Err(Stop::NotRead("part of an encrypted or aggregated 802.11 frame in fragments").into());
    }
    if is_protected {
        initialization_vector(cursor)?;
    }
    if is_aggregate {
        return Err(Halt::Aggregate);
    }
    if is_fragment {
        let &[_, _, _, _, ref stations @ .., _, _, _, _, _, _, _, _] = header;
        return Err(Halt::WifiFragment(Place {
            stations: *stations,
            traffic: qos.map(|qos| qos & TRAFFIC),
            sequence: u16::from_le_bytes([sequence_low, sequence_high]) >> 4,
            number,
            more,
        }));
    }
    // Some drivers write the original Ethernet frame after the 802.11 header. This Ethernet frame has the same source
    // address as the 802.11 header.
    let source = if flags & FROM_DISTRIBUTION_SYSTEM == 0 { header.get(10..16) } else { header.get(16..22) };
    if source == cursor.data.get(6..12) {
        return Ok(ethernet::ethernet(cursor)?);
    }
    Ok(Layer::Llc)
}

/// Returns the next packet of an A-MSDU: two addresses, length, LLC and SNAP, and padding to a multiple of four bytes
/// (IEEE 802.11, 9.3.2.2). The result is `None` if the rest of the frame is too short for a packet, for example if only
/// the checksum is left.
pub(super) fn subframe<'a>(cursor: &mut Cursor<'a>) -> Option<Result<Cursor<'a>, Stop>> {
    const HEADER: &str = "A-MSDU subframe header";
    const HEADER_BYTES: usize = 14;
    if cursor.wire_bytes < HEADER_BYTES {
        return None;
    }
    let length = match cursor.take::<HEADER_BYTES>(HEADER) {
        Ok(header) => usize::from(u16::from_be_bytes([header[12], header[13]])),
        Err(stop) => {
            *cursor = Cursor { data: &[], wire_bytes: 0, ..*cursor };
            return Some(Err(stop));
        }
    };
    let mut part = *cursor;
    part.limit(length);
    let taken_bytes = ((HEADER_BYTES + length).next_multiple_of(4) - HEADER_BYTES).min(cursor.wire_bytes);
    cursor.data = cursor.data.get(taken_bytes..).unwrap_or(&[]);
    cursor.wire_bytes -= taken_bytes;
    Some(if part.wire_bytes < length { Err(Stop::Malformed(HEADER)) } else { Ok(part) })
}

/// Reads the initialization vector, which has 4 bytes for WEP, and 8 bytes for TKIP and CCMP. One bit of the vector
/// shows the length.
fn initialization_vector(cursor: &mut Cursor<'_>) -> Result<(), Stop> {
    const EXTENDED: u8 = 0x20;
    if cursor.take::<4>("802.11 initialization vector")?[3] & EXTENDED != 0 {
        cursor.take::<4>("802.11 initialization vector")?;
    }
    Ok(())
}
