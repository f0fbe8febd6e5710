//! The shortest time in which a host answers, from all evidence in the capture.

use crate::nullable::Nullable;

/// Initial TTLs of common stacks. A packet with one of them has passed no router.
pub(crate) const INITIAL_TTLS: [u8; 3] = [64, 128, 255];

/// Observations that show how fast a host answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answering {
    /// The shortest [`super::Reaction`] of the host.
    pub reaction_min_ns: Nullable,
    /// The shortest round trip of the peer's data.
    pub other_rtt_min_ns: Nullable,
    /// The largest TTLs of the host's and the peer's segments; 0 if unknown.
    pub ttl: u8,
    pub other_ttl: u8,
}

impl Answering {
    /// The shortest time from a segment that passes the capture point towards the host to a returning segment that
    /// proves its arrival.
    #[inline]
    pub(crate) fn turnaround_ns(self) -> Option<i64> {
        match (self.reaction_min_ns.get(), self.other_rtt_min_ns.get()) {
            (Some(by_echo), Some(by_ack)) => Some(by_ack.min(by_echo)),
            (Some(_), None) if is_on_the_link(self.ttl, self.other_ttl) => Some(0),
            (by_echo, by_ack) => by_echo.or(by_ack),
        }
    }
}

/// Whether routers lie between the capture point and the peer only. The host is then on the same link as the capture
/// point. Data that it sends on its own initiative shows its distance only if its application does not wait for
/// anything else.
fn is_on_the_link(ttl: u8, other_ttl: u8) -> bool {
    other_ttl > 0 && INITIAL_TTLS.contains(&ttl) && !INITIAL_TTLS.contains(&other_ttl)
}
