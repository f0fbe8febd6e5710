//! Data about each direction of a connection: counts, statistics, behaviour, rates, and the state of the sender.
//!
//! The accounts combine the results of two lower layers. [`crate::connection`] classifies each segment, and
//! [`crate::sender`] measures the wait before each segment. Accounts are needed only for the connections table and for
//! waits, so other passes skip them.
//!
//! A `DirectionAccount` contains all accumulators of one direction. `compact` stores the accounts of closed connections
//! in fewer bytes. `counts`, `statistics`, `behaviour` and `rates` do not depend on each other.

#![expect(
    clippy::inline_always,
    reason = "measured: without inlining, a pass without accounts still contains their code"
)]

mod account;
mod behaviour;
mod compact;
mod counts;
mod line;
mod rates;
mod rtt_figures;
mod statistics;

pub use behaviour::{Acking, Behaviour, Count, Nagle, Numbering, Reaction, Sending, SynShape};
pub use counts::Counts;
pub use line::Line;
pub use rates::{Cuts, Passed, Rates};
pub use rtt_figures::RttFigures;
pub use statistics::{Rare, StatisticsFigures, Usual};

pub(crate) use account::{AccountedDirection, DirectionAccount, take};
pub(crate) use behaviour::{INITIAL_TTLS, MIN_BUFFER_BYTES};
pub(crate) use compact::Accounts;
pub(crate) use line::{Channels, line_of};
