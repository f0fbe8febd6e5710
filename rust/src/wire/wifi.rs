//! IEEE 802.11 data frames, with or without a radiotap header before them.

use super::{Cursor, Layer, Stop};

/// Radiotap: version, pad, length in little-endian, fields.
pub(super) fn radiotap(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<4>("radiotap header")?;
    let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
    let Some(rest) = length.checked_sub(4) else { return Err(Stop::Malformed("radiotap header")) };
    cursor.take_slice(rest, "radiotap header")?;
    Ok(Layer::Wifi)
}

/// A data frame in the clear; all others carry no IP that can be read.
pub(super) fn data(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const DATA: u8 = 2;
    const NO_DATA: u8 = 4;
    const QOS: u8 = 8;
    const BOTH_DISTRIBUTION_SYSTEMS: u8 = 3;
    const PROTECTED: u8 = 0x40;
    const ORDER: u8 = 0x80;
    let header = cursor.take::<24>("802.11 header")?;
    let (kind, subtype, flags) = ((header[0] >> 2) & 3, header[0] >> 4, header[1]);
    if kind != DATA || subtype & NO_DATA != 0 || flags & PROTECTED != 0 {
        return Err(Stop::NotTcp);
    }
    if flags & BOTH_DISTRIBUTION_SYSTEMS == BOTH_DISTRIBUTION_SYSTEMS {
        cursor.take::<6>("802.11 fourth address")?;
    }
    if subtype & QOS != 0 {
        cursor.take::<2>("802.11 QoS control")?;
        if flags & ORDER != 0 {
            cursor.take::<4>("802.11 HT control")?;
        }
    }
    Ok(Layer::Llc)
}
