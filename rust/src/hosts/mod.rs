//! Draws conclusions about a connection's two hosts and about its capture.
//!
//! The input is the row of a finished connection, with the counts of all earlier layers. If the counts do not decide a
//! question, the answer is "unknown". A guess would look like a measurement.
//!
//! - The capture: `vantage` (the capture point on the path), `quality` (the faults of the capture)
//! - Each host: `acking` (when the host sends ACKs), `nagle` (whether the host delays small segments), `stack` (a guess
//!   of the TCP stack)
//! - Each direction: `rates` (the speed, and the bound that was reached)

mod acking;
mod nagle;
mod quality;
mod rates;
mod stack;
mod vantage;

pub(crate) use acking::fixed_timer_ms;
pub use acking::{AckPolicy, AckTimer, Acknowledging, TimerKind};
pub use nagle::{NagleState, NagleVerdict, nagle};
pub use quality::{Fault, faults};
pub use rates::{BoundBy, Bounds, bounds};
pub use stack::{Stack, stack};
pub use vantage::{KnownBy, Place, Vantage, turnaround_ns, vantage};
pub(crate) use vantage::{LONGEST_PATH_NS, is_loopback, is_near, is_unasked};
