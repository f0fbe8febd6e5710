//! Reads the three kinds of pcapng blocks that contain a packet.

use super::super::bytes::Order;
use super::super::source::{Stop, damaged};
use super::super::stream::Stream;
use super::block::{BLOCK_TAIL_BYTES, Block, PACKET, too_short};
use super::interface::{Interface, Options};

/// Number of bytes before the packet in an enhanced packet block.
const ENHANCED_HEAD_BYTES: usize = 28;
pub(super) const MIN_ENHANCED_BYTES: usize = ENHANCED_HEAD_BYTES + BLOCK_TAIL_BYTES;
const SIMPLE_HEAD_BYTES: usize = 12;
const MIN_SIMPLE_BYTES: usize = SIMPLE_HEAD_BYTES + BLOCK_TAIL_BYTES;

/// Value of `drops_count` in an obsolete packet block if the number of drops is unknown.
const DROPS_UNKNOWN: u16 = 0xFFFF;
/// Code of the option `epb_dropcount`: the number of packets that the interface dropped just before this packet.
const OPTION_DROP_COUNT: u16 = 4;

const TIME_UNKNOWN: &str = "a timestamp is outside the years 1677 to 2262: the time is taken as unknown";
const SIMPLE_SHORT: &str =
    "a simple packet block contains less of its packet than it claims: read as a truncated packet";

/// The fixed fields of a packet block.
#[derive(Clone, Copy)]
struct Packet {
    interface: usize,
    ticks: u64,
    captured: u32,
    original: u32,
    dropped_before: Option<u64>,
}

/// The parts of a section that its packet blocks need.
pub(super) struct Section<'a> {
    pub(super) order: Order,
    pub(super) interfaces: &'a mut Vec<Interface>,
}

impl Section<'_> {
    /// Reads an enhanced or an obsolete packet block. In the obsolete block, interface number and drop count share a
    /// 32-bit word.
    #[inline]
    pub(super) fn enhanced_or_obsolete(&mut self, stream: &mut Stream, block: &Block) -> Result<(), Stop> {
        let [_, _, id, high, low, captured, original, ..] = stream.blocks.available().as_chunks::<4>().0 else {
            return Err(too_short("a packet block", block, MIN_ENHANCED_BYTES, stream.blocks.offset()));
        };
        let word = |bytes: &[u8; 4]| self.order.u32(*bytes);
        let (interface, dropped_before) = if block.kind == PACKET {
            let (id, drops) = self.order.halves(*id);
            (usize::from(id), (drops != DROPS_UNKNOWN).then_some(u64::from(drops)))
        } else {
            (word(id) as usize, None)
        };
        let packet = Packet {
            interface,
            ticks: (u64::from(word(high)) << 32) | u64::from(word(low)),
            captured: word(captured),
            original: word(original),
            dropped_before,
        };
        self.packet(stream, block, packet)
    }

    #[inline]
    fn packet(&mut self, stream: &mut Stream, block: &Block, packet: Packet) -> Result<(), Stop> {
        let Stream { blocks, notes, record } = stream;
        let padded = (packet.captured as usize).next_multiple_of(4);
        let Some(options_bytes) = block.bytes.checked_sub(MIN_ENHANCED_BYTES + padded) else {
            return Err(too_small(block, packet.captured, blocks.offset()));
        };
        let interfaces = self.interfaces.len();
        let Some(interface) = self.interfaces.get_mut(packet.interface) else {
            return Err(no_interface(packet.interface, interfaces, blocks.offset()));
        };
        if packet.captured > interface.limit {
            let what = format!(
                "a packet claims {} captured bytes, more than the limit of {}",
                packet.captured, interface.limit
            );
            return Err(damaged(what, blocks.offset()));
        }
        let ts_ns = interface.clock.ns(packet.ticks);
        if ts_ns.is_none() {
            notes.add(TIME_UNKNOWN, record.number + 1, blocks.offset());
        }
        if packet.dropped_before.is_some() || options_bytes > 0 {
            let body = blocks.available().get(..block.bytes).unwrap_or_default();
            let mut options = Options::new(self.order, body, ENHANCED_HEAD_BYTES + padded);
            let said = options.find(|(code, _)| *code == OPTION_DROP_COUNT);
            let dropped = said.map_or(packet.dropped_before, |(_, value)| self.order.number(value));
            interface.drops.add_counted(dropped);
        }
        record.ts_ns = ts_ns;
        record.link_type = Some(interface.link_type);
        record.original_bytes = packet.original;
        let start = blocks.consume(block.bytes).start + ENHANCED_HEAD_BYTES;
        record.data = start..start + packet.captured as usize;
        Ok(())
    }

    /// Reads a simple packet block, which has no timestamp. The captured length is the original length, unless the
    /// snaplen or the size of the block limits it.
    pub(super) fn simple(&mut self, stream: &mut Stream, block: &Block) -> Result<(), Stop> {
        let Stream { blocks, notes, record } = stream;
        let offset = blocks.offset();
        let [_, _, original, _, ..] = blocks.available().as_chunks::<4>().0 else {
            return Err(too_short("a simple packet block", block, MIN_SIMPLE_BYTES, offset));
        };
        let Some(room) = block.bytes.checked_sub(MIN_SIMPLE_BYTES) else {
            return Err(too_short("a simple packet block", block, MIN_SIMPLE_BYTES, offset));
        };
        let original = self.order.u32(*original);
        let Some(interface) = self.interfaces.first() else {
            return Err(no_interface(0, 0, offset));
        };
        let snapped = if interface.snaplen == 0 { original } else { original.min(interface.snaplen) } as usize;
        if snapped > room {
            notes.add(SIMPLE_SHORT, record.number + 1, offset);
        }
        record.ts_ns = None;
        record.link_type = Some(interface.link_type);
        record.original_bytes = original;
        let start = blocks.consume(block.bytes).start + SIMPLE_HEAD_BYTES;
        record.data = start..start + snapped.min(room);
        Ok(())
    }
}

#[cold]
fn too_small(block: &Block, captured: u32, offset: u64) -> Stop {
    damaged(format!("a packet block of {} bytes claims to contain {captured} bytes of a packet", block.bytes), offset)
}

#[cold]
fn no_interface(interface: usize, interfaces: usize, offset: u64) -> Stop {
    damaged(
        format!("a packet refers to interface {interface} (counted from 0), but its section defines only {interfaces}"),
        offset,
    )
}
