//! Assigns connections to flow tables.
//!
//! The flow table depends only on the two endpoints. Each flow table can therefore belong to one thread, and the
//! results do not depend on the number of threads.

use crate::wire::Packet;

/// Binary logarithm of the number of flow tables.
pub(super) const SHARD_BITS: u32 = 3;
pub(super) const SHARDS: usize = 1 << SHARD_BITS;

/// The flow table of a packet. All UDP datagrams belong to the first flow table, so one thread tracks all of them.
#[inline]
pub(super) fn shard_of(packet: &Packet) -> u8 {
    match packet {
        Packet::Tcp(segment) => segment.key.part(SHARD_BITS),
        Packet::Udp(_) => 0,
    }
}
