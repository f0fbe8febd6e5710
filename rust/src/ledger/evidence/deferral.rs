//! What Linux leaves open in a window: room for so little of it that a sender waits for more (`tcp_tso_should_defer`).

use super::super::limits::NS_PER_MS;
use super::flights::{AVOIDANCE_PART, AVOIDANCE_SEGMENTS};
use super::{Evidence, are, is};

/// Linux keeps a segment back while an ACK is due soon and there is room for less than this part of the window
/// (`tcp_tso_should_defer`, `net.ipv4.tcp_tso_win_divisor`). It counts the time as the receiver window's (`rwnd_limited`).
const DEFER_PART: i64 = 3;
/// A Linux sender paces no more than this many flights in a round trip: its congestion window grows to twice the flight at most
/// (`tcp_is_cwnd_limited`), and it paces two of those in each round trip of slow start (`net.ipv4.tcp_pacing_ss_ratio`).
const PACED_AHEAD: i64 = 4;
/// No piece is larger (Linux `sk_setup_caps`: `GSO_LEGACY_MAX_SIZE` less `MAX_TCP_HEADER` and 1), unless its host was told to.
const LARGEST_PIECE_BYTES: i64 = 65_536 - 321;

impl Evidence<'_> {
    /// Room for less than the part of the window that Linux waits for.
    fn is_part_of_window(&self, room: Option<i64>) -> bool {
        are(self.flight_before(), self.room(), |flight, room_before| {
            is(room, |room| room >= 0 && DEFER_PART * room < flight + room_before)
        })
    }

    /// [`Self::is_part_of_window`], and room for one segment only.
    pub(super) fn is_too_little(&self, room: Option<i64>) -> bool {
        is(room, |room| room < 2 * self.smss_bytes) && self.is_part_of_window(room)
    }

    /// The window had opened for a few segments, or been left open for them, and yet nothing left until an ACK came. The
    /// congestion window cannot have held it: nothing was lost, and the flight was larger before, or filled a window as large as
    /// this, or grew otherwise. Stacks older than segmentation offload do not do so.
    #[inline]
    pub(in super::super) fn was_deferred_by_window(&self) -> bool {
        self.was_released_by_ack()
            && !self.direction.old
            && !self.is_small()
            && !self.is_after_loss()
            && self.left_room_it_could_use()
    }

    /// Room for a few segments, which a congestion window would have let go.
    fn left_room_it_could_use(&self) -> bool {
        let was_larger =
            are(self.flight_before(), self.previous_round_flight(), |now, before| now + self.smss_bytes <= before);
        if is(self.wait.window_opened_ns.get(), |ns| ns > self.causal_ns()) {
            let room_then = self.record.usable_window_bytes.get();
            return was_larger || self.is_too_little(room_then) || self.window_is_no_larger(room_then);
        }
        (self.is_too_little(self.room()) && (was_larger || self.did_not_grow())) || self.waits_for_a_piece(was_larger)
    }

    /// The flight before had filled a window that is no larger now, or by no more than the segment that slow start adds for an
    /// ACK: what the window leaves open is open in the congestion window, too, which no ACK makes smaller without a loss.
    fn window_is_no_larger(&self, room_then: Option<i64>) -> bool {
        let smss = self.smss_bytes;
        self.direction.near_sender
            && are(self.flight_after(), self.flight_before(), |after, now| {
                let grown = if now < AVOIDANCE_SEGMENTS * smss { 2 * smss } else { smss };
                is(room_then, |room| after + room < now + grown)
            })
    }

    /// Where slow start cannot have ended, or congestion avoidance adds a segment in each round trip, a congestion window that
    /// had held a flight as large would have let a larger one go; and no buffer is smaller than the window, which some flight
    /// fills.
    fn did_not_grow(&self) -> bool {
        let smss = self.smss_bytes;
        let edge_reached = are(self.direction.most_in_flight_bytes, self.direction.max_window_bytes, |most, window| {
            most + smss > window
        });
        self.flight_stands()
            && edge_reached
            && is(self.flight_before(), |now| now < AVOIDANCE_SEGMENTS * smss || now >= AVOIDANCE_PART * smss)
    }

    /// Linux waits for as much as it hands down in one piece (`tcp_tso_autosize`): what it paces in a millisecond, and two
    /// segments at least. It waited for most of a round trip, so that the spacing of ACKs did not keep it back.
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

    /// By less than slow start, which adds a segment for each ACK, and by more than congestion avoidance, where that can have
    /// begun. Near the sender a larger flight that the window ends is seen to reach its edge.
    fn grew_otherwise(&self, now: i64) -> bool {
        let smss = self.smss_bytes;
        let Some(flight) = self.previous_round_flight().filter(|_| smss > 0) else { return false };
        let least_by_slow_start = flight + flight.div_euclid(2 * smss) * smss;
        let most_by_avoidance = flight + smss.max(flight.div_euclid(AVOIDANCE_PART));
        now < least_by_slow_start
            && (flight < AVOIDANCE_SEGMENTS * smss || (!self.direction.near_sender && now > most_by_avoidance))
    }

    /// However early the window opened a little, it held this one.
    pub(in super::super) fn window_owns_all(&self) -> bool {
        self.fills_window() || self.was_forced_in() || self.is_window_probe() || self.was_deferred_by_window()
    }

    /// How long before the departure the window opened, less the time for which the departure stood in a queue before the capture
    /// point, by its own timestamp. 0 where that is no longer than an effect takes, and where nothing else can have held the sender.
    pub(in super::super) fn window_opened_before_ns(&self) -> i64 {
        let ago_ns = (self.wait.window_opened_ns.get().unwrap_or(0) - self.queueing_delay_ns()).max(0);
        let had_time = ago_ns > self.causal_ns()
            && !self.direction.near_sender
            && !self.window_owns_all()
            && !self.was_on_the_way();
        if had_time { ago_ns } else { 0 }
    }
}
