//! The result of classifying one segment. Parts of the result are stored to classify later segments.

use super::ack::Answer;
use super::capture_duplicates;
use super::direction::DirectionState;
use super::evidence::Verdict;
use super::kind::{Kind, ReleasedBy};
use super::rst_ecn_tfo::Signals;
use super::sending::Novelty;
use super::sequence_space::{Placed, Repeat};
use crate::nullable::Nullable;
use crate::wire::{Segment, TcpFlags};

/// The state of the connection just before a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    pub in_flight: Option<i64>,
    pub usable_window: Option<i64>,
    pub since_previous: Nullable,
    pub since_last_ack: Nullable,
    pub since_last_data: Nullable,
    pub window_bytes: Option<u32>,
}

impl Before {
    #[inline]
    pub(crate) fn of(segment: &Segment, sender: &DirectionState, receiver: &DirectionState) -> Self {
        let now = Nullable::from(segment.ts_ns);
        Self {
            in_flight: sender.in_flight(),
            usable_window: sender.usable_window(receiver),
            since_previous: now.since(sender.last_ts_ns),
            since_last_ack: now.since(receiver.last_ack_ts_ns),
            since_last_data: now.since(receiver.last_data_ts_ns),
            window_bytes: sender.advertised(segment),
        }
    }
}

/// A classified segment. The state of both directions already includes the segment, but the sender's `last_*` fields do
/// not.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub placed: Placed,
    /// Offset that the segment acknowledges, even if the segment did not arrive.
    pub ack: Option<i64>,
    /// Offset that the segment acknowledges; `None` if the receiver's link layer discarded the segment.
    pub arrived_ack: Option<i64>,
    /// The edges of the segment's SACK blocks as offsets: for each block the left edge, then the right edge.
    pub sack_blocks: Option<Box<[i64]>>,
    pub before: Before,
    pub novelty: Novelty,
    /// Earlier transmissions of the segment's bytes, if the segment retransmits bytes that are not acknowledged.
    pub repeat: Option<Repeat>,
    /// How often the segment's bytes were sent so far; 0 if the segment has no data, SYN or FIN.
    pub transmission: u8,
    pub verdict: Verdict,
    pub signals: Signals,
    /// What released a segment with data, and the frame of the segment that released it.
    pub released: Option<(ReleasedBy, Option<u64>)>,
    /// The results of evaluating the segment's ACK; the default value if the segment never arrived.
    pub answer: Answer,
}

impl Judged {
    /// Records the segment as the last segment of its sender, so that later segments can be classified.
    #[inline]
    pub(crate) fn remember(&self, segment: &Segment, sender: &mut DirectionState) {
        let (kind, window_bytes) = (self.verdict.kind, self.before.window_bytes);
        let now = Nullable::from(segment.ts_ns);
        sender.last_ts_ns = now;
        sender.last_sent_frame = segment.frame;
        capture_duplicates::note_ip_id(segment, sender);
        if segment.flags.any(TcpFlags::RST | TcpFlags::SYN) {
            remember_controls(segment, sender);
        }
        sender.last_was_probe = kind == Kind::ZeroWindowProbe;
        sender.last_was_keepalive = kind == Kind::Keepalive;
        sender.last_was_data = segment.payload_bytes > 0;
        if segment.payload_bytes > 0 {
            sender.last_data_ts_ns = now;
            sender.burst_frame = match self.released {
                Some((ReleasedBy::Burst, Some(first))) => first,
                _ => segment.frame,
            };
        }
        let Some(ack) = self.arrived_ack else { return };
        sender.last_ack_ts_ns = now;
        sender.last_ack_frame = segment.frame;
        // An old ACK that arrives late does not show the current window (RFC 9293, 3.10.7.4: SND.WL2).
        if kind != Kind::Reset && sender.acked.get().is_none_or(|acked| ack >= acked) {
            sender.acked = Some(ack).into();
            sender.raw_window = segment.window;
            sender.window_bytes = window_bytes;
        }
    }
}

#[cold]
fn remember_controls(segment: &Segment, sender: &mut DirectionState) {
    if segment.flags.any(TcpFlags::RST) {
        sender.reset_frame = if sender.reset_frame == 0 { segment.frame } else { sender.reset_frame };
    } else {
        sender.syn_answered |= segment.flags.any(TcpFlags::ACK);
    }
}
