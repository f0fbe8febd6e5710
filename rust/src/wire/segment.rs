//! What one TCP segment says, as plain data.

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The unordered pair of endpoints that names a flow: the same for both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowKey {
    low: [u64; 2],
    high: [u64; 2],
    /// Port of `low`, port of `high` << 16, and 1 << 32 for IPv6.
    ports: u64,
}

const IPV6_BIT: u64 = 1 << 32;

/// As equal keys are equal: what is 0 over IPv4 is left out there.
impl Hash for FlowKey {
    #[allow(clippy::inline_always)] // measured: a call costs 33 instructions a packet
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
    /// Which of 2^`bits` parts it belongs to, at most 2^8: the same in every run.
    #[inline]
    #[must_use]
    pub(crate) fn part(&self, bits: u32) -> u8 {
        // Multiplied by odd numbers without a pattern (of the golden ratio, and of SplitMix64), so that the high bits depend on all.
        let low = (self.low[0] ^ self.low[1]).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let high = (self.high[0] ^ self.high[1]).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (low ^ high ^ self.ports).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> (u64::BITS - bits)) as u8
    }

    /// The key of a segment from `source` to `destination`, and whether the source is its low end.
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

    /// The same over IPv4, from address and port to address and port.
    #[inline]
    pub(super) fn v4(source: (u32, u16), destination: (u32, u16)) -> (Self, bool) {
        let from_low = source <= destination;
        let (low, high) = if from_low { (source, destination) } else { (destination, source) };
        let ports = u64::from(low.1) | u64::from(high.1) << 16;
        (Self { low: [0, low.0.into()], high: [0, high.0.into()], ports }, from_low)
    }

    /// The key of the flow between two ends, given in either order.
    #[must_use]
    pub fn between([one, other]: [(IpAddr, u16); 2]) -> Self {
        let words = |address: IpAddr| match address {
            IpAddr::V4(v4) => [0, u64::from(v4.to_bits())],
            IpAddr::V6(v6) => [(v6.to_bits() >> 64) as u64, v6.to_bits() as u64],
        };
        let ip = IpEndpoints { source: words(one.0), destination: words(other.0), v6: one.0.is_ipv6() };
        Self::new(&ip, one.1, other.1).0
    }

    /// Whether the addresses are of IPv6.
    #[must_use]
    pub fn is_v6(&self) -> bool {
        self.ports & IPV6_BIT != 0
    }

    /// Address and port of the low end.
    #[must_use]
    pub fn low(&self) -> (IpAddr, u16) {
        (self.address(self.low), self.ports as u16)
    }

    /// Address and port of the high end.
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
    /// The acknowledgment number counts.
    pub const ACK: u16 = 16;
    /// The urgent pointer counts.
    pub const URG: u16 = 32;
    /// Congestion was seen (RFC 3168).
    pub const ECE: u16 = 64;
    /// The congestion window was reduced (RFC 3168).
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

/// Up to four SACK blocks (RFC 2018): the option space holds no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    edges: [(u32, u32); 4],
    count: u8,
}

impl SackBlocks {
    /// Adds a block; more than four cannot come from one header and are dropped.
    pub(crate) fn push(&mut self, left: u32, right: u32) {
        if let Some(edge) = self.edges.get_mut(usize::from(self.count)) {
            *edge = (left, right);
            self.count += 1;
        }
    }

    /// The blocks as (left edge, right edge) sequence numbers, in the order of the option.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        self.edges.get(..usize::from(self.count)).unwrap_or(&[])
    }

    /// True without any block.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The Fast Open option (RFC 7413, 4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpen {
    /// Without a cookie: one is asked for.
    Request,
    /// With a cookie.
    Cookie,
}

/// The TCP options that matter for timing. `None`: not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Maximum segment size (RFC 9293, 3.7.1).
    pub mss: Option<u16>,
    /// Window scale shift (RFC 7323, 2.2), as in the option, not limited to 14.
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018).
    pub sack_permitted: bool,
    /// Timestamps: value and echo reply (RFC 7323, 3.2).
    pub timestamps: Option<(u32, u32)>,
    /// Fast Open (RFC 7413, 2).
    pub fast_open: Option<FastOpen>,
    /// SACK blocks (RFC 2018).
    pub sack: SackBlocks,
    /// True if the capture cut them: what is not there may have been on the wire.
    pub cut: bool,
    /// Kinds of the options in order, where they were walked one by one (as those of a SYN are): four bits each, the
    /// first lowest, holding the kind and one more, at most 15.
    pub kinds: u64,
}

impl TcpOptions {
    /// The timestamp that is echoed. Stacks that had none to echo send 0 (RFC 7323, 3.2; Linux `tcp_ack`: `rcv_tsecr` of 0 is none).
    #[must_use]
    #[inline]
    pub fn echo(&self) -> Option<u32> {
        self.timestamps.map(|(_, echo)| echo).filter(|echo| *echo != 0)
    }
}

/// What a frame was taken apart for.
#[derive(Clone, Copy, Debug)]
pub enum Packet {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Udp(Datagram),
}

/// One UDP datagram as its headers describe it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Datagram {
    /// 1-based frame number.
    pub frame: u64,
    /// Capture time, nanoseconds since 1970.
    pub ts_ns: Option<i64>,
    /// The pair of endpoints.
    pub key: FlowKey,
    /// True if the low end of `key` sent it.
    pub from_low: bool,
    /// Bytes of data by the lengths in the headers.
    pub payload_bytes: u32,
    /// Bytes of data that were captured.
    pub captured_payload_bytes: u32,
    /// IP fragments that it came in; 1 if whole.
    pub fragments: u16,
    /// The IP header it came in.
    pub ip: IpFacts,
    /// Number of the path of layers that led to it.
    pub path: u16,
}

/// One TCP segment as its headers describe it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    /// 1-based frame number.
    pub frame: u64,
    /// Capture time, nanoseconds since 1970.
    pub ts_ns: Option<i64>,
    /// The pair of endpoints.
    pub key: FlowKey,
    /// True if the low end of `key` sent it.
    pub from_low: bool,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number; counts only with the ACK flag.
    pub ack: u32,
    /// Flags.
    pub flags: TcpFlags,
    /// Window as in the header, unscaled.
    pub window: u16,
    /// Urgent pointer; counts only with the URG flag.
    pub urgent: u16,
    /// Length of the frame that carried it, on the link.
    pub frame_bytes: u32,
    /// Bytes of data by the lengths in the headers.
    pub payload_bytes: u32,
    /// Bytes of data that were captured.
    pub captured_payload_bytes: u32,
    /// The first four captured bytes of data, big-endian; 0 if there are fewer.
    pub payload_start: u32,
    /// Options.
    pub options: TcpOptions,
    /// The IP header it came in.
    pub ip: IpFacts,
    /// Number of the path of layers that led to it; see `Dissector::path_names`.
    pub path: u16,
    /// The ATM channel it came over.
    pub atm: Option<AtmFacts>,
    /// Bytes before its data in the Ethernet frame, or beside it in the AAL5 PDU; 0 on other links, where it came in
    /// several IP fragments, and where the link damaged it.
    pub header_bytes: u16,
    /// True if the header's length contradicts itself or the packet: where the data starts is unknown.
    pub bad_data_offset: bool,
    /// True if the link lost a part of it, so that the receiver threw it away.
    pub damaged: bool,
}

/// What the ATM layer says about the PDU that a segment came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtmFacts {
    /// Virtual path and virtual channel identifier, where the capture says.
    pub channel: Option<(u16, u16)>,
    /// Cells on the line.
    pub cells: u16,
}

/// What the IP header in front of a segment says about its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpFacts {
    /// IPv4 identification; `None` for IPv6.
    pub id: Option<u16>,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// ECN bits.
    pub ecn: Ecn,
}

/// An IP header's addresses; IPv4 ones stand in the low 32 bits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IpEndpoints {
    pub source: [u64; 2],
    pub destination: [u64; 2],
    pub v6: bool,
}

impl IpEndpoints {
    /// Whether an IP header was read into it.
    pub(super) fn is_set(&self) -> bool {
        self.v6 || self.source != [0; 2] || self.destination != [0; 2]
    }
}
