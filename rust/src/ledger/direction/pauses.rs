//! The usual length of a direction's pauses, and the length from which silence is idle (`docs/how-it-decides.md`, 5).

use super::super::waits::record::WaitRecord;
use crate::connection::CAUSAL_NS;
use crate::sender::NS_PER_MS;

/// Idle silence is at least this long (a heuristic).
pub const MIN_IDLE_NS: i64 = 1000 * NS_PER_MS;
/// Idle silence is at least this many usual pauses long (a heuristic).
const USUAL_PAUSES: i64 = 10;
/// The usual pause of a direction with at most one pause (a heuristic).
const UNKNOWN_PAUSE_NS: i64 = 1000 * NS_PER_MS;

/// The pauses of a direction. In a pause, everything is acknowledged and nothing new arrives, until the application
/// continues on its own.
#[derive(Clone, Debug, Default)]
pub struct Pauses {
    lengths_ns: Vec<i64>,
}

impl Pauses {
    /// Adds the pause within a wait of the direction, if there is one.
    pub fn add(&mut self, record: &WaitRecord, from_client: bool) {
        let wait = &record.wait;
        let spoke_ns = wait.peer_last_ns.get();
        // A server that received a request owes an answer, so its processing time is no pause.
        let owes = !from_client && spoke_ns.is_some();
        let Some(acked_ns) = wait.since_all_acked_ns.get().filter(|_| !owes && record.payload_bytes > 0) else {
            return;
        };
        let quiet_ns = spoke_ns.map_or(acked_ns, |spoke_ns| spoke_ns.min(acked_ns));
        if quiet_ns > CAUSAL_NS && record.retransmit_trigger.is_none() {
            self.lengths_ns.push(quiet_ns);
        }
    }

    /// Adds the pauses of other waits of the direction.
    pub fn append(&mut self, others: &mut Self) {
        self.lengths_ns.append(&mut others.lengths_ns);
    }

    /// The length from which silence is idle: ten times the median pause. The longest pause is left out, because it may
    /// be the silence itself.
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
    use super::{MIN_IDLE_NS, Pauses, UNKNOWN_PAUSE_NS};

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

    #[test]
    fn one_pause_alone_has_nothing_to_compare_with() {
        assert_eq!(idle_after_ms(&[25_000]), 10 * UNKNOWN_PAUSE_NS / 1_000_000);
    }
}
