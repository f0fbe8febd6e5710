//! How the two ends behave, as far as only a whole connection shows it: how soon they answer (and so where the capture
//! was taken), how they acknowledge, whether Nagle's algorithm holds small segments, what they offer in their SYN.
//!
//! Bounded accumulators, fed by one call per segment. What is concluded from them is written in `vantage.py`,
//! `policy.py` and `trust.py`.

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
pub(crate) use sending::LEAST_BUFFER_BYTES;
pub(super) use sending::NEVER_HELD;
pub use sending::{Count, Nagle, Sending};
pub use syn::SynShape;
pub(super) use turnaround::Answering;
pub(crate) use turnaround::INITIAL_TTLS;

use serde::{Deserialize, Serialize};

use crate::connection::{Half, Kind, MAX_WINDOW_SCALE};
use crate::nullable::Nullable;
use crate::wire::TcpFlags;

/// The accumulators of one direction, named by its sender.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // one fact has one home: `schema.py`
pub struct Behaviour {
    pub reaction: Reaction,
    pub sending: Sending,
    pub numbering: Numbering,
    /// Only of a side that acknowledges data.
    pub acking: Option<Box<Acking>>,
    pub syn: Option<SynShape>,
    pub window_scale_at_least: u8,
    /// Largest time to live that its segments came with; 0: none came.
    pub ttl: u8,
}

impl Behaviour {
    /// What tells how soon the side answers whose behaviour this is.
    #[inline]
    pub(crate) fn answering(&self, other: &Self, other_half: &Half) -> Answering {
        Answering {
            reaction_min_ns: self.reaction.min_ns,
            other_rtt_min_ns: other_half.figures.rtt_min_ns,
            ttl: self.ttl,
            other_ttl: other.ttl,
        }
    }
}

/// Takes in one segment of `sender`, after its ACK took effect on `receiver` and before it becomes the last segment of
/// `sender`. Each comes with the accumulators of its behaviour.
#[inline]
pub(crate) fn take(
    event: &mut Event<'_>,
    (sender, sender_half): (&mut Behaviour, &Half),
    (receiver, receiver_half): (&mut Behaviour, &Half),
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
    sender.numbering.take(segment, sender_half.virtual_segments(segment.payload_bytes));
    event.needed_window = sender.reaction.answers(segment, placed, kind, now);
    if !segment.damaged {
        receiver.reaction.is_told(segment, ack, event.window_bytes, now);
    }
    if segment.payload_bytes > 0 {
        let answering = sender.answering(receiver, receiver_half);
        sender.sending.take(event, now, sender_half, receiver_half, answering);
        if kind == Kind::New && receiver_half.figures.window_scale.is_none() {
            bound_window_scale(sender_half, receiver, receiver_half);
        }
    }
    if acked.bytes.get().is_some_and(|bytes| bytes > 0) {
        receiver.sending.acknowledged(event, now, receiver_half);
        acking::take(event, now, &mut sender.acking, receiver_half);
    }
}

/// What is in flight had been allowed: where no SYN tells the scale of `receiver`'s windows, it is at least so much.
/// (One that shrinks its window, or never told of it in this capture, can mislead.)
#[cold]
fn bound_window_scale(sender_half: &Half, receiver: &mut Behaviour, receiver_half: &Half) {
    let in_flight = sender_half.in_flight().unwrap_or(0);
    let raw_window = receiver_half.raw_window;
    if raw_window == 0 || !receiver_half.acked.is_some() {
        return;
    }
    let scale = &mut receiver.window_scale_at_least;
    while *scale < MAX_WINDOW_SCALE && i64::from(raw_window) << *scale < in_flight {
        *scale += 1;
    }
}
