//! The summary of a capture.

use std::collections::BTreeMap;

use crate::capture::{CaptureInfo, LinkType};
use crate::error::Problem;

/// What the pass has read so far.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Information from the file headers.
    pub capture: CaptureInfo,
    /// Number of frames of each link type.
    pub link_types: BTreeMap<LinkType, u64>,
    /// Number of frames, counted like Wireshark's frame numbers.
    pub packets: u64,
    /// Number of TCP segments.
    pub tcp_segments: u64,
    /// Number of connections.
    pub connections: usize,
    /// Number of UDP datagrams.
    pub udp_datagrams: u64,
    /// Earliest capture time.
    pub first_ts_ns: Option<i64>,
    /// Latest capture time.
    pub last_ts_ns: Option<i64>,
    /// Number of frames with a captured length below their length on the wire.
    pub truncated_packets: u64,
    /// Number of frames with an earlier timestamp than the previous frame.
    pub backward_timestamps: u64,
    /// The largest step back between two successive timestamps.
    pub largest_step_back_ns: i64,
    /// The tick of the capture's clock, if it is coarser than the resolution in the files.
    pub tick_ns: Option<i64>,
    /// Problems that did not stop the pass.
    pub problems: Vec<Problem>,
}

impl Summary {
    /// Whether the pass could use all data in the files.
    #[must_use]
    pub fn complete(&self) -> bool {
        !self.problems.iter().any(|problem| problem.loses_data)
    }
}
