//! What a departure is, whether it was sent again and why, and in what state its sender is behind a loss.

use super::{Evidence, INITIAL_SEGMENTS, LATEST_ACK_NS, LONGEST_TIMEOUT_NS, are, is};
use crate::connection::{Kind, ResentBy};
use crate::wire::TcpFlags;

impl Evidence<'_> {
    pub(in super::super) fn is_syn(&self) -> bool {
        self.record.flags.any(TcpFlags::SYN)
    }

    #[inline]
    pub(in super::super) fn is_bare_fin(&self) -> bool {
        self.record.flags.any(TcpFlags::FIN) && self.record.payload_bytes == 0
    }

    /// Less than a full segment.
    #[inline]
    pub(in super::super) fn is_small(&self) -> bool {
        let less = self.wait.small || (self.direction.never_full && self.record.payload_bytes > 0);
        less && self.direction.rounded_bytes != Some(self.record.payload_bytes)
    }

    pub(in super::super) fn was_sent_again(&self) -> bool {
        self.record.resent_by.is_some()
    }

    fn is_spurious(&self) -> bool {
        self.record.kind == Kind::Spurious
    }

    /// Sent again as stacks do. A FIN in the place of the SYN repeats nothing.
    #[inline]
    pub(in super::super) fn is_resent(&self) -> bool {
        let repeats_syn = || self.is_bare_fin() && self.record.seq == 0;
        self.was_sent_again() && !repeats_syn() && self.wait_ns <= LONGEST_TIMEOUT_NS
    }

    #[inline]
    pub(in super::super) fn is_timed_out(&self) -> bool {
        self.record.resent_by == Some(ResentBy::Timeout) && self.is_resent()
    }

    /// Sent again and needed: not all of it was acknowledged, or the ACK had not come when the timer ran out.
    #[inline]
    pub(in super::super) fn is_repair(&self) -> bool {
        self.is_resent()
            && !self.is_spurious()
            && (self.is_timed_out() || is(self.flight_after(), |flight| flight != 0))
    }

    /// Perhaps nothing was lost: the ACK of fewer than two segments may be delayed longer than the sender's timer runs
    /// (Linux: 200 ms; lwIP: up to 250), a copy lets it go at once, and neither D-SACK nor a timestamp tells which of the two
    /// it is for.
    pub(in super::super) fn may_have_timed_out_early(&self) -> bool {
        self.is_timed_out()
            && !self.is_spurious()
            && self.direction.shows_no_copies
            && is(self.flight_before(), |flight| flight < 2 * self.smss_bytes)
            && self.wait_ns - self.rtt_ns() <= LATEST_ACK_NS
    }

    /// A FIN sent again when neither side has data left: the FIN is all that is not acknowledged, and the other side sent no
    /// data since. Where it goes on to send, it may have waited for that FIN as for the end of a request.
    #[inline]
    pub(in super::super) fn is_late_fin(&self) -> bool {
        let alone =
            || is(self.flight_after(), |flight| flight <= 1) || (self.is_timed_out() && self.flight_after().is_none());
        let answered_later =
            || is(self.direction.receiver_last_data_ts_ns, |last_ns| last_ns > self.record.ts_ns - self.wait_ns);
        self.is_bare_fin() && self.is_resent() && alone() && !answered_later()
    }

    /// Sent again in a way that no stack does: two captures in one file, or crafted segments.
    pub(in super::super) fn is_strange(&self) -> bool {
        self.was_sent_again() && !self.is_resent()
    }

    /// Sent again although nothing was lost, or only to ask whether something was: it says nothing about what holds the next
    /// new byte.
    pub(in super::super) fn is_needless(&self) -> bool {
        self.is_tail_probe() || self.is_spurious()
    }

    /// Sent again to ask whether something was lost (RFC 8985, 7.3).
    pub(in super::super) fn is_tail_probe(&self) -> bool {
        self.record.resent_by == Some(ResentBy::TailProbe)
    }

    pub(in super::super) fn is_window_probe(&self) -> bool {
        self.record.kind == Kind::ZeroWindowProbe
    }

    /// The sender repairs a loss. Away from it the repair itself may have been lost before the capture point: where nothing
    /// was overtaken, as many SACK blocks had reached the sender by the departure before as make it repair (RFC 6675, 5), and
    /// what is missing has not come since.
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

    /// Something was sent again before.
    pub(in super::super) fn is_after_loss(&self) -> bool {
        self.wait.after_loss
    }

    /// The first flight after a pause, with a whole initial window in it (RFC 5681, 4.1), of a sender whose resends were all
    /// spurious.
    pub(in super::super) fn has_begun_anew(&self) -> bool {
        self.direction.only_late
            && self.previous_round_flight() == Some(0)
            && are(self.flight_before(), Some(self.smss_bytes), |flight, smss| flight >= INITIAL_SEGMENTS * smss)
    }
}
