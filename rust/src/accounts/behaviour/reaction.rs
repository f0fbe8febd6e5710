//! How fast a host answers, measured at the capture point. The shortest reaction time shows how far away the host is.

use serde::{Deserialize, Serialize};

use crate::connection::{Kind, Placed};
use crate::nullable::Nullable;
use crate::wire::{Segment, TcpFlags};

/// Reaction times of a host. A reaction time begins when a segment for the host is captured. The reaction time ends
/// when the host proves that this segment has arrived. The proof is an echoed timestamp (RFC 7323, 3), or data beyond
/// the peer's previous window. The ACK of data is a proof too, but counts as an RTT sample instead.
///
/// A reaction takes at least the round trip from the capture point to the host. The shortest reaction time is therefore
/// the best estimate of this round trip.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Reaction {
    /// The shortest reaction time.
    pub min_ns: Nullable,
    /// The peer's oldest segment whose timestamp is not echoed yet: its capture time and this timestamp.
    awaited_ts_ns: Nullable,
    awaited_tsval: u32,
    /// The peer's latest TCP timestamp (`TSval`).
    peer_tsval: u32,
    /// The highest right edge of the peer's window, the highest right edge before the latest change, and the time of
    /// this change. Without a known window scale, only a zero window gives an edge.
    edge: Nullable,
    edge_before: Nullable,
    edge_ts_ns: Nullable,
}

impl Reaction {
    /// Measures a reaction time if this segment proves the arrival of an earlier segment of the peer. Returns true if
    /// the segment exceeds the peer's previous window. Such a segment proves that the host knows the peer's latest
    /// window.
    #[inline]
    pub(super) fn answers(&mut self, segment: &Segment, placed: Placed, kind: Kind, now: Nullable) -> bool {
        if let Some(echo) = segment.options.echo()
            && self.awaited_ts_ns.is_some()
            && echo.wrapping_sub(self.awaited_tsval) as i32 >= 0
        {
            self.sample(now.since(self.awaited_ts_ns));
            self.awaited_ts_ns = Nullable::default();
        }
        // A FIN can exceed the window (4.4BSD, `tcp_output`).
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

    /// Records a segment of the peer, whose arrival a later segment of this host can prove.
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
        // Without a known window scale, a nonzero window has no known right edge, and only shows that a zero window has
        // opened.
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
