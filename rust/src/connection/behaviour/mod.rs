//! How the two ends behave, as far as only a whole connection shows it: how soon they answer (and so where the capture
//! was taken), how they acknowledge, whether Nagle's algorithm holds small segments, what they offer in their SYN.
//!
//! Bounded accumulators, fed by one call per segment. What is concluded from them is written in `vantage.py`,
//! `policy.py` and `trust.py`.

mod acking;
mod numbering;
mod reaction;
mod sending;
mod syn;

pub use acking::Acking;
pub use numbering::Numbering;
pub use reaction::Reaction;
pub(super) use sending::NEVER_HELD;
pub use sending::{Count, Nagle, Sending};
pub use syn::SynShape;
pub(super) use syn::{full_segment_bytes, segment_bytes};

use serde::{Deserialize, Serialize};

use super::account::Side;
use super::evidence::ResentBy;
use super::half::{MAX_WINDOW_SCALE, Placed};
use super::row::{Kind, Nullable};
use crate::wire::{Segment, TcpFlags};

/// Within this time, or a sixteenth of the time that passed before, one event is taken to have caused the next (the rule
/// book's ε; the share is a heuristic).
const CAUSAL_NS: i64 = 1_000_000;
/// Times to live that stacks start with (`INITIAL_TTLS` of `fingerprint.py`): no router has passed such a packet on.
const INITIAL_TTLS: [u8; 3] = [64, 128, 255];

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

/// One segment, with what was concluded about it and what was true just before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event<'a> {
    pub segment: &'a Segment,
    pub placed: Placed,
    pub kind: Kind,
    /// What made its sender send it again.
    pub resent_by: Option<ResentBy>,
    /// What it acknowledges, unless it never arrived.
    pub ack: Option<i64>,
    /// Bytes of its sender in flight before it.
    pub in_flight: Option<i64>,
    /// The window that it advertises.
    pub window_bytes: Option<u32>,
    /// Time since its sender's segment before.
    pub since_previous: Nullable,
    /// It could not leave before the last ACK that moved the window.
    pub needed_window: bool,
    /// It follows another data segment of its sender at once.
    pub in_burst: bool,
    /// What its acknowledgment tells.
    pub acked: Acked,
}

/// What an acknowledgment tells of the data that it covers for the first time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acked {
    /// Sequence numbers.
    pub bytes: Nullable,
    /// Segments, super-segments of offload counted as those that they become on the wire.
    pub segments: u32,
    /// Time since the oldest of these bytes was last seen.
    pub lag_ns: Nullable,
    /// Time since the newest segment, where Karn's rule admits it.
    pub rtt_ns: Nullable,
}

/// Takes in one segment of `sender`, after its acknowledgment took effect on `receiver` and before `sender` is told of
/// it as its last.
#[inline]
pub(super) fn take(event: &mut Event<'_>, sender: &mut Side<'_>, receiver: &mut Side<'_>) {
    let Event { segment, placed, kind, ack, acked, .. } = *event;
    let now = Nullable::from(segment.ts_ns);
    if segment.flags.any(TcpFlags::RST) {
        return;
    }
    let behaviour = &mut sender.account.behaviour;
    behaviour.ttl = behaviour.ttl.max(segment.ip.ttl);
    if segment.flags.any(TcpFlags::SYN) && !segment.options.cut {
        behaviour.syn.get_or_insert_with(|| SynShape::of(segment));
    }
    behaviour.numbering.take(segment, sender.half.virtual_segments(segment.payload_bytes));
    event.needed_window = behaviour.reaction.answers(segment, placed, kind, now);
    if !segment.damaged {
        receiver.account.behaviour.reaction.is_told(segment, ack, event.window_bytes, now);
    }
    if segment.payload_bytes > 0 {
        sending::take(event, now, sender, receiver);
        if kind == Kind::New && receiver.half.figures.window_scale.is_none() {
            bound_window_scale(sender, receiver);
        }
    }
    if acked.bytes.get().is_some_and(|bytes| bytes > 0) {
        sending::acknowledged(event, now, receiver);
        acking::take(event, now, sender, receiver);
    }
}

/// Shortest time from a segment that passes the capture point on its way to `side` to one that passes it on its way back
/// and proves that the first had arrived.
#[inline]
pub(super) fn turnaround_ns(side: &Side<'_>, other: &Side<'_>) -> Option<i64> {
    let by_echo = side.account.behaviour.reaction.min_ns.get();
    let by_ack = other.half.figures.rtt_min_ns.get();
    let (ttl, other_ttl) = (side.account.behaviour.ttl, other.account.behaviour.ttl);
    match (by_echo, by_ack) {
        (Some(by_echo), Some(by_ack)) => Some(by_ack.min(by_echo)),
        (Some(_), None) if is_on_the_link(ttl, other_ttl) => Some(0),
        (by_echo, by_ack) => by_echo.or(by_ack),
    }
}

/// Whether routers lie between the capture point and the other side alone: what this side sends by itself tells of the way to
/// it only as far as its program waits for nothing else.
fn is_on_the_link(ttl: u8, other_ttl: u8) -> bool {
    other_ttl > 0 && INITIAL_TTLS.contains(&ttl) && !INITIAL_TTLS.contains(&other_ttl)
}

/// What is in flight had been allowed: where no SYN tells the scale of `receiver`'s windows, it is at least so much.
/// (One that shrinks its window, or never told of it in this capture, can mislead.)
#[cold]
fn bound_window_scale(sender: &Side<'_>, receiver: &mut Side<'_>) {
    let in_flight = sender.half.in_flight().unwrap_or(0);
    let raw_window = receiver.half.raw_window;
    if raw_window == 0 || !receiver.half.acked.is_some() {
        return;
    }
    let scale = &mut receiver.account.behaviour.window_scale_at_least;
    while *scale < MAX_WINDOW_SCALE && i64::from(raw_window) << *scale < in_flight {
        *scale += 1;
    }
}
