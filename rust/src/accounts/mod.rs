//! What is added up of each direction of a connection: counts, statistics, behaviour, rates, and the view of its sender.
//!
//! This is a layer of its own because it takes what both layers below tell: how a segment was judged ([`crate::connection`]) and
//! which wait it ended ([`crate::sender`]). No verdict on a segment needs any of it, so a pass that wants neither the connections
//! table nor the waits goes without.
//!
//! An `Account` holds the sums of one direction; `put_away` keeps those of connections that are over in little memory.
//! `counts`, `statistics`, `behaviour` and `rates` know nothing of each other: each takes its own accumulators and what it
//! reads.

#![allow(clippy::inline_always)] // measured: what is not inlined cannot drop what a pass without accounts does not need

mod account;
mod behaviour;
mod counts;
mod line;
mod put_away;
mod rates;
mod rtt_figures;
mod statistics;

pub use behaviour::{Acking, Behaviour, Count, Nagle, Numbering, Reaction, Sending, SynShape};
pub use counts::Counts;
pub use line::Line;
pub use rates::{Cuts, Passed, Rates};
pub use rtt_figures::RttFigures;
pub use statistics::{Rare, StatisticsFigures, Usual};

pub(crate) use account::{Account, Side, take};
pub(crate) use behaviour::{INITIAL_TTLS, LEAST_BUFFER_BYTES};
pub(crate) use line::{Channels, line_of};
pub(crate) use put_away::Accounts;
