//! The state of one sender, as the segments that it sends and receives show it.

use serde::{Deserialize, Serialize};

use super::arrivals::Arrivals;
use super::clock::Clock;
use super::departure::Departure;
use super::full_buffer::FullBuffer;
use super::paced::Paced;
use super::rounds::Rounds;
use super::spacing::Spacing;
use super::steady::Steady;
use super::wait::{FirstDeparture, LastSmall, Wait};
use super::writes::Writes;
use crate::connection::{CAUSAL_NS, RetransmitTrigger};
use crate::nullable::Nullable;

/// If this many small segments in a row waited for the ACK of everything in flight, Nagle's algorithm delays small
/// segments again (a heuristic).
const WAITS_IN_A_ROW: u16 = 3;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SenderState {
    pub(super) arrivals: Arrivals,
    pub(super) una: Nullable,
    /// The highest ACK captured, whether it has reached the sender or not.
    pub(super) captured_ack: Nullable,
    /// Capture time of the first ACK that covers the last small segment.
    pub(super) small_acked_ns: Nullable,
    /// By how much arrivals reach the sender earlier than the shortest observed round trip implies.
    pub(super) earlier_ns: i64,
    /// Right edge of the receive window.
    pub(super) edge: Nullable,
    pub(super) snd_max: i64,
    pub(super) smss_bytes: i64,
    pub(super) since: Since,
    /// SMSS at the last departure that consisted of full-sized segments only.
    pub(super) whole_bytes: i64,
    /// Sequence offset after the last small segment. The small segment may be the tail of several segments captured as
    /// one.
    pub(super) small_end: Nullable,
    /// `snd_max` when the last loss recovery began (`recover` of RFC 6582).
    pub(super) recover: Nullable,
    /// What triggered the last retransmission.
    pub(super) repairs_by: Option<RetransmitTrigger>,
    pub(super) after_loss: bool,
    /// The last retransmission timeout; `None` after an ACK of new data.
    pub(super) timeout: Option<Timeout>,
    /// Whether the only segment lost so far is the SYN.
    pub(super) only_syn_lost: bool,
    pub(super) rtt_sample_ns: Nullable,
    /// Capture time of the segment that `rtt_sample_ns` measures.
    pub(super) sampled_ns: Nullable,
    /// RTT sample of the neighbouring segment in the flight.
    pub(super) previous_rtt_sample_ns: Nullable,
    /// Smoothed RTT of the sender's own samples (RFC 6298, 2.3).
    pub(super) srtt_ns: Nullable,
    /// When duplicate ACKs or SACK blocks first signalled a loss that is not yet repaired. Once such signals suffice
    /// for a retransmission, this is the time at which they first sufficed.
    pub(super) loss_signalled_ns: Nullable,
    /// Whether the duplicate ACKs or SACK blocks suffice for a retransmission.
    pub(super) loss_confirmed: bool,
    /// Number of segments of new data that were sent with bytes in flight and that an ACK released immediately.
    pub(super) clocked: u32,
    /// Number of the other segments of new data that were sent with bytes in flight.
    pub(super) unclocked: u32,
    /// Small segments sent while an earlier small segment was in flight.
    pub(super) small_behind_small: u32,
    pub(super) small_waits: SmallWaits,
    /// Flights after which a full-sized segment waited. Only flights whose last segment had PSH set count.
    pub(super) full_buffer: FullBuffer,
    pub(super) clock: Clock,
    pub(super) spacing: Spacing,
    pub(super) steady: Steady,
    pub(super) paced: Paced,
    pub(super) writes: Writes,
    pub(super) first: Option<FirstDeparture>,
    pub(super) rounds: Rounds,
}

/// A retransmission timeout: the TCP timestamp of the retransmission, and whether an earlier loss had already
/// reduced the congestion window.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Timeout {
    pub(super) tsval: Option<u32>,
    pub(super) after_loss: bool,
}

/// Small segments that waited until everything was acknowledged, as Nagle's algorithm requires.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct SmallWaits {
    /// Number of small segments in a row so far that waited behind a small one. A small segment that is sent without
    /// waiting ends the row.
    pub(super) run: u16,
    /// The longest row of such segments so far.
    pub(super) longest_run: u16,
    /// Number of small segments that waited for the ACK of a flight of full-sized segments only.
    pub(super) over_full: u16,
    /// Number of small segments that did not wait for the ACK of a flight of full-sized segments only. The tail of one
    /// write is not counted.
    pub(super) passed_full: u16,
    /// Segments that were sent immediately after a small segment which had waited for the ACK of another small one.
    pub(super) went_on: u16,
    /// Number of small segments sent as soon as the previous small one was acknowledged, before its answer was
    /// complete.
    pub(super) before_answer: u16,
    /// Number of small segments sent only when data of the answer arrived after the ACK.
    pub(super) after_answer: u16,
}

/// What happened since the sender's last segment.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub(super) struct Since {
    pub(super) left_ns: Nullable,
    pub(super) frame: u64,
    pub(super) payload_bytes: i64,
    pub(super) was_small: bool,
    pub(super) was_pushed: bool,
    pub(super) was_held: bool,
    pub(super) had_waited_behind_small: bool,
    pub(super) last_small: LastSmall,
    /// Whether the sender knew of a loss, or was recovering from one, just after its last segment.
    pub(super) loss_known: bool,
    /// Bytes in flight (`FlightSize`) and usable receive window just after the sender's last segment.
    pub(super) previous_round_flight_bytes: Nullable,
    pub(super) usable_window_bytes: Nullable,
    pub(super) all_acked_ns: Nullable,
    pub(super) window_opened_ns: Nullable,
    pub(super) window_closed: bool,
    pub(super) acked_ns: Nullable,
    pub(super) acked_frame: u64,
    pub(super) ack_lag_ns: Nullable,
    /// Time of the last ACK of new data, if that ACK ended a loss recovery.
    pub(super) repaired_ns: Nullable,
    pub(super) peer_first_ns: Nullable,
    pub(super) peer_last_ns: Nullable,
    pub(super) peer_data_ns: Nullable,
    pub(super) peer_payload_bytes: Nullable,
    pub(super) kept_alive: bool,
    /// Number of the peer's data segments that acknowledged everything sent.
    pub(super) answer_pieces: u8,
    /// Whether the sender's last segment was small and was sent right after the ACK of a small one. No data of the peer
    /// has come since then.
    pub(super) left_with_ack: bool,
}

impl SenderState {
    /// Adds the RTT sample of a segment. The segment has `payload_bytes` of data, and its ACK has `back_bytes` of data.
    #[inline]
    pub(crate) fn rtt_sampled(&mut self, rtt_ns: i64, payload_bytes: i64, back_bytes: i64) {
        self.spacing.rtt_sampled(rtt_ns, payload_bytes, back_bytes);
    }

    #[cold]
    pub(crate) fn keepalive_seen(&mut self) {
        self.since.kept_alive = true;
    }

    /// Whether two segments of `payload_bytes` were in flight together, or this size is already the SMSS.
    #[inline]
    pub(crate) fn had_two_in_flight(&self, payload_bytes: i64) -> bool {
        let flight = self.una.get().map_or(0, |una| self.snd_max - una);
        self.smss_bytes == payload_bytes || flight.max(self.rounds.highest()) >= 2 * payload_bytes
    }

    /// Bytes that are missing from the capture between the highest byte sent so far and `start`. In a capture away from
    /// the sender, only acknowledged bytes count, because unacknowledged ones may have been lost before the capture
    /// point.
    fn missed_bytes(&self, start: i64, shift_ns: i64) -> i64 {
        let arrived = if shift_ns > 0 { self.una.get().map_or(self.snd_max, |una| una.min(start)) } else { start };
        (arrived - self.snd_max).max(0)
    }

    /// Whether `una` does not yet cover everything that was sent when the last loss recovery began.
    pub(super) fn recovers(&self, una: i64) -> bool {
        una < self.recover.value()
    }

    /// A segment that is sent within this time after an ACK may have been released by the ACK.
    pub(super) fn causal_ns(&self, shift_ns: i64) -> i64 {
        CAUSAL_NS.max(shift_ns.saturating_add(self.rtt_sample_ns.get().unwrap_or(0)) / 10)
    }

    #[inline]
    pub(super) fn wait(&self, departure: &Departure, shift_ns: i64) -> Wait {
        let since = &self.since;
        // An arrival whose estimated time is later than this segment counts as just arrived, with an age of 0.
        let age = |then: Nullable| Nullable::from(then.get().map(|then| departure.ts_ns.saturating_sub(then).max(0)));
        let una = self.una.get();
        let missed_bytes = since.left_ns.get().map(|_| self.missed_bytes(departure.start, shift_ns));
        let missed_are_acked = missed_bytes > Some(0) && una >= Some(departure.start);
        let frame = |known: Nullable, frame: u64| Nullable::from(known.get().map(|_| frame as i64));
        Wait {
            wait_ns: age(since.left_ns),
            frame_before: frame(since.left_ns, since.frame),
            sent_ticks: Nullable::default(),
            queueing_delay_ns: Nullable::default(),
            queue_grew_ns: Nullable::default(),
            since_all_acked_ns: age(since.all_acked_ns),
            since_ack_ns: age(since.acked_ns),
            ack_frame: frame(since.acked_ns, since.acked_frame),
            ack_lag_ns: since.ack_lag_ns,
            rtt_sample_ns: self.rtt_sample_ns,
            previous_rtt_sample_ns: self.previous_rtt_sample_ns,
            srtt_ns: self.srtt_ns,
            loss_signalled_ns: age(if since.loss_known { since.left_ns } else { self.loss_signalled_ns }),
            echo_ns: self.arrivals.echo_ns(departure.tsecr, departure.ts_ns),
            window_opened_ns: age(since.window_opened_ns),
            peer_first_ns: age(since.peer_first_ns),
            peer_last_ns: age(since.peer_last_ns),
            peer_data_ns: age(since.peer_data_ns),
            peer_payload_bytes: since.peer_payload_bytes,
            payload_before_bytes: since.left_ns.get().map(|_| since.payload_bytes).into(),
            flight_before_bytes: since.previous_round_flight_bytes,
            flight_after_bytes: una.map(|una| (self.snd_max - una).max(0)).into(),
            missed_bytes: missed_bytes.into(),
            missed_acked_ns: age(since.acked_ns.get().filter(|_| missed_are_acked).into()),
            left_out_segments: since
                .left_ns
                .get()
                .filter(|_| departure.start <= self.snd_max)
                .map(|_| departure.left_out)
                .into(),
            usable_window_before_bytes: since.usable_window_bytes,
            previous_round_flight_bytes: self.rounds.last_flight(),
            flown_before: since
                .previous_round_flight_bytes
                .get()
                .is_some_and(|flight| self.rounds.had_in_flight(flight, self.after_loss)),
            flown_bytes: Some(self.rounds.highest()).into(),
            smss_bytes: Some(departure.smss_bytes).into(),
            window_closed: since.window_closed,
            small: departure.small,
            small_before: since.was_small,
            held_before: since.was_held && !since.peer_last_ns.is_some(),
            pushed_before: since.was_pushed,
            last_small: since.last_small,
            small_passes: self.small_behind_small > 0 && self.small_waits.run < WAITS_IN_A_ROW,
            recovering: una.is_some_and(|una| self.recovers(una)),
            repaired_by: self
                .repairs_by
                .filter(|_| age(since.repaired_ns).get().is_some_and(|ago_ns| ago_ns <= self.causal_ns(shift_ns))),
            after_loss: self.after_loss,
            fills_unscaled: departure.fills_unscaled,
            kept_alive: since.kept_alive,
        }
    }
}
