//! The engine of tcptrace-lab: reads capture files and produces Arrow columns of TCP segments and connections.
//!
//! The engine does everything that is sequential, runs for each packet, or reads untrusted bytes. Python works on the
//! tables of the engine: it analyzes sets of connections, and writes the output for people. Each layer uses only the
//! layers before it:
//!
//! 1. [`error`], [`nullable`], [`seq`]: errors, numbers that can be unknown, and 32-bit sequence numbers.
//! 2. [`capture`]: turns the bytes of files into frames, in any format and compression, without knowledge of protocols.
//! 3. [`wire`]: extracts the TCP segment from a frame, without state or judgement.
//! 4. [`connection`]: classifies segments: sequence space, round trips, kinds of retransmission.
//! 5. [`sender`]: tracks what the sender knew at each instant, and derives its waits.
//! 6. [`accounts`]: accumulates counts, statistics, behaviour, rates and the sender's state for each direction.
//! 7. [`flows`]: finds the connection of each segment by its endpoints, and emits rows.
//! 8. [`hosts`]: draws conclusions from a whole connection about its two hosts and its capture.
//! 9. [`ledger`]: assigns a cause to each wait: *why is the next byte of this direction not leaving now?*
//! 10. [`messages`]: derives application messages from segments and the ledger's notes.
//! 11. [`figures`]: reduces the segments and waits of a direction to the series that a report draws.
//! 12. [`table`]: turns rows into batches of Arrow columns.
//! 13. [`engine`]: runs the layers in several threads with limited memory.
//! 14. `python`: the interface to Python. No other module depends on Python.
//!
//! `tests/layers.rs` reads this list. The test fails if a file imports from a later layer, or if imports form a cycle.

#![deny(unsafe_code)]

pub mod accounts;
pub mod capture;
pub mod connection;
pub mod engine;
pub mod error;
pub mod figures;
pub mod flows;
pub mod hosts;
pub mod ledger;
pub mod messages;
pub mod nullable;
#[cfg(feature = "python")]
mod python;
pub mod sender;
pub mod seq;
pub mod table;
pub mod wire;
