//! The figures of one direction that classification needs.

use crate::nullable::Nullable;

/// The figures of one direction that classification needs, or that only anomalies change.
/// [`crate::accounts::Counts`] holds the others. `tcptrace_lab/schema/` defines each.
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
    /// Sequence number of offset 0; `None` until it is known.
    pub isn: Option<u32>,
    pub syn_options: Option<SynOptions>,
    pub window_scale: Option<u8>,
    pub max_in_flight_bytes: Nullable,
    pub max_segment_bytes: u32,
    /// Header bytes of the first segment of the maximum size; 0 if unknown.
    pub header_bytes: u16,
    pub rtt_min_ns: Nullable,
}

/// Largest window scale: larger values count as 14 (RFC 7323, 2.3).
pub(crate) const MAX_WINDOW_SCALE: u8 = 14;

/// The options that a SYN offers, as far as they were captured.
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
    /// Only the first options were captured; later ones are unknown.
    pub cut: bool,
}

impl SynOptions {
    /// The scale that it offers: `None` if unknown, `Some(None)` if it offers none.
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

    /// Whether `whole` contains every option that this truncated SYN shows.
    #[must_use]
    pub fn is_beginning_of(&self, whole: &Self) -> bool {
        self.mss.is_none_or(|mss| whole.mss == Some(mss))
            && self.window_scale.is_none_or(|shift| whole.window_scale == Some(shift))
            && (whole.sack_permitted || !self.sack_permitted)
            && (whole.timestamps || !self.timestamps)
    }

    /// Whether it permits SACK; `None` if unknown.
    #[must_use]
    pub fn permits_sack(&self) -> Option<bool> {
        (self.sack_permitted || !self.cut).then_some(self.sack_permitted)
    }

    /// Whether it offers timestamps; `None` if unknown.
    #[must_use]
    pub fn offers_timestamps(&self) -> Option<bool> {
        (self.timestamps || !self.cut).then_some(self.timestamps)
    }
}
