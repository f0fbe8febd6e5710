//! The unread part of a frame, and the reasons to stop reading.

use crate::capture::LinkType;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    /// The captured bytes of this part.
    pub(super) data: &'a [u8],
    /// Length of this part on the wire, which is never less than the number of captured bytes.
    pub(super) wire_bytes: usize,
    /// How reliable the bytes are. A damaged frame must contain an IPv4 header with a correct checksum.
    pub(super) trust: Trust,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// The bytes are as they were sent.
    Whole,
    /// The link damaged or lost some bytes, but the number of sent bytes is known.
    LengthOnly,
    /// The link damaged or lost some bytes, and the number of sent bytes is unknown.
    Nothing,
}

impl<'a> Cursor<'a> {
    /// Returns the next `N` bytes and moves the cursor past them. `header` names the header in error messages.
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

    /// Drops padding and trailers after a packet. `wire_bytes` is the packet length from the packet's own header.
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
    /// The named header contradicts itself, or it contradicts a header around it.
    Malformed(&'static str),
    /// The frame contains a fragment of an IP packet that is not complete yet.
    Fragment,
    /// This engine cannot read frames of this link type.
    UnknownLink(LinkType),
    /// This engine cannot read the frame's link type. The capture has too many unreadable link types to count each of
    /// them.
    MoreUnknownLinks,
    /// The data offset contradicts the length of the packet, or it is smaller than the TCP header. The segment is still
    /// returned, but without data.
    BadDataOffset,
    /// The link lost a part of the AAL5 PDU, and the headers are in this part.
    DamagedPdu,
    /// The content is spread over several frames and not reassembled, or the packet has a form that is not supported.
    /// The text names the content.
    NotRead(&'static str),
    /// The frame has more nested headers than [`MAX_LAYERS`].
    TooDeep,
}
