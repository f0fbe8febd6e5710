//! The interfaces of a section, with their options and drop counts.

use super::super::bytes::Order;
use super::super::stream::record_limit;
use super::clock::Clock;

const OPTION_END: u16 = 0;
const OPTION_TIME_RESOLUTION: u16 = 9;
const OPTION_TIME_OFFSET: u16 = 14;

/// An interface description block.
pub(super) struct Interface {
    pub(super) link_type: u32,
    pub(super) snaplen: u32,
    /// Largest captured length of a packet on this interface. A larger length means that the file is damaged.
    pub(super) limit: u32,
    pub(super) clock: Clock,
    pub(super) drops: Drops,
}

impl Interface {
    pub(super) fn new(link_type: u32, snaplen: u32, options: Options<'_>) -> Self {
        let order = options.order;
        let (mut resolution, mut offset_s) = (None, 0);
        for (code, value) in options {
            match (code, value) {
                (OPTION_TIME_RESOLUTION, [value]) => resolution = Some(*value),
                (OPTION_TIME_OFFSET, value) => offset_s = order.number(value).map_or(offset_s, u64::cast_signed),
                _ => {}
            }
        }
        let clock = Clock::new(resolution, offset_s);
        Self { link_type, snaplen, limit: record_limit(snaplen), clock, drops: Drops::default() }
    }
}

/// The numbers of dropped packets, each `None` if the file does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Drops {
    /// The number in the interface's last statistics block.
    pub(super) by_interface: Option<u64>,
    pub(super) by_system: Option<u64>,
    /// The sum over the packet blocks.
    counted: Option<u64>,
    /// The total of earlier sections.
    past: Option<u64>,
}

impl Drops {
    /// Adds the drop count of a packet block: packets dropped since the interface's previous packet.
    pub(super) fn add_counted(&mut self, dropped: Option<u64>) {
        self.counted = sum(self.counted, dropped);
    }

    /// The number of dropped packets. Statistics blocks and packet blocks report the same drops, so the larger count is
    /// used.
    pub(super) fn total(self) -> Option<u64> {
        sum(self.past, sum(self.by_interface, self.by_system).max(self.counted))
    }

    /// The drops of `self` and `other` together.
    pub(super) fn plus(self, other: Self) -> Self {
        Self { past: sum(self.total(), other.total()), ..Self::default() }
    }
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

/// The options of a block as (code, value). The iteration ends at an option that exceeds the block.
pub(super) struct Options<'a> {
    order: Order,
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    /// The options of `block`, which begin at byte `at`. The whole block must be available.
    pub(super) fn new(order: Order, block: &'a [u8], at: usize) -> Self {
        let rest = block.get(at..block.len().saturating_sub(super::BLOCK_TAIL_BYTES)).unwrap_or_default();
        Self { order, rest }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (head, rest) = self.rest.split_first_chunk()?;
        let (code, bytes) = self.order.halves(*head);
        if code == OPTION_END {
            return None;
        }
        let value = rest.get(..usize::from(bytes))?;
        self.rest = rest.get(usize::from(bytes).next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    }
}

impl Order {
    /// A 64-bit option value, or `None` if the value has another length.
    pub(super) fn number(self, value: &[u8]) -> Option<u64> {
        value.try_into().ok().map(|bytes| self.u64(bytes))
    }
}
