//! Behaviour of the two hosts of a connection: how fast they answer, how they acknowledge, whether Nagle's algorithm
//! delays small segments, and what their SYN offers. The speed of the answers shows where the capture point is.
//!
//! Each accumulator has a fixed size and is updated once per segment. [`crate::hosts`] draws the conclusions.

mod acking;
mod event;
mod ip_id;
mod reaction;
mod sending;
mod syn;
mod turnaround;

pub use acking::Acking;
pub(super) use event::{Acked, Event};
pub use ip_id::Numbering;
pub use reaction::Reaction;
pub(crate) use sending::MIN_BUFFER_BYTES;
pub(super) use sending::NEVER_HELD;
pub use sending::{Count, Nagle, Sending};
pub use syn::SynShape;
pub(super) use turnaround::Answering;
pub(crate) use turnaround::INITIAL_TTLS;

use serde::{Deserialize, Serialize};

use crate::connection::{DirectionState, Kind, MAX_WINDOW_SCALE};
use crate::nullable::Nullable;
use crate::wire::TcpFlags;

/// The accumulators of one direction, which is named after its sender.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // `tcptrace_lab/schema/` defines each field
pub struct Behaviour {
    pub reaction: Reaction,
    pub sending: Sending,
    pub numbering: Numbering,
    /// The ACKs of the host, or `None` if it never acknowledged data.
    pub acking: Option<Box<Acking>>,
    pub syn: Option<SynShape>,
    pub min_window_scale: u8,
    /// The largest TTL or hop limit of the host's segments; 0 if unknown.
    pub ttl: u8,
}

impl Behaviour {
    /// The measurements that give the turnaround of this host.
    #[inline]
    pub(crate) fn answering(&self, other: &Self, other_direction: &DirectionState) -> Answering {
        Answering {
            reaction_min_ns: self.reaction.min_ns,
            other_rtt_min_ns: other_direction.figures.rtt_min_ns,
            ttl: self.ttl,
            other_ttl: other.ttl,
        }
    }
}

/// Adds a segment of `sender`. At the time of the call, `receiver_direction` already includes the effect of the
/// segment's ACK, but `sender_direction` does not include the segment yet.
#[inline]
pub(crate) fn take(
    event: &mut Event<'_>,
    (sender, sender_direction): (&mut Behaviour, &DirectionState),
    (receiver, receiver_direction): (&mut Behaviour, &DirectionState),
) {
    let Event { segment, placed, kind, ack, acked, .. } = *event;
    let now = Nullable::from(segment.ts_ns);
    if segment.flags.any(TcpFlags::RST) {
        return;
    }
    sender.ttl = sender.ttl.max(segment.ip.ttl);
    if segment.flags.any(TcpFlags::SYN) && !segment.options.cut {
        sender.syn.get_or_insert_with(|| SynShape::of(segment));
    }
    sender.numbering.take(segment, sender_direction.virtual_segments(segment.payload_bytes));
    event.needed_window = sender.reaction.answers(segment, placed, kind, now);
    if !segment.damaged {
        receiver.reaction.peer_sent(segment, ack, event.window_bytes, now);
    }
    if segment.payload_bytes > 0 {
        let answering = sender.answering(receiver, receiver_direction);
        sender.sending.take(event, now, sender_direction, receiver_direction, answering);
        if kind == Kind::New && receiver_direction.figures.window_scale.is_none() {
            bound_window_scale(sender_direction, receiver, receiver_direction);
        }
    }
    if acked.bytes.get().is_some_and(|bytes| bytes > 0) {
        receiver.sending.acknowledged(event, now, receiver_direction);
        acking::take(event, now, &mut sender.acking, receiver_direction);
    }
}

/// Raises the lower bound of the window scale of `receiver`, whose SYN is not in the capture. The scale must allow all
/// bytes in flight. The bound is wrong if the receiver has shrunk its window, because the bytes in flight then fit only
/// into an earlier window.
#[cold]
fn bound_window_scale(
    sender_direction: &DirectionState,
    receiver: &mut Behaviour,
    receiver_direction: &DirectionState,
) {
    let in_flight = sender_direction.in_flight().unwrap_or(0);
    let raw_window = receiver_direction.raw_window;
    if raw_window == 0 || !receiver_direction.acked.is_some() {
        return;
    }
    let scale = &mut receiver.min_window_scale;
    while *scale < MAX_WINDOW_SCALE && i64::from(raw_window) << *scale < in_flight {
        *scale += 1;
    }
}
