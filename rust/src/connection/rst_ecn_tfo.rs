//! Evaluates segments with unusual flags: the effect of a RST on its receiver, the steps of TCP Fast Open, and ECN
//! flags.

use super::direction::DirectionState;
use super::evidence::{EcnSignal, ResetKind, Tfo};
use super::sequence_space::Placed;
use crate::wire::{FastOpen, Segment, TcpFlags};

/// Flags that few segments have.
const UNUSUAL: u16 = TcpFlags::SYN | TcpFlags::RST | TcpFlags::ECE | TcpFlags::CWR | TcpFlags::AE;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Signals {
    pub reset_kind: Option<ResetKind>,
    pub tfo: Option<Tfo>,
    pub ecn: Option<EcnSignal>,
}

/// The meaning of a segment's flags; the default value for nearly all segments. `ack` is the offset that the segment
/// acknowledges.
#[inline]
pub(crate) fn signals(
    segment: &Segment,
    placed: Placed,
    ack: Option<i64>,
    sender: &mut DirectionState,
    receiver: &mut DirectionState,
) -> Signals {
    if segment.flags.any(UNUSUAL) { unusual(segment, placed, ack, sender, receiver) } else { Signals::default() }
}

#[cold]
fn unusual(
    segment: &Segment,
    placed: Placed,
    ack: Option<i64>,
    sender: &mut DirectionState,
    receiver: &mut DirectionState,
) -> Signals {
    let reset = segment.flags.any(TcpFlags::RST);
    Signals {
        reset_kind: reset.then(|| reset_kind(placed, ack, sender, receiver)),
        tfo: if reset { None } else { fast_open(segment, ack, receiver) },
        ecn: if reset { None } else { ecn_signal(segment.flags, sender, receiver) },
    }
}

/// How the receiver processes a RST, derived from the ACKs that the receiver has sent (RFC 9293, 3.10.7.3; RFC 5961,
/// 3.2).
fn reset_kind(placed: Placed, ack: Option<i64>, sender: &DirectionState, receiver: &DirectionState) -> ResetKind {
    let closed = |direction: &DirectionState| direction.figures.fin_segments > 0;
    if sender.reset_frame > 0 || receiver.reset_frame > 0 {
        return ResetKind::AfterClose;
    }
    let answers_syn = receiver.figures.syn_segments > 0 && receiver.acked.get().is_none();
    if !sender.started && answers_syn && ack.is_some_and(|ack| ack == receiver.snd_max) {
        return ResetKind::Refused;
    }
    let Some(expected) = receiver.acked.get().filter(|_| sender.figures.isn.is_some()) else {
        return ResetKind::Unknown;
    };
    if closed(sender) && closed(receiver) && expected >= sender.snd_max {
        return ResetKind::AfterClose;
    }
    // If the bytes in flight arrive before the RST, the receiver expects `snd_max`.
    if placed.start == expected || placed.start == sender.snd_max {
        return ResetKind::Exact;
    }
    let window = i64::from(receiver.window_bytes.unwrap_or_else(|| u32::from(receiver.raw_window)));
    let inside = expected <= placed.start && placed.start < expected.max(sender.snd_max).saturating_add(window);
    // If the window scale is unknown, the window may be larger than the value in the header.
    let perhaps_inside = receiver.window_bytes.is_none() && placed.start > expected;
    match inside {
        true => ResetKind::InWindow,
        false if perhaps_inside => ResetKind::Unknown,
        false => ResetKind::OutOfWindow,
    }
}

/// Recognizes the steps of TCP Fast Open (RFC 7413, 4).
fn fast_open(segment: &Segment, ack: Option<i64>, receiver: &mut DirectionState) -> Option<Tfo> {
    if !segment.flags.any(TcpFlags::SYN) {
        return None;
    }
    let option = segment.options.fast_open;
    let Some(ack) = ack else {
        return match option {
            _ if segment.payload_bytes > 0 => Some(Tfo::Data),
            Some(FastOpen::Request) => Some(Tfo::CookieRequest),
            Some(FastOpen::Cookie) => Some(Tfo::Cookie),
            None => None,
        };
    };
    // The client's SYN has offset 0, and the data in the SYN begins at offset 1.
    if receiver.figures.syn_segments > 0 && receiver.figures.data_segments > 0 {
        receiver.syn_data_refused |= ack <= 1;
        return Some(if ack > 1 { Tfo::DataAccepted } else { Tfo::DataRefused });
    }
    option.map(|_| Tfo::CookieGrant)
}

/// The meaning of the ECN flags (RFC 3168, 6.1). A SYN with all three ECN flags offers Accurate ECN (RFC 9768, 3.1).
fn ecn_signal(flags: TcpFlags, sender: &mut DirectionState, receiver: &mut DirectionState) -> Option<EcnSignal> {
    let (echo, reduced) = (flags.any(TcpFlags::ECE), flags.any(TcpFlags::CWR));
    if flags.any(TcpFlags::SYN) && !flags.any(TcpFlags::ACK) {
        sender.accurate_ecn = echo && reduced && flags.any(TcpFlags::AE);
        return match (echo, reduced) {
            (true, true) if sender.accurate_ecn => Some(EcnSignal::Accurate),
            (true, true) => Some(EcnSignal::Setup),
            _ => None,
        };
    }
    if flags.any(TcpFlags::SYN) {
        // A SYN-ACK with only ECE accepts classic ECN; a SYN-ACK without ECN flags refuses ECN (RFC 9768, 3.1.2).
        let accurate = receiver.accurate_ecn && (reduced || flags.any(TcpFlags::AE));
        (sender.accurate_ecn, receiver.accurate_ecn) = (accurate, accurate);
        return match (accurate, echo && !reduced) {
            (true, _) => Some(EcnSignal::Accurate),
            (false, true) => Some(EcnSignal::Accepted),
            (false, false) => None,
        };
    }
    match (echo, reduced) {
        _ if sender.accurate_ecn => Some(EcnSignal::Accurate),
        (true, true) => Some(EcnSignal::EchoReduced),
        (true, false) => Some(EcnSignal::Echo),
        (false, true) => Some(EcnSignal::Reduced),
        (false, false) => None,
    }
}
