//! Loss recovery: the sender retransmits lost segments, or segments that it treats as lost.
//!
//! - **Closed** when the segment repairs a loss, when the sender is in recovery, or when the ACK of a repair released
//!   the segment. Only a repair proves the cause, because something else may have delayed new data.
//! - **Only possible** in three cases. First, new data in a capture away from the sender. Second, a tail-loss probe,
//!   which shows no loss by itself (RFC 8985, 7.3). Third, a loss before the capture point, if only gaps in the
//!   sender's IP identifications show it: packets to other hosts cause equal gaps.
//! - **Opened by** the ACK that ends recovery.
//! - **Disproved by** ACKs that covered the bytes before their retransmission.
//! - **Source:** RFC 5681, 3.2; RFC 6675; RFC 8985; `docs/how-it-decides.md`, 4.6.

use super::super::cause::Cause;
use super::super::evidence::Evidence;
use super::closed::Closed;

#[inline]
pub(super) fn gate(wait: &Evidence<'_>) -> Option<Closed> {
    let lost_before_capture = wait.was_lost_before_capture();
    let recovering = || wait.is_recovering() && !wait.was_only_late();
    if wait.is_repair() {
        return Some(Closed::proved(Cause::LossRecovery).but_possible_if(lost_before_capture || wait.is_tail_probe()));
    }
    // New data that was sent during recovery, or with the ACK that ended recovery. In a capture away from the sender,
    // something else may have delayed the new data as well.
    (lost_before_capture || wait.was_repaired() || recovering()).then(|| {
        let far = !wait.direction.near_sender;
        Closed::consistent(Cause::LossRecovery).but_possible_if(lost_before_capture || far)
    })
}

/// What limited the sender before it learned of the loss, while it waited for an ACK that did not come. The conditions
/// are those of the gates that an ACK opens, except that no ACK needs to release the segment.
pub(in super::super) fn before_signal(wait: &Evidence<'_>) -> Cause {
    if !wait.window_is_known() {
        Cause::Unknown
    } else if wait.wait.small_before {
        // After a small segment, the application had written nothing more, so TCP did not limit the sender.
        Cause::Network
    } else if wait.room().is_some_and(|room| room < wait.smss_bytes) {
        Cause::ReceiverWindow
    } else if wait.is_in_queue() {
        Cause::Network
    } else if wait.is_after_loss() && !wait.has_begun_anew() && !wait.is_on_plateau() {
        Cause::CongestionWindow
    } else if wait.is_on_plateau() || wait.is_no_larger() {
        Cause::SendBuffer
    } else {
        Cause::SlowStart
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, check_gate, check_judge, some};
    use super::*;
    use crate::connection::{Confidence, Kind, RetransmitTrigger};
    use crate::nullable::Nullable;

    #[test]
    fn a_repair_ends_with_the_ack_that_fills_the_last_hole() {
        check_gate(
            gate,
            &[
                (
                    "retransmitted after duplicate ACKs",
                    |wait, _| {
                        wait.retransmit_trigger = Some(RetransmitTrigger::Fast);
                        wait.kind = Kind::FastRetransmit;
                    },
                    Some(Confidence::Proved),
                ),
                (
                    "a tail-loss probe",
                    |wait, _| {
                        wait.retransmit_trigger = Some(RetransmitTrigger::TailProbe);
                        wait.kind = Kind::TailProbe;
                    },
                    Some(Confidence::Possible),
                ),
                (
                    "retransmitted although it had arrived",
                    |wait, _| {
                        wait.retransmit_trigger = Some(RetransmitTrigger::Fast);
                        wait.kind = Kind::Spurious;
                    },
                    None,
                ),
                ("new data in a recovery", |wait, _| wait.wait.recovering = true, Some(Confidence::Consistent)),
                (
                    "new data in a recovery, away from the sender",
                    |wait, direction| {
                        direction.near_sender = false;
                        wait.wait.recovering = true;
                    },
                    Some(Confidence::Possible),
                ),
                (
                    "away from the sender, its packet numbers show a missing packet",
                    |wait, direction| {
                        direction.near_sender = false;
                        direction.numbers_packets = true;
                        wait.wait.left_out_segments = some(1);
                        wait.wait.wait_ns = some(240 * MS);
                    },
                    Some(Confidence::Possible),
                ),
                ("nothing was lost", |_, _| (), None),
            ],
        );
    }

    #[test]
    fn what_held_the_sender_until_it_learned_of_the_loss() {
        let before = |change: fn(&mut super::super::super::WaitRecord)| {
            let (mut record, direction) = super::super::testing::bulk();
            change(&mut record);
            before_signal(&Evidence::of(&record, &direction))
        };
        assert_eq!(before(|_| ()), Cause::SlowStart);
        assert_eq!(before(|wait| wait.wait.usable_window_before_bytes = Nullable::NULL), Cause::Unknown);
        assert_eq!(before(|wait| wait.wait.usable_window_before_bytes = some(999)), Cause::ReceiverWindow);
        assert_eq!(before(|wait| wait.wait.small_before = true), Cause::Network);
        assert_eq!(before(|wait| wait.wait.after_loss = true), Cause::CongestionWindow);
    }

    #[test]
    fn a_departure_that_only_a_window_probe_lets_go_is_no_repair() {
        check_judge(&[(
            "a probe in a recovery",
            |wait, _| {
                wait.kind = Kind::ZeroWindowProbe;
                wait.wait.recovering = true;
            },
            Some(Cause::ZeroWindow),
        )]);
    }
}
