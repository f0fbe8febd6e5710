//! The engine of tcptrace-lab: capture files in, Arrow columns of TCP segments and connections out.
//!
//! It does what is sequential, per packet and hostile; what is about sets and people is done in Python on the tables
//! that leave here. The layers, each using only those before it:
//!
//! 1. [`capture`]: bytes of files → frames. Knows formats and compression, knows nothing of networks.
//! 2. [`wire`]: a frame → the TCP segment in it. "What the bytes say": no state, no judgement.
//! 3. [`connection`]: segments → connections. "What we conclude": sequence space, round trips, what each segment is.
//! 4. [`table`]: conclusions → Arrow columns, in batches.
//! 5. [`engine`]: drives the four above over three threads with bounded memory.
//! 6. `python`: the only module that knows Python.

#![deny(unsafe_code)]

pub mod capture;
pub mod connection;
pub mod engine;
pub mod error;
#[cfg(feature = "python")]
mod python;
pub mod seq;
pub mod table;
pub mod wire;
