//! Divides one wait into intervals, which follow each other without gap and sum to the wait (`docs/how-it-decides.md`,
//! 5).
//!
//! If a gate was closed, the wait has the cause of the gate, except for the time that the line and the path need for
//! the bytes themselves. If no gate was closed, the segments that arrived during the wait divide it:
//!
//! ```text
//! segment ─ network: while the line carries the previous segment, or the bottleneck carries the flight in slow start
//!         └ handshake ─┬─ loss-recovery: until the ACK of everything, if the wait began in recovery
//!                      ├─ network: transit to the peer, transit of its last answer byte back (at most an RTT), queues;
//!                      │           unknown if the capture began within the connection and only answers show the RTT;
//!                      │           0 if the peer's application sent nothing, because nobody waited for transit
//!                      ├─ idle: until the first data from the peer, if this is long and the peer had nothing to answer
//!                      ├─ peer: until the last data from the peer before the segment
//!                      └─ application: the rest; idle if it is long and neither host had to answer
//! ```

use super::cause::Cause;
use super::direction::{DirectionFacts, MIN_IDLE_NS};
use super::evidence::{Evidence, at_most};
use super::gates;
use super::judged::{JudgedWait, Note, Round, Verdict};
use crate::connection::CAUSAL_NS;
use crate::sender::{NS_PER_MS, Wait};

/// A pause of the application ends a message if it lasts at least this long and at least two RTTs (a heuristic).
const PAUSE_NS: i64 = 10 * NS_PER_MS;
/// In a wait with one of these causes, TCP delays bytes that the application has already written.
const HELD: [Cause; 9] = [
    Cause::Nagle,
    Cause::NagleDelayedAck,
    Cause::DelayedAck,
    Cause::SendBuffer,
    Cause::ReceiverWindow,
    Cause::ZeroWindow,
    Cause::CongestionWindow,
    Cause::LossRecovery,
    Cause::Timeout,
];

/// The part of `gap_ns` that is transit: at most the sum of an undisturbed RTT and the jitter of the path. The jitter
/// is 0 in a capture at the sender.
pub(super) fn transit_ns(gap_ns: i64, undisturbed_ns: i64, unsteady_ns: i64) -> i64 {
    gap_ns.min(undisturbed_ns + unsteady_ns).max(0)
}

#[inline]
pub(super) fn divide(wait: &Evidence<'_>, verdict: Verdict) -> JudgedWait {
    let handshake_ns = handshake_ns(wait);
    let sending_ns = sending_ns(wait, verdict).min(wait.wait_ns - handshake_ns);
    let left_ns = wait.wait_ns - handshake_ns - sending_ns;
    let Divided { spans: [one, two, three, four, five, rest], caused_ns } = match verdict.cause {
        Some(cause) => explained(wait, verdict, cause, left_ns),
        None => unexplained(wait, handshake_ns, sending_ns, left_ns),
    };
    JudgedWait {
        cause: verdict.cause,
        confidence: verdict.confidence,
        rivals: verdict.rivals,
        spans: [(Cause::Handshake, handshake_ns), (Cause::Network, sending_ns), one, two, three, four, five, rest],
        caused_ns,
        note: note(wait, verdict, caused_ns, rest.1),
        round: round(wait, verdict),
    }
}

/// The part of a wait after the handshake and after the serialization time.
struct Divided {
    /// The intervals of this part in order of time; the last one belongs to the application.
    spans: [(Cause, i64); 6],
    /// Nanoseconds that have the cause of the gate, including a full window at the beginning.
    caused_ns: i64,
}

/// Divides a wait at the time when its gate opened. Until then, the wait has the cause of the gate.
fn explained(wait: &Evidence<'_>, verdict: Verdict, cause: Cause, left_ns: i64) -> Divided {
    let late_ns = verdict.opened_ago_ns.unwrap_or(0).min(left_ns);
    let grown_ns = match verdict.opened_ago_ns {
        Some(_) if cause != Cause::Unknown => wait.queue_growth_ns().min(left_ns - late_ns),
        _ => 0,
    };
    let owned_ns = left_ns - late_ns - grown_ns;
    let filled_ns = full_window_ns(wait, cause, left_ns).min(owned_ns);
    let unsignalled_ns = before_loss_signal_ns(wait, cause, left_ns).min(owned_ns - filled_ns);
    let unsignalled_cause = if unsignalled_ns > 0 { gates::before_signal(wait) } else { Cause::SlowStart };
    let cause_ns = owned_ns - filled_ns - unsignalled_ns;
    let peer_ns = match wait.wait.peer_last_ns.get() {
        Some(spoke_ns) if verdict.then.is_none() => (late_ns - spoke_ns).max(0),
        _ => 0,
    };
    let rest_cause = match verdict.then {
        Some(then) => then,
        None if late_ns > 0 && wait.answer_may_be_lost() => Cause::LossRecovery,
        None if is_idle(wait, late_ns - peer_ns) => Cause::Idle,
        None => Cause::Application,
    };
    let spans = [
        (Cause::ReceiverWindow, filled_ns),
        (unsignalled_cause, unsignalled_ns),
        (cause, cause_ns),
        (Cause::Network, grown_ns),
        (Cause::Peer, peer_ns),
        (rest_cause, late_ns - peer_ns),
    ];
    Divided { spans, caused_ns: filled_ns + cause_ns }
}

/// Divides a wait without a closed gate at the times when segments arrived.
fn unexplained(wait: &Evidence<'_>, handshake_ns: i64, sending_ns: i64, left_ns: i64) -> Divided {
    let direction = wait.direction;
    let spoke_ns = wait.wait.peer_last_ns.get();
    // Without a captured handshake, the shortest RTT may include the processing time of the peer's application.
    let blind = wait.flight_after().is_none()
        || wait.is_strange()
        || wait.may_be_far()
        || wait.room_is_unseen()
        || wait.ack_is_unseen();
    let unmeasured = spoke_ns.is_some() && (blind || !direction.beginning_seen);
    let recovery_ns = if blind { 0 } else { recovery_ns(wait, left_ns) };
    let left_ns = left_ns - recovery_ns;
    let queueing_delay_ns = wait.queueing_delay_ns().min(spoke_ns.or(wait.wait.since_all_acked_ns.get()).unwrap_or(0));
    // The time before the capture of this segment includes its own transit. If other connections show a queue on the
    // path to the sender, the peer's data was also longer in transit.
    let queued_ns = wait.answer_queued_ns(queueing_delay_ns);
    let on_its_way_ns = at_most(spoke_ns, wait.jitter_ns().max(queued_ns));
    let transit_ns = if blind && !unmeasured {
        0
    } else if recovery_ns > 0 {
        on_its_way_ns.min(left_ns)
    } else if nobody_waits_for_transit(wait) {
        wait.jitter_ns().max(wait.queueing_delay_ns()).min(left_ns)
    } else {
        transit_of_unexplained_ns(wait, handshake_ns, sending_ns, on_its_way_ns).min(left_ns)
    };
    let transit_cause = if unmeasured { Cause::Unknown } else { Cause::Network };
    let passing_ns = if blind { 0 } else { on_its_way_ns };
    let peer_ns = spoke_ns.map_or(0, |spoke_ns| (left_ns - (transit_ns - passing_ns) - spoke_ns).max(0));
    let rest_ns = left_ns - transit_ns - peer_ns;
    let (idle_ns, closing_ns) = if blind || wait.is_first_data() {
        (0, 0)
    } else {
        let before_ns = idle_before_peer_ns(wait.wait, direction, peer_ns, rest_ns);
        (before_ns, idle_before_close_ns(wait.wait, direction).min(peer_ns - before_ns))
    };
    // A spurious retransmission or a loss probe shows nothing about the application.
    let rest_cause = if blind || wait.is_needless() {
        Cause::Unknown
    } else if wait.answer_may_be_lost() {
        Cause::LossRecovery
    } else if is_idle(wait, rest_ns) {
        Cause::Idle
    } else {
        Cause::Application
    };
    let spans = [
        (Cause::LossRecovery, recovery_ns),
        (transit_cause, transit_ns),
        (Cause::Idle, idle_ns),
        (Cause::Peer, peer_ns - idle_ns - closing_ns),
        (Cause::Idle, closing_ns),
        (rest_cause, rest_ns),
    ];
    Divided { spans, caused_ns: 0 }
}

/// The part of a wait that is loss recovery. If the wait began in recovery, the last repair was in transit until
/// everything was acknowledged. A retransmitted SYN does not count, because it repairs no data.
fn recovery_ns(wait: &Evidence<'_>, left_ns: i64) -> i64 {
    let began_in_recovery = wait.wait.loss_signalled_ns.get() == Some(wait.wait_ns)
        && wait.wait.payload_before_bytes.get().is_some_and(|bytes| bytes > 0)
        && !wait.direction.only_late;
    match wait.wait.since_all_acked_ns.get() {
        Some(acked_ns) if began_in_recovery => (left_ns - acked_ns).max(0),
        _ => 0,
    }
}

/// The part of the first wait before the connection was open. When a SYN-ACK is captured, its transit time to the
/// client is not known. The transit time is therefore added here.
fn handshake_ns(wait: &Evidence<'_>) -> i64 {
    if !wait.is_first_data() {
        return 0;
    }
    let direction = wait.direction;
    let later_ns = if direction.from_client && !direction.near_sender {
        direction.to_sender_ns
    } else {
        (ahead_ns(wait) - request_transit_ns(direction, wait.peer_spoke())).min(0)
    };
    (wait.wait_ns - opened_ns(wait.wait, direction).unwrap_or(0) + later_ns).clamp(0, wait.wait_ns)
}

/// The transit time of the client's request from the capture point to the server; 0 if the server answers no request.
/// If a server answers a request, it has waited for the request, not for the ACK that opens the connection. The transit
/// time of the request is therefore a part of this wait, not of the handshake.
pub(super) fn request_transit_ns(direction: &DirectionFacts, peer_spoke: bool) -> i64 {
    if peer_spoke && !direction.from_client && !direction.near_sender { direction.to_sender_ns } else { 0 }
}

/// By how much the recorded arrival of the first ACK is too early. When that ACK was captured, the distance of the
/// sender was not yet known.
fn ahead_ns(wait: &Evidence<'_>) -> i64 {
    if wait.received_first_ack() && wait.direction.sender_unplaced { wait.direction.to_sender_ns } else { 0 }
}

/// Time from the end of the handshake to the end of the wait. If the server retransmitted its SYN-ACK, the client's
/// handshake ended with the retransmission (RFC 9293, 3.5).
pub(super) fn opened_ns(wait: &Wait, direction: &DirectionFacts) -> Option<i64> {
    let again = direction.from_client && direction.receiver_syn_segments > 1;
    wait.peer_first_ns.get().filter(|_| again).or(wait.since_all_acked_ns.get())
}

/// The part of the wait in which the line carried the previous segment. If slow start or a send buffer limited the
/// sender, this part includes the time in which the bottleneck carried the flight. A larger flight would have waited
/// for the bottleneck just as long.
fn sending_ns(wait: &Evidence<'_>, verdict: Verdict) -> i64 {
    let stood_behind_queue = verdict.cause == Some(Cause::SendBuffer) && wait.was_drained_bit_by_bit();
    let mut carried_ns = wait.serialization_ns();
    if verdict.cause == Some(Cause::SlowStart) || stood_behind_queue {
        carried_ns = carried_ns.max(wait.draining_ns());
    }
    carried_ns
}

/// Whether no application waits for the bytes in flight to arrive. True if the sender's application had no more to
/// send, and later continued although the peer had sent nothing. The application cannot have waited for an ACK, because
/// ACKs do not reach applications.
fn nobody_waits_for_transit(wait: &Evidence<'_>) -> bool {
    let is_new = wait.record.payload_bytes > 0 && !wait.was_sent_again() && !wait.is_first_data();
    let had_sent_all = wait.wait.small_before || wait.all_acked();
    is_new && had_sent_all && !wait.peer_spoke()
}

fn transit_of_unexplained_ns(wait: &Evidence<'_>, handshake_ns: i64, sending_ns: i64, on_its_way_ns: i64) -> i64 {
    let direction = wait.direction;
    let spoke_ns = wait.wait.peer_last_ns.get();
    let quiet_ns = (spoke_ns.or(wait.wait.since_all_acked_ns.get()).unwrap_or(0) - ahead_ns(wait)).max(0);
    let undisturbed_ns = wait.undisturbed_ns().max(wait.still_queued_ns());
    let gap_ns = wait.wait_ns - quiet_ns - handshake_ns;
    let mut there_and_back_ns = transit_ns(gap_ns, undisturbed_ns, direction.unsteady_ns) - sending_ns;
    if spoke_ns.is_some() && (direction.near_receiver || wait.says_when()) {
        there_and_back_ns = there_and_back_ns.min(undisturbed_ns);
    }
    there_and_back_ns.max(0) + on_its_way_ns
}

/// The first part of the wait, if its cause is a full receiver window. There are two cases. First, a wait for a zero
/// window may begin with a full window, which shrinks to 0 only when everything is acknowledged. Second, a full window
/// may delay data that Nagle's algorithm delays after the window opens. If the sender had sent beyond the window (a
/// probe), the window was closed already, so this part is 0.
fn full_window_ns(wait: &Evidence<'_>, cause: Cause, left_ns: i64) -> i64 {
    let until_ns = match cause {
        Cause::ZeroWindow
            if wait.had_in_flight() && wait.room().is_some_and(|room| (0..wait.smss_bytes).contains(&room)) =>
        {
            wait.wait.since_all_acked_ns.get()
        }
        Cause::Nagle if wait.was_kept_behind_window() && wait.was_kept_back() => wait.wait.window_opened_ns.get(),
        _ => None,
    };
    until_ns.map_or(0, |until_ns| (left_ns - until_ns).max(0))
}

/// The part of the wait before the sender learned of the loss. Before the loss was signalled, the sender waited as for
/// any other ACK; recovery begins with the signal.
fn before_loss_signal_ns(wait: &Evidence<'_>, cause: Cause, left_ns: i64) -> i64 {
    if cause != Cause::LossRecovery || wait.is_recovering() {
        return 0;
    }
    wait.wait.loss_signalled_ns.get().map_or(0, |signalled_ns| (left_ns - signalled_ns).max(0))
}

/// Whether the sender had finished its message: the last segment was small or ended a write, or data from the peer
/// followed.
fn is_complete(wait: &Evidence<'_>) -> bool {
    wait.wait.small_before || wait.wait.pushed_before || wait.peer_spoke()
}

/// Whether the sender's application was silent for so long that this time is idle. The time is not idle while a server
/// has to answer data from its client, or while a message of the sender is incomplete. Silence that ends with a FIN, or
/// during which keepalives are sent, need not exceed other pauses.
fn is_idle(wait: &Evidence<'_>, rest_ns: i64) -> bool {
    let direction = wait.direction;
    let owes = wait.peer_spoke() && !direction.from_client;
    let closes = wait.is_bare_fin();
    let min_ns = if closes || wait.wait.kept_alive { MIN_IDLE_NS } else { direction.idle_after_ns };
    let silence_ns = wait.wait.since_all_acked_ns.get().map_or(0, |acked_ns| acked_ns.min(rest_ns));
    silence_ns >= min_ns && !owes && !wait.is_first_data() && is_complete(wait)
}

/// The idle part of a server's wait. The server had answered, and its client had neither sent new data nor closed.
pub(super) fn idle_before_peer_ns(wait: &Wait, direction: &DirectionFacts, peer_ns: i64, rest_ns: i64) -> i64 {
    let (Some(spoke_ns), Some(acked_ns)) = (wait.peer_first_ns.get(), wait.since_all_acked_ns.get()) else { return 0 };
    let silence_ns = (peer_ns + rest_ns - spoke_ns).clamp(0, peer_ns);
    let closes = wait.peer_payload_bytes.get() == Some(0) && wait.peer_first_ns == wait.peer_last_ns;
    let min_ns = if closes || wait.kept_alive { MIN_IDLE_NS } else { direction.receiver_idle_after_ns };
    let had_answered = !direction.from_client && acked_ns >= spoke_ns && (wait.small_before || wait.pushed_before);
    if had_answered && silence_ns >= min_ns { silence_ns } else { 0 }
}

/// The idle part of a client's wait, between the last data from the server and the server's FIN. The server had
/// answered, and later closed an unused connection.
pub(super) fn idle_before_close_ns(wait: &Wait, direction: &DirectionFacts) -> i64 {
    let (Some(closed_ns), Some(data_ns), Some(acked_ns)) =
        (wait.peer_last_ns.get(), wait.peer_data_ns.get(), wait.since_all_acked_ns.get())
    else {
        return 0;
    };
    let silence_ns = data_ns.min(acked_ns) - closed_ns;
    if direction.from_client && silence_ns >= MIN_IDLE_NS { silence_ns } else { 0 }
}

fn note(wait: &Evidence<'_>, verdict: Verdict, caused_ns: i64, rest_ns: i64) -> Option<Note> {
    let stall_ns = Evidence::stall_ns(wait.direction);
    let stall_cause = verdict.cause.filter(|cause| caused_ns >= stall_ns && HELD.contains(cause));
    let due_ns = || wait.undisturbed_flight_ns() + wait.rtt_ns().max(CAUSAL_NS);
    let pause_ns = PAUSE_NS.max(2 * wait.rtt_ns());
    let note = Note {
        stall_cause,
        short_nagle_delay: verdict.cause == Some(Cause::Nagle) && caused_ns < stall_ns && caused_ns > due_ns(),
        paused: verdict.cause.is_none() && rest_ns >= pause_ns,
        is_resent: wait.is_resent(),
    };
    Some(note).filter(|note| *note != Note::default())
}

fn round(wait: &Evidence<'_>, verdict: Verdict) -> Option<Round> {
    let cause = verdict.cause.filter(|cause| matches!(cause, Cause::NagleDelayedAck | Cause::DelayedAck))?;
    wait.all_acked().then(|| Round {
        nagle: cause == Cause::NagleDelayedAck,
        may_be_held: wait.is_small() && wait.direction.totals.small_behind_small == 0,
        may_fill_buffer: wait.may_fill_buffer(),
    })
}
