//! What the sender knew at each instant, and the waits that follow from it.
//!
//! A departure is a segment that occupies sequence space: data, SYN or FIN, sent or resent. Between two departures of one
//! direction the sender waits. What arrived at it meanwhile explains why, so each wait is recorded with what the sender knew
//! at its end ([`Wait`]). No cause is decided here; that is the task of [`crate::ledger`].
//!
//! The capture may be far from the sender. Arrivals are therefore moved to the time at which they reach the sender: later by
//! the round trip from the capture point to the sender and back, because its departures, too, are captured late.
//!
//! `SenderView` is the state of one direction. It takes in a `Leaves` when a segment leaves this sender, and an `Arrival` when
//! a segment of the other side is captured on its way here.

mod arrivals;
mod arriving;
mod clock;
mod counted;
mod departing;
mod leaves;
mod paced;
mod rounds;
mod spacing;
mod steady;
mod stops;
mod timing;
mod totals;
mod view;
mod wait;

pub(crate) use arrivals::{Arrival, Missing};
pub(crate) use clock::DRIFT_PART;
pub(crate) use leaves::Leaves;
pub(crate) use spacing::{AROUND_BYTES, AROUND_IN_CELLS_BYTES, CELL_BYTES, TIMESTAMP_BYTES};
pub use timing::LONGEST_NS;
pub(crate) use timing::{NO_DISTANCE_NS, at_either, shift_ns};
pub(crate) use view::SenderView;
pub(crate) use wait::LET_GO_PART;
pub use wait::{DirectionTotals, FirstDeparture, Wait};
