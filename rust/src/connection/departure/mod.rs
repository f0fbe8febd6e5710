//! What held each departure back, as its sender saw it.
//!
//! A departure is a segment that occupies sequence space: data, SYN or FIN, sent or resent. Between two departures of one
//! direction something keeps the next byte from leaving; what it is, is told by what arrived at the sender in between. The
//! capture may be far from the sender, so arrivals are moved to when they reach it: later by the round trip from the capture
//! point to the sender and back, because its departures, too, are seen late (rule book B, vantage).

mod arrivals;
mod arriving;
mod clock;
mod counted;
mod paced;
mod rounds;
mod spacing;
mod steady;
mod stops;
mod told;

pub(super) use arrivals::{Arrival, Missing};
pub use told::{Departure, FirstDeparture, Waits};

use serde::{Deserialize, Serialize};

use super::evidence::ResentBy;
use super::row::Nullable;
use arrivals::Arrivals;
use arriving::whole_ns;
use clock::Clock;
use counted::ended_by;
use paced::Paced;
use rounds::Rounds;
use spacing::{AROUND_BYTES, Seen, Spacing};
use steady::Steady;
use stops::Stops;

/// The capture is taken to be at the sender where the round trip to it is less than this part of the whole (rule book B).
const NEAR_SENDER_PART: i64 = 10;
/// Below this a round trip is the hosts' own time, and which end is near means nothing: the order of the capture decides.
const NO_DISTANCE_NS: i64 = 50_000;
/// The same where no handshake tells how soon the stacks answer, only their programs (`HOST_NS` of `vantage.py`).
const NO_DISTANCE_OF_PROGRAMS_NS: i64 = 500_000;
/// The round trip to the sender is taken shorter by this part: the shortest one seen was not the shortest possible.
const TOLERANCE_PART: i64 = 32;
/// What was captured within this part of the round trip to the sender before a departure had not reached it: whatever the hosts needed to open
/// the connection, from which it is known, a path is not so much quicker (a heuristic).
const TOO_QUICK_PART: i64 = 8;
/// Within this time, or a tenth of the round trip if that is longer, one event is taken to have caused the next (rule
/// book B, ε).
const CAUSAL_NS: i64 = 1_000_000;

/// Behind a lost SYN a sender begins with one segment (RFC 5681, 3.1), and its threshold of slow start may be two (4.4BSD, whose timer
/// sets it). One whose first flight is larger took its SYN for no sign of a full path: Linux, which begins as ever behind one lost SYN,
/// and restores the threshold (`tcp_init_metrics`).
const LEAST_THRESHOLD_SEGMENTS: i64 = 2;

/// Behind a pause of its retransmission timeout a sender may begin with a small congestion window again (RFC 5681, 4.1); Linux
/// has the least (`TCP_RTO_MIN`).
const BEGINS_ANEW_NS: i64 = 200_000_000;
/// So many small segments in a row that waited for the ACK of all show that Nagle's algorithm holds them again (rule book B, 5).
const HELD_IN_A_ROW: u16 = 3;

/// A segment that leaves.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub(super) struct Leaves {
    /// When it was captured.
    pub ts_ns: i64,
    /// Its frame.
    pub frame: u64,
    /// The offset of its first byte, and behind its last.
    pub start: i64,
    /// See `start`.
    pub end: i64,
    /// Its data.
    pub payload_bytes: i64,
    /// The largest payload that a segment may have: the MSS in force.
    pub full_bytes: i64,
    /// It holds less than that.
    pub small: bool,
    /// Nagle's algorithm lets it pass in any case.
    pub never_held: bool,
    /// It repairs a loss, or what was taken for one, and this made the sender do so.
    pub resent_by: Option<ResentBy>,
    /// It says that its sender has cut its congestion window for a mark of the path (RFC 3168, 6.1.2).
    pub cut: bool,
    /// It opens the connection.
    pub is_syn: bool,
    /// It ends what was written (PSH).
    pub pushed: bool,
    /// It fills a window, whose scale is not known, by one of the scales there are.
    pub fills_unscaled: bool,
    /// There is no distance between the hosts, and the capture may have been made at the receiver, which answers sooner.
    pub at_either: bool,
    /// Packets that its sender has numbered since the departure before, and that were not captured.
    pub left_out: i64,
    /// Its timestamp, and the one that it echoes.
    pub tsval: Option<u32>,
    pub tsecr: Option<u32>,
}

impl Leaves {
    /// It is one full segment, or several that were captured as one.
    fn is_whole(&self) -> bool {
        self.payload_bytes > 0 && self.full_bytes > 0 && self.payload_bytes % self.full_bytes == 0
    }
}

/// A sender's state, as far as its departures and what arrived at it tell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SenderView {
    arrivals: Arrivals,
    una: Nullable,
    /// The highest ACK captured, arrived or not, and when one was that covers the last small segment.
    captured_ack: Nullable,
    small_acked_ns: Nullable,
    /// So much sooner than by the shortest round trip seen it arrives, as the last departure that had waited tells.
    sooner_ns: i64,
    /// Right edge of the window.
    edge: Nullable,
    snd_max: i64,
    full_bytes: i64,
    since: Since,
    /// Of so many bytes whole segments were seen.
    whole_bytes: i64,
    /// Behind the last small segment, which may be the tail of several that were captured as one.
    small_end: Nullable,
    /// What was sent when the last repair began, and what made the sender send again last.
    recover: Nullable,
    repairs_by: Option<ResentBy>,
    after_loss: bool,
    /// The timeout that nothing was acknowledged since.
    timeout: Option<Timeout>,
    /// What was lost was the SYN.
    only_syn_lost: bool,
    round_trip_ns: Nullable,
    /// When the segment of that sample was captured, and the sample of the one just before it.
    sampled_ns: Nullable,
    neighbour_ns: Nullable,
    /// The sender's own samples, smoothed (RFC 6298, 2.3).
    smoothed_ns: Nullable,
    /// When it first heard that something is missing, which still is; or enough of that to take it for lost, if it has.
    loss_told_ns: Nullable,
    /// See `loss_told_ns`.
    taken_for_lost: bool,
    /// Departures of new data that an ACK let go at once, with bytes in flight, and those that it did not.
    clocked: u32,
    unclocked: u32,
    /// Small segments that left while another was in flight.
    small_behind_small: u32,
    held: SmallHeld,
    stops: Stops,
    /// The same of flights whose last segment was pushed, behind losses, too.
    emptied: Stops,
    clock: Clock,
    spacing: Spacing,
    steady: Steady,
    paced: Paced,
    first: Option<FirstDeparture>,
    rounds: Rounds,
}

/// A timeout: the timestamp of what it sent again, and whether a loss had reduced the congestion window before it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Timeout {
    tsval: Option<u32>,
    after_loss: bool,
}

/// Small segments that waited until everything was acknowledged, as if Nagle's algorithm held them.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct SmallHeld {
    /// Behind a small one: how many since the last that passed one, and most in a row.
    run: u16,
    longest_run: u16,
    /// Behind full ones alone; and those that passed them, though no tail of the same write.
    over_full: u16,
    passed_full: u16,
    /// Behind a small one until an ACK came, and more left at once behind them.
    went_on: u16,
}

/// What happened since the last departure.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
struct Since {
    left_ns: Nullable,
    frame: u64,
    payload_bytes: i64,
    was_small: bool,
    was_pushed: bool,
    was_held: bool,
    had_waited_behind_small: bool,
    small_unacked: bool,
    /// The sender had been told that something was lost, or was repairing it, just after it.
    loss_told: bool,
    /// Bytes not acknowledged, and room in the window, just after it.
    unacked: Nullable,
    usable: Nullable,
    emptied_ns: Nullable,
    opened_ns: Nullable,
    closed: bool,
    acked_ns: Nullable,
    acked_frame: u64,
    acked_lag_ns: Nullable,
    /// When the last ACK of anything new came, if it ended a repair.
    repaired_ns: Nullable,
    peer_first_ns: Nullable,
    peer_last_ns: Nullable,
    peer_payload_bytes: Nullable,
}

impl SenderView {
    /// A round-trip sample was captured, of a segment with so much data and an ACK with so much.
    #[inline]
    pub(super) fn answered(&mut self, rtt_ns: i64, payload_bytes: i64, back_bytes: i64) {
        self.spacing.answered(rtt_ns, payload_bytes, back_bytes);
    }

    /// Whether two segments of so many bytes were in flight together, or such a one was taken for full before.
    #[inline]
    pub(super) fn two_flew(&self, payload_bytes: i64) -> bool {
        let flight = self.una.get().map_or(0, |una| self.snd_max - una);
        self.full_bytes == payload_bytes || flight.max(self.rounds.highest()) >= 2 * payload_bytes
    }

    /// A segment leaves. Returns what held it back.
    #[inline]
    pub(super) fn departs(&mut self, leaves: &Leaves, shift_ns: i64) -> Departure {
        // A clock that was set back does not let a wait end before it began.
        let leaves =
            Leaves { ts_ns: self.since.left_ns.get().map_or(leaves.ts_ns, |left| left.max(leaves.ts_ns)), ..*leaves };
        if self.first.is_none() {
            self.first = Some(FirstDeparture { ts_ns: leaves.ts_ns, frame: leaves.frame, is_syn: leaves.is_syn });
        }
        self.take_arrived(&leaves, shift_ns);
        let mut held = self.held(&leaves, shift_ns);
        held.sent_ticks = self.clock.departs(leaves.tsval, held.held_ns).into();
        self.spacing.stamped(leaves.tsval.is_some());
        held.queued_ns = held.sent_ticks.get().map(|_| self.clock.queued_ns()).into();
        held.queue_grew_ns = held.sent_ticks.get().map(|_| self.clock.queue_grew_ns()).into();
        if let Some(held_ns) = held.held_ns.get().filter(|_| line_may_be_busy(&held)) {
            let seen = match (leaves.at_either, shift_ns) {
                (true, _) => Seen::AtEither,
                (false, 0) => Seen::AtSender,
                _ => Seen::Away,
            };
            self.spacing.departs(held_ns, self.since.payload_bytes, leaves.payload_bytes, leaves.full_bytes, seen);
        }
        // At the sender it is seen what an ACK let go.
        let let_go = shift_ns == 0 && held.acked_ago_ns.get().is_some_and(|ago_ns| ended_by(&held, ago_ns));
        if let Some(held_ns) = held.held_ns.get().filter(|_| !let_go && self.goes_on(&leaves)) {
            self.steady.came(held_ns, leaves.payload_bytes, AROUND_BYTES);
        }
        if let Some(held_ns) = held.held_ns.get().filter(|_| leaves.payload_bytes > 0) {
            self.paced.departs(leaves.ts_ns, held_ns, leaves.payload_bytes, leaves.full_bytes, self.since.was_small);
        }
        if leaves.resent_by.is_none() {
            self.count_clocked(&held, shift_ns);
        }
        self.count_behind_held(&held, shift_ns);
        let resent = leaves.resent_by.is_some();
        if leaves.small && !resent && !leaves.never_held {
            self.count_small(&held, leaves.payload_bytes, shift_ns);
        } else if !leaves.small && !resent && leaves.payload_bytes > 0 {
            self.count_full(&held, leaves.payload_bytes, shift_ns);
        }
        let was_held = leaves.small && held.small_unacked && self.let_go_by_the_ack_of_all(&held, shift_ns);
        let waited_behind_small = leaves.small && self.waited_behind_small(&held, shift_ns);
        self.left(&leaves, was_held, shift_ns);
        self.since.had_waited_behind_small = waited_behind_small;
        held
    }

    /// Whether its data had been given to the sender when the full segment before left: that one did not end its write.
    fn goes_on(&self, leaves: &Leaves) -> bool {
        let before = self.since.payload_bytes;
        before > 0 && before >= self.full_bytes && !self.since.was_pushed && leaves.payload_bytes > 0
    }

    /// Whether it was captured before the card cut it into segments, or behind where they were joined, of which the last is small (rule book C).
    /// As long as the sender was not seen to send whole segments of that size, its own may be shorter: on a path that takes less.
    fn has_small_tail(&self, leaves: &Leaves) -> bool {
        self.whole_bytes == leaves.full_bytes && leaves.payload_bytes > leaves.full_bytes && !leaves.is_whole()
    }

    /// Moves the state on behind a departure; `was_held`: a small one, behind a small one, until all was acknowledged.
    #[inline]
    fn left(&mut self, leaves: &Leaves, was_held: bool, shift_ns: i64) {
        self.full_bytes = leaves.full_bytes;
        let (una, ends_small) = (self.una.get(), leaves.small || self.has_small_tail(leaves));
        self.whole_bytes = if leaves.is_whole() { leaves.full_bytes } else { self.whole_bytes };
        if leaves.resent_by.is_some() {
            if una.is_none_or(|una| !self.recovers(una)) {
                self.recover = Some(self.snd_max).into();
                let timed_out = leaves.resent_by == Some(ResentBy::Timeout) && !leaves.is_syn;
                self.timeout = timed_out.then_some(Timeout { tsval: leaves.tsval, after_loss: self.after_loss });
            }
            self.after_loss = true;
            self.only_syn_lost = leaves.is_syn;
            self.repairs_by = leaves.resent_by;
        }
        if ends_small {
            // Without timestamps only what was not even captured is sure not to have arrived, or so shortly before that no path is so quick.
            let sure = leaves.tsecr.is_some()
                || self
                    .small_acked_ns
                    .get()
                    .is_none_or(|acked_ns| leaves.ts_ns.saturating_sub(acked_ns) < shift_ns / TOO_QUICK_PART);
            let behind = leaves.resent_by.is_none()
                && !leaves.never_held
                && sure
                && una.is_some_and(|una| self.small_end.value() > una);
            if behind {
                self.small_behind_small = self.small_behind_small.saturating_add(1);
                self.held.run = 0;
            }
            let small_end = self.small_end.later(Some(leaves.end).into());
            if small_end != self.small_end {
                (self.small_end, self.small_acked_ns) = (small_end, Nullable::NULL);
            }
        }
        self.snd_max = self.snd_max.max(leaves.end);
        if let Some(una) = una {
            if self.only_syn_lost
                && !self.rounds.last_flight().is_some()
                && self.snd_max - una > LEAST_THRESHOLD_SEGMENTS * self.full_bytes
            {
                (self.only_syn_lost, self.after_loss) = (false, false);
            }
            self.rounds.departs(una, self.snd_max, self.full_bytes, self.after_loss);
            if self.since.emptied_ns.get().is_some_and(|emptied| leaves.ts_ns.saturating_sub(emptied) >= BEGINS_ANEW_NS)
            {
                self.rounds.begin_anew();
            }
            if leaves.cut || self.recovers(una) {
                self.rounds.cut();
            }
        }
        self.since = Since {
            left_ns: Some(leaves.ts_ns).into(),
            frame: leaves.frame,
            payload_bytes: leaves.payload_bytes,
            was_small: ends_small,
            was_pushed: leaves.pushed,
            was_held,
            small_unacked: una.is_some_and(|una| self.small_end.value() > una),
            loss_told: self.taken_for_lost || una.is_some_and(|una| self.recovers(una)),
            unacked: una.map(|una| (self.snd_max - una).max(0)).into(),
            usable: self.edge.get().map(|edge| edge.saturating_sub(self.snd_max)).into(),
            closed: self.edge.is_some() && self.edge == self.una,
            ..Since::default()
        };
    }

    /// Bytes between all that was sent before and `start` that the capture missed. Away from the sender they may have been lost before the
    /// capture point, unless they are acknowledged.
    fn missed_bytes(&self, start: i64, shift_ns: i64) -> i64 {
        let arrived = if shift_ns > 0 { self.una.get().map_or(self.snd_max, |una| una.min(start)) } else { start };
        (arrived - self.snd_max).max(0)
    }

    /// Whether what was sent when the last repair began is not all acknowledged by `una`.
    fn recovers(&self, una: i64) -> bool {
        una < self.recover.value()
    }

    /// Within this time of an ACK a departure may be its effect.
    fn causal_ns(&self, shift_ns: i64) -> i64 {
        CAUSAL_NS.max(shift_ns.saturating_add(self.round_trip_ns.get().unwrap_or(0)) / 10)
    }

    #[inline]
    fn held(&self, leaves: &Leaves, shift_ns: i64) -> Departure {
        let since = &self.since;
        // What was taken to arrive later than it did has arrived by now.
        let age = |then: Nullable| Nullable::from(then.get().map(|then| leaves.ts_ns.saturating_sub(then).max(0)));
        let una = self.una.get();
        let all_acked = una.is_some_and(|una| una >= self.snd_max);
        let frame = |known: Nullable, frame: u64| Nullable::from(known.get().map(|_| frame as i64));
        Departure {
            held_ns: age(since.left_ns),
            held_since_frame: frame(since.left_ns, since.frame),
            sent_ticks: Nullable::default(),
            queued_ns: Nullable::default(),
            queue_grew_ns: Nullable::default(),
            idle_ns: if all_acked { age(since.emptied_ns) } else { Nullable::default() },
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
        }
    }

    /// All that is known when the connection ends at `last_ts_ns`. What is still on its way arrives before.
    pub(super) fn waits(&self, last_ts_ns: Nullable, shift_ns: i64) -> Waits {
        let mut view = self.clone();
        while let Some(arrival) = view.arrivals.pop() {
            let arrived_ns = arrival.ts_ns.saturating_add(whole_ns(shift_ns));
            view.arrived(&arrival, arrived_ns.min(last_ts_ns.get().unwrap_or(i64::MAX)));
        }
        let end = |ts_ns| view.held(&Leaves { ts_ns, full_bytes: view.full_bytes, ..Leaves::default() }, shift_ns);
        let (line_payload_bytes, line_ns) = self.spacing.line();
        let (spaced_payload_bytes, spaced_ns) = self.spacing.closest();
        let (exchange_bytes, exchange_cells, exchange_ns) = self.spacing.exchange();
        let (steady_payload_bytes, steady_ns) = self.steady.pace();
        let (followed_segments, steady_segments, steady_other_sizes) = self.steady.segments();
        let (paced_payload_bytes, paced_ns) = self.paced.pace();
        let (top_flight_bytes, top_rounds) = self.rounds.top();
        let [(full_held_flight_bytes, full_held_times), (other_full_held_flight_bytes, other_full_held_times)] =
            self.stops.most();
        let [(emptied_flight_bytes, emptied_times), (other_emptied_flight_bytes, other_emptied_times)] =
            self.emptied.most();
        let [(level_flight_bytes, level_rounds), (other_level_flight_bytes, other_level_rounds)] = self.rounds.levels();
        Waits {
            first: self.first,
            ending: last_ts_ns.get().map(end).unwrap_or_default(),
            level_flight_bytes,
            level_rounds,
            other_level_flight_bytes,
            other_level_rounds,
            clocked: self.clocked,
            unclocked: self.unclocked,
            small_behind_small: self.small_behind_small,
            small_held_run: self.held.longest_run,
            small_past_full: self.held.passed_full,
            small_held_over_full: self.held.over_full,
            small_held_went_on: self.held.went_on,
            tick_ns: self.clock.tick_ns(),
            line_payload_bytes,
            line_ns,
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
            top_flight_bytes,
            top_rounds,
            full_held_flight_bytes,
            full_held_times,
            other_full_held_flight_bytes,
            other_full_held_times,
            emptied_flight_bytes,
            emptied_times,
            other_emptied_flight_bytes,
            other_emptied_times,
        }
    }
}

/// Whether the departure before may have kept the line busy all the time until this one: it is not acknowledged yet, and neither
/// an answer nor an ACK let this one go.
fn line_may_be_busy(left: &Departure) -> bool {
    let let_go = left.acked_ago_ns.get().is_some_and(|ago_ns| ended_by(left, ago_ns));
    !let_go && !left.peer_first_ns.is_some() && left.unacked_bytes.get().is_some_and(|bytes| bytes > 0)
}

/// Whether both hosts are so near that the capture may have been made at either, though the sender answers later than the receiver.
#[inline]
pub(super) fn at_either(to_sender_ns: Option<i64>, to_receiver_ns: Option<i64>) -> bool {
    let near = |(sender_ns, receiver_ns): (i64, i64)| {
        sender_ns > receiver_ns && sender_ns.saturating_add(receiver_ns) < NO_DISTANCE_NS
    };
    to_sender_ns.zip(to_receiver_ns).is_some_and(near)
}

/// How much later what is captured reaches the sender than its departures of then were captured, from the shortest round trips
/// between the capture point and either end, in a connection that was captured from its beginning on or not. Nothing at the
/// sender itself.
#[inline]
pub(super) fn shift_ns(to_sender_ns: Option<i64>, to_receiver_ns: Option<i64>, begun: bool) -> i64 {
    let Some(to_sender_ns) = to_sender_ns else { return 0 };
    let whole_ns = to_sender_ns.saturating_add(to_receiver_ns.unwrap_or(0));
    let no_distance_ns = if begun { NO_DISTANCE_NS } else { NO_DISTANCE_OF_PROGRAMS_NS };
    if to_sender_ns < no_distance_ns.max(whole_ns / NEAR_SENDER_PART) {
        0
    } else {
        to_sender_ns - to_sender_ns / TOLERANCE_PART
    }
}
