//! Header prediction (Van Jacobson; Linux `tcp_rcv_established`): a fast path for nearly all segments. The fast path
//! handles the next data of an established connection and ACKs of new data, in a direction without losses or late
//! segments. All other segments are processed by [`super::exchange`]. The fast path and `exchange` give the same
//! results.

use super::ack;
use super::classify;
use super::direction::DirectionState;
use super::judged::{Before, Judged};
use super::rst_ecn_tfo::Signals;
use super::sending::{self, Novelty};
use super::sequence_space::Placed;
use crate::seq;
use crate::wire::{Segment, TcpFlags};

/// A segment that the fast path handles, with its position in sequence space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Predicted {
    placed: Placed,
    /// The offset that the segment acknowledges.
    ack: i64,
    /// The offset that was acknowledged before.
    una: i64,
}

impl Predicted {
    /// The position of the segment; `None` if the fast path does not handle the segment.
    #[inline(always)]
    pub(crate) fn of(segment: &Segment, sender: &DirectionState, receiver: &DirectionState) -> Option<Self> {
        let is_plain = segment.flags.0 & !TcpFlags::PSH == TcpFlags::ACK
            && !segment.damaged
            && segment.options.sack.is_empty()
            // A segment with a single byte may be a probe.
            && segment.payload_bytes != 1;
        let is_known = sender.acked.is_some() && receiver.snd_una.is_some();
        if !is_plain || !is_known || receiver.last_was_probe {
            return None;
        }
        // The segment begins at the highest offset sent. Neither an ACK nor a later segment shows missing bytes above
        // this offset.
        let start = sender.snd_max;
        let is_next = segment.seq == sender.figures.isn?.wrapping_add(start as u32)
            && sender.snd_una.value() <= start
            && sender.overtaken.as_deref().is_none_or(|shown| shown.end <= start);
        let una = receiver.snd_una.value();
        let ack = seq::unwrap(segment.ack, receiver.figures.isn?, receiver.snd_max);
        let acked = sender.acked.value();
        let advances = if segment.payload_bytes > 0 { ack >= acked } else { ack > acked };
        let is_quiet = receiver.history.as_deref().is_none_or(|history| history.is_quiet(una));
        let placed = Placed { start, end: start + i64::from(segment.payload_bytes) };
        (is_next && advances && una <= ack && ack <= receiver.snd_max && is_quiet).then_some(Self { placed, ack, una })
    }

    /// Classifies the segment and updates the state of both directions. `DATA` is set if the segment has data.
    #[inline(always)]
    pub(crate) fn exchange<const DATA: bool>(
        self,
        segment: &Segment,
        sender: &mut DirectionState,
        receiver: &mut DirectionState,
    ) -> Judged {
        let Self { placed, ack, una } = self;
        let before = Before::of(segment, sender, receiver);
        let verdict = if DATA { classify::NEW } else { classify::ACK };
        let released = if DATA { Some(classify::released_by(segment, verdict, sender, receiver)) } else { None };
        sending::count(segment, &mut sender.figures);
        if DATA {
            sending::send_new(segment, placed, 0, 0, sender, receiver);
            sender.note_flight();
        }
        receiver.sacked_bytes = 0;
        Judged {
            placed,
            ack: Some(ack),
            arrived_ack: Some(ack),
            sack_blocks: None,
            before,
            novelty: Novelty { new: placed.end - placed.start, jumper: None },
            repeat: None,
            transmission: u8::from(DATA),
            verdict,
            signals: Signals::default(),
            released,
            answer: ack::move_on(segment, una, ack, receiver),
        }
    }
}
