//! Whether and why a segment was retransmitted, and the state of its sender after a loss.

use super::{Evidence, INITIAL_SEGMENTS, LATEST_ACK_NS, LONGEST_TIMEOUT_NS, are, is};
use crate::connection::{Kind, RetransmitTrigger};
use crate::wire::TcpFlags;

impl Evidence<'_> {
    pub(in super::super) fn is_syn(&self) -> bool {
        self.record.flags.any(TcpFlags::SYN)
    }

    #[inline]
    pub(in super::super) fn is_bare_fin(&self) -> bool {
        self.record.flags.any(TcpFlags::FIN) && self.record.payload_bytes == 0
    }

    /// Whether the segment is smaller than a full-sized segment.
    #[inline]
    pub(in super::super) fn is_small(&self) -> bool {
        let less = self.wait.small || (self.direction.never_full && self.record.payload_bytes > 0);
        less && self.direction.rounded_bytes != Some(self.record.payload_bytes)
    }

    pub(in super::super) fn was_sent_again(&self) -> bool {
        self.record.retransmit_trigger.is_some()
    }

    fn is_spurious(&self) -> bool {
        self.record.kind == Kind::Spurious
    }

    /// Whether the segment is a retransmission of the kind that TCP stacks send. A FIN with the sequence number of the
    /// SYN does not count.
    #[inline]
    pub(in super::super) fn is_resent(&self) -> bool {
        let repeats_syn = || self.is_bare_fin() && self.record.seq == 0;
        self.was_sent_again() && !repeats_syn() && self.wait_ns <= LONGEST_TIMEOUT_NS
    }

    #[inline]
    pub(in super::super) fn is_timed_out(&self) -> bool {
        self.record.retransmit_trigger == Some(RetransmitTrigger::Timeout) && self.is_resent()
    }

    /// Whether the segment is a retransmission that was needed: not everything was acknowledged, or the ACK arrived
    /// only after the timer expired.
    #[inline]
    pub(in super::super) fn is_repair(&self) -> bool {
        self.is_resent()
            && !self.is_spurious()
            && (self.is_timed_out() || is(self.flight_after(), |flight| flight != 0))
    }

    /// Whether the retransmission timer may have expired although nothing was lost. A receiver can delay the ACK of
    /// less than two segments for longer than the sender's timer runs (Linux: 200 ms; lwIP: up to 250 ms). The copy
    /// triggers the delayed ACK immediately. Neither DSACK nor a timestamp shows whether this ACK is for the original
    /// or the copy.
    pub(in super::super) fn may_have_timed_out_early(&self) -> bool {
        self.is_timed_out()
            && !self.is_spurious()
            && self.direction.shows_no_copies
            && is(self.flight_before(), |flight| flight < 2 * self.smss_bytes)
            && self.wait_ns - self.rtt_ns() <= LATEST_ACK_NS
    }

    /// Whether the segment is a retransmitted FIN after the end of all data. Only the FIN is unacknowledged, and the
    /// peer has sent no data since. If the peer sends data later, it may have waited for that FIN as the end of a
    /// request.
    #[inline]
    pub(in super::super) fn is_late_fin(&self) -> bool {
        let alone =
            || is(self.flight_after(), |flight| flight <= 1) || (self.is_timed_out() && self.flight_after().is_none());
        let answered_later =
            || is(self.direction.receiver_last_data_ts_ns, |last_ns| last_ns > self.record.ts_ns - self.wait_ns);
        self.is_bare_fin() && self.is_resent() && alone() && !answered_later()
    }

    /// Whether the segment is a retransmission to a receiver that had closed before the wait began. True only if the
    /// receiver answers with a RST or never acknowledges new data again. The sender must have closed, too.
    #[inline]
    pub(in super::super) fn is_to_closed_receiver(&self) -> bool {
        let direction = self.direction;
        let closed_before =
            is(direction.receiver_end.closed_ts_ns, |closed_ns| closed_ns <= self.record.ts_ns - self.wait_ns);
        let acked_nothing_more =
            || are(direction.totals.ending.flight_after_bytes.get(), self.flight_after(), |end, now| end >= now);
        self.is_resent()
            && direction.finished
            && closed_before
            && !self.peer_spoke()
            && (direction.receiver_end.reset || acked_nothing_more())
    }

    /// Whether the segment is a retransmission that no stack sends. The file then contains two captures, or crafted
    /// segments.
    pub(in super::super) fn is_strange(&self) -> bool {
        self.was_sent_again() && !self.is_resent()
    }

    /// Whether the segment is a spurious retransmission, or one that only probes for a loss. A spurious retransmission
    /// or a probe does not show what limits the next new byte.
    pub(in super::super) fn is_needless(&self) -> bool {
        self.is_tail_probe() || self.is_spurious()
    }

    /// Whether the segment is a tail-loss probe, which tests whether something was lost (RFC 8985, 7.3).
    pub(in super::super) fn is_tail_probe(&self) -> bool {
        self.record.retransmit_trigger == Some(RetransmitTrigger::TailProbe)
    }

    pub(in super::super) fn is_window_probe(&self) -> bool {
        self.record.kind == Kind::ZeroWindowProbe
    }

    /// Whether the sender is in loss recovery. A captured retransmission shows the recovery. In a capture away from the
    /// sender, the retransmission may have been lost before the capture point. Recovery is then assumed if
    /// nothing was reordered, if enough SACK blocks for a repair had reached the sender before it sent the previous
    /// segment (RFC 6675, 5), and if the missing bytes have not arrived since.
    #[inline]
    pub(in super::super) fn is_recovering(&self) -> bool {
        let direction = self.direction;
        let repair_unseen = || {
            !direction.near_sender
                && direction.uses_sack
                && direction.out_of_order_segments == 0
                && self.wait.loss_signalled_ns.get() == Some(self.wait_ns)
                && self.wait.repaired_by.is_none()
                && is(self.flight_after(), |flight| flight > 0)
        };
        self.wait.recovering || repair_unseen()
    }

    /// Whether the sender has retransmitted before.
    pub(in super::super) fn is_after_loss(&self) -> bool {
        self.wait.after_loss
    }

    /// Whether the sender restarted after a pause, and this is its first flight since then. The flight is at least an
    /// initial window (RFC 5681, 4.1), and all retransmissions of the direction were spurious.
    pub(in super::super) fn has_begun_anew(&self) -> bool {
        self.direction.only_late
            && self.previous_round_flight() == Some(0)
            && are(self.flight_before(), Some(self.smss_bytes), |flight, smss| flight >= INITIAL_SEGMENTS * smss)
    }
}
