//! What a sender knew when it sent each segment, and how long it waited before the segment.
//!
//! A departure is a segment that occupies sequence space: data, SYN or FIN, original or retransmission. Between two
//! departures of one direction the sender waits. The segments that arrive during a wait explain why the sender waits.
//! Each wait is therefore recorded with what the sender knew when the wait ended ([`Wait`]). [`crate::ledger`] assigns
//! the cause.
//!
//! The capture point may be far from the sender. An arrival is then captured before it reaches the sender, and a
//! departure is captured after it was sent. To make their times comparable, the round trip between capture point and
//! sender is added to the time of each arrival.
//!
//! `SenderState` is the state of one direction. A `Departure` updates the state for each segment of this sender, and an
//! `Arrival` updates it for each segment of the peer.

mod arrivals;
mod arriving;
mod clock;
mod counted;
mod departing;
mod departure;
mod full_buffer;
mod paced;
mod rounds;
mod spacing;
mod state;
mod steady;
mod timing;
mod totals;
mod wait;
mod writes;

pub(crate) use arrivals::{Arrival, Missing};
pub(crate) use clock::DRIFT_PART;
pub(crate) use departure::Departure;
pub(crate) use spacing::{AROUND_BYTES, AROUND_IN_CELLS_BYTES, CELL_BYTES, TIMESTAMP_BYTES};
pub(crate) use state::SenderState;
pub use timing::LONGEST_NS;
pub(crate) use timing::{NO_DISTANCE_NS, NS_PER_MS, at_either, shift_ns};
pub(crate) use wait::RELEASE_PART;
pub use wait::{FirstDeparture, LastSmall, SenderTotals, Wait};
pub(crate) use writes::{REACTION_NS, SLOW_REACTION_NS};
