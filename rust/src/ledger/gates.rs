//! The gates: one file for each reason why TCP must not send (`docs/how-it-decides.md`, 4).
//!
//! Each file describes what closes the gate, what opens it and what disproves it, and names the source. A gate gets the
//! evidence of one wait. The gate returns whether it was closed until the segment was sent, and with which confidence.
//! No gate uses the result of another; `judge.rs` decides which result counts.

mod ambiguous;
mod close;
mod closed;
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
mod zero_window;

use super::evidence::Evidence;

pub use closed::Closed;
pub(super) use loss_recovery::before_signal;

/// Defines the functions that evaluate the listed gates in order. These functions call each gate by name, not through
/// an array of function pointers, so that the compiler can inline the gate. Inlining helps because most gates return
/// after one test.
macro_rules! order {
    ($($gate:path,)+) => {
        /// The first gate that was closed.
        #[inline]
        pub(super) fn first_closed(wait: &Evidence<'_>) -> Option<Closed> {
            None$(.or_else(|| $gate(wait)))+
        }

        /// The first gate that was closed until the segment was sent. The judge needs it if the first closed gate
        /// opened earlier.
        #[cold]
        pub(super) fn closed_to_the_end(wait: &Evidence<'_>) -> Option<Closed> {
            let to_the_end = |closed: &Closed| closed.opened_ago_ns.is_none();
            None$(.or_else(|| $gate(wait).filter(to_the_end)))+
        }

        /// The result of every gate, with the name of the gate; `None` for an open gate. The results explain why a wait
        /// has its cause.
        #[must_use]
        pub fn answers(wait: &Evidence<'_>) -> Vec<(&'static str, Option<Closed>)> {
            vec![$((stringify!($gate), $gate(wait))),+]
        }
    };
}

// All gates. If several gates were closed until the same event, the first one in this order counts. Causes that a
// capture shows plainly come first; causes that remain when nothing else explains the wait come last.
order! {
    handshake::gate,
    close::gate,
    timeout::gate,
    zero_window::gate,
    receiver_window::gate,
    loss_recovery::gate,
    nagle::with_delayed_ack,
    nagle::gate,
    ambiguous::gate,
    delayed_ack::gate,
    network::gate,
    congestion_window::gate,
    send_buffer::gate,
    slow_start::gate,
    pacing::gate,
    ambiguous::with_an_ack,
    ambiguous::without_an_event,
}
