//! Unknown: several causes explain the wait equally well, and their remedies differ.
//!
//! - **Closed** in two cases. First, the sender sends one small segment per RTT behind a flight that may fill the send
//!   buffer, and the small segments differ in size. Either Nagle's algorithm or the full buffer delays these segments.
//!   Second, the segment and the previous one each hold one message. Either Nagle's algorithm delayed the message, or
//!   the application wrote it late. If this gate is closed, later gates are not evaluated.
//! - **Last two gates of all**, also in this file. `with_an_ack` is closed if an ACK released the segment and no other
//!   gate explains the wait. `without_an_event` is closed if the segment may continue a write and no event shows why
//!   the sender waited.
//! - **Opened by** the ACK that releases the segment.
//! - **Disproved by** a larger flight, which shows that the buffer had room, or by segments of one size, which have the
//!   cause `send-buffer`.
//! - **Source:** derived; `docs/how-it-decides.md`, 4.8.

use super::super::cause::Cause;
use super::super::evidence::{Evidence, PACED_PART};
use super::super::rivals::Rivals;
use super::closed::Closed;

#[inline]
pub(super) fn gate(wait: &Evidence<'_>) -> Option<Closed> {
    let rivals = |other| Closed::one_of(Rivals::among(&[(Cause::Nagle, true), (other, true)]));
    if wait.was_taken_in_turn() {
        return Some(rivals(Cause::SendBuffer));
    }
    (wait.holds_one_message() && !wait.was_taken_one_by_one() && wait.nagle_may_have_held())
        .then(|| rivals(Cause::Application))
}

/// Closed if an ACK released the segment and no other gate explains the wait.
#[inline]
pub(super) fn with_an_ack(wait: &Evidence<'_>) -> Option<Closed> {
    (wait.was_released_by_ack() && !wait.direction.old && !wait.peer_spoke())
        .then(|| Closed::one_of(rivals_with_an_ack(wait)))
}

/// The causes that can end when an ACK arrives. The application is always one of them: it may have written the segment
/// just then. Nagle's algorithm is one of them for a small segment, unless the sender sends small segments while others
/// are in flight. The send buffer and the congestion window are among them unless the sizes of the flights rule them
/// out. The receiver window is among them if its size is unknown.
#[cold]
fn rivals_with_an_ack(wait: &Evidence<'_>) -> Rivals {
    Rivals::among(&[
        (Cause::Application, true),
        (Cause::Nagle, wait.is_small() && !wait.small_ones_pass()),
        (Cause::SendBuffer, wait.may_fill_buffer()),
        (Cause::ReceiverWindow, !wait.window_is_known()),
        (Cause::CongestionWindow, !wait.has_flown() && !wait.fits_any_congestion_window()),
    ])
}

/// Closed if bytes were in flight and the capture shows no event that let the sender continue. If the previous segment
/// was full-sized, the sender may have had more data, and nothing shows what delayed this data. If a full-sized segment
/// was sent while a small one was in flight, Nagle's algorithm may have delayed a part of the full-sized segment, and
/// nothing shows since when.
#[inline]
pub(super) fn without_an_event(wait: &Evidence<'_>) -> Option<Closed> {
    (wait.stopped_halfway() || wait.was_filled_while_held()).then(|| Closed::one_of(rivals_without_an_event(wait)))
}

/// The causes that can end without an event in the capture: the application writes again, or a pacing timer expires. In
/// a capture away from the sender, an ACK may have reached the sender at another time than the capture suggests. The
/// send buffer and the congestion window are then possible too.
#[cold]
fn rivals_without_an_event(wait: &Evidence<'_>) -> Rivals {
    let (halfway, far) = (wait.stopped_halfway(), !wait.direction.near_sender);
    Rivals::among(&[
        (Cause::Application, true),
        (Cause::Nagle, wait.was_filled_while_held()),
        (Cause::Pacing, halfway && (wait.all_acked() || wait.wait_ns.saturating_mul(PACED_PART) <= wait.rtt_ns())),
        (Cause::SendBuffer, halfway && far && wait.may_fill_buffer()),
        (Cause::CongestionWindow, halfway && far && !wait.has_flown()),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::super::judge::judge;
    use super::super::super::{DirectionFacts, WaitRecord};
    use super::super::testing::{MS, bulk, check_judge, small_behind_small, some};
    use super::*;
    use crate::nullable::Nullable;

    #[test]
    fn nothing_shows_what_held_a_sender_with_bytes_in_flight() {
        fn without_an_ack(
            wait: &mut super::super::super::WaitRecord,
            _direction: &mut super::super::super::DirectionFacts,
        ) {
            wait.wait.wait_ns = some(50 * MS);
            wait.wait.since_ack_ns = Nullable::NULL;
            wait.wait.since_all_acked_ns = Nullable::NULL;
        }
        check_judge(&[
            ("after a full-sized segment", without_an_ack, Some(Cause::Unknown)),
            (
                "after a small segment, without Nagle's algorithm: the application had sent all its data",
                |wait, direction| {
                    without_an_ack(wait, direction);
                    wait.wait.small_before = true;
                },
                None,
            ),
            (
                "a full-sized segment behind a small one, with Nagle's algorithm",
                |wait, direction| {
                    without_an_ack(wait, direction);
                    direction.holds_small = true;
                    wait.wait.small_before = true;
                    wait.wait.last_small = crate::sender::LastSmall::InFlight;
                },
                Some(Cause::Unknown),
            ),
            (
                "in an old stack",
                |wait, direction| {
                    without_an_ack(wait, direction);
                    direction.old = true;
                },
                None,
            ),
        ]);
    }

    fn one_a_round_trip(wait: &mut WaitRecord, direction: &mut DirectionFacts) {
        small_behind_small(wait, direction);
        wait.payload_bytes = 900;
        wait.wait.held_before = true;
        wait.wait.smss_bytes = some(10_000);
        wait.wait.payload_before_bytes = some(2100);
        wait.wait.flight_before_bytes = some(2100);
        direction.max_in_flight_bytes = Some(2100);
    }

    #[test]
    fn small_segments_one_a_round_trip_are_the_buffers_if_alike_and_unknown_if_not() {
        check_judge(&[
            ("of several sizes", one_a_round_trip, Some(Cause::Unknown)),
            (
                "of one size",
                |wait, direction| {
                    one_a_round_trip(wait, direction);
                    wait.payload_bytes = 2100;
                    wait.wait.previous_round_flight_bytes = some(2100);
                },
                Some(Cause::SendBuffer),
            ),
            (
                "the flight leaves room in any buffer",
                |wait, direction| {
                    one_a_round_trip(wait, direction);
                    direction.max_in_flight_bytes = Some(50_000);
                },
                Some(Cause::Nagle),
            ),
            (
                "nothing was acknowledged",
                |wait, direction| {
                    one_a_round_trip(wait, direction);
                    wait.wait.since_ack_ns = Nullable::NULL;
                    wait.wait.since_all_acked_ns = Nullable::NULL;
                    wait.wait.flight_after_bytes = some(2100);
                },
                None,
            ),
        ]);
    }

    /// Names of the rival causes after `change` was applied to the wait of [`bulk`].
    fn rivals(change: fn(&mut WaitRecord, &mut DirectionFacts)) -> Option<String> {
        let (mut record, mut direction) = bulk();
        change(&mut record, &mut direction);
        judge(&record, &direction).rivals.names()
    }

    fn late(wait: &mut WaitRecord) {
        wait.wait.wait_ns = some(50 * MS);
        wait.wait.since_ack_ns = Nullable::NULL;
    }

    #[test]
    fn the_rivals_are_the_causes_that_nothing_rules_out() {
        let undecided = rivals(one_a_round_trip);
        assert_eq!(undecided.as_deref(), Some("nagle|send-buffer"));
        let filled = rivals(|wait, direction| {
            late(wait);
            direction.holds_small = true;
            wait.wait.small_before = true;
            wait.wait.last_small = crate::sender::LastSmall::InFlight;
        });
        assert_eq!(filled.as_deref(), Some("application|nagle"));
        let alone = rivals(|wait, _| late(wait));
        assert_eq!(alone, None, "50 ms with an RTT of 20 ms: no pacing and no ACK, so no rivals");
        let far = rivals(|wait, direction| {
            late(wait);
            direction.near_sender = false;
        });
        assert_eq!(far.as_deref(), Some("application|congestion-window"), "an ACK may have come at another time");
        let known = rivals(|_, _| ());
        assert_eq!(known, None, "a wait with a cause has no rivals");
    }

    #[test]
    fn a_window_or_a_buffer_that_has_held_more_is_no_rival() {
        fn with_an_ack(wait: &mut WaitRecord, direction: &mut DirectionFacts) {
            wait.wait.flown_before = true;
            (direction.near_sender, direction.max_in_flight_bytes) = (false, Some(10_000));
        }
        assert_eq!(rivals(with_an_ack).as_deref(), Some("application|send-buffer"));
        let has_held_more = rivals(|wait, direction| {
            with_an_ack(wait, direction);
            direction.max_in_flight_bytes = Some(50_000);
        });
        assert_eq!(has_held_more, None);
        let unscaled = rivals(|wait, direction| {
            with_an_ack(wait, direction);
            wait.wait.usable_window_before_bytes = Nullable::NULL;
        });
        assert_eq!(unscaled.as_deref(), Some("application|send-buffer|receiver-window"));
    }
}
