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

/// Makes the functions that ask the gates of its lines, one after the other. They are called by name: behind addresses in an array, none
/// could be compiled in place, and most of them answer after one look at the wait.
macro_rules! order {
    ($($gate:path,)+) => {
        /// The first gate that was closed.
        #[inline]
        pub(super) fn first_closed(wait: &Evidence<'_>) -> Option<Closed> {
            None$(.or_else(|| $gate(wait)))+
        }

        /// The first gate that was closed until the departure, behind one that opened before it.
        #[cold]
        pub(super) fn closed_to_the_end(wait: &Evidence<'_>) -> Option<Closed> {
            let to_the_end = |closed: &Closed| closed.opened_ago_ns.is_none();
            None$(.or_else(|| $gate(wait).filter(to_the_end)))+
        }
    };
}

// All gates. Where several were closed until the same event, the first of them counts: what a capture shows plainly comes first, what is
// left when nothing else holds comes last.
order! {
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
}
