//! Classifies each segment, from sequence numbers, acknowledgments and RTTs.
//!
//! Each direction of a connection has a `DirectionState` with its outstanding data, holes and window. `exchange`
//! classifies a segment from the state of both directions just before the segment, and then updates the state;
//! `header_prediction` is its fast path. The result is a `Judged`, from which other modules derive connections, rows
//! and counts.
//!
//! - Vocabulary: `kind`, `evidence`, `figures`, `revisions`
//! - State: `sequence_space`, `recent` and `history`, which `direction` combines
//! - Classification: `classify`, `resent`, `capture_duplicates`, `sending`, `ack`, `rst_ecn_tfo`, which `exchange`
//!   combines

#![expect(
    clippy::inline_always,
    reason = "measured: unless inlined, a pass without accounts contains the code for accounts"
)]

mod ack;
mod capture_duplicates;
mod classify;
mod direction;
mod evidence;
mod exchange;
mod figures;
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

pub use evidence::{Confidence, EcnSignal, Evidence, ResetKind, RetransmitTrigger, Tfo};
pub use figures::{DirectionFigures, SynOptions};
pub use kind::{Kind, ReleasedBy};
pub use revisions::{MAX_REVISIONS, Revision, Revisions};

pub(crate) use ack::Answer;
pub(crate) use capture_duplicates::copy_of;
pub(crate) use direction::{CLUSTER_BYTES, DirectionState, settle_window_scales};
pub(crate) use evidence::Verdict;
pub(crate) use exchange::{copied, exchange};
pub(crate) use figures::MAX_WINDOW_SCALE;
pub(crate) use header_prediction::Predicted;
pub(crate) use judged::{Before, Judged};
pub(crate) use mss::full_segment_bytes;
pub(crate) use resent::{CAUSAL_NS, FAST_RETRANSMIT_DUPLICATE_ACKS, PROBE_ROUND_TRIPS, is_loss_confirmed};
pub(crate) use sending::Novelty;
pub(crate) use sequence_space::{Acknowledged, Placed, Repeat};
