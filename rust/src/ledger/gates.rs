//! The reasons why TCP may not send, one file each: what closes the gate, what opens it, source, what disproves it.
//!
//! A gate looks at the evidence of one wait and answers whether it was closed until the departure, and how sure that is. No gate
//! reads another gate's answer; `judge.rs` decides which of several counts.

mod close;
mod congestion_window;
mod delayed_ack;
mod handshake;
mod loss_recovery;
mod nagle;
mod network;
mod pacing;
mod receiver_window;
mod send_buffer;
mod slow_start;
#[cfg(test)]
mod testing;
mod timeout;
mod untold;
mod zero_window;

use super::closed::Closed;
use super::evidence::Evidence;

pub(super) use loss_recovery::before_signal;

/// Whether a gate was closed until the departure.
type Gate = fn(&Evidence<'_>) -> Option<Closed>;

/// All gates. Where several were closed until the same event, the first of them counts: what a capture shows plainly comes
/// first, what is left when nothing else holds comes last.
pub(super) const ORDER: &[Gate] = &[
    handshake::gate,
    close::gate,
    timeout::gate,
    zero_window::gate,
    receiver_window::gate,
    loss_recovery::gate,
    nagle::with_delayed_ack,
    nagle::gate,
    untold::gate,
    delayed_ack::gate,
    network::gate,
    congestion_window::gate,
    send_buffer::gate,
    slow_start::gate,
    pacing::gate,
];
