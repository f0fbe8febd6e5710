//! A number of bytes, and the time for sending, acknowledging or reading them.

use serde::{Deserialize, Serialize};

/// The bytes of all samples, and their total time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // `tcptrace_lab/schema/` defines each field
pub struct Passed {
    pub bytes: i64,
    pub ns: i64,
    pub samples: u32,
}

impl Passed {
    #[inline]
    pub(super) fn add(&mut self, bytes: i64, ns: i64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.ns = self.ns.saturating_add(ns);
        self.samples = self.samples.saturating_add(1);
    }

    pub(super) fn join(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.ns = self.ns.saturating_add(other.ns);
        self.samples = self.samples.saturating_add(other.samples);
    }
}
