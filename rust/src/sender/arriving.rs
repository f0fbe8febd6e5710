//! Handles a segment of the peer: when it reaches the sender, and how it changes the sender's state.

use super::arrivals::{Arrival, Missing};
use super::departure::Departure;
use super::state::{SenderState, Timeout};
use super::timing::{LONGEST_NS, TOLERANCE_PART, whole_ns};
use super::wait::LastSmall;
use crate::nullable::Nullable;

/// Without timestamps, an arrival can reach the sender earlier than the shortest observed round trip implies, by at
/// most 1/4 of this round trip. The round trip of a handshake, for example, includes address resolution and the time to
/// open the connection.
const EARLIER_PART: i64 = 4;
/// Each RTT sample changes the smoothed RTT by 1/8 of the difference (RFC 6298, 2.3: alpha).
const SRTT_PARTS: i64 = 8;
/// Segments sent within 1/8 of a round trip are neighbours in one flight (a heuristic).
const NEIGHBOUR_PART: i64 = 8;

impl SenderState {
    /// Processes a segment of the peer when it is captured. The segment reaches the sender about `shift_ns` later.
    #[inline]
    pub(crate) fn arrives(&mut self, arrival: Arrival, shift_ns: i64) {
        self.captured_ack = self.captured_ack.later(Some(arrival.ack).into());
        if self.captured_ack.value() >= self.small_end.value() && !self.small_acked_ns.is_some() {
            self.small_acked_ns = Some(arrival.ts_ns).into();
        }
        // With nothing in flight, no segment of the sender waits for this arrival, so queueing it would only cost
        // memory.
        let idle = self.una.is_some() && self.una.value() >= self.snd_max;
        if (shift_ns == 0 || idle) && self.arrivals.is_empty() {
            self.arrived(&arrival, arrival.ts_ns.saturating_add(whole_ns(shift_ns)));
        } else if let Some(oldest) = self.arrivals.push(&arrival) {
            self.arrived(&oldest, oldest.ts_ns.saturating_add(whole_ns(shift_ns)));
        }
    }

    #[inline]
    pub(super) fn arrived(&mut self, arrival: &Arrival, now_ns: i64) {
        let now = Nullable::from(Some(now_ns));
        if arrival.has_data {
            // If the server retransmits its SYN-ACK, the last SYN-ACK counts: before it, the connection was not open
            // for the server (RFC 9293, 3.5).
            let again = arrival.payload_bytes == 0 && self.since.peer_payload_bytes.get() == Some(0);
            if again || !self.since.peer_first_ns.is_some() {
                self.since.peer_first_ns = now;
            }
            self.since.peer_last_ns = now;
            if arrival.payload_bytes > 0 || !self.since.peer_data_ns.is_some() {
                self.since.peer_data_ns = now;
            }
            self.since.peer_payload_bytes = Some(i64::from(arrival.payload_bytes)).into();
            if arrival.payload_bytes > 0 {
                self.rounds.peer_sent_data();
                self.count_answer(arrival.ack);
            }
        }
        let una = self.una.get().unwrap_or(i64::MIN);
        if arrival.ack < una || arrival.ack == i64::MIN {
            return; // an old ACK that arrives late does not show the current state
        }
        if arrival.ack > una {
            self.una = Some(arrival.ack).into();
            if self.since.last_small.was_in_flight() {
                let covers = (una..arrival.ack).contains(&(self.small_end.value() - 1));
                self.since.last_small = if covers { LastSmall::JustAcked } else { LastSmall::InFlight };
            }
            self.since.ack_lag_ns = arrival.lag_ns;
            self.undo_spurious_timeout(arrival.tsecr);
            self.since.repaired_ns =
                if self.recovers(una) && !self.recovers(arrival.ack) { now } else { Nullable::NULL };
            if let Some(rtt_ns) = arrival.rtt_ns.get() {
                let left_ns = arrival.ts_ns.saturating_sub(rtt_ns);
                let near = self
                    .sampled_ns
                    .get()
                    .is_some_and(|before| left_ns.saturating_sub(before) <= rtt_ns / NEIGHBOUR_PART);
                self.previous_rtt_sample_ns = if near { self.rtt_sample_ns } else { Nullable::NULL };
                (self.sampled_ns, self.rtt_sample_ns) = (Some(left_ns).into(), arrival.rtt_ns);
            }
            if let Some(sample_ns) = self.senders_sample_ns(arrival, now_ns) {
                let srtt_ns = self.srtt_ns.get().unwrap_or(sample_ns);
                let step_ns = sample_ns.saturating_sub(srtt_ns) / SRTT_PARTS;
                self.srtt_ns = Some(srtt_ns.saturating_add(step_ns)).into();
            }
            if arrival.missing == Missing::Nothing {
                self.loss_signalled_ns = Nullable::NULL;
                self.loss_confirmed = false;
                // After a small segment, no data was left to send, and a sender without data does not wait for loss
                // recovery.
                self.since.loss_known &= !self.since.was_small;
            }
            if arrival.ack >= self.snd_max && !self.since.all_acked_ns.is_some() {
                self.since.all_acked_ns = now;
            }
        }
        let is_new_signal =
            !self.loss_signalled_ns.is_some() || (arrival.missing == Missing::Lost && !self.loss_confirmed);
        if arrival.missing > Missing::Nothing && is_new_signal {
            self.loss_signalled_ns = now;
            self.loss_confirmed = arrival.missing == Missing::Lost;
        }
        self.writes.acked(now_ns);
        self.since.acked_ns = now;
        self.since.acked_frame = arrival.frame;
        match arrival.edge.get() {
            Some(edge) => self.offered(edge, arrival.ack, now),
            None => self.offered_unknown(now),
        }
    }

    /// Undoes a spurious timeout (Eifel, RFC 3522 and RFC 4015; Linux `tcp_try_undo_loss`). A timeout is spurious if
    /// the first ACK after it echoes a timestamp older than the timestamp of the retransmission. Such an ACK shows that
    /// the original had arrived. The sender then continues as if there had been no timeout. If a sender does not undo
    /// the timeout, it retransmits more segments and is in recovery from then on.
    fn undo_spurious_timeout(&mut self, tsecr: Option<u32>) {
        let Some(Timeout { tsval, after_loss }) = self.timeout.take() else { return };
        if tsecr.zip(tsval).is_some_and(|(echoed, resent)| (echoed.wrapping_sub(resent) as i32) < 0) {
            (self.after_loss, self.recover) = (after_loss, Nullable::NULL);
        }
    }

    /// Records an open window whose size is unknown, because the SYN with the window scale was not captured.
    #[inline]
    fn offered_unknown(&mut self, now: Nullable) {
        if self.edge.get().is_some_and(|edge| edge <= self.snd_max) {
            self.since.window_opened_ns = now;
        }
        self.edge = Nullable::default();
    }

    /// Records an advertised window whose right edge is `edge`.
    #[inline]
    fn offered(&mut self, edge: i64, ack: i64, now: Nullable) {
        let usable = edge.saturating_sub(self.snd_max);
        let before = self.edge.get().map_or(i64::MAX, |edge| edge.saturating_sub(self.snd_max));
        self.since.window_closed |= edge == ack;
        let opened_for_a_full_one = before < self.smss_bytes && usable >= self.smss_bytes;
        if opened_for_a_full_one || (before <= 0 && usable > before) {
            self.since.window_opened_ns = now;
        }
        self.edge = Some(edge).into();
    }

    /// The RTT that the sender measures with an ACK. The sample starts when the oldest acknowledged byte was sent. With
    /// timestamps, the ACK echoes the timestamp of this byte (RFC 7323, 4.3). Without timestamps, Linux starts the
    /// sample there too (`tcp_clean_rtx_queue`). Retransmitted data yields a sample only with timestamps (RFC 6298, 3;
    /// RFC 7323, 4.1). The value is at most [`LONGEST_NS`], because the echoed timestamp can be any number.
    fn senders_sample_ns(&self, arrival: &Arrival, now_ns: i64) -> Option<i64> {
        if let Some(rtt_ns) = arrival.rtt_ns.get() {
            return Some(arrival.lag_ns.get().map_or(rtt_ns, |lag_ns| lag_ns.max(rtt_ns)));
        }
        let left_ns = self.since.left_ns.get()?.saturating_sub(self.clock.since_ns(arrival.tsecr?)?);
        Some(now_ns.saturating_sub(left_ns).min(LONGEST_NS)).filter(|sample_ns| *sample_ns > 0)
    }

    /// Processes all arrivals that had reached the sender when a segment was sent.
    ///
    /// Without timestamps, a segment after a wait can show that the round trip between capture point and sender is
    /// shorter than estimated. For example, an arrival seems to reach the sender just after the segment was sent, but
    /// nothing else can have released the segment. In fact, the arrival had then reached the sender before the segment
    /// was sent. Later arrivals are assumed to reach the sender equally early.
    #[inline]
    pub(super) fn take_arrived(&mut self, departure: &Departure, shift_ns: i64) {
        if departure.tsecr.is_some() || shift_ns == 0 {
            self.take_older(departure, shift_ns);
            return;
        }
        let waited_ns = self.since.left_ns.get().map_or(0, |left_ns| departure.ts_ns.saturating_sub(left_ns));
        if waited_ns >= shift_ns / 2 {
            self.earlier_ns = 0;
            self.take_older(departure, shift_ns);
            self.earlier_ns = self.earlier_ns(departure.ts_ns, shift_ns);
        }
        self.take_older(departure, shift_ns - self.earlier_ns);
    }

    /// Processes the arrivals that had reached the sender according to their timestamps. Without timestamps, these are
    /// the arrivals that were captured at least `shift_ns` before the departure.
    #[inline]
    fn take_older(&mut self, departure: &Departure, shift_ns: i64) {
        while let Some(arrival) = self.arrivals.next_arrived(departure, shift_ns) {
            self.arrived(&arrival, arrival.ts_ns.saturating_add(whole_ns(shift_ns)).min(departure.ts_ns));
        }
    }

    /// Time by which the next arrival reached the sender earlier than assumed. The result is 0 unless only this arrival
    /// can have released the departing segment.
    fn earlier_ns(&self, now_ns: i64, shift_ns: i64) -> i64 {
        let recent =
            |then: Nullable| then.get().is_some_and(|then| now_ns.saturating_sub(then) <= self.causal_ns(shift_ns));
        if recent(self.since.acked_ns) || recent(self.since.peer_last_ns) {
            return 0;
        }
        let early_ns = self.arrivals.next_ns().map_or(0, |ts_ns| ts_ns.saturating_add(shift_ns).saturating_sub(now_ns));
        if (1..=shift_ns / EARLIER_PART).contains(&early_ns) { early_ns + shift_ns / TOLERANCE_PART } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrival, LONGEST_NS, Missing, Nullable, SenderState};

    #[test]
    fn a_timestamp_from_before_the_beginning_gives_no_round_trip_longer_than_the_longest_life() {
        let mut state = SenderState::default();
        state.clock.departs(Some(1 << 31), Nullable::NULL);
        state.clock.departs(Some((1 << 31) + 60), Some(LONGEST_NS).into());
        state.since.left_ns = Some(LONGEST_NS).into();
        let ack = Arrival {
            ts_ns: LONGEST_NS,
            ack: 1,
            edge: Nullable::NULL,
            lag_ns: Nullable::NULL,
            rtt_ns: Nullable::NULL,
            tsval: None,
            tsecr: Some(1 << 10),
            frame: 3,
            has_data: false,
            payload_bytes: 0,
            missing: Missing::Nothing,
        };
        assert_eq!(state.senders_sample_ns(&ack, LONGEST_NS), Some(LONGEST_NS));
    }
}
