//! Why a walk through headers halts before TCP or UDP.

use super::cursor::Stop;
use super::fragments::Fragment;
use super::vj;
use super::wifi_fragments::Place;

/// What ends a walk before TCP or UDP.
pub(super) enum Halt<'a> {
    Stop(Stop),
    Fragment(Fragment<'a>),
    /// A fragment of an 802.11 frame.
    WifiFragment(Place),
    /// An 802.11 frame with several packets.
    Aggregate,
    /// A packet in Van Jacobson's form.
    VanJacobson(vj::Form),
}

impl From<Stop> for Halt<'_> {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}
