//! Whether Nagle's algorithm delays the small segments of a host.

use crate::accounts::Nagle;
use crate::connection::Confidence;

/// At an opportunity, Nagle's algorithm would delay a segment. The algorithm is on if the segment waited at more than a
/// quarter of the opportunities. By chance, segments wait at no more than 1/16 of the opportunities.
const HELD_SHARE: f64 = 0.25;
/// Number of waits that prove that Nagle's algorithm is on.
const PROVING_HOLDS: i64 = 3;
/// Number of events that are not a coincidence. An event is a wait, or a small segment that was sent after an
/// unacknowledged small one.
const CONSISTENT_HOLDS: i64 = 2;

/// The setting of Nagle's algorithm, in the order of `NAGLE_STATES` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum NagleState {
    On,
    Off,
    Unknown,
}

/// The setting of Nagle's algorithm, the confidence, and the first frame that shows the setting. Confidence and frame
/// are `None` if the setting is unknown.
pub type NagleVerdict = (NagleState, Option<Confidence>, Option<u64>);

/// Decides whether Nagle's algorithm is on.
///
/// A host with Nagle's algorithm never sends a small segment while an earlier small one is unacknowledged. Several
/// segments that break this rule prove that the algorithm is off.
///
/// A single wait for an ACK can be a coincidence. A wait proves nothing if the data in flight possibly filled the send
/// buffer, because a full send buffer makes the next data wait for the ACK too.
///
/// ```
/// use tcptrace_lab_core::accounts::{Count, Nagle};
/// use tcptrace_lab_core::connection::Confidence;
/// use tcptrace_lab_core::hosts::{NagleState, nagle};
///
/// let counts = Nagle { holds: Count { count: 11, first: 15 }, releases: 11, ..Nagle::default() };
/// assert_eq!(nagle(&counts), (NagleState::On, Some(Confidence::Proved), Some(15)));
/// let counts = Nagle { small_in_flight: Count { count: 2, first: 40 }, ..counts };
/// assert_eq!(nagle(&counts), (NagleState::Off, Some(Confidence::Proved), Some(40)));
/// ```
#[must_use]
pub fn nagle(counts: &Nagle) -> NagleVerdict {
    let violations = i64::from(counts.small_in_flight.count);
    let holds = i64::from(counts.holds.count) + i64::from(counts.holds_over_full.count);
    let sure_holds = holds - i64::from(counts.holds_ambiguous);
    let sure = |proved: bool| Some(if proved { Confidence::Proved } else { Confidence::Consistent });
    if violations > 0 {
        return (NagleState::Off, sure(violations >= CONSISTENT_HOLDS), Some(counts.small_in_flight.first));
    }
    if holds as f64 > HELD_SHARE * f64::from(counts.releases) && holds >= CONSISTENT_HOLDS {
        let frames = [counts.holds, counts.holds_over_full].into_iter().filter(|count| count.count > 0);
        let first = frames.map(|count| count.first).min();
        return (NagleState::On, sure(sure_holds >= PROVING_HOLDS), first);
    }
    (NagleState::Unknown, None, None)
}

#[cfg(test)]
mod tests {
    use super::{NagleState, nagle};
    use crate::accounts::{Count, Nagle};
    use crate::connection::Confidence;

    const fn count(count: u32, first: u64) -> Count {
        Count { count, first }
    }

    #[test]
    fn holds_and_violations() {
        use Confidence::{Consistent, Proved};
        use NagleState::{Off, On, Unknown};
        let table = [
            // Columns: small segments sent while a small one was unacknowledged, waits after small segments, waits
            // after full-sized segments, ambiguous waits, opportunities.
            ((0, 0, 0, 0, 0), (Unknown, None, None)),
            ((1, 9, 0, 0, 9), (Off, Some(Consistent), Some(5))),
            ((2, 0, 0, 0, 0), (Off, Some(Proved), Some(5))),
            ((0, 1, 0, 0, 1), (Unknown, None, None)),
            ((0, 2, 0, 0, 2), (On, Some(Consistent), Some(7))),
            ((0, 3, 0, 0, 3), (On, Some(Proved), Some(7))),
            ((0, 2, 1, 0, 3), (On, Some(Proved), Some(6))),
            ((0, 3, 0, 1, 3), (On, Some(Consistent), Some(7))),
            // Waits at exactly a quarter of the opportunities are too few.
            ((0, 3, 0, 0, 12), (Unknown, None, None)),
            ((0, 3, 0, 0, 11), (On, Some(Proved), Some(7))),
        ];
        for (input, expected) in table {
            let (violations, holds, over_full, in_doubt, releases) = input;
            let counts = Nagle {
                small_in_flight: count(violations, 5),
                holds: count(holds, 7),
                holds_over_full: count(over_full, 6),
                holds_ambiguous: in_doubt,
                releases,
                ..Nagle::default()
            };
            assert_eq!(nagle(&counts), expected, "{input:?}");
        }
    }
}
