//! The data collected for each direction of a connection: counts, statistics, behaviour, rates and the state of its
//! sender.
//!
//! This layer combines the results of two layers below: the classification of each segment ([`crate::connection`]), and
//! the wait that the segment ended ([`crate::sender`]). Classification does not need the accounts, so a pass that
//! returns no connections table and no waits skips them.
//!
//! A `DirectionAccount` contains all accumulators of one direction. `compact` stores the accounts of closed connections
//! in fewer bytes. `counts`, `statistics`, `behaviour` and `rates` are independent of each other: each has its own
//! accumulators and its own input.

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
