//! Bytes of a connection on an ATM or Ethernet link, and the highest possible share of payload in these bytes.

use super::counts::Counts;
use crate::connection::DirectionFigures;
use crate::wire::{AtmFacts, aal5_cells};

/// Length of an ATM cell and of its payload (ITU-T I.361).
const CELL_LINE_BYTES: u64 = 53;
const CELL_PAYLOAD_BYTES: u64 = 48;
/// Bytes per Ethernet frame that a capture does not contain: 8 bytes of preamble and start delimiter, 4 bytes of frame
/// check sequence, and a gap of 12 bytes (IEEE 802.3, 3.1.1 and 4.4.2).
const ETHERNET_AROUND_BYTES: u64 = 24;
/// Minimum length of an Ethernet frame without its frame check sequence (IEEE 802.3, 4.4.2).
const MIN_ETHERNET_BYTES: u64 = 60;

/// Kinds of link with known overhead, in the order of `LINES` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Line {
    /// ATM with AAL5.
    Atm,
    /// Ethernet.
    Ethernet,
}

/// The ATM channels of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Channels {
    /// No ATM cell so far.
    #[default]
    None,
    /// One channel: VPI and VCI, or `None` if the capture does not record them.
    One(Option<(u16, u16)>),
    Several,
}

impl Channels {
    #[cold]
    pub(crate) fn add(&mut self, atm: AtmFacts) {
        *self = match *self {
            Self::None => Self::One(atm.channel),
            Self::One(channel) if channel == atm.channel => return,
            _ => Self::Several,
        };
    }

    /// The channel, if it is the only one and the capture records it.
    pub(crate) fn only(self) -> Option<(u16, u16)> {
        if let Self::One(channel) = self { channel } else { None }
    }
}

/// The kind of link in a direction, or `None` if the capture does not show it.
pub(crate) fn line_of(figures: &DirectionFigures, counts: &Counts) -> Option<Line> {
    if counts.cells > 0 {
        return Some(Line::Atm);
    }
    (figures.header_bytes > 0).then_some(Line::Ethernet)
}

impl Counts {
    /// TCP payload as a share of all cell bytes, or `None` if the captured cells are too few for the payload.
    #[must_use]
    pub fn cell_payload_share(&self) -> Option<f64> {
        let holds = self.cells.saturating_mul(CELL_PAYLOAD_BYTES) >= self.payload_bytes;
        let line_bytes = self.cells.saturating_mul(CELL_LINE_BYTES);
        (self.cells > 0 && holds).then(|| self.payload_bytes as f64 / line_bytes as f64)
    }
}

impl Line {
    /// TCP payload as a share of the bytes on the link, if every segment has `full_segment_bytes` of payload and
    /// `header_bytes` of headers.
    ///
    /// ```
    /// use tcptrace_lab_core::accounts::Line;
    ///
    /// // The headers of Ethernet, IPv4 and TCP are 54 bytes; 24 more bytes surround each frame.
    /// assert_eq!(Line::Ethernet.best_payload_share(1460, 54), 1460.0 / 1538.0);
    /// // The headers of LLC/SNAP, IPv4 and TCP are 48 bytes; the PDU fills 32 cells of 53 bytes.
    /// assert_eq!(Line::Atm.best_payload_share(1460, 48), 1460.0 / (32.0 * 53.0));
    /// ```
    #[must_use]
    pub fn best_payload_share(self, full_segment_bytes: u16, header_bytes: u16) -> f64 {
        let (full, header) = (u64::from(full_segment_bytes), u64::from(header_bytes));
        let line_bytes = match self {
            Self::Atm => aal5_cells((full + header) as usize) as u64 * CELL_LINE_BYTES,
            Self::Ethernet => (full + header).max(MIN_ETHERNET_BYTES) + ETHERNET_AROUND_BYTES,
        };
        full as f64 / line_bytes as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The best payload share in units of 0.01%.
    fn best(line: Line, full_segment_bytes: u16, header_bytes: u16) -> u64 {
        (line.best_payload_share(full_segment_bytes, header_bytes) * 10_000.0).round() as u64
    }

    #[test]
    fn an_mss_of_9148_takes_192_cells() {
        // 9,148 bytes of payload, 48 bytes of LLC/SNAP, IP and TCP, and 8 bytes of AAL5 trailer are 9,204 bytes. These
        // 9,204 bytes fill 192 cells, which are 10,176 bytes on the link.
        assert_eq!(best(Line::Atm, 9148, 48), 8990);
    }

    #[test]
    fn ethernet_carries_1460_of_1538_bytes() {
        assert_eq!(best(Line::Ethernet, 1460, 54), 9493);
        assert_eq!(best(Line::Ethernet, 1448, 66), 9415);
        // One byte of payload needs the shortest Ethernet frame: 64 bytes with its frame check sequence, 84 bytes on
        // the link.
        assert_eq!(best(Line::Ethernet, 1, 54), 119);
    }

    #[test]
    fn several_channels_have_no_name() {
        let mut channels = Channels::default();
        let atm = |vci| AtmFacts { channel: Some((0, vci)), cells: 1 };
        channels.add(atm(32));
        assert_eq!(channels.only(), Some((0, 32)));
        channels.add(atm(33));
        channels.add(atm(32));
        assert_eq!(channels.only(), None);
    }
}
