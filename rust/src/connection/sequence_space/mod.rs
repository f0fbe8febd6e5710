//! The sequence space of one direction: what was sent, is in flight, is missing, and was reported in SACK
//! blocks.

mod holes;
mod outstanding;
mod placed;
mod queue;
mod ranges;

pub(crate) use holes::{Filled, Holes};
pub(crate) use outstanding::{Acknowledged, Outstanding, Repeat, Stamp};
pub(crate) use placed::Placed;
pub(crate) use ranges::Ranges;
