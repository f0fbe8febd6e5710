//! How a sender goes on that has more to send: by ACKs, through a queue, behind a repair.

use super::{Evidence, TRAIN_PART, are, is};
use crate::connection::{PROBE_ROUND_TRIPS, ResentBy};
use crate::sender::DRIFT_PART;

/// Linux' probe timer may run an eighth longer (kernel/time/timer.c: levels of eight).
const LATEST_PROBE: f64 = 2.25;
/// Linux adds at least two jiffies (`tcp_schedule_loss_probe`), and its ticks are coarse.
const PROBE_TICKS_NS: i64 = 12 * super::super::limits::NS_PER_MS;
/// A program that was blocked by a full buffer needs so long to be woken and to write, whatever the path (a heuristic).
const REFILL_NS: i64 = 4 * super::super::limits::NS_PER_MS;

impl Evidence<'_> {
    /// The program had given more than could leave; an ACK let this part go, and the window was not what held it.
    #[inline]
    pub(in super::super) fn is_bulk(&self) -> bool {
        self.window_is_known() && (self.direction.ack_clocked || !self.is_small()) && self.was_released_by_ack()
    }

    /// The program may have been woken by an ACK that made room in a full buffer: in old stacks, in one that was full but for a
    /// piece.
    pub(in super::super) fn may_have_refilled_buffer(&self) -> bool {
        !self.is_bare_fin()
            && !self.peer_spoke()
            && is(self.wait.since_ack_ns.get(), |ago_ns| ago_ns <= REFILL_NS)
            && (!self.direction.old || self.may_fill_buffer())
            && !self.left_at_its_pace()
    }

    /// The last round trip, or its own timestamp, shows a queue on the path.
    pub(in super::super) fn is_in_queue(&self) -> bool {
        let by_timestamp =
            self.wait.queueing_delay_ns.get().filter(|_| self.says_when() && !self.wait.echo_ns.is_some());
        let late_echo_ns =
            || self.wait.echo_ns.get().zip(self.direction.reaction_min_ns).map_or(0, |(echo, least)| echo - least);
        if let Some(delay_ns) = by_timestamp {
            return self.direction.queue_ns < delay_ns;
        }
        let is_late = |over_ns: Option<i64>| self.direction.queue_ns < over_ns.unwrap_or(0) + late_echo_ns();
        // How long a full segment is on the line is not asked where that does not matter.
        is_late(self.over_any_ns()) && is_late(self.over_least_ns())
    }

    /// How long the flight needs through a queue, as the last ACK showed. An ACK that comes with an answer may have waited for the
    /// other side's program.
    pub(in super::super) fn still_queued_ns(&self) -> i64 {
        let acked_before_it_spoke = !self.peer_spoke()
            || are(self.wait.since_all_acked_ns.get(), self.wait.peer_first_ns.get(), |acked_ns, spoke_ns| {
                acked_ns > spoke_ns
            });
        let queued = acked_before_it_spoke
            && !self.had_little_in_flight()
            && self.was_late_with_neighbour()
            && self.is_in_queue();
        if queued { self.wait.rtt_sample_ns.get().unwrap_or(0) } else { 0 }
    }

    /// At its sender, behind a full segment: by its timestamp, which TCP writes, it had been handed down before the departure
    /// before was captured, and stood in a queue of the host's own since (a queueing discipline, as a shaper; packets are
    /// captured behind it).
    #[inline]
    pub(in super::super) fn is_in_own_queue(&self) -> bool {
        let drifted_ns = || {
            let first_ns = self.direction.totals.first?.ts_ns;
            Some(self.record.ts_ns.saturating_sub(first_ns).div_euclid(DRIFT_PART))
        };
        self.direction.near_sender
            && self.direction.ticks_milliseconds
            && !self.wait.small_before
            && are(self.wait.queueing_delay_ns.get(), drifted_ns(), |queueing_delay_ns, drifted_ns| {
                queueing_delay_ns - drifted_ns >= self.wait_ns
            })
    }

    /// At the sender, no ACK came for a round trip before it left: of what the path did meanwhile its sender knew nothing.
    pub(in super::super) fn sender_heard_nothing(&self) -> bool {
        self.direction.near_sender
            && self.wait_ns > self.rtt_ns()
            && self.wait.since_ack_ns.get().is_none_or(|ago_ns| ago_ns > self.rtt_ns())
    }

    /// Behind the path nothing was missing or overtaken, and what came twice had been late in a queue: the path's rate spaces
    /// these bytes, whatever their sender took for lost.
    pub(in super::super) fn was_only_late(&self) -> bool {
        self.direction.only_late && (self.is_in_queue() || self.was_delayed_on_path())
    }

    /// What was sent again filled the last hole, and the ACK of that let it go. Where no SYN shows the window's scale, the window
    /// may have been full.
    #[inline]
    pub(in super::super) fn was_repaired(&self) -> bool {
        self.wait.repaired_by.is_some() && self.window_is_known() && self.was_released_by_ack() && !self.was_only_late()
    }

    /// Its flight had ended with a timeout, of which the ACK of what was sent again let it go: the congestion window had room
    /// for that one segment alone (RFC 5681, 3.1: the loss window).
    #[inline]
    pub(in super::super) fn was_repaired_by_timeout(&self) -> bool {
        self.wait.repaired_by == Some(ResentBy::Timeout) && self.was_released_by_ack() && !self.was_only_late()
    }

    /// A probe that asks with new data whether the flight before was lost, which was not: its ACKs were late in a queue (RFC
    /// 8985, 7.3). Where the timer's ticks are longer than two round trips, its time shows nothing.
    #[inline]
    pub(in super::super) fn is_probe_of_new_data(&self) -> bool {
        let in_time = || {
            is(self.wait.srtt_ns.get(), |srtt_ns| {
                PROBE_ROUND_TRIPS * srtt_ns > PROBE_TICKS_NS
                    && self.wait_ns >= PROBE_ROUND_TRIPS * srtt_ns
                    && self.wait_ns as f64 <= LATEST_PROBE * srtt_ns as f64 + PROBE_TICKS_NS as f64
            })
        };
        self.direction.near_sender
            && !self.was_sent_again()
            && !self.direction.old
            && self.direction.nothing_lost
            && is(self.flight_after(), |flight| flight >= 2 * self.smss_bytes)
            && self.record.payload_bytes >= self.smss_bytes
            && self.flight_after() == self.flight_before()
            && !self.peer_spoke()
            && in_time()
    }

    /// An ACK let it go, or one more after all was acknowledged, or a timer sent it again needlessly, and how much room the
    /// window had is not known, because no SYN shows its scale: it may have been full, or closed, as well as the congestion
    /// window or the send buffer used up.
    pub(in super::super) fn room_is_unseen(&self) -> bool {
        if self.window_is_known() || !self.had_in_flight() || self.is_bare_fin() {
            return false;
        }
        let update_released_it = || {
            !self.peer_spoke()
                && self.ack_just_came()
                && is(self.wait.since_all_acked_ns.get(), |ns| ns > self.causal_ns())
        };
        self.was_released_by_ack() || update_released_it() || self.is_needless()
    }

    /// Away from its sender, no ACK in the capture had reached it yet: those of before the capture may have let it go.
    pub(in super::super) fn ack_is_unseen(&self) -> bool {
        !self.direction.near_sender
            && !self.direction.beginning_seen
            && self.had_in_flight()
            && !self.wait.rtt_sample_ns.is_some()
    }

    /// ACKs let segments go one after the other, as the path let those before go: their spacing is the path's rate.
    #[inline]
    pub(in super::super) fn is_in_train(&self) -> bool {
        self.wait_ns.saturating_mul(TRAIN_PART) <= self.rtt_ns() && self.is_bulk()
    }
}
