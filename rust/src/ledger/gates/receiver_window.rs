//! Receiver window: the window has no room for the next segment.
//!
//! - **Closed** when the window has less room than a full-sized segment and less than the segment needs.
//! - **Also closed** in three cases. First, a small segment fills the window to the byte after the override timer
//!   expired. Second, Linux defers the segment (TSO deferral). Third, in a capture away from the sender, the segment
//!   belongs to a train, and the flight of the previous RTT filled the window.
//! - **Proved** only by a full window in a capture at the sender. If the window was only nearly full, the cause is
//!   *possible* (measured: it was right for 60% of the time).
//! - **Opened by** the first ACK that makes enough room.
//! - **Disproved by** room for a full-sized segment, and for a third of the window, before the ACK that released the
//!   segment.
//! - **Source:** RFC 9293, 3.8.6; Linux `net/ipv4/tcp_output.c`; `docs/how-it-decides.md`, 4.5.

use super::super::cause::Cause;
use super::super::evidence::Evidence;
use super::super::evidence::{MIN_OVERRIDE_NS, TRAIN_PART};
use super::closed::Closed;

pub(super) fn gate(wait: &Evidence<'_>) -> Option<Closed> {
    let new = !wait.is_resent() && !wait.is_recovering();
    let full = new && (was_full(wait) || was_cut(wait) || wait.first_was_forced_in() || wait.was_forced_in_unscaled());
    let nearly = || new && (was_nearly_full(wait) || wait.was_deferred_by_window() || is_spaced_in_full_rounds(wait));
    let needless = || wait.is_needless() && wait.window_was_full();
    (full || nearly() || needless()).then(|| {
        let sure = full && wait.direction.near_sender;
        let closed =
            if sure { Closed::proved(Cause::ReceiverWindow) } else { Closed::consistent(Cause::ReceiverWindow) };
        closed.but_possible_if(!full).opened_before(wait.window_opened_before_ns())
    })
}

fn was_full(wait: &Evidence<'_>) -> bool {
    wait.window_was_full() && (wait.window_opened() || wait.ack_just_came()) && wait.window_released_it()
}

/// Whether the window was nearly full, in a capture away from the sender. The room is not known exactly there, so room
/// for fewer than two full-sized segments counts as nearly full. There are two exceptions. First, a flight that grows
/// while there is room for a full-sized segment has not reached the edge of the window. Second, the window does not
/// limit a sender that sends beyond it.
fn was_nearly_full(wait: &Evidence<'_>) -> bool {
    let Some(room) = wait.room().filter(|room| !wait.direction.near_sender && *room >= 0) else { return false };
    let grows_with_room = room >= wait.smss_bytes
        && wait.flight_before().zip(wait.previous_round_flight()).is_some_and(|(now, before)| now > before);
    wait.window_was_nearly_full()
        && !grows_with_room
        && !wait.all_acked()
        && !wait.is_small()
        && !wait.is_bare_fin()
        && !wait.ack_just_came()
}

fn was_cut(wait: &Evidence<'_>) -> bool {
    wait.wait_ns >= MIN_OVERRIDE_NS
        && !wait.window_opened()
        && wait.was_cut_to_window()
        && !wait.left_as_half_a_window()
        && wait.window_released_it()
}

/// Whether the flight of the previous RTT filled the window, and the ACKs of that flight release this train of segments
/// at the spacing of the path. The window must not have grown since. True only in a capture away from the sender.
/// There, any ACK within one timestamp tick may have released this segment, so it is unknown how full the window was.
fn is_spaced_in_full_rounds(wait: &Evidence<'_>) -> bool {
    let filled = || match (wait.previous_round_flight(), wait.flight_before(), wait.room()) {
        (Some(before), Some(now), Some(room)) => before + wait.smss_bytes > now + room,
        _ => false,
    };
    !wait.direction.near_sender
        && filled()
        && wait.wait_ns.saturating_mul(TRAIN_PART) <= wait.rtt_ns()
        && !wait.is_small()
        && !wait.is_bare_fin()
        && !wait.is_after_loss()
        && !wait.is_in_burst()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, bulk, check_gate, check_judge, some};
    use super::*;
    use crate::connection::Confidence;
    use crate::nullable::Nullable;

    #[test]
    fn a_window_without_room_holds_until_an_ack_makes_some() {
        check_gate(
            gate,
            &[
                (
                    "no room, until the ACK",
                    |wait, _| {
                        wait.wait.usable_window_before_bytes = some(0);
                        wait.wait.window_opened_ns = some(50_000);
                    },
                    Some(Confidence::Proved),
                ),
                ("room for 50 segments", |_, _| (), None),
                (
                    "a small segment fills the room exactly, and the override timer released it",
                    |wait, _| {
                        wait.payload_bytes = 300;
                        wait.wait.small = true;
                        wait.wait.wait_ns = some(5000 * MS);
                        wait.wait.usable_window_before_bytes = some(300);
                        wait.usable_window_bytes = some(300);
                        wait.wait.since_ack_ns = Nullable::NULL;
                    },
                    Some(Confidence::Proved),
                ),
                (
                    "away from the sender, room for less than two segments, and no larger flight",
                    |wait, direction| {
                        direction.near_sender = false;
                        wait.wait.usable_window_before_bytes = some(1500);
                        wait.wait.since_ack_ns = some(9 * MS);
                        wait.wait.previous_round_flight_bytes = some(10_000);
                    },
                    Some(Confidence::Possible),
                ),
            ],
        );
    }

    #[test]
    fn a_window_that_opened_long_before_loses() {
        check_judge(&[
            (
                "it opened 8 ms before; nothing was sent until the next ACK",
                |wait, _| {
                    wait.wait.usable_window_before_bytes = some(0);
                    wait.wait.window_opened_ns = some(8 * MS);
                    wait.wait.previous_round_flight_bytes = some(10_000);
                },
                Some(Cause::SlowStart),
            ),
            (
                "a repair",
                |wait, _| {
                    wait.wait.usable_window_before_bytes = some(0);
                    wait.wait.recovering = true;
                },
                Some(Cause::LossRecovery),
            ),
        ]);
    }

    #[test]
    fn away_from_the_sender_the_window_owns_the_wait_until_it_opened() {
        let opened_ago_ns = |opened_ns| {
            let (mut record, mut direction) = bulk();
            direction.near_sender = false;
            record.wait.usable_window_before_bytes = some(0);
            (record.wait.since_ack_ns, record.wait.window_opened_ns) = (some(opened_ns), some(opened_ns));
            gate(&Evidence::of(&record, &direction)).and_then(|closed| closed.opened_ago_ns)
        };
        assert_eq!(opened_ago_ns(4 * MS), Some(4 * MS), "longer ago than an ACK takes to release a segment");
        assert_eq!(opened_ago_ns(MS), Some(0), "just before");
    }
}
