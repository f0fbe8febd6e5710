//! A frame → the TCP segment in it. Stateless: "what the bytes say", never what they mean for a connection.
//!
//! A frame is taken apart by a loop over [`Layer`]s: each step looks at one header, takes it off the front of the
//! [`Cursor`] and names the layer behind it. Depth is bounded, so no nesting can hang the loop. What is cut short or
//! contradicts itself stops the loop with a [`Stop`] that says why; it never panics.

mod atm;
mod ip;
mod link;
mod segment;
mod tcp;
mod tunnel;
mod wifi;

pub use link::{link_name, link_supported};
pub use segment::{Ecn, FlowKey, IpFacts, SackBlocks, Segment, TcpFlags, TcpOptions};

use crate::capture::{Frame, LinkType};
use segment::IpEndpoints;

/// Most headers taken off one frame. Real stacks of tunnels stay below ten.
const MAX_LAYERS: usize = 24;

/// Where a frame's bytes go on: what is left of them, captured and on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    /// Captured bytes that remain.
    data: &'a [u8],
    /// Bytes that remained on the wire: never fewer than captured.
    wire_bytes: usize,
}

impl<'a> Cursor<'a> {
    /// Takes a header of `N` bytes off the front.
    #[inline]
    fn take<const N: usize>(&mut self, header: &'static str) -> Result<&'a [u8; N], Stop> {
        match self.data.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.data = rest;
                self.wire_bytes -= N;
                Ok(taken)
            }
            None if self.wire_bytes < N => Err(Stop::Malformed(header)),
            None => Err(Stop::Cut(header)),
        }
    }

    /// Takes `count` bytes off the front.
    #[inline]
    fn take_slice(&mut self, count: usize, header: &'static str) -> Result<&'a [u8], Stop> {
        match self.data.split_at_checked(count) {
            Some((taken, rest)) => {
                self.data = rest;
                self.wire_bytes -= count;
                Ok(taken)
            }
            None if self.wire_bytes < count => Err(Stop::Malformed(header)),
            None => Err(Stop::Cut(header)),
        }
    }

    /// Drops everything past `wire_bytes` (padding and trailers behind a packet whose header says its length).
    #[inline]
    fn limit(&mut self, wire_bytes: usize) {
        if wire_bytes < self.wire_bytes {
            self.wire_bytes = wire_bytes;
            self.data = self.data.get(..wire_bytes).unwrap_or(self.data);
        }
    }
}

/// The header that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    Ethernet,
    /// A 16-bit type as in Ethernet, with what it announces.
    EtherType(u16),
    /// IEEE 802.2 LLC, perhaps with SNAP.
    Llc,
    /// IPv4 or IPv6, told apart by the version nibble.
    Ip,
    Ipv4,
    Ipv6,
    /// PPP (RFC 1661), with or without its HDLC address and control.
    Ppp,
    /// MPLS label stack (RFC 3032).
    Mpls,
    /// GRE (RFC 2784, RFC 2890, RFC 2637).
    Gre,
    /// UDP: only for the tunnels in it.
    Udp,
    /// IEEE 802.11 data frame.
    Wifi,
    /// An AAL5 PDU: LLC/SNAP, bridged, or IP at once (RFC 2684, Fore IP).
    Aal5,
    /// What the IP protocol or next-header number announces.
    IpProtocol(u8),
}

/// Why the way into a frame ended before a TCP segment was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// Something that is not TCP, and nothing wrong with it.
    NotTcp,
    /// The capture holds too little of this header (snaplen).
    Cut(&'static str),
    /// This header contradicts itself or its surroundings.
    Malformed(&'static str),
    /// A fragment of an IP packet.
    Fragment,
    /// A link type that this engine does not take apart.
    UnknownLink(LinkType),
    /// More nested headers than [`MAX_LAYERS`].
    TooDeep,
}

/// Takes a frame apart down to its TCP segment.
///
/// # Errors
/// The [`Stop`] that says why there is none.
#[inline]
pub fn segment_of(frame: &Frame<'_>) -> Result<Segment, Stop> {
    let Some(link_type) = frame.link_type else { return Err(Stop::NotTcp) };
    let wire_bytes = (frame.original_bytes as usize).max(frame.data.len());
    let mut cursor = Cursor { data: frame.data, wire_bytes };
    let (mut ip, mut endpoints) = (IpFacts::default(), IpEndpoints::default());
    // Nearly every frame is IPv4 on Ethernet: those two steps are taken before the loop, where they can be inlined.
    let mut layer = if link_type == link::ETHERNET {
        link::ethernet(&mut cursor)?
    } else {
        link::first_layer(link_type, &mut cursor)?
    };
    if layer == Layer::Ipv4 {
        layer = ip::v4(&mut cursor, &mut ip, &mut endpoints)?;
    }
    for _ in 0..MAX_LAYERS {
        layer = match layer {
            Layer::Ethernet => link::ethernet(&mut cursor)?,
            Layer::EtherType(ether_type) => link::ether_type(ether_type, &mut cursor)?,
            Layer::Llc => link::llc(&mut cursor)?,
            Layer::Ip => ip::any(&cursor)?,
            Layer::Ipv4 => ip::v4(&mut cursor, &mut ip, &mut endpoints)?,
            Layer::Ipv6 => ip::v6(&mut cursor, &mut ip, &mut endpoints)?,
            Layer::Ppp => tunnel::ppp(&mut cursor)?,
            Layer::Mpls => tunnel::mpls(&mut cursor)?,
            Layer::Gre => tunnel::gre(&mut cursor)?,
            Layer::Udp => tunnel::udp(&mut cursor)?,
            Layer::Wifi => wifi::data(&mut cursor)?,
            Layer::Aal5 => atm::aal5(&mut cursor)?,
            Layer::IpProtocol(tcp::PROTOCOL) => return tcp::read(&mut cursor, frame, ip, &endpoints),
            Layer::IpProtocol(protocol) => tunnel::ip_protocol(protocol)?,
        };
    }
    Err(Stop::TooDeep)
}
