//! Rivals: the causes that explain a wait equally well (`docs/how-it-decides.md`, 4.8).

use super::cause::{CAUSES, Cause};

/// A set of causes that explain one wait equally well, although their remedies differ. The cause of such a wait is
/// [`Cause::Unknown`]. The set is empty if the capture does not show which causes are possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rivals(u32);

const _: () = assert!(CAUSES <= u32::BITS as usize, "one bit per cause");

impl Rivals {
    /// Returns the causes marked `true`, which the wait does not rule out. The result is empty if only one cause is
    /// left, because a single cause has no rival.
    #[must_use]
    pub fn among(causes: &[(Cause, bool)]) -> Self {
        let bits: u32 = causes.iter().filter(|(_, holds)| *holds).fold(0, |bits, (cause, _)| bits | 1 << *cause as u32);
        if bits.count_ones() > 1 { Self(bits) } else { Self::default() }
    }

    /// Whether there are no rivals.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The names of the causes, in the order of [`Cause::ALL`]; `None` if there are no rivals.
    #[must_use]
    pub fn names(self) -> Option<String> {
        let named = Cause::ALL.into_iter().filter(|cause| self.0 & 1 << *cause as u32 != 0);
        (!self.is_empty()).then(|| named.map(Cause::name).collect::<Vec<_>>().join("|"))
    }
}

/// The unknown time of each set of rivals.
#[derive(Clone, Debug, Default)]
pub(super) struct TimeOfRivals(Vec<(Rivals, i64)>);

impl TimeOfRivals {
    /// Adds an interval of unknown time.
    #[cold]
    pub(super) fn add(&mut self, rivals: Rivals, ns: i64) {
        match self.0.iter_mut().find(|(own, _)| *own == rivals) {
            Some((_, sum)) => *sum = sum.saturating_add(ns),
            None => self.0.push((rivals, ns)),
        }
    }

    /// Adds the time of other intervals.
    pub(super) fn append(&mut self, others: Self) {
        others.0.into_iter().for_each(|(rivals, ns)| self.add(rivals, ns));
    }

    /// The rivals that have more than half of the unknown time; empty if no rivals have that much.
    pub(super) fn of_most(&self) -> Rivals {
        let all_ns: i128 = self.0.iter().map(|(_, ns)| i128::from(*ns)).sum();
        let most = self.0.iter().find(|(_, ns)| 2 * i128::from(*ns) > all_ns);
        most.map_or_else(Rivals::default, |(rivals, _)| *rivals)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cause, Rivals, TimeOfRivals};

    fn pair(one: Cause, other: Cause) -> Rivals {
        Rivals::among(&[(one, true), (other, true)])
    }

    #[test]
    fn one_cause_alone_has_no_rival() {
        let some = |nagle, buffer| Rivals::among(&[(Cause::Nagle, nagle), (Cause::SendBuffer, buffer)]).names();
        assert_eq!(some(true, true).as_deref(), Some("nagle|send-buffer"));
        assert_eq!([some(true, false), some(false, true), some(false, false)], [None, None, None]);
        assert_eq!(pair(Cause::Pacing, Cause::Application).names().as_deref(), Some("application|pacing"));
    }

    #[test]
    fn the_rivals_of_a_direction_are_those_of_most_of_its_unknown_time() {
        let (nagle, paced) = (pair(Cause::Nagle, Cause::Application), pair(Cause::Pacing, Cause::Application));
        let mut time = TimeOfRivals::default();
        assert_eq!(time.of_most(), Rivals::default());
        for (rivals, ns) in [(Rivals::default(), 10), (nagle, 200), (paced, 150), (nagle, 50)] {
            time.add(rivals, ns);
        }
        assert_eq!(time.of_most(), nagle);
        let mut more = TimeOfRivals::default();
        more.add(paced, 100);
        time.append(more);
        assert_eq!(time.of_most(), Rivals::default(), "250 of 510 each");
    }
}
