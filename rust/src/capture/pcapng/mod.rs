//! Reads pcapng files. A file consists of sections, and a section of blocks. Each section has its own byte order and
//! interfaces. Each interface has its own link type and clock.
//!
//! The format is defined in draft-ietf-opsawg-pcapng. Files that violate the draft are read as in Wireshark 4.0, so
//! that frames get the same numbers as in Wireshark.

mod block;
mod clock;
mod interface;
mod packets;

use super::blocks::Blocks;
use super::bytes::Order;
use super::source::{Stop, damaged};
use super::stream::{MAX_DECLARED_RECORD_BYTES, Stream};
use crate::error::{CaptureError, ErrorKind};
use block::{BLOCK_TAIL_BYTES, Block, PACKET, too_short};
use interface::{Drops, Interface, Options};
use packets::{MIN_ENHANCED_BYTES, Section};

/// Block types. A section header block has the same type in both byte orders.
const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
/// Blocks without a packet that have a frame number in Wireshark 4.0: systemd journal entries, custom blocks, and
/// sysdig events. Tools are free to copy the first type of custom block to another file, but must not copy the second.
const SYSTEMD_JOURNAL: u32 = 9;
const CUSTOM: u32 = 0x0000_0BAD;
const CUSTOM_NOT_COPIED: u32 = 0x4000_0BAD;
const SYSDIG_EVENT: u32 = 0x204;
const SYSDIG_EVENT_2: u32 = 0x216;
const SYSDIG_EVENT_2_LARGE: u32 = 0x221;

/// The byte-order magic after type and length in a section header block.
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;

/// Length of the smallest block: type, length, repeated length.
const MIN_BLOCK_BYTES: usize = 12;
/// Length of type and length before a block's content.
const BLOCK_HEAD_BYTES: usize = 8;
const MIN_SECTION_BYTES: usize = 28;
const MIN_INTERFACE_BYTES: usize = 20;
const MIN_STATISTICS_BYTES: usize = 24;

/// Maximum length of a buffered block: the largest accepted packet, plus Wireshark's limit for the options of a block.
const MAX_KEPT_BLOCK_BYTES: u32 = MAX_DECLARED_RECORD_BYTES + (128 << 10);
/// Maximum length of a skipped block, which is Wireshark's limit for any block.
const MAX_SKIPPED_BLOCK_BYTES: u32 = (128 << 20) + (128 << 10);

/// Maximum number of interfaces in a section. The obsolete packet block has a 16-bit interface number. Real files have
/// fewer than 1,000 interfaces.
const MAX_INTERFACES: usize = 1 << 16;

/// The options `isb_ifdrop` and `isb_osdrop`: packets that the interface or the operating system dropped since the
/// start of the capture.
const OPTION_INTERFACE_DROPS: u16 = 5;
const OPTION_SYSTEM_DROPS: u16 = 7;

/// The reader of a pcapng file after its first section header.
pub(super) struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
    snaplen: u32,
    resolution_ns: i64,
    /// The drops of earlier sections.
    past_drops: Drops,
}

impl Pcapng {
    /// Reads the first section header.
    ///
    /// # Errors
    /// `Cut` or `Damaged` if the section header is incomplete or contradictory, `Unsupported` if its major version is
    /// not 1.
    pub(super) fn open(blocks: &mut Blocks) -> Result<Self, Stop> {
        let mut pcapng = Self {
            order: Order::Little,
            interfaces: Vec::new(),
            snaplen: 0,
            resolution_ns: 0,
            past_drops: Drops::default(),
        };
        pcapng.section(blocks)?;
        Ok(pcapng)
    }

    /// Moves to the next block that has a frame number. Returns false at the end of the file.
    #[inline]
    pub(super) fn advance(&mut self, stream: &mut Stream) -> Result<bool, Stop> {
        // Nearly every block is an enhanced packet block that is completely in the buffer.
        let available = stream.blocks.available();
        if let [kind, bytes, ..] = available.as_chunks::<4>().0 {
            let bytes = self.order.u32(*bytes) as usize;
            let whole = (MIN_ENHANCED_BYTES..=available.len()).contains(&bytes) && bytes.is_multiple_of(4);
            if self.order.u32(*kind) == ENHANCED_PACKET && whole {
                let block = Block { kind: ENHANCED_PACKET, bytes };
                self.check_tail(&stream.blocks, &block)?;
                self.section_now().enhanced_or_obsolete(stream, &block)?;
                return Ok(true);
            }
        }
        self.advance_over_any(stream)
    }

    #[cold]
    #[inline(never)]
    fn advance_over_any(&mut self, stream: &mut Stream) -> Result<bool, Stop> {
        loop {
            let blocks = &mut stream.blocks;
            if !blocks.fill_to(1) {
                return blocks.end_between_records();
            }
            let offset = blocks.offset();
            blocks.fill_to(MIN_BLOCK_BYTES);
            let [kind, bytes, ..] = blocks.available().as_chunks::<4>().0 else {
                let got = blocks.available().len() as u64;
                return Err(blocks.cut("a block header", "block header", BLOCK_HEAD_BYTES as u64, got, offset));
            };
            let (kind, bytes) = (self.order.u32(*kind), self.order.u32(*bytes));
            if kind != SECTION_HEADER && (bytes as usize) < MIN_BLOCK_BYTES {
                let what = format!("a block claims {bytes} bytes, fewer than any block has");
                return Err(damaged(what, offset));
            }
            match kind {
                SECTION_HEADER => self.section(blocks)?,
                ENHANCED_PACKET | PACKET => {
                    let block = self.whole(blocks, kind, bytes)?;
                    self.section_now().enhanced_or_obsolete(stream, &block)?;
                    return Ok(true);
                }
                SIMPLE_PACKET => {
                    let block = self.whole(blocks, kind, bytes)?;
                    self.section_now().simple(stream, &block)?;
                    return Ok(true);
                }
                INTERFACE_DESCRIPTION => {
                    let block = self.whole(blocks, kind, bytes)?;
                    self.interface(blocks, &block)?;
                }
                INTERFACE_STATISTICS => {
                    let block = self.whole(blocks, kind, bytes)?;
                    self.statistics(blocks, &block)?;
                }
                SYSTEMD_JOURNAL | CUSTOM | CUSTOM_NOT_COPIED | SYSDIG_EVENT | SYSDIG_EVENT_2 | SYSDIG_EVENT_2_LARGE => {
                    self.skip(blocks, bytes)?;
                    stream.record.clear();
                    return Ok(true);
                }
                _ => self.skip(blocks, bytes)?,
            }
        }
    }

    /// What a packet block needs from its section.
    #[inline]
    fn section_now(&mut self) -> Section<'_> {
        Section { order: self.order, interfaces: &mut self.interfaces }
    }

    /// Reads a whole block into the buffer, and checks the length at its end.
    fn whole(&self, blocks: &mut Blocks, kind: u32, bytes: u32) -> Result<Block, Stop> {
        let offset = blocks.offset();
        if bytes > MAX_KEPT_BLOCK_BYTES {
            return Err(damaged(
                format!("a block claims {bytes} bytes, more than the limit of {MAX_KEPT_BLOCK_BYTES}"),
                offset,
            ));
        }
        let block = Block { kind, bytes: bytes.next_multiple_of(4) as usize };
        if !blocks.fill_to(block.bytes) {
            let got = blocks.available().len() as u64;
            return Err(blocks.cut("a block", "block length", block.bytes as u64, got, offset));
        }
        self.check_tail(blocks, &block)?;
        Ok(block)
    }

    #[inline]
    fn check_tail(&self, blocks: &Blocks, block: &Block) -> Result<(), Stop> {
        let tail = blocks.available().get(block.bytes.wrapping_sub(BLOCK_TAIL_BYTES)..).and_then(<[u8]>::first_chunk);
        match tail.map(|tail| u64::from(self.order.u32(*tail)).next_multiple_of(4) as usize) {
            Some(bytes) if bytes == block.bytes => Ok(()),
            tail => Err(tail_mismatch(block.bytes, tail.unwrap_or(0), blocks.offset())),
        }
    }

    /// Skips a block, and checks only its lengths.
    fn skip(&self, blocks: &mut Blocks, bytes: u32) -> Result<(), Stop> {
        let offset = blocks.offset();
        if bytes > MAX_SKIPPED_BLOCK_BYTES {
            return Err(damaged(
                format!("a block claims {bytes} bytes, more than the limit of {MAX_SKIPPED_BLOCK_BYTES}"),
                offset,
            ));
        }
        let bytes = u64::from(bytes).next_multiple_of(4);
        if !blocks.skip(bytes - BLOCK_TAIL_BYTES as u64) || !blocks.fill_to(BLOCK_TAIL_BYTES) {
            let got = blocks.offset() + blocks.available().len() as u64 - offset;
            return Err(blocks.cut("a block", "block length", bytes, got, offset));
        }
        let tail = blocks.available().first_chunk().map_or(0, |tail| self.order.u32(*tail));
        if u64::from(tail).next_multiple_of(4) != bytes {
            return Err(tail_mismatch(bytes as usize, tail as usize, offset));
        }
        blocks.consume(BLOCK_TAIL_BYTES);
        Ok(())
    }

    /// Reads a section header block. A new section has its own byte order and interfaces.
    fn section(&mut self, blocks: &mut Blocks) -> Result<(), Stop> {
        let offset = blocks.offset();
        blocks.fill_to(MIN_SECTION_BYTES);
        let [_, bytes, magic, version, _, _, _, ..] = blocks.available().as_chunks::<4>().0 else {
            let got = blocks.available().len() as u64;
            return Err(blocks.cut("a section header", "section header", MIN_SECTION_BYTES as u64, got, offset));
        };
        let order = [Order::Little, Order::Big].into_iter().find(|order| order.u32(*magic) == BYTE_ORDER_MAGIC);
        let Some(order) = order else {
            return Err(damaged("a section header has no valid byte-order magic".to_owned(), offset));
        };
        let (bytes, (major, minor)) = (order.u32(*bytes), order.halves(*version));
        if (bytes as usize) < MIN_SECTION_BYTES {
            return Err(damaged(format!("a section header claims only {bytes} bytes"), offset));
        }
        if major != 1 {
            let what = format!("pcapng version {major}.{minor} is not supported");
            return Err(Box::new(CaptureError::new(ErrorKind::Unsupported, "", what).at(offset)));
        }
        self.order = order;
        self.skip(blocks, bytes)?;
        self.past_drops = self.drops();
        self.interfaces.clear();
        Ok(())
    }

    fn interface(&mut self, blocks: &mut Blocks, block: &Block) -> Result<(), Stop> {
        let offset = blocks.offset();
        let place = blocks.consume(block.bytes);
        let body = blocks.slice(place);
        let [_, _, link_type, snaplen, ..] = body.as_chunks::<4>().0 else {
            return Err(too_short("an interface description", block, MIN_INTERFACE_BYTES, offset));
        };
        if block.bytes < MIN_INTERFACE_BYTES {
            return Err(too_short("an interface description", block, MIN_INTERFACE_BYTES, offset));
        }
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(damaged(format!("a section has more than {MAX_INTERFACES} interfaces"), offset));
        }
        let link_type = u32::from(self.order.halves(*link_type).0);
        let options = Options::new(self.order, body, MIN_INTERFACE_BYTES - BLOCK_TAIL_BYTES);
        let interface = Interface::new(link_type, self.order.u32(*snaplen), options);
        self.snaplen = self.snaplen.max(interface.snaplen);
        self.resolution_ns = self.resolution_ns.max(interface.clock.resolution_ns());
        self.interfaces.push(interface);
        Ok(())
    }

    fn statistics(&mut self, blocks: &mut Blocks, block: &Block) -> Result<(), Stop> {
        let offset = blocks.offset();
        let place = blocks.consume(block.bytes);
        let body = blocks.slice(place);
        let [_, _, id, _, _, _, ..] = body.as_chunks::<4>().0 else {
            return Err(too_short("an interface statistics block", block, MIN_STATISTICS_BYTES, offset));
        };
        let id = self.order.u32(*id) as usize;
        let options = Options::new(self.order, body, MIN_STATISTICS_BYTES - BLOCK_TAIL_BYTES);
        if let Some(interface) = self.interfaces.get_mut(id) {
            for (code, value) in options {
                match code {
                    OPTION_INTERFACE_DROPS => interface.drops.by_interface = self.order.number(value),
                    OPTION_SYSTEM_DROPS => interface.drops.by_system = self.order.number(value),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The drops on all interfaces in all sections so far.
    fn drops(&self) -> Drops {
        self.interfaces.iter().fold(self.past_drops, |sum, interface| sum.plus(interface.drops))
    }

    pub(super) fn kernel_drops(&self) -> Option<u64> {
        self.drops().total()
    }

    pub(super) fn snaplen_bytes(&self) -> u32 {
        self.snaplen
    }

    pub(super) fn resolution_ns(&self) -> i64 {
        self.resolution_ns
    }
}

#[cold]
fn tail_mismatch(head: usize, tail: usize, offset: u64) -> Stop {
    damaged(format!("a block claims {head} bytes at its start and {tail} at its end"), offset)
}
