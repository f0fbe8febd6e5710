//! The usual pause of a direction, and how long silence must last to be idle (`docs/how-it-decides.md`, 5).

use super::super::waits::record::WaitRecord;
use crate::connection::CAUSAL_NS;
use crate::sender::NS_PER_MS;

/// Silence is idle only if it lasts at least this long (a heuristic).
pub const MIN_IDLE_NS: i64 = 1000 * NS_PER_MS;
/// Silence is idle only if it lasts at least this many usual pauses (a heuristic).
const USUAL_PAUSES: i64 = 10;
/// The length that is assumed for the usual pause if a direction has at most one pause (a heuristic).
const UNKNOWN_PAUSE_NS: i64 = 1000 * NS_PER_MS;

/// If the usual pause is at least this long, the limit for idle silence is above [`MIN_IDLE_NS`].
const LONG_PAUSE_NS: i64 = MIN_IDLE_NS / USUAL_PAUSES;

/// The pause within a wait, if there is one: everything is acknowledged and nothing new arrives, until the application
/// continues on its own.
fn pause_ns(record: &WaitRecord, from_client: bool) -> Option<i64> {
    let wait = &record.wait;
    let spoke_ns = wait.peer_last_ns.get();
    // A server that received a request has to answer it, so the processing time is no pause.
    let owes = !from_client && spoke_ns.is_some();
    let acked_ns = wait.since_all_acked_ns.get().filter(|_| !owes && record.payload_bytes > 0)?;
    let quiet_ns = spoke_ns.map_or(acked_ns, |spoke_ns| spoke_ns.min(acked_ns));
    (quiet_ns > CAUSAL_NS && record.retransmit_trigger.is_none()).then_some(quiet_ns)
}

/// The number of short and of long pauses of a direction. These two numbers usually suffice to compute how long silence
/// must last to be idle.
#[derive(Clone, Copy, Debug, Default)]
pub struct PauseCounts {
    short: u32,
    long: u32,
}

impl PauseCounts {
    /// Counts the pause within a wait of the direction, if there is one.
    #[inline]
    pub fn add(&mut self, record: &WaitRecord, from_client: bool) {
        match pause_ns(record, from_client) {
            Some(ns) if ns < LONG_PAUSE_NS => self.short = self.short.saturating_add(1),
            Some(_) => self.long = self.long.saturating_add(1),
            None => {}
        }
    }

    /// How long silence must last to be idle; `None` if this depends on the exact lengths of the pauses ([`Pauses`]).
    #[must_use]
    pub fn idle_after_ns(self) -> Option<i64> {
        let but_one = self.short.saturating_add(self.long).saturating_sub(1);
        if but_one == 0 {
            Some(Pauses::default().idle_after_ns())
        } else {
            (self.short > but_one / 2).then_some(MIN_IDLE_NS)
        }
    }
}

/// The lengths of the pauses of a direction.
#[derive(Clone, Debug, Default)]
pub struct Pauses {
    lengths_ns: Vec<i64>,
}

impl Pauses {
    /// Adds the pause within a wait of the direction, if there is one.
    pub fn add(&mut self, record: &WaitRecord, from_client: bool) {
        self.lengths_ns.extend(pause_ns(record, from_client));
    }

    /// Adds the pauses of other waits of the direction.
    pub fn append(&mut self, others: &mut Self) {
        self.lengths_ns.append(&mut others.lengths_ns);
    }

    /// How long silence must last to be idle: ten times the median pause, and at least [`MIN_IDLE_NS`]. The median is
    /// computed without the longest pause, because that pause may be the silence itself.
    ///
    /// ```
    /// use tcptrace_lab_core::ledger::WaitRecord;
    /// use tcptrace_lab_core::ledger::direction::Pauses;
    ///
    /// let mut pauses = Pauses::default();
    /// for pause_ns in [500_000_000, 400_000_000, 600_000_000, 25_000_000_000] {
    ///     let mut record = WaitRecord { payload_bytes: 100, ..WaitRecord::default() };
    ///     record.wait.since_all_acked_ns = Some(pause_ns).into();
    ///     pauses.add(&record, true);
    /// }
    /// assert_eq!(pauses.idle_after_ns(), 5_000_000_000);
    /// ```
    #[must_use]
    pub fn idle_after_ns(mut self) -> i64 {
        let but_one = self.lengths_ns.len().saturating_sub(1);
        let usual_ns = match but_one {
            0 => UNKNOWN_PAUSE_NS,
            _ => *self.lengths_ns.select_nth_unstable(but_one / 2).1,
        };
        usual_ns.saturating_mul(USUAL_PAUSES).max(MIN_IDLE_NS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{LONG_PAUSE_NS, MIN_IDLE_NS, PauseCounts, Pauses, UNKNOWN_PAUSE_NS};
    use crate::ledger::WaitRecord;
    use crate::sender::Wait;

    fn idle_after_ms(pauses_ms: &[i64]) -> i64 {
        Pauses { lengths_ns: pauses_ms.iter().map(|ms| ms * 1_000_000).collect() }.idle_after_ns() / 1_000_000
    }

    #[test]
    fn silence_is_idle_from_ten_usual_pauses_on_and_never_below_a_second() {
        assert_eq!(idle_after_ms(&[20, 30, 25_000, 25]), 1000, "a median of 25 ms, and a second at least");
        assert_eq!(idle_after_ms(&[5; 100]), MIN_IDLE_NS / 1_000_000);
        assert_eq!(idle_after_ms(&[400, 25_000, 600, 500]), 5000);
        assert_eq!(idle_after_ms(&[30_000, 30_000]), 300_000, "once every 30 s is a rhythm");
    }

    /// A wait of the client that consists of one pause.
    fn paused(pause_ns: i64) -> WaitRecord {
        let wait = Wait { since_all_acked_ns: Some(pause_ns).into(), ..Wait::default() };
        WaitRecord { wait, payload_bytes: 1, ..WaitRecord::default() }
    }

    proptest! {
        /// Half of the pauses have any length, and half are within 2 ns of the limit between short and long ones.
        #[test]
        fn what_the_counts_say_is_what_the_lengths_say(
            pauses_ns in prop::collection::vec(prop_oneof![0_i64..3_000_000_000, LONG_PAUSE_NS - 2..LONG_PAUSE_NS + 2], 0..20)
        ) {
            let (mut counts, mut pauses) = (PauseCounts::default(), Pauses::default());
            for record in pauses_ns.into_iter().map(paused) {
                counts.add(&record, true);
                pauses.add(&record, true);
            }
            let idle_after_ns = pauses.idle_after_ns();
            prop_assert_eq!(counts.idle_after_ns().unwrap_or(idle_after_ns), idle_after_ns);
        }
    }

    #[test]
    fn lengths_are_needed_only_if_short_pauses_are_no_majority() {
        let needed = |pauses_ms: &[i64]| {
            let mut counts = PauseCounts::default();
            for ms in pauses_ms {
                counts.add(&paused(ms * 1_000_000), true);
            }
            counts.idle_after_ns().is_none()
        };
        assert!(!needed(&[]) && !needed(&[5000]) && !needed(&[5, 5000]) && !needed(&[5, 6, 5000, 7000]));
        assert!(needed(&[4000, 5000]) && needed(&[5, 4000, 5000]) && needed(&[100, 100, 99]));
    }

    #[test]
    fn one_pause_alone_has_nothing_to_compare_with() {
        assert_eq!(idle_after_ms(&[25_000]), 10 * UNKNOWN_PAUSE_NS / 1_000_000);
    }
}
