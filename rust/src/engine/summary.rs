//! What was read of a capture.

use std::collections::BTreeMap;

use crate::capture::{CaptureInfo, LinkType};
use crate::error::Problem;

/// What was read so far.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// What the files said about themselves.
    pub capture: CaptureInfo,
    /// Link type → packets that had it.
    pub link_types: BTreeMap<LinkType, u64>,
    /// Frames, as Wireshark numbers them.
    pub packets: u64,
    /// TCP segments.
    pub tcp_segments: u64,
    /// Connections.
    pub connections: usize,
    /// UDP datagrams.
    pub udp_datagrams: u64,
    /// Earliest and latest capture time.
    pub first_ts_ns: Option<i64>,
    /// See `first_ts_ns`.
    pub last_ts_ns: Option<i64>,
    /// Frames of which the capture holds less than was on the wire.
    pub snaplen_cut: u64,
    /// Frames with a time before that of the frame before them.
    pub clock_steps: u64,
    /// What was survived.
    pub problems: Vec<Problem>,
}

impl Summary {
    /// Whether everything in the files could be used.
    #[must_use]
    pub fn complete(&self) -> bool {
        !self.problems.iter().any(|problem| problem.loses_data)
    }
}
