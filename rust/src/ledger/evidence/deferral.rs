//! TSO deferral: if the window has little room, Linux waits for more before it sends (`tcp_tso_should_defer`).

use super::flights::{AVOIDANCE_PART, AVOIDANCE_SEGMENTS};
use super::{Evidence, are, is};
use crate::sender::NS_PER_MS;

/// Linux defers a segment while an ACK is due soon and the room is less than 1/3 of the window (`tcp_tso_should_defer`,
/// `net.ipv4.tcp_tso_win_divisor`). Linux counts the time of such a deferral as time limited by the receiver window
/// (`rwnd_limited`).
const DEFER_PART: i64 = 3;
/// A Linux sender paces at most this many flights per RTT. The congestion window grows to at most twice the flight
/// (`tcp_is_cwnd_limited`), and slow start paces two congestion windows per RTT (`net.ipv4.tcp_pacing_ss_ratio`).
const PACED_AHEAD: i64 = 4;
/// The largest piece of data that Linux TCP hands to the lower layers, unless its host is configured otherwise
/// (`GSO_LEGACY_MAX_SIZE` less `MAX_TCP_HEADER` and 1, as `sk_setup_caps` computes it).
const LARGEST_PIECE_BYTES: i64 = 65_536 - 321;

impl Evidence<'_> {
    /// Whether the room is less than the third of the window that Linux waits for ([`DEFER_PART`]).
    fn is_part_of_window(&self, room: Option<i64>) -> bool {
        are(self.flight_before(), self.room(), |flight, room_before| {
            is(room, |room| room >= 0 && DEFER_PART * room < flight + room_before)
        })
    }

    /// Whether the room is less than the third of the window that Linux waits for, and less than two full-sized
    /// segments.
    pub(super) fn is_too_little(&self, room: Option<i64>) -> bool {
        is(room, |room| room < 2 * self.smss_bytes) && self.is_part_of_window(room)
    }

    /// Whether Linux deferred the segment until an ACK came, although the receiver window had room for a few segments.
    /// The congestion window must not have been the limit: nothing was lost, and one of three conditions holds. First,
    /// an earlier flight was larger; second, an equally large flight filled the receiver window; third, the flight grew
    /// in a way in which no congestion window grows. Stacks older than segmentation offload never defer.
    #[inline]
    pub(in super::super) fn was_deferred_by_window(&self) -> bool {
        self.was_released_by_ack()
            && !self.direction.old
            && !self.is_small()
            && !self.is_after_loss()
            && self.left_room_it_could_use()
    }

    /// Whether the sender left room in the receiver window unused although the congestion window would have allowed
    /// more.
    fn left_room_it_could_use(&self) -> bool {
        let was_larger =
            are(self.flight_before(), self.previous_round_flight(), |now, before| now + self.smss_bytes <= before);
        if is(self.wait.window_opened_ns.get(), |ns| ns > self.causal_ns()) {
            let room_then = self.record.usable_window_bytes.get();
            return was_larger || self.is_too_little(room_then) || self.window_is_no_larger(room_then);
        }
        (self.is_too_little(self.room()) && (was_larger || self.did_not_grow())) || self.waits_for_a_piece(was_larger)
    }

    /// Whether the receiver window is hardly larger than the flight at the start of the wait: by less than two segments
    /// in slow start, otherwise by less than one. The congestion window allowed the flight, and only a loss reduces a
    /// congestion window. The congestion window therefore allows everything that the receiver window allows.
    fn window_is_no_larger(&self, room_then: Option<i64>) -> bool {
        let smss = self.smss_bytes;
        self.direction.near_sender
            && are(self.flight_after(), self.flight_before(), |after, now| {
                let grown = if now < AVOIDANCE_SEGMENTS * smss { 2 * smss } else { smss };
                is(room_then, |room| after + room < now + grown)
            })
    }

    /// Whether flights stopped growing at the edge of the receiver window. The congestion window is not the limit: it
    /// allowed a flight of this size before, and has grown since by at least a segment per RTT. The send buffer is not
    /// the limit, because the largest flight fills the window.
    fn did_not_grow(&self) -> bool {
        let smss = self.smss_bytes;
        let edge_reached =
            are(self.direction.peak_flight_bytes, self.direction.max_window_bytes, |most, window| most + smss > window);
        self.flight_stands()
            && edge_reached
            && is(self.flight_before(), |now| now < AVOIDANCE_SEGMENTS * smss || now >= AVOIDANCE_PART * smss)
    }

    /// Whether Linux waits until it can send a whole piece. A piece is the data that Linux sends in 1 ms at its pacing
    /// rate, but at least two segments (`tcp_tso_autosize`). The wait must take most of an RTT, because shorter waits
    /// may be the spacing of ACKs.
    fn waits_for_a_piece(&self, was_larger: bool) -> bool {
        let (Some(room), Some(now)) = (self.room(), self.flight_before()) else { return false };
        let paced_in_ms = |flight: i64| (PACED_AHEAD * NS_PER_MS) as f64 * flight as f64 / self.rtt_ns().max(1) as f64;
        let less_than_a_piece = room < 2 * self.smss_bytes
            || (room < LARGEST_PIECE_BYTES
                && is(self.previous_round_flight(), |flight| (room as f64) < paced_in_ms(flight)));
        less_than_a_piece
            && self.is_part_of_window(Some(room))
            && 4 * self.wait_ns >= 3 * self.rtt_ns()
            && !self.wait.small_before
            && (was_larger || self.grew_otherwise(now))
    }

    /// Whether the flight grew more slowly than in slow start, which adds a segment per ACK. If congestion avoidance
    /// can have begun, the flight must also have grown faster than congestion avoidance allows. A flight that can be in
    /// congestion avoidance counts only in a capture away from the sender. A capture at the sender shows whether a
    /// larger flight reaches the edge of the receiver window, so other tests decide there.
    fn grew_otherwise(&self, now: i64) -> bool {
        let smss = self.smss_bytes;
        let Some(flight) = self.previous_round_flight().filter(|_| smss > 0) else { return false };
        let least_by_slow_start = flight + flight.div_euclid(2 * smss) * smss;
        let most_by_avoidance = flight + smss.max(flight.div_euclid(AVOIDANCE_PART));
        now < least_by_slow_start
            && (flight < AVOIDANCE_SEGMENTS * smss || (!self.direction.near_sender && now > most_by_avoidance))
    }

    /// Whether the receiver window is the cause of the whole wait, even if the window opened some time before the
    /// segment was sent.
    pub(in super::super) fn window_owns_all(&self) -> bool {
        self.fills_window() || self.was_forced_in() || self.is_window_probe() || self.was_deferred_by_window()
    }

    /// Time from the opening of the receiver window to the segment, in a capture away from the sender. The queueing
    /// delay of the segment, which its timestamp shows, is subtracted. The result is 0 if this time is within the
    /// causal window, or if only the receiver window can have limited the sender.
    pub(in super::super) fn window_opened_before_ns(&self) -> i64 {
        let ago_ns = (self.wait.window_opened_ns.get().unwrap_or(0) - self.queueing_delay_ns()).max(0);
        let had_time = ago_ns > self.causal_ns()
            && !self.direction.near_sender
            && !self.window_owns_all()
            && !self.was_on_the_way();
        if had_time { ago_ns } else { 0 }
    }
}
