//! What the IPv4 identifications of one direction tell of packets that were sent and are not in the capture.
//!
//! An identification need only be unique while fragments are reassembled (RFC 6864), so hosts choose it in several ways:
//! as a counter for each connection (Linux), as one counter for all that they send, at random, or 0. Only the first counts
//! this direction's packets one by one; it is told by nearly all numbers being there, in whatever order. One that is left
//! out is then a packet that was lost before the capture point, or missed by the capture.

use serde::{Deserialize, Serialize};

use crate::wire::{Segment, TcpFlags};

/// Steps from packet to packet that it takes to judge by shares (a heuristic, as for datagrams in `ip_ids.py`).
const LEAST_STEPS: u32 = 10;
/// Of ten numbers so many must be there, or the others may count other traffic (a heuristic).
const THERE_OF_TEN: i64 = 9;
/// Largest step of a counter; a larger one is a stray packet's, as of those that Linux sends without a socket (Nmap
/// Network Scanning, TCP/IP fingerprinting, test TI).
const SMALL_STEP: u16 = 1_000;

/// The identifications of one direction.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Numbering {
    /// Identification that follows the last packet's; `None` before the first.
    next: Option<u16>,
    /// Place of `next`, the first packet's being 0.
    place: i32,
    /// Lowest place seen, and behind the highest.
    low: i32,
    high: i32,
    /// Packets seen, as on the wire.
    seen: u32,
    /// Steps from packet to packet, and those of them that are no counter's.
    steps: u32,
    strays: u32,
    /// Numbers left out since the last departure.
    left_out: i32,
}

impl Numbering {
    /// Takes in a packet that becomes `pieces` on the wire. SYN and RST may be numbered apart (Linux sends 0), and what
    /// has the number of the packet before it is that packet once more.
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
        // What comes late was left out before.
        let left_out = if at < self.high { -(pieces as i32) } else { at - self.high };
        self.left_out = self.left_out.saturating_add(left_out).max(0);
        self.low = self.low.min(at);
        self.place = at.saturating_add_unsigned(pieces);
        self.high = self.high.max(self.place);
        self.seen = self.seen.saturating_add(pieces);
        self.next = Some(behind);
    }

    /// How many numbers were left out since this was asked last, until the packet that was taken in last.
    #[inline]
    pub(crate) fn take_left_out(&mut self) -> i64 {
        std::mem::take(&mut self.left_out).into()
    }

    /// How many packets are missing; `None` where the numbers do not tell.
    #[must_use]
    pub fn missing(&self) -> Option<i64> {
        let (numbers, seen) = (i64::from(self.high) - i64::from(self.low), i64::from(self.seen));
        let counted = seen * 10 >= numbers * THERE_OF_TEN
            && i64::from(self.steps - self.strays) * 10 >= i64::from(self.steps) * THERE_OF_TEN;
        (self.steps >= LEAST_STEPS && counted).then_some((numbers - seen).max(0))
    }
}
