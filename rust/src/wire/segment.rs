//! The fields of TCP segments and UDP datagrams.

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The two endpoints of a flow, in an order that does not depend on the direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowKey {
    low: [u64; 2],
    high: [u64; 2],
    /// The port of `low` in bits 0 to 15, and the port of `high` in bits 16 to 31. Bit 32 is set for IPv6.
    ports: u64,
}

const IPV6_BIT: u64 = 1 << 32;

/// Equal keys have equal hashes: the hash of an IPv4 key omits only words that are 0 in every IPv4 key.
impl Hash for FlowKey {
    #[allow(clippy::inline_always)] // measured: a function call costs 33 instructions per packet
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [[low_high, low], [high_high, high]] = [self.low, self.high];
        if self.is_v6() {
            state.write_u64(low_high);
            state.write_u64(high_high);
            state.write_u64(high);
            state.write_u64(low);
        } else {
            state.write_u64(low << 32 | high);
        }
        state.write_u64(self.ports);
    }
}

impl FlowKey {
    /// The group of this flow if all flows are divided into 2^`bits` groups (at most 2^8). The group does not change
    /// between runs.
    #[inline]
    #[must_use]
    pub(crate) fn part(&self, bits: u32) -> u8 {
        // The odd factors with irregular bits come from the golden ratio and SplitMix64. With these factors, the high
        // bits of the result depend on all bits of the key.
        let low = (self.low[0] ^ self.low[1]).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let high = (self.high[0] ^ self.high[1]).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (low ^ high ^ self.ports).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> (u64::BITS - bits)) as u8
    }

    /// The key of a packet from `source` to `destination`. The second value is true if the source is the low endpoint.
    #[inline]
    #[must_use]
    pub(super) fn new(ip: &IpEndpoints, source_port: u16, destination_port: u16) -> (Self, bool) {
        let IpEndpoints { source, destination, v6 } = *ip;
        let family = if v6 { IPV6_BIT } else { 0 };
        let (from, to) = (u64::from(source_port), u64::from(destination_port));
        if (source, source_port) <= (destination, destination_port) {
            (Self { low: source, high: destination, ports: from | to << 16 | family }, true)
        } else {
            (Self { low: destination, high: source, ports: to | from << 16 | family }, false)
        }
    }

    /// The key of an IPv4 segment. Endpoints are (address, port). The second value is true if the source is the low
    /// endpoint.
    #[inline]
    pub(super) fn v4(source: (u32, u16), destination: (u32, u16)) -> (Self, bool) {
        let from_low = source <= destination;
        let (low, high) = if from_low { (source, destination) } else { (destination, source) };
        let ports = u64::from(low.1) | u64::from(high.1) << 16;
        (Self { low: [0, low.0.into()], high: [0, high.0.into()], ports }, from_low)
    }

    /// The key of the flow between two endpoints, given in any order.
    ///
    /// ```
    /// use tcptrace_lab_core::wire::FlowKey;
    ///
    /// let client = ([192, 0, 2, 1].into(), 40_001);
    /// let server = ([192, 0, 2, 2].into(), 5_001);
    /// assert_eq!(FlowKey::between([client, server]), FlowKey::between([server, client]));
    /// assert_eq!(FlowKey::between([client, server]).low(), client);
    /// ```
    #[must_use]
    pub fn between([one, other]: [(IpAddr, u16); 2]) -> Self {
        let words = |address: IpAddr| match address {
            IpAddr::V4(v4) => [0, u64::from(v4.to_bits())],
            IpAddr::V6(v6) => [(v6.to_bits() >> 64) as u64, v6.to_bits() as u64],
        };
        let ip = IpEndpoints { source: words(one.0), destination: words(other.0), v6: one.0.is_ipv6() };
        Self::new(&ip, one.1, other.1).0
    }

    /// Whether the addresses are IPv6.
    #[must_use]
    pub fn is_v6(&self) -> bool {
        self.ports & IPV6_BIT != 0
    }

    /// Address and port of the low endpoint.
    #[must_use]
    pub fn low(&self) -> (IpAddr, u16) {
        (self.address(self.low), self.ports as u16)
    }

    /// Address and port of the high endpoint.
    #[must_use]
    pub fn high(&self) -> (IpAddr, u16) {
        (self.address(self.high), (self.ports >> 16) as u16)
    }

    fn address(&self, words: [u64; 2]) -> IpAddr {
        if self.ports & IPV6_BIT != 0 {
            Ipv6Addr::from_bits(u128::from(words[0]) << 64 | u128::from(words[1])).into()
        } else {
            Ipv4Addr::from_bits(words[1] as u32).into()
        }
    }
}

/// The nine flag bits of the TCP header (RFC 9293, RFC 3168; AE of RFC 9768, formerly NS).
///
/// ```
/// use tcptrace_lab_core::wire::TcpFlags;
///
/// let flags = TcpFlags(TcpFlags::SYN | TcpFlags::ACK);
/// assert!(flags.any(TcpFlags::SYN | TcpFlags::FIN));
/// assert!(!flags.any(TcpFlags::RST));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFlags(pub u16);

impl TcpFlags {
    /// Finish.
    pub const FIN: u16 = 1;
    /// Synchronize.
    pub const SYN: u16 = 2;
    /// Reset.
    pub const RST: u16 = 4;
    /// Push.
    pub const PSH: u16 = 8;
    /// The acknowledgment number is valid.
    pub const ACK: u16 = 16;
    /// The urgent pointer is valid.
    pub const URG: u16 = 32;
    /// ECN-Echo: the sender of the segment received a CE mark (RFC 3168).
    pub const ECE: u16 = 64;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u16 = 128;
    /// Accurate ECN (RFC 9768).
    pub const AE: u16 = 256;

    /// Whether any bit of `mask` is set.
    #[inline]
    #[must_use]
    pub fn any(self, mask: u16) -> bool {
        self.0 & mask != 0
    }
}

/// The two ECN bits of the IP header (RFC 3168, RFC 8311).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ecn(pub u8);

impl Ecn {
    /// Congestion experienced.
    pub const CE: u8 = 3;
}

/// Up to four SACK blocks (RFC 2018). The option space has no room for a fifth block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    edges: [(u32, u32); 4],
    count: u8,
}

impl SackBlocks {
    /// Adds a block, unless there are already four.
    pub(crate) fn push(&mut self, left: u32, right: u32) {
        if let Some(edge) = self.edges.get_mut(usize::from(self.count)) {
            *edge = (left, right);
            self.count += 1;
        }
    }

    /// The blocks as (left edge, right edge) in sequence numbers, in the order of the option.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        self.edges.get(..usize::from(self.count)).unwrap_or(&[])
    }

    /// Whether there are no blocks.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The Fast Open option (RFC 7413, 4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpen {
    /// An empty option, which requests a cookie.
    Request,
    /// An option with a cookie.
    Cookie,
}

/// The TCP options that the analysis uses, with `None` for an absent option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Maximum segment size (RFC 9293, 3.7.1).
    pub mss: Option<u16>,
    /// Window scale (RFC 7323, 2.2). Values above 14 are not reduced to 14.
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018).
    pub sack_permitted: bool,
    /// Timestamp value and timestamp echo reply (RFC 7323, 3.2).
    pub timestamps: Option<(u32, u32)>,
    /// Fast Open (RFC 7413, 2).
    pub fast_open: Option<FastOpen>,
    /// SACK blocks (RFC 2018).
    pub sack: SackBlocks,
    /// Whether the capture truncated the options. If so, an option that seems absent was possibly sent.
    pub cut: bool,
    /// Kinds of the options in order, four bits each: the kind plus one, at most 15. The first option has the lowest
    /// bits. The value is 0 if the options were not read one by one.
    pub kinds: u64,
}

impl TcpOptions {
    /// The timestamp echo reply, or `None` if it is absent or 0. The value 0 means that a host has received no
    /// timestamp yet (RFC 7323, 3.2; Linux `tcp_ack`).
    ///
    /// ```
    /// use tcptrace_lab_core::wire::TcpOptions;
    ///
    /// let with = |timestamps| TcpOptions { timestamps, ..TcpOptions::default() };
    /// assert_eq!(with(Some((7_000, 6_900))).echo(), Some(6_900));
    /// assert_eq!(with(Some((7_000, 0))).echo(), None); // a SYN
    /// ```
    #[must_use]
    #[inline]
    pub fn echo(&self) -> Option<u32> {
        self.timestamps.map(|(_, echo)| echo).filter(|echo| *echo != 0)
    }
}

/// A TCP or UDP packet in a frame.
#[derive(Clone, Copy, Debug)]
pub enum Packet {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Udp(Datagram),
}

/// One UDP datagram, according to its headers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Datagram {
    /// 1-based frame number.
    pub frame: u64,
    /// Capture time, nanoseconds since 1970.
    pub ts_ns: Option<i64>,
    /// The endpoints of the datagram.
    pub key: FlowKey,
    /// Whether the low endpoint of `key` sent the datagram.
    pub from_low: bool,
    /// Payload length according to the headers, in bytes.
    pub payload_bytes: u32,
    /// Number of captured payload bytes.
    pub captured_payload_bytes: u32,
    /// Number of IP fragments; 1 for an unfragmented datagram.
    pub fragments: u16,
    /// Fields of the datagram's IP header.
    pub ip: IpFacts,
    /// Number of the layer path of the datagram.
    pub path: u16,
}

/// One TCP segment, according to its headers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    /// 1-based frame number.
    pub frame: u64,
    /// Capture time, nanoseconds since 1970.
    pub ts_ns: Option<i64>,
    /// The endpoints of the segment.
    pub key: FlowKey,
    /// Whether the low endpoint of `key` sent the segment.
    pub from_low: bool,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number; valid only with the ACK flag.
    pub ack: u32,
    /// Flags.
    pub flags: TcpFlags,
    /// Window field of the header, without scaling.
    pub window: u16,
    /// Urgent pointer; valid only with the URG flag.
    pub urgent: u16,
    /// Length of the frame on the link, in bytes.
    pub frame_bytes: u32,
    /// Payload length according to the headers, in bytes.
    pub payload_bytes: u32,
    /// Number of captured payload bytes.
    pub captured_payload_bytes: u32,
    /// The first four captured payload bytes as a big-endian number, or 0 if fewer were captured.
    pub payload_start: u32,
    /// Options.
    pub options: TcpOptions,
    /// Fields of the segment's IP header.
    pub ip: IpFacts,
    /// Number of the layer path of the segment; see `Dissector::path_names`.
    pub path: u16,
    /// The AAL5 PDU that carried the segment.
    pub atm: Option<AtmFacts>,
    /// Number of bytes before the payload in an Ethernet frame, or before and after the payload in an AAL5 PDU. The
    /// number is 0 for other links, and for fragmented or damaged packets.
    pub header_bytes: u16,
    /// Whether the start of the payload is unknown, because the data offset is wrong.
    pub bad_data_offset: bool,
    /// Whether the receiver discarded the segment, because the link lost or damaged a part of the segment.
    pub damaged: bool,
}

/// The AAL5 PDU of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtmFacts {
    /// VPI and VCI, if the capture records them.
    pub channel: Option<(u16, u16)>,
    /// Number of cells on the line.
    pub cells: u16,
}

/// The IP header fields that the analysis uses, without the addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpFacts {
    /// IPv4 identification; `None` for IPv6.
    pub id: Option<u16>,
    /// TTL of IPv4, or hop limit of IPv6.
    pub ttl: u8,
    /// ECN bits.
    pub ecn: Ecn,
}

/// The addresses of an IP header. Each address has 128 bits, and an IPv4 address is in the low 32 bits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IpEndpoints {
    pub source: [u64; 2],
    pub destination: [u64; 2],
    pub v6: bool,
}

impl IpEndpoints {
    /// Whether an IP header has set the addresses.
    pub(super) fn is_set(&self) -> bool {
        self.v6 || self.source != [0; 2] || self.destination != [0; 2]
    }
}
