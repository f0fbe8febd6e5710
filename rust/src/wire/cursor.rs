//! The bytes of a frame that are not parsed yet, and the reasons to stop.

use crate::capture::LinkType;

/// The rest of a frame: its captured bytes, and its length on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    /// The captured bytes that remain.
    pub(super) data: &'a [u8],
    /// The number of bytes that remain on the wire: at least the captured ones.
    pub(super) wire_bytes: usize,
    /// Whether a header must prove that it is one.
    pub(super) trust: Trust,
}

/// How far the bytes of a frame can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// They are as sent.
    Whole,
    /// The link damaged some of them; their number is known.
    LengthOnly,
    /// The link damaged some of them and lost others.
    Nothing,
}

impl<'a> Cursor<'a> {
    /// Takes a header of `N` bytes off the front.
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

    /// Takes `count` bytes off the front.
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

    /// Drops everything after `wire_bytes`: padding and trailers after a packet whose header states its length.
    #[inline]
    pub(super) fn limit(&mut self, wire_bytes: usize) {
        if wire_bytes < self.wire_bytes {
            self.wire_bytes = wire_bytes;
            self.data = self.data.get(..wire_bytes).unwrap_or(self.data);
        }
    }
}

/// Why dissection of a frame ended before a TCP segment was read.
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
    /// Valid content other than TCP.
    NotTcp,
    /// The capture contains too little of this header (snaplen).
    Cut(&'static str),
    /// This header contradicts itself or its context.
    Malformed(&'static str),
    /// A fragment of an IP packet that does not complete it.
    Fragment,
    /// A link type that this engine does not read.
    UnknownLink(LinkType),
    /// Further link types that this engine does not read, beyond those counted one by one.
    MoreUnknownLinks,
    /// A TCP header whose length contradicts itself or the packet. Its segment is returned without data.
    BadDataOffset,
    /// An AAL5 PDU of which the link lost a part, including the headers.
    DamagedPdu,
    /// Content that is split and not reassembled here, or several packets in one frame; the text names which.
    NotRead(&'static str),
    /// More nested headers than [`MAX_LAYERS`].
    TooDeep,
}
