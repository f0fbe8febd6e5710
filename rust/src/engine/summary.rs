//! The summary of a capture that was read.

use std::collections::BTreeMap;

use crate::capture::{CaptureInfo, LinkType};
use crate::error::Problem;

/// What was read so far.
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
    /// Number of frames that were not captured completely (captured length below the length on the wire).
    pub truncated_packets: u64,
    /// Number of frames with a timestamp before that of the previous frame.
    pub backward_timestamps: u64,
    /// The largest step back from one timestamp to the next.
    pub largest_step_back_ns: i64,
    /// The tick of the capture's clock, if it is coarser than the resolution stated in the files.
    pub tick_ns: Option<i64>,
    /// Problems that did not stop the pass.
    pub problems: Vec<Problem>,
}

impl Summary {
    /// Whether all data in the files could be used.
    #[must_use]
    pub fn complete(&self) -> bool {
        !self.problems.iter().any(|problem| problem.loses_data)
    }
}
