//! The bytes of a frame that are not dissected yet, and the reasons why dissection stops.

use crate::capture::LinkType;

/// The part of a frame that is not dissected yet: its captured bytes, and its length on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    /// The captured bytes that are not dissected yet.
    pub(super) data: &'a [u8],
    /// Length on the wire of the part that is not dissected yet; at least the number of captured bytes.
    pub(super) wire_bytes: usize,
    /// How reliable the bytes are. In a damaged frame, an IPv4 header is accepted only if its checksum is correct.
    pub(super) trust: Trust,
}

/// How reliable the bytes of a frame are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// The bytes are as they were sent.
    Whole,
    /// The link damaged or lost some bytes; the number of bytes that were sent is known.
    LengthOnly,
    /// The link damaged or lost some bytes; the number of bytes that were sent is unknown.
    Nothing,
}

impl<'a> Cursor<'a> {
    /// Returns the next `N` bytes, which are a header, and moves the cursor past them.
    #[inline]
    pub(super) fn take<const N: usize>(&mut self, header: &'static str) -> Result<&'a [u8; N], Stop> {
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

    /// Returns the next `count` bytes, and moves the cursor past them.
    #[inline]
    pub(super) fn take_slice(&mut self, count: usize, header: &'static str) -> Result<&'a [u8], Stop> {
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

    /// Limits the remaining bytes to `wire_bytes`, the length in a packet's header. Padding and trailers after the
    /// packet are dropped.
    #[inline]
    pub(super) fn limit(&mut self, wire_bytes: usize) {
        if wire_bytes < self.wire_bytes {
            self.wire_bytes = wire_bytes;
            self.data = self.data.get(..wire_bytes).unwrap_or(self.data);
        }
    }
}

/// The reason why dissection of a frame ended before a TCP segment was read.
///
/// ```
/// use tcptrace_lab_core::capture::Frame;
/// use tcptrace_lab_core::wire::{Dissector, Stop};
///
/// let mut frame = Frame { number: 1, ts_ns: None, link_type: Some(1), original_bytes: 60, data: &[0; 60] };
/// assert_eq!(Dissector::default().read(&frame, &mut Vec::new()), Err(Stop::NotTcp));
/// frame.data = &frame.data[..13]; // the Ethernet header has 14 bytes
/// assert_eq!(Dissector::default().read(&frame, &mut Vec::new()), Err(Stop::Cut("Ethernet header")));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// The frame has valid content that is not TCP.
    NotTcp,
    /// The capture truncated the named header (snaplen).
    Cut(&'static str),
    /// The named header contradicts itself or the headers around it.
    Malformed(&'static str),
    /// The frame has a fragment of an IP packet, and other fragments are still missing.
    Fragment,
    /// This engine does not read the frame's link type.
    UnknownLink(LinkType),
    /// This engine does not read the frame's link type. The type is not counted separately, because too many such types
    /// occur.
    MoreUnknownLinks,
    /// The TCP header's length contradicts itself or the packet. The segment is returned without data.
    BadDataOffset,
    /// The link lost a part of the AAL5 PDU, including its headers.
    DamagedPdu,
    /// The content is split over several frames and not reassembled here, or the frame has several packets. The text
    /// describes the content.
    NotRead(&'static str),
    /// More nested headers than [`MAX_LAYERS`].
    TooDeep,
}
