//! The shortest time in which a host answers, from all evidence in the capture.

use crate::nullable::Nullable;

/// Initial TTLs of common stacks. A captured packet with such a TTL has passed no router.
pub(crate) const INITIAL_TTLS: [u8; 3] = [64, 128, 255];

/// The measurements that give the turnaround of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answering {
    /// The shortest [`super::Reaction`] of the host.
    pub reaction_min_ns: Nullable,
    /// The shortest RTT sample of the peer's data.
    pub other_rtt_min_ns: Nullable,
    /// The largest TTL in the segments of the host, and the largest one of the peer. 0 means unknown.
    pub ttl: u8,
    pub other_ttl: u8,
}

impl Answering {
    /// The turnaround of the host: the shortest time from a captured segment for the host to its captured answer.
    #[inline]
    pub(crate) fn turnaround_ns(self) -> Option<i64> {
        match (self.reaction_min_ns.get(), self.other_rtt_min_ns.get()) {
            (Some(by_echo), Some(by_ack)) => Some(by_ack.min(by_echo)),
            (Some(_), None) if is_on_the_link(self.ttl, self.other_ttl) => Some(0),
            (by_echo, by_ack) => by_echo.or(by_ack),
        }
    }
}

/// Whether the host is on the same link as the capture point, and only the path to the peer has routers. If such a host
/// sends data on its own initiative, its echoed timestamps show only how long its application waited.
fn is_on_the_link(ttl: u8, other_ttl: u8) -> bool {
    other_ttl > 0 && INITIAL_TTLS.contains(&ttl) && !INITIAL_TTLS.contains(&other_ttl)
}
