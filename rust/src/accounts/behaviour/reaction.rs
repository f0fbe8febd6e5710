//! How fast a host answers, measured at the capture point. It shows where the capture was taken.

use serde::{Deserialize, Serialize};

use crate::connection::{Kind, Placed};
use crate::nullable::Nullable;
use crate::wire::{Segment, TcpFlags};

/// Times from the capture of a segment sent to this host until this host sends a segment that proves its arrival. Two
/// proofs that RTT samples do not use count: an echoed timestamp (RFC 7323, 3), and data beyond the previously offered
/// window.
///
/// Each time is an upper bound of the round trip between capture point and host, so their minimum approaches it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Reaction {
    /// The shortest of these times.
    pub min_ns: Nullable,
    /// When the segment was captured whose timestamp is not echoed yet, and that timestamp.
    awaited_ts_ns: Nullable,
    awaited_tsval: u32,
    /// The newest timestamp of the peer.
    peer_tsval: u32,
    /// The highest offset that the peer has allowed, the highest one before that, and when it changed. If the scale of
    /// the peer's windows is unknown, only closed windows are recorded.
    edge: Nullable,
    edge_before: Nullable,
    edge_ts_ns: Nullable,
}

impl Reaction {
    /// Takes a segment that this host sends. Returns whether the segment exceeds the window that the peer offered
    /// before the latest one.
    #[inline]
    pub(super) fn answers(&mut self, segment: &Segment, placed: Placed, kind: Kind, now: Nullable) -> bool {
        if let Some(echo) = segment.options.echo()
            && self.awaited_ts_ns.is_some()
            && echo.wrapping_sub(self.awaited_tsval) as i32 >= 0
        {
            self.sample(now.since(self.awaited_ts_ns));
            self.awaited_ts_ns = Nullable::default();
        }
        // A FIN needs no room in the window (4.4BSD, `tcp_output`).
        let end = placed.end - i64::from(segment.flags.any(TcpFlags::FIN));
        let needed_window = self.edge_before.is_some()
            && end > self.edge_before.value()
            && kind == Kind::New
            && segment.payload_bytes > 1;
        if needed_window {
            self.sample(now.since(self.edge_ts_ns));
            self.edge_before = Nullable::default();
        }
        needed_window
    }

    /// Takes a segment of the peer that is in transit to this host.
    #[inline]
    pub(super) fn peer_sent(&mut self, segment: &Segment, ack: Option<i64>, window_bytes: Option<u32>, now: Nullable) {
        if let Some((value, _)) = segment.options.timestamps
            && value != self.peer_tsval
        {
            self.peer_tsval = value;
            if !self.awaited_ts_ns.is_some() {
                self.awaited_ts_ns = now;
                self.awaited_tsval = value;
            }
        }
        let Some(ack) = ack else { return };
        let edge = window_bytes.map(|window_bytes| ack.saturating_add(i64::from(window_bytes)));
        // A window of unknown scale is open by an unknown amount. All that is known is that a closed window has opened.
        if edge.map_or(self.edge.is_some(), |edge| edge > self.edge.value()) {
            self.edge_before = self.edge;
            self.edge = edge.into();
            self.edge_ts_ns = now;
        }
    }

    fn sample(&mut self, reaction_ns: Nullable) {
        if let Some(reaction_ns) = reaction_ns.get().filter(|ns| *ns >= 0) {
            self.min_ns = Some(self.min_ns.get().map_or(reaction_ns, |least| least.min(reaction_ns))).into();
        }
    }
}
