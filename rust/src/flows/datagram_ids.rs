//! Finds missing and late datagrams of one sender by their IPv4 identifications (IP IDs).
//!
//! RFC 6864 requires unique IP IDs only for fragments, so hosts choose them in different ways. A connected socket of
//! Linux has its own counter. Other hosts have one counter for all packets, use random values, or always write 0.
//!
//! A step is the shorter distance from one IP ID to the next, forwards or backwards, because the 65,536 values wrap
//! around. The steps of a direction show how its sender chooses IP IDs:
//!
//! - Nearly all steps are small and forward: the IP ID is a counter. A datagram with a lower value than an earlier one
//!   was reordered.
//! - A value is repeated: the second datagram is a copy, which adds no step.
//! - Nearly all steps are 1: the counter belongs to this flow alone. A value that never appears means a missing
//!   datagram.

/// Largest step of a counter. Nmap's OS detection treats larger steps as random (Nmap Network Scanning, TCP/IP
/// fingerprinting, test TI).
const SMALL_STEP: i64 = 1_000;
/// The IP ID is a counter if at least 95% of the steps are between 1 and [`SMALL_STEP`] (a heuristic: with random
/// values, 1.5% of the steps are in this range).
const COUNTER_PERCENT: u64 = 95;
/// The counter belongs to this flow alone if at least 90% of the steps are 1 (a heuristic: with fewer such steps, other
/// flows possibly use the missing values).
const OWN_COUNTER_PERCENT: u64 = 90;
/// Minimum number of steps for percentages (a heuristic: 1 of 10 steps can differ).
const MIN_STEPS: u64 = 10;
/// Length of the replay window, which ends at the highest value. A repeated value in this window means a copy: the
/// datagram was captured twice, or the network duplicated it. RFC 4303, 3.4.3, detects replayed packets with such a
/// window of 64 values.
const REPLAY_WINDOW: i64 = u64::BITS as i64;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DatagramIds {
    /// The IP ID of the last datagram that was not a copy, or `None` before the first datagram.
    last: Option<u16>,
    /// Position of `last`. Positions do not wrap around, and the first datagram has position 0.
    position: i64,
    lowest: i64,
    highest: i64,
    /// One bit for each position in the replay window, set if the position has been seen. The lowest bit stands for
    /// `highest`.
    seen: u64,
    steps: u64,
    steps_of_one: u64,
    small_steps: u64,
    /// Number of repeated values outside the replay window.
    repeated: u64,
    late: u64,
}

/// Losses and reordering of one direction, each `None` if the IP IDs do not show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// Number of sent datagrams that are missing from the capture.
    pub missing: Option<u64>,
    /// Number of datagrams that were captured after later ones (RFC 4737, 3.3).
    pub reordered: Option<u64>,
}

impl DatagramIds {
    /// Adds the IP ID of the next datagram.
    pub(super) fn take(&mut self, id: u16) {
        let Some(last) = self.last.replace(id) else {
            self.seen = 1;
            return;
        };
        let step = i64::from(id.wrapping_sub(last) as i16);
        let position = self.position + step;
        if self.is_copy(position) {
            self.last = Some(last);
            return;
        }
        self.steps += 1;
        self.steps_of_one += u64::from(step == 1);
        self.small_steps += u64::from((1..=SMALL_STEP).contains(&step));
        self.repeated += u64::from(step == 0);
        self.late += u64::from(position < self.highest);
        self.position = position;
        self.lowest = self.lowest.min(position);
        if position > self.highest {
            self.seen =
                u32::try_from(position - self.highest).ok().and_then(|bits| self.seen.checked_shl(bits)).unwrap_or(0);
            self.highest = position;
        }
        self.seen |= self.bit(position);
    }

    /// Whether the replay window already contains the position.
    fn is_copy(&self, position: i64) -> bool {
        self.seen & self.bit(position) != 0
    }

    /// The bit of a position in `seen`, or 0 outside the replay window.
    fn bit(&self, position: i64) -> u64 {
        let below = self.highest - position;
        if (0..REPLAY_WINDOW).contains(&below) { 1 << below } else { 0 }
    }

    /// The losses and the reordering so far.
    pub(super) fn losses(&self) -> Losses {
        let at_least = |steps: u64, percent: u64| steps * 100 >= self.steps * percent;
        if self.steps < MIN_STEPS || !at_least(self.small_steps, COUNTER_PERCENT) {
            return Losses::default();
        }
        let values = (self.highest - self.lowest).unsigned_abs() + 1;
        let datagrams = self.steps + 1 - self.repeated;
        let is_own = at_least(self.steps_of_one, OWN_COUNTER_PERCENT);
        Losses { missing: is_own.then(|| values.saturating_sub(datagrams)), reordered: Some(self.late) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{DatagramIds, Losses};

    fn losses(ids: impl IntoIterator<Item = u16>) -> (Option<u64>, Option<u64>) {
        let mut found = DatagramIds::default();
        for id in ids {
            found.take(id);
        }
        let Losses { missing, reordered } = found.losses();
        (missing, reordered)
    }

    #[test]
    fn values_wrap_around() {
        assert_eq!(losses((65_530..=65_535).chain(0..3).chain(4..30)), (Some(1), Some(0)));
    }

    #[test]
    fn a_repeated_value_is_a_copy_within_64_values() {
        assert_eq!(losses((0..100).chain([37]).chain(100..160)), (Some(0), Some(0)), "the 63rd below the highest, 99");
        assert_eq!(losses((0..100).chain([35]).chain(100..160)), (Some(0), Some(1)));
        assert_eq!(losses((0..60).flat_map(|id| [id, id])), (Some(0), Some(0)));
    }

    #[test]
    fn without_enough_values_nothing_is_known() {
        assert_eq!(losses([]), (None, None));
        assert_eq!(losses(0..10), (None, None));
        assert_eq!(losses(0..11), (Some(0), Some(0)));
    }

    proptest! {
        /// A counter starts anywhere, and leaves out some values between the first and the last.
        #[test]
        fn what_a_counter_leaves_out_is_missing(start: u16, missing in prop::collection::btree_set(1_u16..299, 0..15)) {
            let sent = (0_u16..300).filter(|number| !missing.contains(number)).map(|number| start.wrapping_add(number));
            prop_assert_eq!(losses(sent), (Some(missing.len() as u64), Some(0)));
        }

        #[test]
        fn no_values_overflow(ids: Vec<u16>) {
            losses(ids);
        }
    }
}
