//! The reasons to pause a walk through the headers of a frame.

use super::cursor::Stop;
use super::fragments::Fragment;
use super::vj;
use super::wifi_fragments::Place;

pub(super) enum Halt<'a> {
    Stop(Stop),
    Fragment(Fragment<'a>),
    /// A fragment of an 802.11 frame.
    WifiFragment(Place),
    /// An 802.11 frame with several packets (A-MSDU).
    Aggregate,
    /// A packet with Van Jacobson header compression.
    VanJacobson(vj::Form),
}

impl From<Stop> for Halt<'_> {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}
