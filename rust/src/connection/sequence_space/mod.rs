//! The sequence space of one direction: bytes in flight, holes in the capture, and ranges reported in SACK blocks.

mod holes;
mod outstanding;
mod placed;
mod queue;
mod ranges;

pub(crate) use holes::{Filled, Holes};
pub(crate) use outstanding::{Acknowledged, Outstanding, Repeat, Stamp};
pub(crate) use placed::Placed;
pub(crate) use ranges::Ranges;
