//! The gates: one file for each reason why TCP may not send (`docs/how-it-decides.md`, 4).
//!
//! Each file says what closes the gate, what opens it, what disproves it, and the source. A gate gets the evidence of
//! one wait. It answers whether it was closed until the departure, and how sure that is. No gate reads the answer of
//! another; `judge.rs` decides which one counts.

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

/// Makes the functions that ask all listed gates in turn. They call each gate by name, so that the compiler can inline
/// it, because most gates answer after one test. An array of function pointers would prevent inlining.
macro_rules! order {
    ($($gate:path,)+) => {
        /// The first gate that was closed.
        #[inline]
        pub(super) fn first_closed(wait: &Evidence<'_>) -> Option<Closed> {
            None$(.or_else(|| $gate(wait)))+
        }

        /// The first gate that was closed until the departure, for a wait whose owner opened earlier.
        #[cold]
        pub(super) fn closed_to_the_end(wait: &Evidence<'_>) -> Option<Closed> {
            let to_the_end = |closed: &Closed| closed.opened_ago_ns.is_none();
            None$(.or_else(|| $gate(wait).filter(to_the_end)))+
        }

        /// The answer of every gate, with its name: `None` if it was open. For people who ask why a wait has its cause;
        /// the judge needs only the first.
        #[must_use]
        pub fn answers(wait: &Evidence<'_>) -> Vec<(&'static str, Option<Closed>)> {
            vec![$((stringify!($gate), $gate(wait))),+]
        }
    };
}

// All gates, in the order in which they count if several were closed until the same event. First come causes that a
// capture shows plainly, last those that remain when nothing else explains the wait.
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
