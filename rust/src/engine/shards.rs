//! Assigns connections to flow tables.
//!
//! The two endpoints of a connection alone determine its flow table. Each flow table can therefore belong to one
//! thread, and the results do not depend on the number of threads.

use crate::wire::Packet;

/// Number of flow tables, as a power of 2.
pub(super) const SHARD_BITS: u32 = 3;
/// Number of flow tables.
pub(super) const SHARDS: usize = 1 << SHARD_BITS;

/// Returns the flow table of a packet. All UDP datagrams belong to the first flow table, so that one thread tracks
/// them.
#[inline]
pub(super) fn shard_of(packet: &Packet) -> u8 {
    match packet {
        Packet::Tcp(segment) => segment.key.part(SHARD_BITS),
        Packet::Udp(_) => 0,
    }
}
