//! The records of waits, stored until their connection ends.
//!
//! [`record`] is one wait: raw numbers and frames. `encoding` stores a wait in few bytes, as the difference from the
//! previous wait, with `tokens` for numbers. [`log`] contains the waits of one direction, and [`live`] contains the
//! waits of all connections that have not ended. Waits are in memory up to a limit, and above the limit in a temporary
//! file (`spool`).

mod encoding;
pub mod live;
pub mod log;
pub mod record;
pub(crate) mod spool;
mod tokens;
