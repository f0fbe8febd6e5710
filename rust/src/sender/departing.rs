//! Handles a segment that the sender sends: returns the wait that the segment ended and updates the sender's state.

use super::departure::Departure;
use super::spacing::{AROUND_BYTES, Seen};
use super::state::{SenderState, Since, Timeout};
use super::wait::{FirstDeparture, LastSmall, Wait};
use super::writes::Left;
use crate::connection::RetransmitTrigger;
use crate::nullable::Nullable;

/// If a segment of the peer was captured just before a segment of the sender, the peer's segment had not yet reached
/// the sender. "Just before" is less than 1/8 of the round trip between capture point and sender (a heuristic). The
/// handshake measures this round trip, and no path becomes eight times as fast.
const TOO_QUICK_PART: i64 = 8;
/// After a lost SYN, a sender starts with one segment (RFC 5681, 3.1). The slow-start threshold can be two segments,
/// because the SYN timer of 4.4BSD sets the threshold to this value. A larger first flight shows that the sender did
/// not treat the lost SYN as congestion. Linux, for example, keeps its initial window after one lost SYN and restores
/// the threshold (`tcp_init_metrics`).
const MIN_THRESHOLD_SEGMENTS: i64 = 2;
/// After an idle time of one retransmission timeout, a sender can restart with a small congestion window (RFC 5681,
/// 4.1). The shortest retransmission timeout in use is the minimum of Linux (`TCP_RTO_MIN`).
const RESTART_AFTER_IDLE_NS: i64 = 200_000_000;

impl SenderState {
    /// Processes a segment that the sender sends. Returns the wait that the segment ended.
    #[inline]
    pub(crate) fn departs(&mut self, departure: &Departure, shift_ns: i64) -> Wait {
        // If the capture clock was set back, the segment gets the time of the previous one, so that the wait does not
        // end before it began.
        let departure = Departure {
            ts_ns: self.since.left_ns.get().map_or(departure.ts_ns, |left| left.max(departure.ts_ns)),
            ..*departure
        };
        if self.first.is_none() {
            self.first =
                Some(FirstDeparture { ts_ns: departure.ts_ns, frame: departure.frame, is_syn: departure.is_syn });
        }
        self.take_arrived(&departure, shift_ns);
        let mut wait = self.wait(&departure, shift_ns);
        wait.sent_ticks = self.clock.departs(departure.tsval, wait.wait_ns).into();
        self.spacing.set_timestamps(departure.tsval.is_some());
        wait.queueing_delay_ns = wait.sent_ticks.get().map(|_| self.clock.queueing_delay_ns()).into();
        wait.queue_grew_ns = wait.sent_ticks.get().map(|_| self.clock.queue_grew_ns()).into();
        if let Some(wait_ns) = wait.wait_ns.get().filter(|_| line_may_be_busy(&wait)) {
            let seen = match (departure.at_either, shift_ns) {
                (true, _) => Seen::AtEither,
                (false, 0) => Seen::AtSender,
                _ => Seen::Away,
            };
            self.spacing.departs(
                wait_ns,
                self.since.payload_bytes,
                departure.payload_bytes,
                departure.smss_bytes,
                seen,
            );
        }
        // Only a capture at the sender shows which segments an ACK released.
        let released = shift_ns == 0 && wait.since_ack_ns.get().is_some_and(|ago_ns| wait.may_be_ended_by(ago_ns));
        if let Some(wait_ns) = wait.wait_ns.get().filter(|_| !released && self.write_continues(&departure)) {
            self.steady.came(wait_ns, departure.payload_bytes, AROUND_BYTES);
        }
        if let Some(wait_ns) = wait.wait_ns.get().filter(|_| departure.payload_bytes > 0) {
            self.paced.departs(
                departure.ts_ns,
                wait_ns,
                departure.payload_bytes,
                departure.smss_bytes,
                self.since.was_small,
            );
        }
        if departure.retransmit_trigger.is_none() {
            self.count_clocked(&wait, shift_ns);
            if let Some(wait_ns) = wait.wait_ns.get().filter(|_| departure.payload_bytes > 0) {
                self.writes.departs(Left {
                    ts_ns: departure.ts_ns,
                    wait_ns,
                    since_ack_ns: wait.since_ack_ns.get(),
                    small_before: self.since.was_small,
                    answers: wait.peer_first_ns.is_some(),
                });
            }
        }
        self.count_after_small_wait(&wait, shift_ns);
        let resent = departure.retransmit_trigger.is_some();
        if departure.small && !resent && !departure.never_held {
            self.count_small(&wait, departure.payload_bytes, shift_ns);
        } else if !departure.small && !resent && departure.payload_bytes > 0 {
            self.count_full(&wait, departure.payload_bytes, shift_ns);
        }
        let was_held =
            departure.small && wait.last_small.was_in_flight() && self.released_by_the_ack_of_all(&wait, shift_ns);
        let waited_behind_small = departure.small && self.waited_behind_small(&wait, shift_ns);
        let acks_all = departure.shown_ns.is_some();
        let left_with_ack = departure.small && !resent && self.leaves_with_ack(&wait, acks_all, shift_ns);
        self.left(&departure, was_held, shift_ns);
        self.since.had_waited_behind_small = waited_behind_small;
        self.since.left_with_ack = left_with_ack;
        wait
    }

    /// Whether the application had already written this data when the previous full-sized segment was sent. The
    /// previous segment lacks PSH, so it did not end a write.
    fn write_continues(&self, departure: &Departure) -> bool {
        let before = self.since.payload_bytes;
        before > 0 && before >= self.smss_bytes && !self.since.was_pushed && departure.payload_bytes > 0
    }

    /// Whether the captured segment consists of several segments (segmentation offload) and the last of them is small.
    /// False until a captured segment consisted of full-sized segments only. Before that, a smaller path MTU may have
    /// made the real segments smaller.
    fn has_small_tail(&self, departure: &Departure) -> bool {
        self.whole_bytes == departure.smss_bytes
            && departure.payload_bytes > departure.smss_bytes
            && !departure.is_whole()
    }

    /// Updates the state after a segment was sent. `was_held` is true if the segment is small and waited behind another
    /// small one until everything was acknowledged.
    #[inline]
    fn left(&mut self, departure: &Departure, was_held: bool, shift_ns: i64) {
        self.smss_bytes = departure.smss_bytes;
        let (una, ends_small) = (self.una.get(), departure.small || self.has_small_tail(departure));
        self.whole_bytes = if departure.is_whole() { departure.smss_bytes } else { self.whole_bytes };
        if departure.retransmit_trigger.is_some() {
            if una.is_none_or(|una| !self.recovers(una)) {
                self.recover = Some(self.snd_max).into();
                let timed_out = departure.retransmit_trigger == Some(RetransmitTrigger::Timeout) && !departure.is_syn;
                self.timeout = timed_out.then_some(Timeout { tsval: departure.tsval, after_loss: self.after_loss });
            }
            self.after_loss = true;
            self.only_syn_lost = departure.is_syn;
            self.repairs_by = departure.retransmit_trigger;
        }
        if ends_small {
            // Without timestamps, an ACK had certainly not arrived if it was captured after this segment, or so shortly
            // before this segment that no path is fast enough.
            let sure = departure.tsecr.is_some()
                || self
                    .small_acked_ns
                    .get()
                    .is_none_or(|acked_ns| departure.ts_ns.saturating_sub(acked_ns) < shift_ns / TOO_QUICK_PART);
            let behind = departure.retransmit_trigger.is_none()
                && !departure.never_held
                && sure
                && una.is_some_and(|una| self.small_end.value() > una);
            if behind {
                self.small_behind_small = self.small_behind_small.saturating_add(1);
                self.small_waits.run = 0;
            }
            let small_end = self.small_end.later(Some(departure.end).into());
            if small_end != self.small_end {
                (self.small_end, self.small_acked_ns) = (small_end, Nullable::NULL);
            }
        }
        self.snd_max = self.snd_max.max(departure.end);
        if let Some(una) = una {
            if self.only_syn_lost
                && !self.rounds.last_flight().is_some()
                && self.snd_max - una > MIN_THRESHOLD_SEGMENTS * self.smss_bytes
            {
                (self.only_syn_lost, self.after_loss) = (false, false);
            }
            self.rounds.departs(una, self.snd_max, self.smss_bytes, self.after_loss);
            if self
                .since
                .all_acked_ns
                .get()
                .is_some_and(|all_acked_ns| departure.ts_ns.saturating_sub(all_acked_ns) >= RESTART_AFTER_IDLE_NS)
            {
                self.rounds.restart();
            }
            if departure.cut || self.recovers(una) {
                self.rounds.cut();
            }
        }
        self.since = Since {
            left_ns: Some(departure.ts_ns).into(),
            frame: departure.frame,
            payload_bytes: departure.payload_bytes,
            was_small: ends_small,
            was_pushed: departure.pushed,
            was_held,
            last_small: if una.is_some_and(|una| self.small_end.value() > una) {
                LastSmall::InFlight
            } else {
                LastSmall::Acked
            },
            loss_known: self.loss_confirmed || una.is_some_and(|una| self.recovers(una)),
            previous_round_flight_bytes: una.map(|una| (self.snd_max - una).max(0)).into(),
            usable_window_bytes: self.edge.get().map(|edge| edge.saturating_sub(self.snd_max)).into(),
            window_closed: self.edge.is_some() && self.edge == self.una,
            ..Since::default()
        };
    }
}

/// Whether the previous segment may have kept the line busy until this one was sent. The previous segment is not
/// acknowledged yet, and nothing that arrived released this one.
fn line_may_be_busy(wait: &Wait) -> bool {
    let released = wait.since_ack_ns.get().is_some_and(|ago_ns| wait.may_be_ended_by(ago_ns));
    !released && !wait.peer_first_ns.is_some() && wait.flight_after_bytes.get().is_some_and(|bytes| bytes > 0)
}
