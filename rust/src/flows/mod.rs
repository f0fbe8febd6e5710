//! The flows of a capture: TCP connections and UDP flows, by their endpoints, and the rows that leave for each.
//!
//! This is a layer of its own because a connection needs all that lies below: each of its segments is judged
//! ([`crate::connection`]), ends a wait of its sender ([`crate::sender`]), and is added up ([`crate::accounts`]).
//! [`Connections`], in `flow_table`, finds the connection of each segment; `connection` holds one.

#![allow(clippy::inline_always)] // measured: what is not inlined cannot drop what a pass without accounts does not need

mod connection;
mod datagrams;
mod flow_table;
mod handshake;
mod only;
mod rows;
#[cfg(test)]
mod tests;
mod times;

pub use datagrams::{DatagramRow, FlowRow, Flows};
pub use flow_table::{Accounting, Connections};
pub use only::{Known, Only};
pub use rows::{ClientKnownBy, ClosedBy, ConnectionRow, SegmentRow, SegmentSink};
pub use times::{DirectionTimes, Quantiles};
