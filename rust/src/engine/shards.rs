//! Which of the flow tables follows a connection.
//!
//! Connections are divided by their endpoints, always in the same way: so each flow table can be a thread's own, and the results do not
//! depend on the number of threads.

use crate::wire::Packet;

/// Number of flow tables, as a power of 2.
pub(super) const SHARD_BITS: u32 = 3;
/// Number of flow tables.
pub(super) const SHARDS: usize = 1 << SHARD_BITS;

/// The flow table that a packet belongs to; the first one for datagrams, which are all followed by one thread.
#[inline]
pub(super) fn shard_of(packet: &Packet) -> u8 {
    match packet {
        Packet::Tcp(segment) => segment.key.part(SHARD_BITS),
        Packet::Udp(_) => 0,
    }
}
