//! Assigns connections to flow tables.
//!
//! A connection's endpoints alone determine its flow table. Each flow table can therefore belong to one thread,
//! and the results do not depend on the number of threads.

use crate::wire::Packet;

/// Number of flow tables, as a power of 2.
pub(super) const SHARD_BITS: u32 = 3;
/// Number of flow tables.
pub(super) const SHARDS: usize = 1 << SHARD_BITS;

/// The flow table of a packet. All datagrams have the first one, so one thread tracks them.
#[inline]
pub(super) fn shard_of(packet: &Packet) -> u8 {
    match packet {
        Packet::Tcp(segment) => segment.key.part(SHARD_BITS),
        Packet::Udp(_) => 0,
    }
}
