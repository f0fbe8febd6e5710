//! The shortest time that a side takes to answer, by everything in the capture that shows it.

use crate::nullable::Nullable;

/// Times to live that stacks start with (`INITIAL_TTLS` of `fingerprint.py`): no router has passed such a packet on.
pub(crate) const INITIAL_TTLS: [u8; 3] = [64, 128, 255];

/// What tells how soon a side answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answering {
    /// Shortest [`super::Reaction`] of the side.
    pub reaction_min_ns: Nullable,
    /// Shortest round trip of the other side's data.
    pub other_rtt_min_ns: Nullable,
    /// Largest times to live that segments of the side and of the other one came with; 0: none came.
    pub ttl: u8,
    pub other_ttl: u8,
}

impl Answering {
    /// Shortest time from a segment that passes the capture point on its way to the side to one that passes it on its way back
    /// and proves that the first had arrived.
    #[inline]
    pub(crate) fn turnaround_ns(self) -> Option<i64> {
        match (self.reaction_min_ns.get(), self.other_rtt_min_ns.get()) {
            (Some(by_echo), Some(by_ack)) => Some(by_ack.min(by_echo)),
            (Some(_), None) if is_on_the_link(self.ttl, self.other_ttl) => Some(0),
            (by_echo, by_ack) => by_echo.or(by_ack),
        }
    }
}

/// Whether routers lie between the capture point and the other side alone: what this side sends by itself tells of the way to
/// it only as far as its program waits for nothing else.
fn is_on_the_link(ttl: u8, other_ttl: u8) -> bool {
    other_ttl > 0 && INITIAL_TTLS.contains(&ttl) && !INITIAL_TTLS.contains(&other_ttl)
}
