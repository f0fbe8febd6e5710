//! The flows of a capture: TCP connections and UDP flows by their endpoints, and their rows.
//!
//! This layer combines all layers below. It classifies each segment of a connection ([`crate::connection`]), ends the
//! wait of the segment's sender ([`crate::sender`]), and adds the segment to the accounts ([`crate::accounts`]).
//!
//! - TCP: `flow_table` finds the connection of a segment, `connection` is one of them, `handshake` determines its
//!   client, `histogram` and `times` compute its medians and percentiles, `rows` is what it emits
//! - UDP: `datagrams` finds the flow of a datagram, `datagram_figures` and `datagram_ids` measure it, `datagram_rows`
//!   is what it emits
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
