//! Segments → what happened to each: its place in the sequence space, what it acknowledges, round trips, and its kind.
//!
//! Each direction of a connection has a `Half`: what is outstanding, the holes, the window. A segment is judged against both
//! halves as they were just before it, and then moves them on (`exchange`, or `header_prediction` for the usual ones).
//! What comes of it is a `Judged`; connections, rows and everything that is counted are made from it in the layers above.
//!
//! - Vocabulary: `kind`, `evidence`, `figures`, `revisions`
//! - State: `sequence_space`, `recent` and `history`, all in `half`
//! - Judging: `classify`, `resent`, `capture_duplicates`, `sending`, `ack`, `rst_ecn_tfo`, put together in `exchange`

#![allow(clippy::inline_always)] // measured: what is not inlined cannot drop what a pass without accounts does not need

mod ack;
mod capture_duplicates;
mod classify;
mod evidence;
mod exchange;
mod figures;
mod half;
mod header_prediction;
mod history;
mod judged;
mod kind;
mod mss;
mod recent;
mod resent;
mod revisions;
mod rst_ecn_tfo;
mod sending;
mod sequence_space;

pub use evidence::{Confidence, EcnSignal, Evidence, ResentBy, ResetKind, Tfo};
pub use figures::{DirectionFigures, SynOptions};
pub use kind::{Kind, ReleasedBy};
pub use revisions::{MAX_REVISIONS, Revision, Revisions};

pub(crate) use ack::Answer;
pub(crate) use capture_duplicates::copy_of;
pub(crate) use evidence::Verdict;
pub(crate) use exchange::{copied, exchange};
pub(crate) use figures::MAX_WINDOW_SCALE;
pub(crate) use half::{CLUSTER_BYTES, Half, settle_window_scales};
pub(crate) use header_prediction::Usual;
pub(crate) use judged::{Before, Judged};
pub(crate) use mss::full_segment_bytes;
pub(crate) use resent::{CAUSAL_NS, FAST_RETRANSMIT_DUPLICATE_ACKS, PROBE_ROUND_TRIPS, is_told_enough};
pub(crate) use sending::Novelty;
pub(crate) use sequence_space::{Acknowledged, Placed, Repeat};
