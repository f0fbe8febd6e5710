//! Properties of a SYN that identify the TCP stack of its sender.

use serde::{Deserialize, Serialize};

use crate::wire::Segment;

/// The properties of one SYN.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SynShape {
    /// The kinds of the options in order, four bits each, as in `TcpOptions::kinds`. 0 ends the list.
    kinds: u64,
    /// The advertised window.
    pub window_bytes: u16,
    /// TTL or hop limit at the capture point.
    pub ttl: u8,
}

/// Names of option kinds, as in tcpdump and the RFCs.
const NAMES: [&str; 9] = ["eol", "nop", "mss", "wscale", "sackOK", "sack", "echo", "echoreply", "TS"];

impl SynShape {
    pub(crate) fn of(segment: &Segment) -> Self {
        Self { kinds: segment.options.kinds, window_bytes: segment.window, ttl: segment.ip.ttl }
    }

    /// The names of the options in order, such as `mss,sackOK,TS,nop,wscale`; empty without options.
    #[must_use]
    pub fn option_names(&self) -> String {
        let kinds = (0..16).map(|at| (self.kinds >> (4 * at) & 15) as usize).take_while(|kind| *kind > 0);
        let names: Vec<&str> = kinds.map(|code| NAMES.get(code - 1).copied().unwrap_or("other")).collect();
        names.join(",")
    }
}
