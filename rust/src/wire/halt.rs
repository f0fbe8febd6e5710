//! The reasons why a walk through headers halts before it reaches TCP or UDP.

use super::cursor::Stop;
use super::fragments::Fragment;
use super::vj;
use super::wifi_fragments::Place;

/// Why a walk halts before it reaches TCP or UDP.
pub(super) enum Halt<'a> {
    Stop(Stop),
    Fragment(Fragment<'a>),
    /// The walk reached a fragment of an 802.11 frame.
    WifiFragment(Place),
    /// The walk reached an 802.11 frame that contains several packets (A-MSDU).
    Aggregate,
    /// The walk reached a packet with Van Jacobson header compression.
    VanJacobson(vj::Form),
}

impl From<Stop> for Halt<'_> {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}
