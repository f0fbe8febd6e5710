//! The state of one sender, as far as its departures and what arrived at it show.

use serde::{Deserialize, Serialize};

use super::arrivals::Arrivals;
use super::clock::Clock;
use super::leaves::Leaves;
use super::paced::Paced;
use super::rounds::Rounds;
use super::spacing::Spacing;
use super::steady::Steady;
use super::stops::Stops;
use super::wait::{FirstDeparture, Wait};
use crate::connection::{CAUSAL_NS, ResentBy};
use crate::nullable::Nullable;

/// So many small segments in a row that waited for the ACK of all show that Nagle's algorithm holds them again (a heuristic).
const HELD_IN_A_ROW: u16 = 3;

/// A sender's state, as far as its departures and what arrived at it tell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SenderView {
    pub(super) arrivals: Arrivals,
    pub(super) una: Nullable,
    /// The highest ACK captured, arrived or not, and when one was that covers the last small segment.
    pub(super) captured_ack: Nullable,
    pub(super) small_acked_ns: Nullable,
    /// Arrivals reach the sender sooner than the shortest round trip seen says, by this much: the last departure that had waited shows it.
    pub(super) sooner_ns: i64,
    /// Right edge of the window.
    pub(super) edge: Nullable,
    pub(super) snd_max: i64,
    pub(super) full_bytes: i64,
    pub(super) since: Since,
    /// Payload of the full segments that were seen.
    pub(super) whole_bytes: i64,
    /// Behind the last small segment, which may be the tail of several that were captured as one.
    pub(super) small_end: Nullable,
    /// What was sent when the last repair began, and what made the sender send again last.
    pub(super) recover: Nullable,
    pub(super) repairs_by: Option<ResentBy>,
    pub(super) after_loss: bool,
    /// The timeout that nothing was acknowledged since.
    pub(super) timeout: Option<Timeout>,
    /// What was lost was the SYN.
    pub(super) only_syn_lost: bool,
    pub(super) round_trip_ns: Nullable,
    /// When the segment of that sample was captured, and the sample of the one just before it.
    pub(super) sampled_ns: Nullable,
    pub(super) neighbour_ns: Nullable,
    /// The sender's own samples, smoothed (RFC 6298, 2.3).
    pub(super) smoothed_ns: Nullable,
    /// When duplicate ACKs or SACK blocks first signalled a loss that is still open; once there are enough of them to start a repair, when that
    /// was.
    pub(super) loss_told_ns: Nullable,
    /// Whether there were enough of them to start a repair.
    pub(super) taken_for_lost: bool,
    /// Departures of new data that an ACK let go at once, with bytes in flight, and those that it did not.
    pub(super) clocked: u32,
    pub(super) unclocked: u32,
    /// Small segments that left while another was in flight.
    pub(super) small_behind_small: u32,
    pub(super) held: SmallHeld,
    /// Flights whose last segment was pushed, and behind which a full one waited.
    pub(super) emptied: Stops,
    pub(super) clock: Clock,
    pub(super) spacing: Spacing,
    pub(super) steady: Steady,
    pub(super) paced: Paced,
    pub(super) first: Option<FirstDeparture>,
    pub(super) rounds: Rounds,
}

/// A timeout: the timestamp of what it sent again, and whether a loss had reduced the congestion window before it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Timeout {
    pub(super) tsval: Option<u32>,
    pub(super) after_loss: bool,
}

/// Small segments that waited until everything was acknowledged, as if Nagle's algorithm held them.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct SmallHeld {
    /// Behind a small one: how many since the last that passed one, and most in a row.
    pub(super) run: u16,
    pub(super) longest_run: u16,
    /// Behind full ones alone; and those that passed them, though no tail of the same write.
    pub(super) over_full: u16,
    pub(super) passed_full: u16,
    /// Behind a small one until an ACK came, and more left at once behind them.
    pub(super) went_on: u16,
}

/// What happened since the last departure.
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
    pub(super) small_unacked: bool,
    /// The sender had been told that something was lost, or was repairing it, just after it.
    pub(super) loss_told: bool,
    /// Bytes not acknowledged, and room in the window, just after it.
    pub(super) unacked: Nullable,
    pub(super) usable: Nullable,
    pub(super) emptied_ns: Nullable,
    pub(super) opened_ns: Nullable,
    pub(super) closed: bool,
    pub(super) acked_ns: Nullable,
    pub(super) acked_frame: u64,
    pub(super) acked_lag_ns: Nullable,
    /// When the last ACK of anything new came, if it ended a repair.
    pub(super) repaired_ns: Nullable,
    pub(super) peer_first_ns: Nullable,
    pub(super) peer_last_ns: Nullable,
    pub(super) peer_data_ns: Nullable,
    pub(super) peer_payload_bytes: Nullable,
    pub(super) kept_alive: bool,
}

impl SenderView {
    /// A round-trip sample was captured, of a segment with so much data and an ACK with so much.
    #[inline]
    pub(crate) fn answered(&mut self, rtt_ns: i64, payload_bytes: i64, back_bytes: i64) {
        self.spacing.answered(rtt_ns, payload_bytes, back_bytes);
    }

    /// A keepalive of either host passed.
    #[cold]
    pub(crate) fn keeps_alive(&mut self) {
        self.since.kept_alive = true;
    }

    /// Whether two segments of so many bytes were in flight together, or such a one was taken for full before.
    #[inline]
    pub(crate) fn two_flew(&self, payload_bytes: i64) -> bool {
        let flight = self.una.get().map_or(0, |una| self.snd_max - una);
        self.full_bytes == payload_bytes || flight.max(self.rounds.highest()) >= 2 * payload_bytes
    }

    /// Bytes between all that was sent before and `start` that the capture missed. Away from the sender they may have been lost before the
    /// capture point, unless they are acknowledged.
    fn missed_bytes(&self, start: i64, shift_ns: i64) -> i64 {
        let arrived = if shift_ns > 0 { self.una.get().map_or(self.snd_max, |una| una.min(start)) } else { start };
        (arrived - self.snd_max).max(0)
    }

    /// Whether what was sent when the last repair began is not all acknowledged by `una`.
    pub(super) fn recovers(&self, una: i64) -> bool {
        una < self.recover.value()
    }

    /// Within this time of an ACK a departure may be its effect.
    pub(super) fn causal_ns(&self, shift_ns: i64) -> i64 {
        CAUSAL_NS.max(shift_ns.saturating_add(self.round_trip_ns.get().unwrap_or(0)) / 10)
    }

    #[inline]
    pub(super) fn held(&self, leaves: &Leaves, shift_ns: i64) -> Wait {
        let since = &self.since;
        // What was taken to arrive later than it did has arrived by now.
        let age = |then: Nullable| Nullable::from(then.get().map(|then| leaves.ts_ns.saturating_sub(then).max(0)));
        let una = self.una.get();
        let frame = |known: Nullable, frame: u64| Nullable::from(known.get().map(|_| frame as i64));
        Wait {
            held_ns: age(since.left_ns),
            held_since_frame: frame(since.left_ns, since.frame),
            sent_ticks: Nullable::default(),
            queued_ns: Nullable::default(),
            queue_grew_ns: Nullable::default(),
            idle_ns: age(since.emptied_ns),
            acked_ago_ns: age(since.acked_ns),
            acked_by_frame: frame(since.acked_ns, since.acked_frame),
            acked_lag_ns: since.acked_lag_ns,
            round_trip_ns: self.round_trip_ns,
            neighbour_ns: self.neighbour_ns,
            smoothed_ns: self.smoothed_ns,
            loss_told_ns: age(if since.loss_told { since.left_ns } else { self.loss_told_ns }),
            echo_ns: self.arrivals.echo_ns(leaves.tsecr, leaves.ts_ns),
            window_opened_ns: age(since.opened_ns),
            peer_first_ns: age(since.peer_first_ns),
            peer_last_ns: age(since.peer_last_ns),
            peer_data_ns: age(since.peer_data_ns),
            peer_payload_bytes: since.peer_payload_bytes,
            payload_before_bytes: since.left_ns.get().map(|_| since.payload_bytes).into(),
            unacked_before_bytes: since.unacked,
            unacked_bytes: una.map(|una| (self.snd_max - una).max(0)).into(),
            missed_bytes: since.left_ns.get().map(|_| self.missed_bytes(leaves.start, shift_ns)).into(),
            left_out_segments: since
                .left_ns
                .get()
                .filter(|_| leaves.start <= self.snd_max)
                .map(|_| leaves.left_out)
                .into(),
            usable_before_bytes: since.usable,
            flight_bytes: self.rounds.last_flight(),
            flown_before: since.unacked.get().is_some_and(|flight| self.rounds.has_flown(flight, self.after_loss)),
            flown_bytes: Some(self.rounds.highest()).into(),
            full_bytes: Some(leaves.full_bytes).into(),
            window_closed: since.closed,
            small: leaves.small,
            small_before: since.was_small,
            held_before: since.was_held && !since.peer_last_ns.is_some(),
            pushed_before: since.was_pushed,
            small_unacked: since.small_unacked,
            small_passes: self.small_behind_small > 0 && self.held.run < HELD_IN_A_ROW,
            recovering: una.is_some_and(|una| self.recovers(una)),
            repaired_by: self
                .repairs_by
                .filter(|_| age(since.repaired_ns).get().is_some_and(|ago_ns| ago_ns <= self.causal_ns(shift_ns))),
            after_loss: self.after_loss,
            fills_unscaled: leaves.fills_unscaled,
            kept_alive: since.kept_alive,
        }
    }
}
