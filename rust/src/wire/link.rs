//! Link layers: what stands before IP. Numbers from the LINKTYPE registry of tcpdump.org.

use super::segment::AtmFacts;
use super::{Cursor, Layer, Stop, Trust, atm, tunnel, wifi};
use crate::capture::LinkType;

const NULL: LinkType = 0;
pub(super) const ETHERNET: LinkType = 1;
const TOKEN_RING: LinkType = 6;
const SLIP: LinkType = 8;
const PPP: LinkType = 9;
const FDDI: LinkType = 10;
/// RAW as BSD kernels number it.
const RAW_BSD: LinkType = 12;
/// RAW as OpenBSD numbers it.
const RAW_OPENBSD: LinkType = 14;
const PPP_HDLC: LinkType = 50;
const PPP_ETHER: LinkType = 51;
const ATM_RFC1483: LinkType = 100;
const RAW: LinkType = 101;
const C_HDLC: LinkType = 104;
const IEEE802_11: LinkType = 105;
const ATM_CLIP: LinkType = 106;
const FRAME_RELAY: LinkType = 107;
const LOOP: LinkType = 108;
const LINUX_SLL: LinkType = 113;
const SUNATM: LinkType = 123;
const IEEE802_11_RADIOTAP: LinkType = 127;
const ARCNET_LINUX: LinkType = 129;
const JUNIPER_ETHER: LinkType = 178;
const PPI: LinkType = 192;
/// PKTAP as registered, and as macOS writes it (USER2).
const PKTAP: LinkType = 258;
const PKTAP_MACOS: LinkType = 149;
pub(super) const ERF: LinkType = 197;
const IPV4: LinkType = 228;
const IPV6: LinkType = 229;
const NFLOG: LinkType = 239;
const IPOIB: LinkType = 242;
const LINUX_SLL2: LinkType = 276;

pub(super) const ETHER_IPV4: u16 = 0x0800;
pub(super) const ETHER_IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad, and the two numbers in use before 802.1ad.
const ETHER_VLAN: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
/// Up to here an Ethernet type field is a length of an 802.3 frame.
const ETHER_MAX_LENGTH: u16 = 1500;
/// Linux cooked: 802.3 and 802.2 frames carry these in place of a type.
const SLL_802_3: u16 = 1;
const SLL_802_2: u16 = 4;

/// The name of a link type, for people.
#[must_use]
pub fn link_name(link_type: LinkType) -> &'static str {
    match link_type {
        NULL => "NULL",
        ETHERNET => "ETHERNET",
        3 => "AX25",
        TOKEN_RING => "TOKEN_RING",
        7 => "ARCNET",
        SLIP => "SLIP",
        PPP => "PPP",
        FDDI => "FDDI",
        RAW_BSD | RAW_OPENBSD | RAW => "RAW",
        PPP_HDLC => "PPP_HDLC",
        PPP_ETHER => "PPP_ETHER",
        ATM_RFC1483 => "ATM_RFC1483",
        C_HDLC => "C_HDLC",
        IEEE802_11 => "IEEE802_11",
        ATM_CLIP => "ATM_CLIP",
        FRAME_RELAY => "FRELAY",
        LOOP => "LOOP",
        LINUX_SLL => "LINUX_SLL",
        117 => "PFLOG",
        119 => "PRISM_HEADER",
        SUNATM => "SUNATM",
        IEEE802_11_RADIOTAP => "IEEE802_11_RADIOTAP",
        ARCNET_LINUX => "ARCNET_LINUX",
        137 => "JUNIPER_ATM1",
        PKTAP | PKTAP_MACOS => "PKTAP",
        147..=162 => "USER",
        JUNIPER_ETHER => "JUNIPER_ETHER",
        187 => "BLUETOOTH_HCI_H4",
        189 => "USB_LINUX",
        PPI => "PPI",
        195 => "IEEE802_15_4_WITHFCS",
        ERF => "ERF",
        220 => "USB_LINUX_MMAPPED",
        IPV4 => "IPV4",
        IPV6 => "IPV6",
        NFLOG => "NFLOG",
        IPOIB => "IPOIB",
        249 => "USBPCAP",
        253 => "NETLINK",
        274 => "ETHERNET_MPACKET",
        LINUX_SLL2 => "LINUX_SLL2",
        281 => "DSA_TAG_BRCM",
        284 => "DSA_TAG_DSA",
        _ => "unknown",
    }
}

/// Whether this engine takes frames of this link type apart.
#[must_use]
pub fn link_supported(link_type: LinkType) -> bool {
    let mut nothing = Cursor { data: &[], wire_bytes: 0, trust: Trust::Whole };
    link_type == ERF || !matches!(first_layer(link_type, &mut nothing, &mut None), Err(Stop::UnknownLink(_)))
}

/// Takes the link header off and names what stands behind it.
#[inline(never)]
pub(super) fn first_layer(
    link_type: LinkType,
    cursor: &mut Cursor<'_>,
    atm: &mut Option<AtmFacts>,
) -> Result<Layer, Stop> {
    match link_type {
        ETHERNET => Ok(Layer::Ethernet),
        // The version of IP is believed rather than the link type, as in Wireshark.
        RAW | RAW_BSD | RAW_OPENBSD | IPV4 | IPV6 => Ok(Layer::Ip),
        NULL | LOOP => bsd_loopback(cursor),
        LINUX_SLL => cooked(cursor),
        LINUX_SLL2 => cooked_v2(cursor),
        PPP | PPP_HDLC => Ok(Layer::Hdlc),
        PPP_ETHER => Ok(Layer::Pppoe),
        C_HDLC => cisco_hdlc(cursor),
        FDDI => fddi(cursor),
        TOKEN_RING => token_ring(cursor),
        FRAME_RELAY => frame_relay(cursor),
        SLIP => slip(cursor),
        ARCNET_LINUX => arcnet_linux(cursor),
        NFLOG => nflog(cursor),
        IPOIB => ip_over_infiniband(cursor),
        IEEE802_11 => Ok(Layer::Wifi),
        IEEE802_11_RADIOTAP => wifi::radiotap(cursor),
        ATM_RFC1483 | ATM_CLIP => {
            *atm = Some(atm::facts(None, cursor.wire_bytes));
            Ok(Layer::Aal5)
        }
        SUNATM => atm::sun(cursor, atm),
        JUNIPER_ETHER => juniper_ethernet(cursor),
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
        other => Err(Stop::UnknownLink(other)),
    }
}

/// The rest of a header that names the link type of what follows, little-endian, and then that link's header. One such
/// header inside another does not occur.
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

/// Juniper's capture header: a magic, flags, extensions by length, and Ethernet unless the flags say that there is none.
fn juniper_ethernet(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const MAGIC: [u8; 3] = *b"MGC";
    const EXTENSIONS: u8 = 0x80;
    const NO_LINK_LAYER: u8 = 0x02;
    let &[a, b, c, flags] = cursor.take::<4>("Juniper header")?;
    if [a, b, c] != MAGIC {
        return Err(Stop::Malformed("Juniper header"));
    }
    if flags & EXTENSIONS != 0 {
        let length = u16::from_be_bytes(*cursor.take::<2>("Juniper header")?);
        cursor.take_slice(usize::from(length), "Juniper extensions")?;
    }
    if flags & NO_LINK_LAYER != 0 {
        cursor.take::<4>("Juniper header")?;
        return Ok(Layer::Ip);
    }
    Ok(Layer::Ethernet)
}

/// Ethernet II or IEEE 802.3.
#[inline]
pub(super) fn ethernet(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<14>("Ethernet header")?;
    Ok(type_or_length(u16::from_be_bytes([header[12], header[13]]), cursor))
}

#[inline]
fn type_or_length(value: u16, cursor: &mut Cursor<'_>) -> Layer {
    if value > ETHER_MAX_LENGTH {
        return Layer::EtherType(value);
    }
    cursor.limit(usize::from(value));
    Layer::Llc
}

/// What an Ethernet type announces.
#[inline]
pub(super) fn ether_type(value: u16) -> Result<Layer, Stop> {
    match value {
        ETHER_IPV4 => Ok(Layer::Ipv4),
        ETHER_IPV6 => Ok(Layer::Ipv6),
        tag if ETHER_VLAN.contains(&tag) => Ok(Layer::Vlan),
        other => tunnel::ether_type(other),
    }
}

/// The tag behind a VLAN type, and the next type.
pub(super) fn vlan(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let tag = cursor.take::<4>("VLAN tag")?;
    Ok(type_or_length(u16::from_be_bytes([tag[2], tag[3]]), cursor))
}

/// IEEE 802.2 LLC; with SNAP it announces an Ethernet type (RFC 1042).
pub(super) fn llc(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const SNAP: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];
    const IP_SAP: [u8; 3] = [0x06, 0x06, 0x03];
    if cursor.data.starts_with(&SNAP) {
        let header = cursor.take::<8>("SNAP header")?;
        return Ok(Layer::EtherType(u16::from_be_bytes([header[6], header[7]])));
    }
    if cursor.data.starts_with(&IP_SAP) {
        cursor.take::<3>("LLC header")?;
        return Ok(Layer::Ipv4);
    }
    Err(Stop::NotTcp)
}

/// BSD loopback: an address family of the capturing host, in its byte order (NULL) or the network's (LOOP).
///
/// Families differ between systems; IPv4 is 2 everywhere, IPv6 is 10 (Linux), 24 (NetBSD, OpenBSD), 28 (FreeBSD) or
/// 30 (macOS).
fn bsd_loopback(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<4>("loopback header")?;
    let family = match *header {
        [0, 0, high, low] => u16::from_be_bytes([high, low]),
        [low, high, 0, 0] => u16::from_le_bytes([low, high]),
        // Some tools put an Ethernet type into the low half.
        [_, _, high, low] if u16::from_be_bytes([high, low]) > ETHER_MAX_LENGTH => u16::from_be_bytes([high, low]),
        _ => return Err(Stop::Malformed("loopback header")),
    };
    match family {
        2 => Ok(Layer::Ipv4),
        10 | 24 | 28 | 30 => Ok(Layer::Ipv6),
        ETHER_IPV4 | ETHER_IPV6 => Ok(Layer::EtherType(family)),
        _ => Err(Stop::NotTcp),
    }
}

/// Linux cooked capture, 16 bytes; the protocol stands last.
fn cooked(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<16>("Linux cooked header")?;
    Ok(cooked_protocol(u16::from_be_bytes([header[14], header[15]])))
}

/// Linux cooked capture version 2, 20 bytes; the protocol stands first.
fn cooked_v2(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<20>("Linux cooked header")?;
    Ok(cooked_protocol(u16::from_be_bytes([header[0], header[1]])))
}

fn cooked_protocol(protocol: u16) -> Layer {
    match protocol {
        SLL_802_2 | SLL_802_3 => Layer::Llc,
        other => Layer::EtherType(other),
    }
}

/// HDLC framing of either kind, told apart by its address byte: PPP has 255 or leaves it out, Cisco 15 or 143.
pub(super) fn hdlc(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    match cursor.data.first() {
        Some(0x0f | 0x8f) => cisco_hdlc(cursor),
        _ => Ok(Layer::Ppp),
    }
}

/// Cisco's HDLC: address, control, Ethernet type.
fn cisco_hdlc(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<4>("Cisco HDLC header")?;
    Ok(Layer::EtherType(u16::from_be_bytes([header[2], header[3]])))
}

/// FDDI (ANSI X3.139): frame control, addresses, LLC. Only LLC frames carry data.
fn fddi(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<13>("FDDI header")?;
    if header[0] & 0xf0 == 0x50 { Ok(Layer::Llc) } else { Err(Stop::NotTcp) }
}

/// Token Ring (IEEE 802.5): access and frame control, addresses, routing information if the source says so, LLC.
fn token_ring(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
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

/// Frame Relay with a two-byte Q.922 address: control and NLPID (RFC 2427), or Cisco's Ethernet type.
fn frame_relay(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    cursor.take::<2>("Frame Relay header")?;
    if cursor.data.first() == Some(&0x03) {
        cursor.take::<1>("Frame Relay header")?;
        return nlpid(cursor);
    }
    let ether_type = cursor.take::<2>("Frame Relay header")?;
    Ok(Layer::EtherType(u16::from_be_bytes(*ether_type)))
}

/// A network-layer protocol identifier (RFC 2427, 2684): IP has its own, SNAP leads to an Ethernet type.
pub(super) fn nlpid(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const PAD: u8 = 0x00;
    if cursor.data.first() == Some(&PAD) {
        cursor.take::<1>("NLPID pad")?;
    }
    match cursor.take::<1>("NLPID")? {
        [0xcc] => Ok(Layer::Ipv4),
        [0x8e] => Ok(Layer::Ipv6),
        [0x80] => match cursor.take::<5>("SNAP header")? {
            [0, 0, 0, high, low] => Ok(Layer::EtherType(u16::from_be_bytes([*high, *low]))),
            _ => Err(Stop::NotTcp),
        },
        _ => Err(Stop::NotTcp),
    }
}

/// SLIP as libpcap writes it: direction, 15 bytes of compressed-header state, IP.
fn slip(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    cursor.take::<16>("SLIP header")?;
    Ok(Layer::Ip)
}

/// ARCNET as Linux gives it: source, destination, 2 bytes of offset, protocol, and for RFC 1201 split flag and sequence.
fn arcnet_linux(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const RFC1051_IP: u8 = 240;
    const RFC1201_IP: u8 = 212;
    let header = cursor.take::<5>("ARCNET header")?;
    match header[4] {
        RFC1051_IP => Ok(Layer::Ipv4),
        RFC1201_IP => {
            cursor.take::<3>("ARCNET header")?;
            Ok(Layer::Ipv4)
        }
        _ => Err(Stop::NotTcp),
    }
}

/// Netfilter's log: family, version, resource, then values with length and type in the capturing host's byte order; the
/// packet is one of them.
fn nflog(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    const PAYLOAD: u16 = 9;
    cursor.take::<4>("NFLOG header")?;
    loop {
        let &[a, b, c, d] = cursor.take::<4>("NFLOG value")?;
        let (length, kind) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        // A type above 255 in one order is the type in the other.
        let (length, kind) =
            if kind > 0xff { (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])) } else { (length, kind) };
        let Some(body_bytes) = usize::from(length).checked_sub(4) else {
            return Err(Stop::Malformed("NFLOG value"));
        };
        if kind == PAYLOAD {
            cursor.limit(body_bytes);
            return Ok(Layer::Ip);
        }
        cursor.take_slice(body_bytes.next_multiple_of(4), "NFLOG value")?;
    }
}

/// IP over InfiniBand (RFC 4391) as libpcap writes it: 40 bytes of global route header, then type and 2 bytes reserved.
fn ip_over_infiniband(cursor: &mut Cursor<'_>) -> Result<Layer, Stop> {
    let header = cursor.take::<44>("IP over InfiniBand header")?;
    Ok(Layer::EtherType(u16::from_be_bytes([header[40], header[41]])))
}
