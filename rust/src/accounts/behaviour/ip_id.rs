//! Packets of one direction that are missing from the capture. Gaps in the IPv4 identifications (IP ID) show them.
//!
//! RFC 6864 requires an identification to be unique only while fragments are reassembled. Hosts therefore choose
//! identifications in several ways: by a counter per connection (Linux), by one counter for all packets, at random, or
//! always 0. The packets of this direction have consecutive numbers only with a counter per connection. Such a counter
//! is in use if nearly all numbers are in the capture, in any order. A missing number is then a packet that was lost
//! before the capture point or that the capture missed.

use serde::{Deserialize, Serialize};

use crate::wire::{Segment, TcpFlags};

/// At least this many steps between successive identifications are needed to judge them (a heuristic, as for datagrams
/// in `flows/datagram_ids.rs`).
const MIN_STEPS: u32 = 10;
/// Missing numbers count as missing packets if at least 9 of 10 numbers are present (a heuristic). If fewer numbers are
/// present, the counter may also number packets to other hosts.
const COUNTED_TENTHS: i64 = 9;
/// A gap in the numbers may be a loss if at least 6 of 10 numbers are present (a heuristic). The limit is low enough
/// for a path that loses a fifth of the packets and also some of their retransmissions.
const POSSIBLE_TENTHS: i64 = 6;
/// Largest step of a counter. The counter did not number a packet that follows a larger step. Linux numbers packets
/// that it sends without a socket differently (Nmap Network Scanning, TCP/IP fingerprinting, test TI).
const SMALL_STEP: u16 = 1_000;

/// The identifications of one direction.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Numbering {
    /// The next identification of the counter; `None` before the first packet.
    next: Option<u16>,
    /// Position of `next` in the counter's sequence; the first packet has position 0.
    place: i32,
    /// The lowest position of a captured packet, and the position after the highest one.
    low: i32,
    high: i32,
    /// Number of captured packets; a merged packet counts as the packets that it becomes on the wire.
    seen: u32,
    /// Number of steps between successive packets, and number of steps that are too large for a counter.
    steps: u32,
    strays: u32,
    /// Number of identifications that are missing since the last call of `take_left_out`.
    left_out: i32,
}

impl Numbering {
    /// Adds a captured packet that becomes `pieces` packets on the wire. SYN and RST are skipped, because they may be
    /// numbered separately (Linux sends 0). A packet with the identification of the previous packet is a copy and is
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
        // A packet that is captured late was counted as missing before, so it is subtracted from the missing packets.
        let left_out = if at < self.high { -(pieces as i32) } else { at - self.high };
        self.left_out = self.left_out.saturating_add(left_out).max(0);
        self.low = self.low.min(at);
        self.place = at.saturating_add_unsigned(pieces);
        self.high = self.high.max(self.place);
        self.seen = self.seen.saturating_add(pieces);
        self.next = Some(behind);
    }

    /// Returns how many identifications were found to be missing since the last call.
    #[inline]
    pub(crate) fn take_left_out(&mut self) -> i64 {
        std::mem::take(&mut self.left_out).into()
    }

    /// Number of missing packets; `None` if the identifications do not show it.
    #[must_use]
    pub fn missing(&self) -> Option<i64> {
        self.are_present(COUNTED_TENTHS).then_some((self.numbers() - i64::from(self.seen)).max(0))
    }

    /// Whether the identifications come from a counter for this direction. If so, a missing identification may mean a
    /// lost packet.
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
