//! Corrections of verdicts on segments whose rows were already emitted.

use super::evidence::{Confidence, Evidence};
use super::kind::Kind;

/// Maximum number of stored revisions (32 MB). Further revisions correct only the counters, not the rows.
pub const MAX_REVISIONS: usize = 1 << 20;

/// A corrected verdict on an earlier frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is defined in `tcptrace_lab/schema/`
pub struct Revision {
    pub frame: u64,
    pub evidence_frame: u64,
    pub kind: Kind,
    pub evidence: Evidence,
    pub confidence: Confidence,
}

/// The revisions of several connections. The revisions of one connection are in the order in which they were made.
#[derive(Debug, Default)]
pub struct Revisions {
    kept: Vec<Revision>,
    dropped: u64,
}

impl Revisions {
    #[cold]
    pub(crate) fn add(&mut self, revision: Revision) {
        if self.kept.len() < MAX_REVISIONS {
            self.kept.push(revision);
        } else {
            self.dropped += 1;
        }
    }

    pub(crate) fn append(&mut self, others: Self) {
        self.dropped += others.dropped;
        others.kept.into_iter().for_each(|revision| self.add(revision));
    }

    /// The revisions that were kept.
    #[must_use]
    pub fn as_slice(&self) -> &[Revision] {
        &self.kept
    }

    /// Number of revisions that were not stored.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
