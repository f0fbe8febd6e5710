//! Reassembles AAL5 PDUs (ITU-T I.363.5) from 53-byte ATM cells, separately for each virtual channel.
//!
//! If a PDU has lost a cell or has a wrong CRC, the receiver's adaptation layer discards the PDU. This module still
//! returns such a PDU and marks it as damaged. Otherwise, the segment in the PDU would count as "not captured",
//! although the capture contains most of the segment.

use std::collections::VecDeque;

use super::segment::AtmFacts;

pub(super) const CELL_BYTES: usize = 48;
/// Length of the trailer in bytes: CPCS-UU, CPI, length and CRC-32.
const TRAILER_BYTES: usize = 8;
/// Maximum number of cells in a PDU. The 16-bit length field allows a payload of 65,535 bytes, to which trailer and
/// padding are added.
const MAX_CELLS: usize = (65_535 + TRAILER_BYTES).div_ceil(CELL_BYTES);
/// Maximum number of channels with an incomplete PDU. A further channel replaces the channel whose PDU began first.
const MAX_CHANNELS: usize = 2048;

/// Frame number and capture time of a cell.
pub(super) type Seen = (u64, Option<i64>);

/// A virtual channel: (VPI, VCI).
pub(super) type Channel = (u16, u16);

/// A complete AAL5 PDU, or a damaged one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pdu {
    pub atm: AtmFacts,
    /// Frame number and capture time of the PDU's last captured cell.
    pub seen: Seen,
    /// The payload without padding and trailer. If the PDU is damaged, only the received bytes are present.
    pub data: Vec<u8>,
    /// Whether the receiver's adaptation layer discarded the PDU.
    pub damaged: bool,
    /// Length of the payload as sent, read from the trailer, or `None` if the trailer is lost.
    pub payload_bytes: Option<usize>,
}

/// The incomplete PDUs, oldest first.
#[derive(Debug, Default)]
pub(super) struct Cells {
    under_way: VecDeque<UnderWay>,
    /// The PDUs that never became complete: the first frame of the first such PDU, and the count of such PDUs.
    unfinished: Option<(u64, u64)>,
}

#[derive(Debug)]
struct UnderWay {
    channel: Channel,
    first_frame: u64,
    bytes: Vec<u8>,
    /// Frame number and capture time of each cell.
    seen: Vec<Seen>,
}

impl Cells {
    /// Adds a user cell. If the cell is the last one of a PDU, returns this PDU.
    ///
    /// If the last cell of a PDU is lost, this PDU and the next one look like a single PDU. The length in the second
    /// PDU's trailer reveals the loss, and both PDUs are returned as damaged.
    pub(super) fn add(&mut self, channel: Channel, payload: &[u8; CELL_BYTES], last: bool, seen: Seen) -> Vec<Pdu> {
        let at = self.under_way.iter().position(|pdu| pdu.channel == channel).unwrap_or_else(|| {
            if self.under_way.len() == MAX_CHANNELS {
                self.give_up_oldest();
            }
            let (bytes, cells_seen) = (Vec::new(), Vec::new());
            self.under_way.push_back(UnderWay { channel, first_frame: seen.0, bytes, seen: cells_seen });
            self.under_way.len() - 1
        });
        let Some(pdu) = self.under_way.get_mut(at) else { return Vec::new() };
        pdu.bytes.extend_from_slice(payload);
        pdu.seen.push(seen);
        if !last && pdu.bytes.len() < MAX_CELLS * CELL_BYTES {
            return Vec::new();
        }
        self.under_way.remove(at).map_or_else(Vec::new, |pdu| pdu.pdus())
    }

    /// Ends the reassembly. Returns the first frame of the first PDU that never became complete, and the count of such
    /// PDUs.
    pub(super) fn finish(mut self) -> Option<(u64, u64)> {
        while !self.under_way.is_empty() {
            self.give_up_oldest();
        }
        self.unfinished
    }

    fn give_up_oldest(&mut self) {
        if let Some(pdu) = self.under_way.pop_front() {
            let (first, count) = self.unfinished.unwrap_or((pdu.first_frame, 0));
            self.unfinished = Some((first, count + 1));
        }
    }
}

impl UnderWay {
    /// Splits the collected cells into one or two PDUs. The last collected cell ends a PDU.
    fn pdus(&self) -> Vec<Pdu> {
        let (bytes, cells) = (self.bytes.as_slice(), self.seen.len());
        let length = payload_length(bytes);
        if is_whole(bytes) {
            return vec![self.pdu(bytes, cells, length, false)];
        }
        let tail_bytes = length.map_or(0, padded_length);
        match bytes.len().checked_sub(tail_bytes).map(|at| bytes.split_at(at)) {
            Some((head, tail)) if !head.is_empty() && is_whole(tail) => {
                vec![self.pdu(head, head.len() / CELL_BYTES, None, true), self.pdu(tail, cells, length, true)]
            }
            _ => vec![self.pdu(bytes, cells, length, true)],
        }
    }

    /// Makes a PDU from `bytes`, which still contain the padding. If `length` is known, `bytes` contain the trailer
    /// too. The last cell of the PDU is the collected cell with number `end`.
    fn pdu(&self, bytes: &[u8], end: usize, length: Option<usize>, damaged: bool) -> Pdu {
        let atm = AtmFacts { channel: Some(self.channel), cells: (bytes.len() / CELL_BYTES) as u16 };
        let seen = end.checked_sub(1).and_then(|last| self.seen.get(last)).copied().unwrap_or((self.first_frame, None));
        // A PDU of `length` must fill all of `bytes`. A smaller length is damaged, or it belongs to another PDU.
        let payload_bytes = length.filter(|length| padded_length(*length) >= bytes.len());
        let behind_payload = payload_bytes.map_or(0, |length| padded_length(length) - length);
        let data = bytes.get(..bytes.len().saturating_sub(behind_payload)).unwrap_or(bytes).to_vec();
        Pdu { atm, seen, data, damaged, payload_bytes }
    }
}

/// Number of payload bytes in all cells of a PDU, including padding and trailer.
fn padded_length(payload_bytes: usize) -> usize {
    aal5_cells(payload_bytes) * CELL_BYTES
}

/// Number of cells that carry a payload with its padding and trailer.
///
/// ```
/// use tcptrace_lab_core::wire::aal5_cells;
///
/// assert_eq!(aal5_cells(40), 1); // IP header, TCP header and trailer (8 bytes) fill exactly one cell
/// assert_eq!(aal5_cells(40 + 8), 2); // an ACK with LLC/SNAP (RFC 1483) needs two cells
/// ```
#[must_use]
pub fn aal5_cells(payload_bytes: usize) -> usize {
    (payload_bytes + TRAILER_BYTES).div_ceil(CELL_BYTES)
}

/// Whether the CRC of `pdu` is correct, and its length matches the length field. `pdu` includes padding and trailer.
pub(super) fn is_whole(pdu: &[u8]) -> bool {
    payload_length(pdu).is_some_and(|length| padded_length(length) == pdu.len()) && crc32(pdu) == GOOD_CRC
}

/// The length field of the trailer, or `None` if the field is 0. A sender writes 0 when it aborts a PDU.
pub(super) fn payload_length(pdu: &[u8]) -> Option<usize> {
    let [.., high, low, _, _, _, _] = *pdu else { return None };
    Some(usize::from(u16::from_be_bytes([high, low]))).filter(|length| *length > 0)
}

/// Value of the CRC register after all bytes of an undamaged PDU (the remainder in I.363.5, 9.2.1.2).
const GOOD_CRC: u32 = 0xc704_dd7b;
const POLYNOMIAL: u32 = 0x04c1_1db7;

/// Computes the CRC-32 of AAL5, from the most significant bit on. The register starts with ones, and the result is not
/// inverted.
fn crc32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte) << 24,
            |crc, _| {
                if crc & 0x8000_0000 != 0 { crc << 1 ^ POLYNOMIAL } else { crc << 1 }
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pdu(payload: &[u8]) -> Vec<u8> {
        let mut bytes = payload.to_vec();
        bytes.resize((payload.len() + TRAILER_BYTES).div_ceil(CELL_BYTES) * CELL_BYTES - 6, 0);
        bytes.extend((payload.len() as u16).to_be_bytes());
        bytes.extend((!crc32(&bytes)).to_be_bytes());
        bytes
    }

    fn send(cells: &mut Cells, bytes: &[u8], without: &[usize]) -> Vec<Pdu> {
        let (chunks, _) = bytes.as_chunks::<CELL_BYTES>();
        let last = chunks.len() - 1;
        let kept = chunks.iter().enumerate().filter(|(at, _)| !without.contains(at));
        kept.flat_map(|(at, chunk)| cells.add((0, 32), chunk, at == last, (at as u64 + 1, None))).collect()
    }

    #[test]
    fn the_crc_is_that_of_the_check_string() {
        // The expected value is CRC-32/BZIP2 of "123456789" in the catalogue of parametrised CRC algorithms.
        assert_eq!(!crc32(b"123456789"), 0xfc89_1918);
    }

    #[test]
    fn a_pdu_comes_back_without_padding_and_trailer() {
        let payload = [7; 100];
        let given = send(&mut Cells::default(), &pdu(&payload), &[]);
        let atm = AtmFacts { channel: Some((0, 32)), cells: 3 };
        let seen = (3, None);
        assert_eq!(given, [Pdu { atm, seen, data: payload.to_vec(), damaged: false, payload_bytes: Some(100) }]);
    }

    #[test]
    fn a_lost_cell_damages_its_pdu_and_no_other() {
        let mut cells = Cells::default();
        let given = send(&mut cells, &pdu(&[7; 100]), &[1]);
        assert_eq!(given.iter().map(|pdu| pdu.damaged).collect::<Vec<_>>(), [true]);
        assert!(!send(&mut cells, &pdu(&[8; 100]), &[])[0].damaged);
    }

    #[test]
    fn a_lost_last_cell_damages_two_pdus() {
        let mut cells = Cells::default();
        assert!(send(&mut cells, &pdu(&[7; 100]), &[2]).is_empty());
        let given = send(&mut cells, &pdu(&[8; 200]), &[]);
        assert_eq!(given.iter().map(|pdu| (pdu.damaged, pdu.data[0])).collect::<Vec<_>>(), [(true, 7), (true, 8)]);
        // Frame 2 contains the last captured cell of the first PDU, and frame 5 the last cell of the second PDU.
        assert_eq!(given.iter().map(|pdu| pdu.seen.0).collect::<Vec<_>>(), [2, 5]);
    }

    #[test]
    fn a_pdu_whose_end_never_came_is_reported() {
        let mut cells = Cells::default();
        cells.add((0, 5), &[0; CELL_BYTES], false, (7, None));
        cells.add((0, 6), &[0; CELL_BYTES], false, (8, None));
        assert_eq!(cells.finish(), Some((7, 2)));
    }

    #[test]
    fn a_channel_that_never_ends_a_pdu_is_cut_at_the_largest() {
        let mut cells = Cells::default();
        let given: usize = (0..10_000).map(|_| cells.add((0, 5), &[0; CELL_BYTES], false, (1, None)).len()).sum();
        assert_eq!(given, 10_000 / MAX_CELLS);
    }
}
