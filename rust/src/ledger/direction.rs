//! The final facts of one direction. They determine the cause of each wait of the direction (`docs/how-it-decides.md`,
//! 3.4).
//!
//! A [`DirectionFacts`] is computed once, from the row of a connection that has ended. Each fact is defined once, in
//! this module.

mod line;
mod neighbours;
mod pauses;

pub(super) use line::at_rate;
pub use line::{Line, MIN_FRAME_BYTES};
pub use neighbours::{Neighbours, Queue, Samples};
pub use pauses::{MIN_IDLE_NS, PauseCounts, Pauses};

use crate::connection::{CAUSAL_NS, CLUSTER_BYTES, DirectionFigures};
use crate::flows::ConnectionRow;
use crate::hosts::{Acknowledging, is_loopback, is_near, is_unasked, turnaround_ns};
use crate::nullable::Nullable;
use crate::sender::{LONGEST_NS, NS_PER_MS, REACTION_NS, SLOW_REACTION_NS, SenderTotals};

/// In a capture at the sender, an ACK may have released a segment if the segment followed the ACK within this share of
/// the RTT.
pub const CAUSAL_SHARE_NEAR: f64 = 0.1;
/// The share that replaces [`CAUSAL_SHARE_NEAR`] in a capture away from the sender, where delays on the path vary.
const CAUSAL_SHARE_FAR: f64 = 0.5;
/// Segments that follow each other within this time were sent as one burst: a host needs 1 to 10 µs per segment
/// (measured on loopback and veth).
const BURST_NS: i64 = 20_000;
/// The longest interval within a burst, as a share of the RTT.
const BURST_SHARE: f64 = 0.002;
/// An RTT that exceeds the shortest RTT by more than this share includes queueing delay (a heuristic).
const QUEUE_SHARE: f64 = 0.25;
/// At least this many waits of one kind prove a cause; a single wait is only consistent with the cause (a heuristic).
pub const HELD_TIMES: i64 = 3;
/// Flights that do not grow for this many rounds are on a plateau (a heuristic).
const PLATEAU_ROUNDS: i64 = 5;
/// If a plateau is above this share of the largest receiver window, the receiver window causes the plateau (a
/// heuristic).
const BELOW_WINDOW_SHARE: f64 = 0.9;
/// A pace is steady if the segments sent at this pace outnumber the other segments by at least this many (a heuristic).
const STEADY_SEGMENTS: i64 = 5;
/// A small send buffer causes one flight per RTT. A small send buffer is therefore not the cause of a steady interval
/// of at most 1/4 of the RTT (a heuristic).
const STEADY_PART: i64 = 4;
/// If the segments at the steady pace outnumber the others by at least this share of all segments, there are no pauses
/// between flights (a heuristic).
const STEADY_SHARE: f64 = 0.75;
/// A sender paces if the bursts at the most common pace outnumber the others by at least this many (a heuristic).
const PACED_BURSTS: i64 = 5;
/// A segment is early if it is sent in the first quarter of the time from one ACK to the next, and late if it is sent
/// in the second half. If ACKs release the segments of a direction, only one segment in a hundred is late. If at least
/// `CHANCE_DEPARTURES` segments are late, and at least one for every `CHANCE_PART` early ones, ACKs do not release the
/// segments (a heuristic).
const CHANCE_DEPARTURES: i64 = 5;
const CHANCE_PART: u32 = 4;
/// The application writes on its own clock if an even interval predicts enough writes (a heuristic). Enough means at
/// least `CLOCK_WRITES`, plus `CLOCK_TIMES` times the number of writes that ACKs predict.
const CLOCK_WRITES: u32 = 5;
const CLOCK_TIMES: u32 = 3;
/// An application that does not wait for answers sends most small segments before the previous one is answered: at
/// least this many for each small segment that it sends after an answer (a heuristic).
const AHEAD_TIMES: i64 = 3;
/// A measured tick of a timestamp clock in this range counts as a millisecond, because queues on the path falsify the
/// measurement (a heuristic). The next longer tick in use is 4 ms.
const MILLISECOND_TICK_NS: std::ops::RangeInclusive<i64> = 800_000..=1_250_000;
/// If the longest segment has at least this share of the SMSS, it may be a full-sized segment that a tunnel shortened.
const TUNNEL_SHARE: f64 = 0.9;
/// The MSS if the SYN offers none (RFC 9293, 3.7.1).
pub const DEFAULT_MSS_BYTES: i64 = 536;
/// The rate at which queues drain is valid if it was measured with at least this many ACKs (a heuristic).
const MIN_RATE_SAMPLES: i64 = 10;

/// Two times differ for certain if they are this many ticks of the capture's clock apart. A difference of one tick can
/// be a rounding error.
const TICKS: i64 = 2;

/// The facts of one direction. "Sender" is the host that sends the data of this direction; "receiver" is its peer.
/// Fields in `*_ns` are nanoseconds.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, clippy::struct_excessive_bools)] // each name is a fact of its own
pub struct DirectionFacts {
    pub from_client: bool,
    pub first_ts_ns: i64,
    pub last_ts_ns: i64,
    pub rtt_min_ns: Option<i64>,
    pub rtt_max_ns: Option<i64>,
    /// Whether the capture was taken at the sender.
    pub near_sender: bool,
    /// Whether the capture was taken at the receiver.
    pub near_receiver: bool,
    /// Whether the capture does not show how far the sender is from the capture point.
    pub sender_unplaced: bool,
    /// Shortest time from the capture point to the sender and back.
    pub to_sender_ns: i64,
    /// Shortest RTT between the hosts, as far as the capture shows it.
    pub rtt_ns: i64,
    /// The largest window that the receiver advertised.
    pub max_window_bytes: Option<i64>,
    pub receiver_last_data_ts_ns: Option<i64>,
    pub receiver_syn_segments: i64,
    pub receiver_departed: bool,
    pub receiver_data_segments: i64,
    pub receiver_end: ReceiverEnd,
    /// Whether the receiver sends its delayed ACKs by a periodic timer (heartbeat).
    pub receiver_beats: bool,
    pub beginning_seen: bool,
    /// Whether the capture contains segments of the sender. A capture of only one direction lacks the segments of one
    /// host.
    pub captured: bool,
    pub pushes: bool,
    pub finished: bool,
    /// Whether the receiver sent a FIN, or either host sent a RST.
    pub ended_by_others: bool,
    /// Whether the sender numbers the packets of this direction one by one (IPv4 identification).
    pub numbers_packets: bool,
    /// Whether the sender has an old stack, which does not pace. The SYN of such a stack lacks SACK (RFC 2018, 1996)
    /// and timestamps (RFC 1323, 1992).
    pub old: bool,
    /// Whether the connection uses neither SACK (DSACK, RFC 2883) nor timestamps (RFC 3522). ACKs then cannot show that
    /// a retransmission was spurious.
    pub shows_no_copies: bool,
    pub uses_sack: bool,
    pub line: Line,
    /// The payload size to which a 4.4BSD sender rounds its MSS down; `None` if it does not round.
    pub rounded_bytes: Option<i64>,
    pub reaction_min_ns: Option<i64>,
    pub nothing_lost: bool,
    pub min_segment_bytes: Option<i64>,
    pub max_segment_bytes: i64,
    pub max_in_flight_bytes: Option<i64>,
    /// The largest flight of the direction: the one in the capture or the one that the sender knew, whichever is
    /// larger.
    pub peak_flight_bytes: Option<i64>,
    pub out_of_order_segments: i64,
    pub tick_ns: Option<i64>,
    pub totals: SenderTotals,
    pub drained: Option<Drained>,
    /// Times shorter than this are uncertain: two ticks of a coarse capture clock, 0 for a fine one.
    pub blurred_ns: i64,
    /// The causal window: a segment sent within this time after an ACK may have been released by the ACK.
    pub causal_window_ns: i64,
    /// The release window: a segment counts as released by an ACK only if it was sent within this time after the ACK.
    pub release_window_ns: i64,
    /// Allowance for the jitter of the path; 0 in a capture at the sender.
    pub unsteady_ns: i64,
    pub burst_ns: i64,
    /// A delay that exceeds the shortest one by more than this shows a queue on the path.
    pub queue_ns: i64,
    /// Whether segments of one write come at a steady spacing: those at the most common spacing outnumber the others by
    /// at least 5. False if the direction has timestamps.
    pub comes_steadily: bool,
    /// Whether the spacing of segments depends on their size. If so, the spacing shows the rate of a line.
    pub comes_by_size: bool,
    /// Whether the sender paces: it sends bursts at an even interval.
    pub paces: bool,
    /// Whether the sender sends at any time between two ACKs. If so, ACKs do not release its segments.
    pub leaves_between_acks: bool,
    /// Whether the application writes on its own clock: an even interval predicts its writes better than ACKs do.
    pub writes_by_clock: bool,
    /// Whether Nagle's algorithm is on: a small segment waits until earlier small segments are acknowledged.
    pub holds_small: bool,
    /// Whether Nagle's algorithm is on in its first form (RFC 896): a small segment also waits until full-sized
    /// segments are acknowledged.
    pub holds_behind_full: bool,
    /// Whether at least three small segments waited for an ACK although the flight before them certainly did not fill
    /// the send buffer.
    pub surely_holds_small: bool,
    /// Whether the application does not wait for answers: it sends a small segment before the previous small segment is
    /// answered.
    pub writes_ahead: bool,
    /// Whether the receiver sent at least one data segment for every two small segments that waited for an ACK.
    pub answered: bool,
    /// Whether the direction is ACK-clocked: the sender sends most segments as soon as an ACK arrives.
    pub ack_clocked: bool,
    pub plateau_bytes: Option<i64>,
    pub other_plateau_bytes: Option<i64>,
    pub low_top_bytes: Option<i64>,
    pub top_bytes: Option<i64>,
    /// Whether no segment is full-sized: the longest ones are slightly shorter than the SMSS, and two of them are never
    /// in flight together. The application writes pieces of the size of the longest segment.
    pub never_full: bool,
    pub ticks_milliseconds: bool,
    /// Whether, in a capture away from the sender, no segment was lost or out of order, and every retransmission was
    /// spurious.
    pub only_late: bool,
    /// Silence of at least this length has the cause `idle` if the sender could send and neither host has to answer the
    /// other.
    pub idle_after_ns: i64,
    /// `idle_after_ns` of the other direction.
    pub receiver_idle_after_ns: i64,
    /// What other connections between the same hosts show about the path to the sender.
    pub neighbours: Option<Neighbours>,
}

/// How the receiver closed its own direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiverEnd {
    /// Whether the receiver sent a FIN.
    pub finished: bool,
    /// Time of the receiver's last data or FIN; `None` if the receiver sent no FIN.
    pub closed_ts_ns: Option<i64>,
    /// Whether the receiver sent a RST.
    pub reset: bool,
}

impl ReceiverEnd {
    fn of(figures: &DirectionFigures, totals: &SenderTotals, last_ts_ns: i64) -> Self {
        let finished = figures.fin_segments > 0;
        let closed_ts_ns = totals.ending.wait_ns.get().filter(|_| finished).map(|ns| last_ts_ns - ns);
        Self { finished, closed_ts_ns, reset: figures.rst_segments > 0 }
    }
}

/// Bytes that drained through the bottleneck, and the time that they took.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Drained {
    pub bytes: i64,
    pub ns: i64,
}

/// The shortest time from the capture point to host `side` and back; `None` if it is unknown or shorter than a tick of
/// the capture's clock.
fn shown_turnaround_ns(row: &ConnectionRow, side: usize) -> Option<i64> {
    turnaround_ns(row, side, row.tick_ns.unwrap_or(0))
}

fn at_least(min_ns: i64, share: f64, rtt_ns: i64) -> i64 {
    min_ns.max((rtt_ns as f64 * share) as i64)
}

impl DirectionFacts {
    /// The facts of the direction in which `side` (0 client, 1 server) sends; `None` if the connection has no times.
    /// For a connection longer than [`LONGEST_NS`], only the first and the last time are set.
    #[must_use]
    pub fn of(row: &ConnectionRow, side: usize) -> Option<Self> {
        let other = 1 - side;
        let (from_client, first_ts_ns, last_ts_ns) = (side == 0, row.first_ts_ns.get()?, row.last_ts_ns.get()?);
        let alone = Self { from_client, first_ts_ns, last_ts_ns, ..Self::default() };
        if alone.lasts_too_long() {
            return Some(alone);
        }
        let (figures, others) = (row.directions.get(side)?, row.directions.get(other)?);
        let (counts, other_counts) = (row.counts.get(side)?, row.counts.get(other)?);
        let (totals, other_totals) = (row.waits.get(side)?, row.waits.get(other)?);
        let behaviour = row.behaviours.get(side)?;
        let (bound, other_bound) = (shown_turnaround_ns(row, side), shown_turnaround_ns(row, other));
        let (to_sender_ns, to_receiver_ns) = (bound.unwrap_or(0), other_bound.unwrap_or(0));
        let (close, at_receiver) = (is_near(to_sender_ns, to_receiver_ns), is_near(to_receiver_ns, to_sender_ns));
        let beginning_seen = figures.syn_segments.max(others.syn_segments) > 0;
        let sender_unplaced = ((bound.is_none() && !is_loopback(row))
            || ((is_unasked(row, side) || !beginning_seen) && !close))
            && others.segments > 0;
        let near_sender = close && !sender_unplaced;
        let rtt_ns = to_receiver_ns + if near_sender { 0 } else { to_sender_ns };
        let offers = |figures: &DirectionFigures, option: fn(&DirectionFigures) -> Option<bool>, is: bool| {
            option(figures) == Some(is)
        };
        let sack = |figures: &DirectionFigures| figures.syn_options?.permits_sack();
        let stamps = |figures: &DirectionFigures| figures.syn_options?.offers_timestamps();
        let both = |option: fn(&DirectionFigures) -> Option<bool>| {
            offers(figures, option, true) && offers(others, option, true)
        };
        let not_both = |option: fn(&DirectionFigures) -> Option<bool>| {
            offers(figures, option, false) || offers(others, option, false)
        };
        let old = offers(figures, sack, false) && offers(figures, stamps, false);
        let (max_in_flight_bytes, tick_ns) = (figures.max_in_flight_bytes.get(), totals.tick_ns.get());
        let drained = row.rates.get(side)?.as_deref().map(crate::accounts::Rates::drained);
        let nagle = behaviour.sending.nagle.as_deref().copied().unwrap_or_default();
        let sure_holds =
            i64::from(nagle.holds.count) + i64::from(nagle.holds_over_full.count) - i64::from(nagle.holds_ambiguous);
        let peak_flight_bytes = max_in_flight_bytes.max(totals.top_flight_bytes.get());
        let mut direction = Self {
            from_client,
            first_ts_ns,
            last_ts_ns,
            rtt_min_ns: counts.rtt.min_ns().filter(|ns| *ns >= row.tick_ns.unwrap_or(0)),
            rtt_max_ns: counts.rtt.max_ns(),
            near_sender,
            near_receiver: !near_sender && !sender_unplaced && at_receiver && other_bound.is_some(),
            sender_unplaced,
            to_sender_ns,
            rtt_ns,
            max_window_bytes: others.window_scale.and(other_counts.max_window_bytes).map(i64::from),
            receiver_last_data_ts_ns: other_counts.last_data_ts_ns.get(),
            receiver_syn_segments: others.syn_segments.into(),
            receiver_departed: other_totals.first.is_some(),
            receiver_data_segments: others.data_segments as i64,
            receiver_end: ReceiverEnd::of(others, other_totals, last_ts_ns),
            receiver_beats: Acknowledging::by_host(row, other).beats(),
            beginning_seen,
            captured: figures.segments > 0,
            pushes: counts.pushed_segments > 0,
            finished: figures.fin_segments > 0,
            ended_by_others: others.fin_segments > 0 || figures.rst_segments > 0 || others.rst_segments > 0,
            numbers_packets: behaviour.numbering.gaps_may_be_losses(),
            old,
            shows_no_copies: not_both(sack) && not_both(stamps),
            uses_sack: both(sack),
            line: Line::of(totals, other_totals, near_sender, both(stamps)),
            rounded_bytes: None,
            reaction_min_ns: behaviour.reaction.min_ns.get(),
            nothing_lost: counts.retransmitted_segments == figures.spurious_retransmissions,
            min_segment_bytes: row.statistics.get(side)?.usual.min_segment_bytes.map(i64::from),
            max_segment_bytes: figures.max_segment_bytes.into(),
            max_in_flight_bytes,
            peak_flight_bytes,
            out_of_order_segments: counts.out_of_order_segments.into(),
            tick_ns,
            totals: *totals,
            drained: drained
                .filter(|drained| i64::from(drained.samples) >= MIN_RATE_SAMPLES && drained.bytes > 0)
                .map(|drained| Drained { bytes: drained.bytes, ns: drained.ns }),
            blurred_ns: TICKS.saturating_mul(row.tick_ns.unwrap_or(0)),
            burst_ns: at_least(BURST_NS, BURST_SHARE, rtt_ns),
            queue_ns: (QUEUE_SHARE * rtt_ns as f64) as i64 + NS_PER_MS,
            paces: i64::from(totals.paced_bursts) >= PACED_BURSTS && !old,
            writes_by_clock: is_by_clock(totals),
            surely_holds_small: sure_holds >= HELD_TIMES,
            answered: 2 * others.data_segments as i64
                >= i64::from(totals.small_delayed_run) + i64::from(totals.small_delayed_over_full),
            ack_clocked: totals.clocked > totals.unclocked,
            idle_after_ns: Pauses::default().idle_after_ns(),
            receiver_idle_after_ns: Pauses::default().idle_after_ns(),
            ticks_milliseconds: tick_ns.is_some_and(|tick_ns| MILLISECOND_TICK_NS.contains(&tick_ns)),
            ..Self::default()
        };
        direction.only_late = !near_sender && direction.nothing_lost && direction.out_of_order_segments == 0;
        direction.settle_windows();
        let smss_bytes = row.full_segment_bytes.map(i64::from);
        direction.rounded_bytes = direction.rounded_bytes(smss_bytes);
        direction.settle_pace();
        direction.settle_nagle(smss_bytes);
        direction.settle_plateaus(smss_bytes);
        Some(direction)
    }

    /// Time from the first segment of the connection to the last, limited to the range of an i64.
    #[must_use]
    pub fn life_ns(&self) -> i64 {
        self.last_ts_ns.saturating_sub(self.first_ts_ns)
    }

    /// Whether the connection lasts longer than any real one. The times of such a connection are wrong, so its waits
    /// are not judged.
    pub(super) fn lasts_too_long(&self) -> bool {
        self.life_ns() > LONGEST_NS
    }

    fn settle_windows(&mut self) {
        self.leaves_between_acks = leaves_by_chance(&self.totals);
        self.unsteady_ns = if self.near_sender { 0 } else { at_least(CAUSAL_NS, CAUSAL_SHARE_NEAR, self.rtt_ns) };
        let share = if self.near_sender { CAUSAL_SHARE_NEAR } else { CAUSAL_SHARE_FAR };
        self.causal_window_ns = at_least(CAUSAL_NS, share, self.rtt_ns).max(self.blurred_ns);
        self.release_window_ns = self.release_window_ns().max(self.blurred_ns);
    }

    /// The longest time from an ACK to a segment that it released. In a capture at the sender, the result is twice the
    /// slowest reaction if the sender's reactions to ACKs are clearly faster than its other segments. If ACKs do not
    /// release the segments of this sender, a segment can follow an ACK closely by coincidence. The result is then only
    /// the reaction time of a host.
    fn release_window_ns(&self) -> i64 {
        let reaction_ns = self.totals.reaction_ns.get();
        if !self.near_sender {
            // Only the handshake shows how far the sender is from the capture point, and therefore at what time an ACK
            // reaches the sender.
            let is_fast = |ns: i64| self.beginning_seen && ns as f64 <= CAUSAL_SHARE_NEAR * self.rtt_ns as f64;
            let share = if reaction_ns.is_some_and(is_fast) { CAUSAL_SHARE_NEAR } else { CAUSAL_SHARE_FAR };
            at_least(CAUSAL_NS, share, self.rtt_ns)
        } else if self.leaves_between_acks {
            REACTION_NS
        } else if let Some(reaction_ns) = reaction_ns.filter(|ns| *ns <= SLOW_REACTION_NS) {
            REACTION_NS.max(2 * reaction_ns)
        } else {
            self.causal_window_ns
        }
    }

    fn rounded_bytes(&self, smss_bytes: Option<i64>) -> Option<i64> {
        let (longest, full) = (self.max_segment_bytes, smss_bytes?);
        let whole = longest > 0 && longest < full && longest == full / CLUSTER_BYTES * CLUSTER_BYTES;
        let flew = |segments: i64| self.max_in_flight_bytes.is_some_and(|most| most >= segments * longest);
        // In a throughput deadlock, each segment is in flight alone. Only a FIN can be sent while another segment is in
        // flight.
        let locked = i64::from(self.totals.small_delayed_run) >= HELD_TIMES && self.totals.small_behind_small == 0;
        let roomy = self.max_window_bytes.is_some_and(|most| most > 2 * longest + CLUSTER_BYTES);
        (self.old && whole && flew(2) && (!locked || flew(3)) && roomy).then_some(longest)
    }

    fn settle_pace(&mut self) {
        let totals = &self.totals;
        let steady_ns = totals.steady_ns.get();
        self.comes_by_size = totals.steady_other_sizes > 0;
        let unlike_round_trip = self.comes_by_size
            || steady_ns.is_some_and(|ns| ns as f64 > 1.25 * self.rtt_ns as f64 + NS_PER_MS as f64)
            || steady_ns.is_some_and(|ns| STEADY_PART * ns <= self.rtt_ns);
        let segments = i64::from(totals.steady_segments);
        self.comes_steadily =
            segments >= STEADY_SEGMENTS && self.tick_ns.is_none() && (self.near_sender || unlike_round_trip);
        let shown = |pace_ns: Nullable| pace_ns.get().is_none_or(|ns| ns >= self.blurred_ns);
        self.comes_steadily &= shown(totals.steady_ns);
        self.paces &= shown(totals.paced_ns);
        self.comes_by_size &= segments as f64 >= STEADY_SHARE * f64::from(totals.followed_segments);
    }

    fn settle_nagle(&mut self, smss_bytes: Option<i64>) {
        let totals = &self.totals;
        let longest = self.max_segment_bytes;
        let nearly_full = smss_bytes.is_some_and(|full| longest < full && longest as f64 >= TUNNEL_SHARE * full as f64);
        let below_any_mss = smss_bytes.is_none() && longest < DEFAULT_MSS_BYTES;
        self.never_full =
            (nearly_full || below_any_mss) && self.peak_flight_bytes.is_some_and(|most| most < 2 * longest);
        let none_passed_full = totals.small_past_full == 0;
        let run = i64::from(totals.small_delayed_run);
        let over_full = none_passed_full && i64::from(totals.small_delayed_over_full) >= HELD_TIMES;
        self.holds_small = totals.small_behind_small == 0 || run >= HELD_TIMES;
        let before_answer = i64::from(totals.small_before_answer);
        self.writes_ahead =
            before_answer >= HELD_TIMES && before_answer >= AHEAD_TIMES * i64::from(totals.small_after_answer);
        self.holds_behind_full = over_full || (self.old && none_passed_full && run >= HELD_TIMES);
    }

    fn settle_plateaus(&mut self, smss_bytes: Option<i64>) {
        let totals = self.totals;
        self.plateau_bytes = self.level(totals.level_flight_bytes, totals.level_rounds, smss_bytes);
        self.other_plateau_bytes = self.level(totals.other_level_flight_bytes, totals.other_level_rounds, smss_bytes);
        self.top_bytes = self.level(totals.top_flight_bytes, totals.top_rounds, smss_bytes);
        self.low_top_bytes = self.low_top(smss_bytes);
    }

    /// Returns `level` if it is a plateau that the receiver window does not cause. The application itself can cause a
    /// level below two segments, so such a level counts only if every segment followed an ACK.
    fn level(&self, level: Nullable, rounds: u16, smss_bytes: Option<i64>) -> Option<i64> {
        let level = level.get()?;
        let shown = smss_bytes.is_some_and(|full| level >= 2 * full) || self.totals.unclocked == 0;
        (i64::from(rounds) >= PLATEAU_ROUNDS && shown && self.is_below_window(level, smss_bytes)).then_some(level)
    }

    /// Whether the level is far below the largest receiver window. For an old sender, one segment below the window is
    /// far enough, because an old sender sends each segment that fits.
    fn is_below_window(&self, level: i64, smss_bytes: Option<i64>) -> bool {
        let Some(most) = self.max_window_bytes else { return false };
        let fits = self.near_sender && self.old && smss_bytes.is_some_and(|full| level + full <= most);
        level as f64 <= BELOW_WINDOW_SHARE * most as f64 || fits
    }

    /// Returns the largest flight if the direction never had two full-sized segments in flight, and if ACKs released
    /// all of its segments. The result is `None` if there are fewer than [`PLATEAU_ROUNDS`] such segments, or if the
    /// RTT is so short that a segment can follow an ACK closely by coincidence.
    fn low_top(&self, smss_bytes: Option<i64>) -> Option<i64> {
        let most = self.max_in_flight_bytes?;
        let low = self.peak_flight_bytes? < 2 * smss_bytes?;
        let clocked = i64::from(self.totals.clocked) >= PLATEAU_ROUNDS && self.totals.unclocked == 0;
        let clear = CAUSAL_SHARE_NEAR * self.rtt_ns as f64 >= CAUSAL_NS as f64;
        (low && clocked && clear && self.is_below_window(most, smss_bytes)).then_some(most)
    }

    /// Whether a flight of this size empties the send buffer of an old stack. A flight empties the buffer if a
    /// full-sized segment waited behind flights of this size at least three times, although the window had room. The
    /// flights ended with PSH, so they contained all buffered data (4.4BSD, `tcp_output`). The next data was not in the
    /// buffer yet.
    pub(super) fn is_emptied_by(&self, previous_round_flight_bytes: i64) -> bool {
        let totals = &self.totals;
        let sizes = [
            (totals.emptied_flight_bytes, totals.emptied_times),
            (totals.other_emptied_flight_bytes, totals.other_emptied_times),
        ];
        self.old && sizes.into_iter().any(|size| is_held_at(size, previous_round_flight_bytes))
    }
}

/// Whether so many segments are late, as [`CHANCE_DEPARTURES`] defines it, that ACKs do not release them.
fn leaves_by_chance(totals: &SenderTotals) -> bool {
    let (early, late) = (totals.departures_early, totals.departures_late);
    i64::from(late) >= CHANCE_DEPARTURES && late.saturating_mul(CHANCE_PART) >= early
}

fn is_by_clock(totals: &SenderTotals) -> bool {
    totals.writes_by_clock >= totals.writes_by_ack.saturating_mul(CLOCK_TIMES).saturating_add(CLOCK_WRITES)
}

fn is_held_at((size, times): (Nullable, u16), previous_round_flight_bytes: i64) -> bool {
    size.get() == Some(previous_round_flight_bytes) && i64::from(times) >= HELD_TIMES
}
