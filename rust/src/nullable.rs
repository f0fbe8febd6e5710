//! A number that can be unknown, in eight bytes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An `Option<i64>` in eight bytes, so that rows stay in a core's cache. The smallest i64 is null. No time, size or
/// offset of a capture is that small.
///
/// ```
/// use tcptrace_lab_core::nullable::Nullable;
///
/// let (sent_ns, acked_ns) = (Nullable::from(Some(1_000)), Nullable::from(Some(41_000)));
/// assert_eq!(acked_ns.since(sent_ns).get(), Some(40_000));
/// assert_eq!(acked_ns.since(Nullable::NULL), Nullable::NULL); // unknown stays unknown
/// assert_eq!(Nullable::NULL.earlier(sent_ns), sent_ns); // a known time comes before an unknown one
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<i64>", into = "Option<i64>")] // null takes one byte
pub struct Nullable(i64);

impl Nullable {
    /// Null.
    pub const NULL: Self = Self(i64::MIN);

    /// Whether the value is known.
    #[inline]
    #[must_use]
    pub fn is_some(self) -> bool {
        self.0 != Self::NULL.0
    }

    /// The stored number, which has no meaning for null.
    #[inline]
    #[must_use]
    pub fn value(self) -> i64 {
        self.0
    }

    /// The value, or `None` if it is null.
    #[inline]
    #[must_use]
    pub fn get(self) -> Option<i64> {
        self.is_some().then_some(self.0)
    }

    /// The larger of the known values.
    #[inline]
    #[must_use]
    pub fn later(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// The smaller of the known values.
    #[inline]
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        if self.is_some() && (self.0 < other.0 || !other.is_some()) { self } else { other }
    }

    /// `self - earlier`, or null if one of them is null.
    #[inline]
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        if self.is_some() && earlier.is_some() { Self(self.0.saturating_sub(earlier.0)) } else { Self::default() }
    }
}

impl fmt::Debug for Nullable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_some() { self.0.fmt(formatter) } else { formatter.write_str("None") }
    }
}

impl Default for Nullable {
    fn default() -> Self {
        Self::NULL
    }
}

impl From<Nullable> for Option<i64> {
    #[inline]
    fn from(nullable: Nullable) -> Self {
        nullable.get()
    }
}

impl From<Option<i64>> for Nullable {
    #[inline]
    fn from(value: Option<i64>) -> Self {
        Self(value.unwrap_or(Self::NULL.0))
    }
}
