//! Reads the link-layer headers before IP. Link types have the numbers of tcpdump.org's LINKTYPE registry. Numbers that
//! some systems used before the registry existed are read as in Wireshark.

mod juniper;
mod lan;
mod names;
mod pseudo;
mod serial;

pub use names::link_name;
pub(super) use pseudo::{is_tzsp, tzsp};
pub(super) use serial::{hdlc, nlpid};

use super::cursor::{Cursor, Stop, Trust};
use super::layers::Layer;
use super::segment::AtmFacts;
use super::{atm, wifi};
use crate::capture::LinkType;

pub(super) const ETHERNET: LinkType = 1;
pub(super) const ERF: LinkType = 197;
const PPI: LinkType = 192;
const PKTAP: LinkType = 258;
/// Link type of PKTAP on macOS (USER2).
const PKTAP_MACOS: LinkType = 149;

/// Whether this engine can read frames of this link type.
#[must_use]
pub fn link_supported(link_type: LinkType) -> bool {
    let mut nothing = Cursor { data: &[], wire_bytes: 0, trust: Trust::Whole };
    link_type == ERF || !matches!(first_layer(link_type, &mut nothing, &mut None), Err(Stop::UnknownLink(_)))
}

#[inline(never)]
pub(super) fn first_layer(
    link_type: LinkType,
    cursor: &mut Cursor<'_>,
    atm: &mut Option<AtmFacts>,
) -> Result<Layer, Stop> {
    match link_type {
        0 => pseudo::null(cursor),
        ETHERNET => Ok(Layer::Ethernet),
        3 => serial::ax25(cursor),
        6 => lan::token_ring(cursor),
        7 => lan::arcnet(cursor),
        8 => serial::slip(cursor),
        9 | 50 => Ok(Layer::HDLC),
        10 => lan::fddi(cursor),
        // RFC 1483 and Classical IP, with the numbers of BSD, SuSE and Linux's ATM patches.
        11 | 16 | 18 | 19 | 100 | 106 => {
            *atm = Some(atm::facts(None, cursor.wire_bytes));
            Ok(Layer::Aal5)
        }
        // RAW, with the numbers of BSD and OpenBSD.
        12 | 14 | 101 => serial::raw(cursor),
        13 | 109 => pseudo::enc(cursor),
        51 => Ok(Layer::Pppoe),
        99 => pseudo::symantec(cursor),
        104 | 112 => serial::cisco_hdlc(cursor),
        105 => Ok(Layer::WIFI),
        107 => serial::frame_relay(cursor),
        108 => pseudo::bsd_loopback(cursor),
        113 => pseudo::cooked(cursor),
        117 => pseudo::pflog(cursor),
        119 => wifi::prism(cursor),
        122 => lan::ip_over_fibre_channel(cursor),
        123 => atm::sun(cursor, atm),
        127 => wifi::radiotap(cursor),
        128 => tzsp(cursor),
        129 => lan::arcnet_linux(cursor),
        138 => lan::ip_over_1394(cursor),
        163 => wifi::avs(cursor),
        202 => serial::ax25_kiss(cursor),
        204 => {
            const RECEIVED: u8 = 0;
            let &[direction] = cursor.take::<1>("PPP direction")?;
            Ok(Layer::Hdlc { sent: Some(direction != RECEIVED) })
        }
        226 => pseudo::ipnet(cursor),
        // The link types name an IP version. As in Wireshark, the version field of the IP header decides instead.
        228 | 229 => Ok(Layer::Ip),
        239 => pseudo::nflog(cursor),
        242 => lan::ip_over_infiniband(cursor),
        274 => pseudo::mpacket(cursor),
        276 => pseudo::cooked_v2(cursor),
        PPI => {
            let header = cursor.take::<8>("PPI header")?;
            let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
            inner_link(length.checked_sub(8), [header[4], header[5], header[6], header[7]], "PPI header", cursor, atm)
        }
        PKTAP | PKTAP_MACOS => {
            let &[a, b, c, d, _, _, _, _, link @ ..] = cursor.take::<12>("PKTAP header")?;
            let length = u32::from_le_bytes([a, b, c, d]) as usize;
            inner_link(length.checked_sub(12), link, "PKTAP header", cursor, atm)
        }
        other if juniper::is_juniper(other) => juniper::first_layer(other, cursor),
        other => Err(Stop::UnknownLink(other)),
    }
}

/// Reads the rest of a pseudo-header that contains a link type, then the header of this link type. The link type is in
/// little-endian byte order. A pseudo-header must not contain the link type of another such pseudo-header.
fn inner_link(
    rest: Option<usize>,
    link_type: [u8; 4],
    header: &'static str,
    cursor: &mut Cursor<'_>,
    atm: &mut Option<AtmFacts>,
) -> Result<Layer, Stop> {
    cursor.take_slice(rest.ok_or(Stop::Malformed(header))?, header)?;
    match u32::from_le_bytes(link_type) {
        ETHERNET => Ok(Layer::Ethernet),
        PPI | PKTAP | PKTAP_MACOS => Err(Stop::Malformed(header)),
        other => first_layer(other, cursor, atm),
    }
}
