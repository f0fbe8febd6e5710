//! Uses gaps in the IPv4 identifications (IP ID) of one direction to find packets that are missing from the capture.
//!
//! RFC 6864 requires unique identifications only during reassembly, so hosts choose identifications in several ways.
//! Linux has a counter for each connection. Other hosts have one counter for all packets, use random numbers, or always
//! write 0.
//!
//! Only a counter per connection gives consecutive numbers to the packets of one direction. Such a counter is assumed
//! if the capture contains nearly all numbers, in any order. A packet with a missing number was lost before the capture
//! point, or the capture missed it.

use serde::{Deserialize, Serialize};

use crate::wire::{Segment, TcpFlags};

/// Minimum number of steps between successive identifications for a verdict (a heuristic, as in
/// `flows/datagram_ids.rs`).
const MIN_STEPS: u32 = 10;
/// Missing numbers count as missing packets if at least 9 of 10 numbers are present (a heuristic). If fewer numbers are
/// present, the counter possibly numbers packets to other hosts too.
const COUNTED_TENTHS: i64 = 9;
/// A gap in the numbers is a possible loss if at least 6 of 10 numbers are present (a heuristic). The limit is low
/// enough for a path that loses a fifth of the packets and some of their retransmissions.
const POSSIBLE_TENTHS: i64 = 6;
/// Largest step of a counter. A larger step means that the counter did not number the packet. For example, Linux
/// numbers packets without a socket differently (Nmap Network Scanning, TCP/IP fingerprinting, test TI).
const SMALL_STEP: u16 = 1_000;

/// The identifications of one direction.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Numbering {
    /// The counter's next identification, or `None` before the first packet.
    next: Option<u16>,
    /// Position of `next` in the counter's sequence. The first packet has position 0.
    place: i32,
    /// The captured packets lie at positions from `low` up to, but not including, `high`.
    low: i32,
    high: i32,
    /// Number of captured packets. Packets that offload has merged into one are counted separately.
    seen: u32,
    /// Number of steps between successive packets. `strays` counts the steps that are too large for a counter.
    steps: u32,
    strays: u32,
    /// Number of missing identifications since the last call of `take_left_out`.
    left_out: i32,
}

impl Numbering {
    /// Adds a captured packet that became `pieces` packets on the wire. SYN and RST are skipped, because some stacks
    /// number them separately (Linux sends 0). A packet with the previous packet's identification is a copy, so it is
    /// skipped too.
    #[inline]
    pub(super) fn take(&mut self, segment: &Segment, pieces: u32) {
        let Some(id) = segment.ip.id else { return };
        let behind = id.wrapping_add(pieces as u16);
        if segment.flags.any(TcpFlags::SYN | TcpFlags::RST) || self.next == Some(behind) {
            return;
        }
        let step = id.wrapping_sub(self.next.unwrap_or(id)) as i16;
        if self.next.is_some() {
            self.steps = self.steps.saturating_add(1);
            if step.unsigned_abs() > SMALL_STEP {
                self.strays = self.strays.saturating_add(1);
                return;
            }
        }
        let at = self.place.saturating_add(i32::from(step));
        // A late packet has been counted as missing, so the count is corrected.
        let left_out = if at < self.high { -(pieces as i32) } else { at - self.high };
        self.left_out = self.left_out.saturating_add(left_out).max(0);
        self.low = self.low.min(at);
        self.place = at.saturating_add_unsigned(pieces);
        self.high = self.high.max(self.place);
        self.seen = self.seen.saturating_add(pieces);
        self.next = Some(behind);
    }

    /// Number of missing identifications since the last call.
    #[inline]
    pub(crate) fn take_left_out(&mut self) -> i64 {
        std::mem::take(&mut self.left_out).into()
    }

    /// Number of missing packets, or `None` if the identifications do not show it.
    #[must_use]
    pub fn missing(&self) -> Option<i64> {
        self.are_present(COUNTED_TENTHS).then_some((self.numbers() - i64::from(self.seen)).max(0))
    }

    /// Whether a counter numbers only this direction. If so, a missing identification is a possible loss.
    #[must_use]
    pub fn gaps_may_be_losses(&self) -> bool {
        self.are_present(POSSIBLE_TENTHS)
    }

    fn numbers(&self) -> i64 {
        i64::from(self.high) - i64::from(self.low)
    }

    fn are_present(&self, tenths: i64) -> bool {
        let counted = i64::from(self.steps - self.strays) * 10 >= i64::from(self.steps) * COUNTED_TENTHS;
        self.steps >= MIN_STEPS && counted && i64::from(self.seen) * 10 >= self.numbers() * tenths
    }
}
