//! Retransmission timeout (RTO): the wait ends with a retransmission by the sender's timer, or with the ACK of such a
//! retransmission.
//!
//! - **Closed** when the timer retransmitted the segment, or when the ACK of a retransmission by the timer released the
//!   segment. A spurious retransmission into a full window does not count, because the window limited the sender.
//! - **Never proved**, because a timer also expires when only the answer is lost or late.
//! - **Only possible** if the retransmission was spurious, or if one segment was in flight and neither SACK nor
//!   timestamps are in use. In the second case, the receiver may have delayed its ACK.
//! - **Opened by** the timer, or by the ACK of its retransmission.
//! - **Disproved by** ACKs or other segments within the timeout.
//! - **Source:** RFC 6298; Linux `net/ipv4/tcp_timer.c` (at least 200 ms); `docs/how-it-decides.md`, 4.3.

use super::super::cause::Cause;
use super::super::evidence::Evidence;
use super::closed::Closed;

#[inline]
pub(super) fn gate(wait: &Evidence<'_>) -> Option<Closed> {
    // A spurious retransmission into a full window: without the timer, nothing would have been sent before the ACK.
    let behind_full_window = || wait.is_needless() && wait.window_was_full();
    ((wait.is_timed_out() && !behind_full_window()) || wait.was_repaired_by_timeout()).then(|| {
        Closed::consistent(Cause::Timeout).but_possible_if(wait.may_have_timed_out_early() || wait.is_needless())
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, check_gate, check_judge, some, timed_out};
    use super::*;
    use crate::connection::{Confidence, Kind, RetransmitTrigger};

    #[test]
    fn the_timer_and_the_ack_of_what_it_sent_again_end_a_timeout() {
        check_gate(
            gate,
            &[
                ("the timer", timed_out, Some(Confidence::Consistent)),
                (
                    "the ACK of the timer's retransmission",
                    |wait, _| wait.wait.repaired_by = Some(RetransmitTrigger::Timeout),
                    Some(Confidence::Consistent),
                ),
                (
                    "one segment in flight, neither SACK nor timestamps: perhaps its ACK was only delayed",
                    |wait, direction| {
                        timed_out(wait, direction);
                        wait.wait.flight_before_bytes = some(1000);
                        direction.shows_no_copies = true;
                    },
                    Some(Confidence::Possible),
                ),
                (
                    "the retransmitted data had arrived",
                    |wait, direction| {
                        timed_out(wait, direction);
                        wait.kind = Kind::Spurious;
                    },
                    Some(Confidence::Possible),
                ),
                ("three duplicate ACKs", |wait, _| wait.retransmit_trigger = Some(RetransmitTrigger::Fast), None),
            ],
        );
    }

    #[test]
    fn an_ack_that_comes_long_before_is_not_the_timers() {
        check_judge(&[
            ("nothing came", timed_out, Some(Cause::Timeout)),
            (
                "a fast retransmission repaired the flight, and its ACK released the segment",
                |wait, _| wait.wait.repaired_by = Some(RetransmitTrigger::Fast),
                Some(Cause::LossRecovery),
            ),
            (
                "a spurious retransmission into a full window",
                |wait, direction| {
                    timed_out(wait, direction);
                    wait.kind = Kind::Spurious;
                    wait.wait.usable_window_before_bytes = some(0);
                },
                Some(Cause::ReceiverWindow),
            ),
            (
                "longer than any timer runs",
                |wait, direction| {
                    timed_out(wait, direction);
                    wait.wait.wait_ns = some(200_000 * MS);
                },
                None,
            ),
        ]);
    }
}
