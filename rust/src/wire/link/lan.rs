//! Reads the headers of local networks other than Ethernet and 802.11.

use super::super::cursor::{Cursor, Stop};
use super::super::layers::Layer;

/// Reads an FDDI header (ANSI X3.139): frame control and addresses. Only frames with LLC contain data.
pub(crate) fn fddi(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<13>("FDDI header")?;
    if header[0] & 0xf0 == 0x50 { Ok(Layer::Llc) } else { Err(Stop::NotTcp) }
}

/// Reads a Token Ring header (IEEE 802.5): access control, frame control and addresses. A bit in the source address
/// announces routing information. After the header comes LLC.
pub(crate) fn token_ring(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const ROUTED: u8 = 0x80;
    let header = cursor.take::<14>("Token Ring header")?;
    if header[1] & 0xc0 != 0x40 {
        return Err(Stop::NotTcp);
    }
    if header[8] & ROUTED != 0 {
        let length = cursor.data.first().map_or(2, |control| usize::from(control & 0x1f));
        cursor.take_slice(length, "Token Ring routing information")?;
    }
    Ok(Layer::Llc)
}

/// Reads an ARCNET header in Linux's form: source, destination, two bytes of offset, protocol. Linux's form has no
/// exception packets.
pub(super) fn arcnet_linux(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    cursor.take::<4>("ARCNET header")?;
    arcnet_protocol(false, cursor)
}

/// Reads an ARCNET header in BSD's form: source, destination, protocol. A protocol of RFC 1201 adds a split flag and a
/// sequence number.
pub(super) fn arcnet(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    cursor.take::<2>("ARCNET header")?;
    arcnet_protocol(true, cursor)
}

fn arcnet_protocol(may_be_exception: bool, cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const RFC1051_IP: u8 = 240;
    const RFC1201_IP: u8 = 212;
    /// Split flag of an exception packet (RFC 1201, 2). After the flag come padding and a second header.
    const EXCEPTION: u8 = 255;
    match cursor.take::<1>("ARCNET header")? {
        [RFC1051_IP] => Ok(Layer::Ipv4),
        [RFC1201_IP] => {
            if may_be_exception && cursor.data.first() == Some(&EXCEPTION) {
                cursor.take::<4>("ARCNET exception header")?;
            }
            cursor.take::<3>("ARCNET header")?;
            Ok(Layer::Ipv4)
        }
        _ => Err(Stop::NotTcp),
    }
}

/// Reads the header of IP over InfiniBand (RFC 4391) in libpcap's form: a global route header of 40 bytes, Ethernet
/// type, two reserved bytes.
pub(super) fn ip_over_infiniband(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<44>("IP over InfiniBand header")?;
    Ok(Layer::EtherType(u16::from_be_bytes([header[40], header[41]])))
}

/// Reads the header of IP over Fibre Channel (RFC 2625): the network names of source and destination. After the header
/// comes LLC.
pub(super) fn ip_over_fibre_channel(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    cursor.take::<16>("Fibre Channel network header")?;
    Ok(Layer::Llc)
}

/// Reads the header of Apple's IP over IEEE 1394: two addresses of eight bytes, then an Ethernet type.
pub(super) fn ip_over_1394(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<18>("IEEE 1394 header")?;
    Ok(Layer::EtherType(u16::from_be_bytes([header[16], header[17]])))
}
