//! The figures of one direction that its segments are judged by.

use crate::nullable::Nullable;

/// The figures of one direction that its segments are judged by, or that only what went wrong moves; the others are
/// [`crate::accounts::Counts`]. `schema.py` says what each means.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // one fact has one home
pub struct DirectionFigures {
    pub segments: u64,
    pub data_segments: u64,
    pub spurious_retransmissions: u32,
    pub capture_duplicates: u32,
    pub network_duplicates: u32,
    pub not_captured_bytes: u64,
    pub not_captured_holes: u32,
    pub syn_segments: u32,
    pub fin_segments: u32,
    pub rst_segments: u32,
    /// Sequence number of offset 0; `None` before anything is known.
    pub isn: Option<u32>,
    pub syn_options: Option<SynOptions>,
    pub window_scale: Option<u8>,
    pub max_in_flight_bytes: Nullable,
    pub max_segment_bytes: u32,
    /// Beside the data of the first segment of that size; 0 if unknown.
    pub header_bytes: u16,
    pub rtt_min_ns: Nullable,
}

/// RFC 7323, 2.3: larger shifts count as 14.
pub(crate) const MAX_WINDOW_SCALE: u8 = 14;

/// What a SYN offers, as far as it was captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is an option of its own
pub struct SynOptions {
    /// Largest segment the sender of the SYN wants to receive.
    pub mss: Option<u16>,
    /// Its window shift, limited to 14 (RFC 7323, 2.3).
    pub window_scale: Option<u8>,
    /// SACK permitted.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// The capture holds only the first of its options: of those that are not among them nothing is known.
    pub cut: bool,
}

impl SynOptions {
    /// Its window shift, `Some(None)` if it offers none; `None` if that is not known.
    #[must_use]
    pub fn scale_offered(&self) -> Option<Option<u8>> {
        (self.window_scale.is_some() || !self.cut).then_some(self.window_scale)
    }

    /// Whether all that a cut one shows stands in `whole`, too.
    #[must_use]
    pub fn is_beginning_of(&self, whole: &Self) -> bool {
        self.mss.is_none_or(|mss| whole.mss == Some(mss))
            && self.window_scale.is_none_or(|shift| whole.window_scale == Some(shift))
            && (whole.sack_permitted || !self.sack_permitted)
            && (whole.timestamps || !self.timestamps)
    }

    /// Whether it permits SACK; `None` if that is not known.
    #[must_use]
    pub fn permits_sack(&self) -> Option<bool> {
        (self.sack_permitted || !self.cut).then_some(self.sack_permitted)
    }

    /// Whether it offers timestamps; `None` if that is not known.
    #[must_use]
    pub fn offers_timestamps(&self) -> Option<bool> {
        (self.timestamps || !self.cut).then_some(self.timestamps)
    }
}
