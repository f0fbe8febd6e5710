//! The edges of a direction: the time before its first segment with data, SYN or FIN, and the time after its last one.

use super::cause::Cause;
use super::direction::{DirectionFacts, MIN_IDLE_NS};
use super::judged::MAX_SPANS;
use super::timeline::{idle_before_close_ns, idle_before_peer_ns, opened_ns, request_transit_ns, transit_ns};
use crate::connection::Confidence;

/// One edge: the time before the first segment, or the time after the last one. If a direction has no segment with
/// data, SYN or FIN, its whole life is one edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Start, in nanoseconds since 1970.
    pub start_ns: i64,
    /// Frame of the last segment that was sent before the edge.
    pub frame_before: Option<u64>,
    /// Frame of the segment that ended the edge.
    pub frame_after: Option<u64>,
    /// The intervals in order of time, as (cause, nanoseconds).
    pub spans: [(Cause, i64); MAX_SPANS],
    /// Confidence in these intervals.
    pub confidence: Confidence,
}

const NOTHING: (Cause, i64) = (Cause::Unknown, 0);

/// The edges of a direction, in order of time.
#[must_use]
pub fn edges(direction: &DirectionFacts) -> [Option<Edge>; 2] {
    if direction.totals.ending.wait_ns.is_some() {
        [before(direction), after(direction)]
    } else {
        [Some(silent(direction)), None]
    }
}

fn edge(start_ns: i64, spans: [(Cause, i64); 6]) -> Edge {
    let [handshake, transit, idle, peer, closing, rest] = spans;
    let spans = [handshake, transit, idle, peer, closing, rest, NOTHING, NOTHING];
    Edge { start_ns, frame_before: None, frame_after: None, spans, confidence: Confidence::Consistent }
}

/// The time before the first segment: its cause is `handshake` if that segment is a SYN, else `unknown`.
fn before(direction: &DirectionFacts) -> Option<Edge> {
    let first = direction.totals.first?;
    let ns = first.ts_ns.saturating_sub(direction.first_ts_ns);
    let (handshake_ns, rest_ns) = if first.is_syn { (ns, 0) } else { (0, ns) };
    let spans = [(Cause::Handshake, handshake_ns), (Cause::Unknown, rest_ns), NOTHING, NOTHING, NOTHING, NOTHING];
    Some(Edge { frame_after: Some(first.frame), ..edge(direction.first_ts_ns, spans) })
}

/// The time after the last segment. If everything is acknowledged and the sender never receives data, the sender has
/// nothing to send. If the sender also receives data, the capture does not show which host would have continued.
fn after(direction: &DirectionFacts) -> Option<Edge> {
    let ending = &direction.totals.ending;
    let wait_ns = ending.wait_ns.get()?;
    let (idle_ns, spoke_ns) = (ending.since_all_acked_ns.get(), ending.peer_last_ns.get());
    let closing = direction.finished;
    let only_syn = !closing && direction.max_segment_bytes == 0;
    // An ACK that was still in transit when the connection ended counts as received at the end of the connection.
    let open_ns = opened_ns(ending, direction)
        .filter(|ns| *ns > 0)
        .map_or(0, |ns| ns + request_transit_ns(direction, spoke_ns.is_some()));
    let handshake_ns = if only_syn { (wait_ns - open_ns).max(0) } else { 0 };
    let quiet_ns = spoke_ns.or(idle_ns).unwrap_or(0);
    let is_alone = direction.beginning_seen && direction.receiver_data_segments == 0;
    let sent_all = is_alone && idle_ns.is_some_and(|idle_ns| 2 * idle_ns >= wait_ns);
    let cut = !direction.ended_by_others && !sent_all;
    let in_flight = spoke_ns.is_none() && idle_ns.is_none();
    let undisturbed_ns = direction.rtt_ns
        + direction.line.own_beyond_least_ns(ending.payload_before_bytes.get())
        + direction.line.other_beyond_least_ns(ending.peer_payload_bytes.get());
    let transit_ns =
        if closing { 0 } else { transit_ns(wait_ns - handshake_ns - quiet_ns, undisturbed_ns, direction.unsteady_ns) };
    let peer_ns = match spoke_ns {
        Some(spoke_ns) if !closing => (wait_ns - handshake_ns - spoke_ns - transit_ns).max(0),
        _ => 0,
    };
    // If the capture begins within the connection, only the peer's answers show the RTT, so the cause of the transit
    // time is unknown.
    let unmeasured = !direction.beginning_seen && spoke_ns.is_some();
    let transit_cause = if unmeasured { Cause::Unknown } else { Cause::Network };
    let rest_ns = wait_ns - handshake_ns - transit_ns - peer_ns;
    let rest_cause = match closing {
        true => Cause::Close,
        false if is_idle(direction, rest_ns) => Cause::Idle,
        false if in_flight || cut => Cause::Unknown,
        false => Cause::Application,
    };
    let idle_ns = idle_before_peer_ns(ending, direction, peer_ns, rest_ns);
    let closing_ns = idle_before_close_ns(ending, direction).min(peer_ns - idle_ns);
    let spans = [
        (Cause::Handshake, handshake_ns),
        (transit_cause, transit_ns),
        (Cause::Idle, idle_ns),
        (Cause::Peer, peer_ns - idle_ns - closing_ns),
        (Cause::Idle, closing_ns),
        (rest_cause, rest_ns),
    ];
    let frame_before = ending.frame_before.get().and_then(|frame| u64::try_from(frame).ok());
    Some(Edge { frame_before, ..edge(direction.last_ts_ns - wait_ns, spans) })
}

/// Whether the silence at the end of the direction is idle. The silence is idle only if everything is acknowledged and
/// no request is open. No request is open if the server sent last, or if the server never answers in this connection.
/// If a host closes the connection after the silence, or sends keepalives, the silence need not exceed the usual pauses
/// of the client.
fn is_idle(direction: &DirectionFacts, rest_ns: i64) -> bool {
    let ending = &direction.totals.ending;
    let spoke_ns = ending.peer_last_ns.get();
    let answered = if direction.from_client {
        spoke_ns.is_some() || direction.receiver_data_segments == 0
    } else {
        spoke_ns.is_none()
    };
    let usual_ns = if direction.from_client { direction.idle_after_ns } else { direction.receiver_idle_after_ns };
    let min_ns = if direction.ended_by_others || ending.kept_alive { MIN_IDLE_NS } else { usual_ns };
    let silence_ns = ending.since_all_acked_ns.get().map_or(0, |acked_ns| acked_ns.min(rest_ns));
    answered && silence_ns >= min_ns && direction.max_segment_bytes > 0
}

/// The edge of a direction whose sender sent no data, SYN or FIN in the capture. The host waits for its peer for as
/// long as the peer sends. The cause is `unknown` in three cases. First, only the peer closes in the capture, so this
/// host may have closed before. Second, the capture has no segment of this host, which may have sent anything. Third,
/// the connection lasts longer than any real one.
fn silent(direction: &DirectionFacts) -> Edge {
    let lived_ns = direction.life_ns();
    let peer_seen_ns = if direction.beginning_seen {
        lived_ns
    } else {
        direction.receiver_last_data_ts_ns.map_or(0, |last_ns| last_ns - direction.first_ts_ns)
    };
    let may_be_closed = !direction.beginning_seen && direction.receiver_end.finished;
    let is_silent = direction.captured && direction.receiver_departed;
    let peer_ns = if is_silent && !may_be_closed { peer_seen_ns } else { 0 };
    edge(
        direction.first_ts_ns,
        [NOTHING, NOTHING, NOTHING, (Cause::Peer, peer_ns), NOTHING, (Cause::Unknown, lived_ns - peer_ns)],
    )
}

#[cfg(test)]
mod tests {
    use super::{Cause, DirectionFacts, edges};

    #[test]
    fn a_host_waits_for_its_peer_only_if_the_capture_has_segments_of_it() {
        let causes = |captured| {
            let direction = DirectionFacts {
                last_ts_ns: 10,
                beginning_seen: true,
                receiver_departed: true,
                captured,
                ..DirectionFacts::default()
            };
            let [whole, _] = edges(&direction);
            whole.unwrap().spans.into_iter().filter(|(_, ns)| *ns > 0).collect::<Vec<_>>()
        };
        assert_eq!(causes(true), vec![(Cause::Peer, 10)]);
        assert_eq!(causes(false), vec![(Cause::Unknown, 10)]);
    }

    #[test]
    fn a_life_of_more_than_a_number_holds_is_unknown_from_end_to_end() {
        let direction = DirectionFacts { first_ts_ns: i64::MIN + 1, last_ts_ns: i64::MAX, ..DirectionFacts::default() };
        let [whole, none] = edges(&direction);
        let known: Vec<_> = whole.unwrap().spans.into_iter().filter(|(_, ns)| *ns > 0).collect();
        assert_eq!((known, none), (vec![(Cause::Unknown, i64::MAX)], None));
    }
}
