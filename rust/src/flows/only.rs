//! A second pass over a capture for some of its connections. The selected connections keep their numbers, and all other
//! packets are skipped early.

use std::net::IpAddr;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::wire::{FlowKey, Packet};

/// A connection that the first pass found.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Number of the connection.
    pub conn: u32,
    /// Both endpoints in any order.
    pub ends: [(IpAddr, u16); 2],
    /// Frame numbers of the connection's first and last segment.
    pub frames: (u64, u64),
}

/// The selected connections, grouped by flow.
///
/// ```
/// use tcptrace_lab_core::flows::{Known, Only};
/// use tcptrace_lab_core::wire::FlowKey;
///
/// let ends = [([192, 0, 2, 1].into(), 40_001), ([192, 0, 2, 2].into(), 5_001)];
/// let only = Only::new([Known { conn: 3, ends, frames: (10, 90) }]);
/// assert!(only.wants_flow(&FlowKey::between(ends)));
/// assert!(!only.wants_flow(&FlowKey::between([ends[0], ([192, 0, 2, 3].into(), 5_001)])));
/// ```
#[derive(Debug, Default)]
pub struct Only {
    flows: HashMap<FlowKey, Vec<Known>, RandomState>,
}

impl Only {
    /// Selects these connections.
    pub fn new(known: impl IntoIterator<Item = Known>) -> Self {
        let mut flows = HashMap::<_, Vec<_>, _>::default();
        for connection in known {
            flows.entry(FlowKey::between(connection.ends)).or_default().push(connection);
        }
        Self { flows }
    }

    /// The number of the connection to which a segment of `key` in `frame` belongs, or `None` if this connection is not
    /// selected.
    #[inline]
    pub(super) fn number(&self, key: &FlowKey, frame: u64) -> Option<u32> {
        let known = self.flows.get(key)?;
        known.iter().find(|known| known.frames.0 <= frame && frame <= known.frames.1).map(|known| known.conn)
    }

    /// Whether a segment between these endpoints can belong to a selected connection.
    #[inline]
    #[must_use]
    pub fn wants_flow(&self, flow: &FlowKey) -> bool {
        self.flows.contains_key(flow)
    }

    /// Whether the second pass needs a packet, which is always true for a UDP datagram.
    #[inline]
    #[must_use]
    pub fn wants(&self, packet: &Packet) -> bool {
        match packet {
            Packet::Tcp(segment) => self.number(&segment.key, segment.frame).is_some(),
            Packet::Udp(_) => true,
        }
    }
}
