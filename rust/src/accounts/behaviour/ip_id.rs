//! What the IPv4 identifications (IP ID) of one direction show about packets that were sent but are missing from the
//! capture.
//!
//! An identification need only be unique while fragments are reassembled (RFC 6864). Hosts therefore choose it in
//! several ways: a counter per connection (Linux), one counter for all packets, at random, or 0. Only a counter per
//! connection numbers the packets of this direction one by one. If nearly all numbers are present, in any order, the
//! host uses such a counter. A missing number is then a packet that was lost before the capture point or missed by the
//! capture.

use serde::{Deserialize, Serialize};

use crate::wire::{Segment, TcpFlags};

/// Minimum number of steps between packets before shares of them are compared (a heuristic, as for datagrams in
/// `flows/datagram_ids.rs`).
const MIN_STEPS: u32 = 10;
/// Minimum share of the numbers, in tenths, that must be present before missing packets are counted (a heuristic). With
/// fewer, the counter may include packets to other hosts.
const COUNTED_TENTHS: i64 = 9;
/// Minimum share of the numbers, in tenths, that must be present before a gap may be a loss (a heuristic). A path that
/// loses a fifth of the packets also loses some retransmits.
const POSSIBLE_TENTHS: i64 = 6;
/// Largest step of a counter. A larger step is a stray packet, such as those that Linux sends without a socket
/// (Nmap Network Scanning, TCP/IP fingerprinting, test TI).
const SMALL_STEP: u16 = 1_000;

/// The identifications of one direction.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Numbering {
    /// Identification after that of the last packet; `None` before the first packet.
    next: Option<u16>,
    /// Index of `next` in the order of numbers; the first packet has index 0.
    place: i32,
    /// The lowest index seen, and the index after the highest.
    low: i32,
    high: i32,
    /// Packets seen, counted as on the wire.
    seen: u32,
    /// Steps between packets, and the number of steps that fit no counter.
    steps: u32,
    strays: u32,
    /// Numbers missing since the last departure.
    left_out: i32,
}

impl Numbering {
    /// Takes a packet that becomes `pieces` on the wire. SYN and RST are skipped, because they may be numbered
    /// separately (Linux sends 0). A packet with the identification of the previous one is a copy of it.
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
        // A packet that arrives late was counted as missing before.
        let left_out = if at < self.high { -(pieces as i32) } else { at - self.high };
        self.left_out = self.left_out.saturating_add(left_out).max(0);
        self.low = self.low.min(at);
        self.place = at.saturating_add_unsigned(pieces);
        self.high = self.high.max(self.place);
        self.seen = self.seen.saturating_add(pieces);
        self.next = Some(behind);
    }

    /// Returns how many numbers went missing since the last call.
    #[inline]
    pub(crate) fn take_left_out(&mut self) -> i64 {
        std::mem::take(&mut self.left_out).into()
    }

    /// Number of missing packets; `None` if the identifications do not show it.
    #[must_use]
    pub fn missing(&self) -> Option<i64> {
        self.are_present(COUNTED_TENTHS).then_some((self.numbers() - i64::from(self.seen)).max(0))
    }

    /// Whether a gap may be a loss: the identifications number the packets of this direction, as far as those show it.
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
