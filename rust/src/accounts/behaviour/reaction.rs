//! How soon a side answers, seen from the capture point: the proof of where the capture was taken.

use serde::{Deserialize, Serialize};

use crate::connection::{Kind, Placed};
use crate::nullable::Nullable;
use crate::wire::{Segment, TcpFlags};

/// Times from a segment on its way to this side to the first one from it that proves its arrival, by what round-trip
/// samples do not see: an echoed timestamp (RFC 7323, 3), and data beyond the window that was offered before.
///
/// Each is an upper bound of the way there and back, so that their minimum tends to it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Reaction {
    /// Shortest of them.
    pub min_ns: Nullable,
    /// When the segment was seen whose timestamp is yet to be echoed, and that timestamp.
    awaited_ts_ns: Nullable,
    awaited_tsval: u32,
    /// Newest timestamp of the other side.
    heard_tsval: u32,
    /// Highest offset that the other side ever allowed, when it did so, and what it had allowed before; `None` where the scale of
    /// its windows is not known, but for closed ones.
    edge: Nullable,
    edge_before: Nullable,
    edge_ts_ns: Nullable,
}

impl Reaction {
    /// This side sends a segment. True if the window it was last offered was needed for it.
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

    /// A segment of the other side is on its way to this one.
    #[inline]
    pub(super) fn is_told(&mut self, segment: &Segment, ack: Option<i64>, window_bytes: Option<u32>, now: Nullable) {
        if let Some((value, _)) = segment.options.timestamps
            && value != self.heard_tsval
        {
            self.heard_tsval = value;
            if !self.awaited_ts_ns.is_some() {
                self.awaited_ts_ns = now;
                self.awaited_tsval = value;
            }
        }
        let Some(ack) = ack else { return };
        let edge = window_bytes.map(|window_bytes| ack.saturating_add(i64::from(window_bytes)));
        // A window of unknown scale is open, and how far is not known: that what was closed before has opened is.
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
