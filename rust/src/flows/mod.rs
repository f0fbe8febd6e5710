//! Tracks the flows of a capture (TCP connections and UDP flows), and produces their rows.
//!
//! This layer combines all earlier layers. Each segment is classified ([`crate::connection`]), ends a wait of its
//! sender ([`crate::sender`]), and is added to the accounts ([`crate::accounts`]).
//!
//! - TCP: `flow_table` finds the connection of a segment, `connection` is one connection, `handshake` guesses the
//!   client, `histogram` and `times` compute medians and percentiles, `rows` defines the rows
//! - UDP: `datagrams` finds the flow of a datagram, `datagram_figures` and `datagram_ids` measure the flow,
//!   `datagram_rows` defines the rows
//! - Both: `only` limits a second pass to some connections

mod connection;
mod datagram_figures;
mod datagram_ids;
mod datagram_rows;
mod datagrams;
mod flow_table;
mod handshake;
mod histogram;
mod only;
mod rows;
#[cfg(test)]
mod tests;
mod times;

pub use datagram_rows::{DatagramRow, Echoes, FlowDirection, FlowRow};
pub use datagrams::Flows;
pub use flow_table::{Accounting, Connections};
pub use histogram::Quantiles;
pub use only::{Known, Only};
pub use rows::{ClientKnownBy, ClosedBy, ConnectionRow, SegmentRow, SegmentSink};
pub use times::DirectionTimes;
