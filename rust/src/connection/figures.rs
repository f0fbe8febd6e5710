//! Per-direction figures that are needed to classify segments.

use crate::nullable::Nullable;

/// Figures of one direction that are needed to classify segments, or that change only at anomalies. The other figures
/// are in [`crate::accounts::Counts`]. `tcptrace_lab/schema/` defines each figure.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // each is defined in `tcptrace_lab/schema/`
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
    /// Initial sequence number: the sequence number of offset 0; `None` until it is known.
    pub isn: Option<u32>,
    pub syn_options: Option<SynOptions>,
    pub window_scale: Option<u8>,
    pub max_in_flight_bytes: Nullable,
    pub max_segment_bytes: u32,
    /// Number of header bytes in the first segment with the largest payload; 0 if unknown.
    pub header_bytes: u16,
    pub rtt_min_ns: Nullable,
}

/// The largest window scale. If a window scale option has a larger value, 14 is used instead (RFC 7323, 2.3).
pub(crate) const MAX_WINDOW_SCALE: u8 = 14;

/// The TCP options in a SYN, as far as they were captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is an option of its own
pub struct SynOptions {
    /// MSS option: the largest segment that the sender of the SYN accepts.
    pub mss: Option<u16>,
    /// Window scale option, at most 14 (RFC 7323, 2.3).
    pub window_scale: Option<u8>,
    /// SACK-permitted option.
    pub sack_permitted: bool,
    /// Timestamps option.
    pub timestamps: bool,
    /// Whether the capture truncated the options. If so, the first options are known, and later ones are unknown.
    pub cut: bool,
}

impl SynOptions {
    /// The window scale in this SYN: `None` if unknown, `Some(None)` if the SYN has no window scale option.
    ///
    /// ```
    /// use tcptrace_lab_core::connection::SynOptions;
    ///
    /// let syn = SynOptions { mss: Some(1460), ..SynOptions::default() };
    /// assert_eq!(syn.scale_offered(), Some(None)); // none: the window is not scaled
    /// assert_eq!(SynOptions { cut: true, ..syn }.scale_offered(), None); // perhaps not captured
    /// ```
    #[must_use]
    pub fn scale_offered(&self) -> Option<Option<u8>> {
        (self.window_scale.is_some() || !self.cut).then_some(self.window_scale)
    }

    /// Whether `whole` contains every option that was captured from this truncated SYN.
    #[must_use]
    pub fn is_beginning_of(&self, whole: &Self) -> bool {
        self.mss.is_none_or(|mss| whole.mss == Some(mss))
            && self.window_scale.is_none_or(|shift| whole.window_scale == Some(shift))
            && (whole.sack_permitted || !self.sack_permitted)
            && (whole.timestamps || !self.timestamps)
    }

    /// Whether the SYN permits SACK; `None` if unknown.
    #[must_use]
    pub fn permits_sack(&self) -> Option<bool> {
        (self.sack_permitted || !self.cut).then_some(self.sack_permitted)
    }

    /// Whether the SYN offers timestamps; `None` if unknown.
    #[must_use]
    pub fn offers_timestamps(&self) -> Option<bool> {
        (self.timestamps || !self.cut).then_some(self.timestamps)
    }
}
