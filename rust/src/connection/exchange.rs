//! Processes one segment: classifies it and updates the state of both directions of its connection.

use super::ack::{self, Answer};
use super::capture_duplicates;
use super::classify;
use super::direction::{self, DirectionState};
use super::evidence::Verdict;
use super::judged::{Before, Judged};
use super::revisions::Revisions;
use super::rst_ecn_tfo::{self, Signals};
use super::sending::{self, Novelty, Sent};
use crate::wire::{Segment, TcpFlags};

#[inline(always)]
pub(crate) fn exchange(
    segment: &Segment,
    sender: &mut DirectionState,
    receiver: &mut DirectionState,
    revisions: &mut Revisions,
) -> Judged {
    let placed = sender.place(segment);
    let ack = segment.flags.any(TcpFlags::ACK).then(|| receiver.place_ack(segment.ack));
    let arrived_ack = ack.filter(|_| !segment.damaged);
    let before = Before::of(segment, sender, receiver);
    let sack_blocks = ack::sack_blocks(segment, receiver);
    let reset = segment.flags.any(TcpFlags::RST);
    let novelty = if reset { Novelty::default() } else { sending::novelty_of(segment, placed, sender) };
    let signals = rst_ecn_tfo::signals(segment, placed, ack, sender, receiver);
    let verdict = classify::verdict(segment, placed, ack, novelty, sender, receiver, revisions);
    let has_data = segment.payload_bytes > 0;
    let released = if has_data { Some(classify::released_by(segment, verdict, sender, receiver)) } else { None };
    sending::count(segment, &mut sender.figures);
    let sent = if reset { Sent::default() } else { sending::send(segment, placed, verdict, sender, receiver) };
    // A `match` is used here, because the closure of `map` would not be inlined into each caller.
    let answer = match arrived_ack {
        Some(ack) => ack::acknowledge(segment, ack, sack_blocks.as_deref(), verdict.kind, receiver, revisions),
        None => Answer::default(),
    };
    if segment.flags.any(TcpFlags::SYN) && !reset {
        direction::settle_mss(sender, receiver, segment.key.is_v6());
    }
    let Sent { repeat, transmission } = sent;
    Judged {
        placed,
        ack,
        arrived_ack,
        sack_blocks,
        before,
        novelty,
        repeat,
        transmission,
        verdict,
        signals,
        released,
        answer,
    }
}

/// Processes a packet that `verdict` classifies as a duplicate. The connection's state does not change, except that the
/// duplicate is counted and stored.
#[cold]
pub(crate) fn copied(
    segment: &Segment,
    verdict: Verdict,
    sender: &mut DirectionState,
    receiver: &mut DirectionState,
) -> Judged {
    let placed = sender.place(segment);
    let ack = segment.flags.any(TcpFlags::ACK).then(|| receiver.place_ack(segment.ack));
    let before = Before::of(segment, sender, receiver);
    let sack_blocks = ack::sack_blocks(segment, receiver);
    capture_duplicates::count(verdict, segment, placed, sender);
    let dsack = ack.zip(sack_blocks.as_deref()).is_some_and(|(ack, blocks)| ack::dsack(ack, blocks).is_some());
    Judged {
        placed,
        ack,
        arrived_ack: None,
        sack_blocks,
        before,
        novelty: Novelty::default(),
        repeat: None,
        transmission: 0,
        verdict,
        signals: Signals::default(),
        released: None,
        answer: Answer { dsack, ..Answer::default() },
    }
}
