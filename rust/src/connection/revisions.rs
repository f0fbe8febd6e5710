//! What later segments show about earlier ones whose rows have left already.

use super::evidence::{Confidence, Evidence};
use super::kind::Kind;

/// Most revisions remembered: 32 MB. Past it the rows keep the verdict of their own moment; the counters are right all the same.
pub const MAX_REVISIONS: usize = 1 << 20;

/// A better verdict on an earlier frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // one fact has one home
pub struct Revision {
    pub frame: u64,
    pub evidence_frame: u64,
    pub kind: Kind,
    pub evidence: Evidence,
    pub confidence: Confidence,
}

/// All revisions of some connections, those of each in the order in which they were made.
#[derive(Debug, Default)]
pub struct Revisions {
    kept: Vec<Revision>,
    dropped: u64,
}

impl Revisions {
    /// Takes one in.
    #[cold]
    pub(crate) fn add(&mut self, revision: Revision) {
        if self.kept.len() < MAX_REVISIONS {
            self.kept.push(revision);
        } else {
            self.dropped += 1;
        }
    }

    /// Takes in those of other connections.
    pub(crate) fn append(&mut self, others: Self) {
        self.dropped += others.dropped;
        others.kept.into_iter().for_each(|revision| self.add(revision));
    }

    /// Those that were kept.
    #[must_use]
    pub fn as_slice(&self) -> &[Revision] {
        &self.kept
    }

    /// How many were not kept.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
