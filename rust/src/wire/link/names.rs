//! The names of link types in reports, from tcpdump.org's LINKTYPE registry without the prefix `LINKTYPE_`.

use crate::capture::LinkType;

/// The name of a link type in reports, or `unknown` if the registry does not contain the link type.
///
/// ```
/// use tcptrace_lab_core::wire::{link_name, link_supported};
///
/// assert_eq!((link_name(113), link_supported(113)), ("LINUX_SLL", true)); // tcpdump -i any
/// assert_eq!((link_name(189), link_supported(189)), ("USB_LINUX", false));
/// ```
#[must_use]
pub fn link_name(link_type: LinkType) -> &'static str {
    local_name(link_type).or_else(|| wide_name(link_type)).or_else(|| capture_name(link_type)).unwrap_or("unknown")
}

/// Link types of wired and wireless local networks.
fn local_name(link_type: LinkType) -> Option<&'static str> {
    Some(match link_type {
        1 => "ETHERNET",
        2 => "EXP_ETHERNET",
        3 => "AX25",
        4 => "PRONET",
        5 => "CHAOS",
        6 => "TOKEN_RING",
        7 => "ARCNET",
        10 => "FDDI",
        105 => "IEEE802_11",
        110 => "LANE8023",
        111 => "HIPPI",
        114 => "LTALK",
        119 => "PRISM_HEADER",
        122 => "IP_OVER_FC",
        127 => "IEEE802_11_RADIOTAP",
        129 => "ARCNET_LINUX",
        138 => "APPLE_IP_OVER_IEEE1394",
        163 => "IEEE802_11_AVS",
        188 => "IEEE802_16_MAC_CPS",
        195 => "IEEE802_15_4_WITHFCS",
        202 => "AX25_KISS",
        215 => "IEEE802_15_4_NONASK_PHY",
        224 => "FC_2",
        225 => "FC_2_WITH_FRAME_DELIMS",
        230 => "IEEE802_15_4_NOFCS",
        240 => "NETANALYZER",
        241 => "NETANALYZER_TRANSPARENT",
        242 => "IPOIB",
        247 => "INFINIBAND",
        259 => "EPON",
        274 => "ETHERNET_MPACKET",
        281 => "DSA_TAG_BRCM",
        282 => "DSA_TAG_BRCM_PREPEND",
        283 => "IEEE802_15_4_TAP",
        284 => "DSA_TAG_DSA",
        285 => "DSA_TAG_EDSA",
        _ => return None,
    })
}

/// Link types of serial lines, ATM and other wide-area links.
fn wide_name(link_type: LinkType) -> Option<&'static str> {
    Some(match link_type {
        8 => "SLIP",
        9 => "PPP",
        11 | 100 => "ATM_RFC1483",
        16 | 18 | 19 | 106 => "ATM_CLIP",
        32 => "REDBACK",
        50 => "PPP_HDLC",
        51 => "PPP_ETHER",
        102 => "SLIP_BSDOS",
        103 => "PPP_BSDOS",
        104 => "C_HDLC",
        107 => "FRELAY",
        112 => "HDLC",
        121 => "HHDLC",
        123 => "SUNATM",
        139 => "MTP2_WITH_PHDR",
        140 => "MTP2",
        141 => "MTP3",
        142 => "SCCP",
        143 => "DOCSIS",
        144 => "LINUX_IRDA",
        166 => "PPP_PPPD",
        169 => "GPRS_LLC",
        170 => "GPF_T",
        171 => "GPF_F",
        177 => "LINUX_LAPD",
        203 => "LAPD",
        204 => "PPP_WITH_DIR",
        205 => "C_HDLC_WITH_DIR",
        206 => "FRELAY_WITH_DIR",
        207 => "LAPB_WITH_DIR",
        268 => "SDLC",
        _ => return None,
    })
}

/// Link types of pseudo-headers, and of content that is not network traffic.
fn capture_name(link_type: LinkType) -> Option<&'static str> {
    Some(match link_type {
        0 => "NULL",
        12 | 14 | 101 => "RAW",
        13 | 109 => "ENC",
        99 => "SYMANTEC_FIREWALL",
        108 => "LOOP",
        113 => "LINUX_SLL",
        117 => "PFLOG",
        118 => "CISCO_IOS",
        128 => "TZSP",
        130 => "JUNIPER_MLPPP",
        131 => "JUNIPER_MLFR",
        132 => "JUNIPER_ES",
        133 => "JUNIPER_GGSN",
        134 => "JUNIPER_MFR",
        135 => "JUNIPER_ATM2",
        136 => "JUNIPER_SERVICES",
        137 => "JUNIPER_ATM1",
        149 | 258 => "PKTAP",
        147..=162 => "USER",
        167 => "JUNIPER_PPPOE",
        178 => "JUNIPER_ETHER",
        179 => "JUNIPER_PPP",
        180 => "JUNIPER_FRELAY",
        181 => "JUNIPER_CHDLC",
        183 => "JUNIPER_VP",
        187 => "BLUETOOTH_HCI_H4",
        189 => "USB_LINUX",
        190 => "CAN20B",
        192 => "PPI",
        197 => "ERF",
        200 => "JUNIPER_ST",
        201 => "BLUETOOTH_HCI_H4_WITH_PHDR",
        220 => "USB_LINUX_MMAPPED",
        226 => "IPNET",
        227 => "CAN_SOCKETCAN",
        228 => "IPV4",
        229 => "IPV6",
        239 => "NFLOG",
        249 => "USBPCAP",
        251 => "BLUETOOTH_LE_LL",
        252 => "WIRESHARK_UPPER_PDU",
        253 => "NETLINK",
        254 => "BLUETOOTH_LINUX_MONITOR",
        256 => "BLUETOOTH_LE_LL_WITH_PHDR",
        266 => "USB_DARWIN",
        271 => "VSOCK",
        276 => "LINUX_SLL2",
        _ => return None,
    })
}
