//! Draws conclusions from a whole connection about its two hosts and about its capture.
//!
//! Earlier layers produce the counts in the row of a finished connection. This layer draws conclusions from these
//! counts. If the counts do not decide a case, the result is unknown, because a guess would be mistaken for a
//! measurement.
//!
//! - The capture: `vantage` (its place on the path), `quality` (its faults)
//! - Each host: `acking` (when it sends ACKs), `nagle` (whether it delays small segments), `stack` (its family of TCP
//!   stacks: a guess)
//! - Each direction: `rates` (how fast it was, and which bound it reached)

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
