//! The totals of a direction: what all of its segments together show about its sender.

use super::departure::Departure;
use super::state::SenderState;
use super::timing::whole_ns;
use super::wait::SenderTotals;
use crate::nullable::Nullable;

impl SenderState {
    /// The totals of a direction whose connection ends at `last_ts_ns`. Arrivals still in transit count as arrived at
    /// the end of the connection.
    pub(crate) fn totals(&self, last_ts_ns: Nullable, shift_ns: i64) -> SenderTotals {
        let mut state = self.clone();
        while let Some(arrival) = state.arrivals.pop() {
            let arrived_ns = arrival.ts_ns.saturating_add(whole_ns(shift_ns));
            state.arrived(&arrival, arrived_ns.min(last_ts_ns.get().unwrap_or(i64::MAX)));
        }
        let end =
            |ts_ns| state.wait(&Departure { ts_ns, smss_bytes: state.smss_bytes, ..Departure::default() }, shift_ns);
        let (line_payload_bytes, serialization_ns) = self.spacing.line();
        let (spaced_payload_bytes, spaced_ns) = self.spacing.closest();
        let (exchange_bytes, exchange_cells, exchange_ns) = self.spacing.exchange();
        let (steady_payload_bytes, steady_ns) = self.steady.pace();
        let (followed_segments, steady_segments, steady_other_sizes) = self.steady.segments();
        let (paced_payload_bytes, paced_ns) = self.paced.pace();
        let (votes, chance) = (self.writes.votes(), self.writes.chance());
        let (top_flight_bytes, top_rounds) = self.rounds.top();
        let [(emptied_flight_bytes, emptied_times), (other_emptied_flight_bytes, other_emptied_times)] =
            self.full_buffer.most_frequent();
        let [(level_flight_bytes, level_rounds), (other_level_flight_bytes, other_level_rounds)] = self.rounds.levels();
        SenderTotals {
            first: self.first,
            ending: last_ts_ns.get().map(end).unwrap_or_default(),
            level_flight_bytes,
            level_rounds,
            other_level_flight_bytes,
            other_level_rounds,
            clocked: self.clocked,
            unclocked: self.unclocked,
            small_behind_small: self.small_behind_small,
            small_delayed_run: self.small_waits.longest_run,
            small_past_full: self.small_waits.passed_full,
            small_delayed_over_full: self.small_waits.over_full,
            small_delayed_continued: self.small_waits.went_on,
            small_before_answer: self.small_waits.before_answer,
            small_after_answer: self.small_waits.after_answer,
            tick_ns: self.clock.tick_ns(),
            line_payload_bytes,
            serialization_ns,
            spaced_payload_bytes,
            spaced_ns,
            exchange_bytes,
            exchange_cells,
            exchange_ns,
            fin_ns: self.spacing.fin_ns(),
            steady_payload_bytes,
            steady_ns,
            followed_segments,
            steady_segments,
            steady_other_sizes,
            paced_payload_bytes,
            paced_ns,
            paced_bursts: self.paced.bursts(),
            written_ns: self.writes.interval_ns(),
            writes_by_clock: votes.clock,
            writes_by_ack: votes.ack,
            departures_early: chance.early,
            departures_late: chance.late,
            reaction_ns: self.writes.reaction_ns(),
            top_flight_bytes,
            top_rounds,
            emptied_flight_bytes,
            emptied_times,
            other_emptied_flight_bytes,
            other_emptied_times,
        }
    }
}
