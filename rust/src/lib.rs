//! The engine of tcptrace-lab: capture files in, Arrow columns of TCP segments and connections out.
//!
//! It does what is sequential, per packet and hostile; what is about sets and people is done in Python on the tables
//! that leave here. The layers, each using only those before it:
//!
//! 1. [`error`], [`nullable`], [`seq`]: errors, numbers that may be unknown, and 32-bit sequence numbers.
//! 2. [`capture`]: bytes of files → frames. Knows formats and compression, knows nothing of networks.
//! 3. [`wire`]: a frame → the TCP segment in it. "What the bytes say": no state, no judgement.
//! 4. [`connection`]: segments → what happened to each. Sequence space, round trips, retransmission kinds.
//! 5. [`sender`]: what the sender knew at each instant → its waits.
//! 6. [`accounts`]: what is added up of each direction: counts, statistics, behaviour, rates, the view of its sender.
//! 7. [`flows`]: the connections of a capture, by their endpoints, and the rows that leave for each.
//! 8. [`ledger`]: waits and direction facts → causes: *why is the next byte of this direction not leaving now?*
//! 9. [`table`]: rows → Arrow columns, in batches.
//! 10. [`engine`]: drives all of these over three threads with bounded memory.
//! 11. `python`: the only module that knows Python.
//!
//! `tests/layers.rs` reads this list. It fails where a file imports from a later layer, and where files import each other in a
//! circle (it names two layers that still have some inside).

#![deny(unsafe_code)]

pub mod accounts;
pub mod capture;
pub mod connection;
pub mod engine;
pub mod error;
pub mod flows;
pub mod ledger;
pub mod nullable;
#[cfg(feature = "python")]
mod python;
pub mod sender;
pub mod seq;
pub mod table;
pub mod wire;
