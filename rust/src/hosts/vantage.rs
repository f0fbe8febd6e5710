//! The capture point: where on the path a connection was captured (`docs/how-it-decides.md`, 2.1).
//!
//! The time between a captured packet and its captured answer is a round trip from the capture point to the answering
//! host. The shortest of these round trips is the **turnaround** of the host. A capture at a host shows a turnaround
//! near 0 for this host, and a full RTT for the other host.
//!
//! An answer must *prove* that the packet arrived. Four kinds of answer prove an arrival: the handshake, ACKs of data
//! (Karn's rule), echoed TCP timestamps, and data beyond the previously offered window. Data right after an ACK is no
//! proof, because the host possibly sent it before the ACK arrived.
//!
//! A host can also send data on its own initiative. The timestamp echoed in such data gives only an upper bound. For
//! example, an application that writes once a second echoes a timestamp up to one second late, even on a near host.

use std::net::IpAddr;

use crate::accounts::INITIAL_TTLS;
use crate::connection::Confidence;
use crate::flows::ConnectionRow;
use crate::sender::NO_DISTANCE_NS;

/// The capture was taken at a host if the host's turnaround is less than a tenth of the sum of both turnarounds.
const NEAR_SHARE: f64 = 0.1;
/// Longest RTT of a path (a heuristic: two geostationary satellites give 1.1 s).
pub(crate) const LONGEST_PATH_NS: i64 = 1_500_000_000;
/// A turnaround below 0.5 ms can be the delay of the host itself, so it does not show a path to the host (a heuristic
/// for the interrupts, softirqs and scheduling of real and virtual hosts).
const HOST_NS: i64 = 500_000;
/// If both turnarounds together are below 0.1 ms, the hosts cannot be distinguished, and the capture point is unknown
/// (a heuristic).
const MIN_PATH_NS: i64 = 100_000;
/// Both turnarounds together must be at least this many ticks of the capture's clock.
const MIN_TICKS: i64 = 2;

/// The place of the capture point on the path, in the order of `VANTAGES` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Place {
    Client,
    Server,
    Middle,
    Unknown,
}

/// The evidence for the capture point, or the reason why it is unknown. The order is that of `VANTAGE_KNOWN_BY` in
/// `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum KnownBy {
    /// The handshake.
    Handshake,
    /// ACKs, echoed timestamps and windows, without a handshake.
    Answers,
    /// Both ends are one host.
    Loopback,
    /// Both hosts answer too fast to be distinguished.
    Short,
    /// Only one host answered.
    OneSide,
    /// No host answered.
    Nothing,
}

/// Where a connection was captured.
#[derive(Clone, Copy, Debug)]
pub struct Vantage {
    /// The place.
    pub place: Place,
    /// The confidence in the place, or `None` if the place is unknown.
    ///
    /// - Proved: the handshake and all answers together show the same host.
    /// - Consistent: answers other than the handshake show a host, or all answers show a point in the middle. A point
    ///   in the middle is not proved, because both hosts are possibly just slow.
    /// - Possible: the handshake contradicts the other answers, or only ACKs show a point in the middle. ACKs alone are
    ///   weak evidence, because all of them were possibly delayed.
    pub confidence: Option<Confidence>,
    /// The evidence for the place, or the reason why it is unknown.
    pub known_by: KnownBy,
    /// The turnarounds of the client and the server.
    pub turnarounds_ns: [Option<i64>; 2],
}

/// The capture point of a connection. `resolution_ns` is the resolution of the capture's timestamps.
#[must_use]
pub fn vantage(row: &ConnectionRow, resolution_ns: i64) -> Vantage {
    let turnarounds_ns = [turnaround_ns(row, 0, 0), turnaround_ns(row, 1, 0)];
    let handshake_ns = [row.synack_to_ack_ns.get(), row.syn_to_synack_ns.get()];
    place(is_loopback(row), turnarounds_ns, handshake_ns, resolution_ns)
}

fn place(loopback: bool, turnarounds_ns: [Option<i64>; 2], handshake_ns: [Option<i64>; 2], tick_ns: i64) -> Vantage {
    let (by_all, by_handshake) = (place_of(turnarounds_ns, tick_ns), place_of(handshake_ns, tick_ns));
    let has_handshake = handshake_ns.iter().all(Option::is_some);
    let at_host = matches!(by_all, Place::Client | Place::Server);
    let known = !loopback && by_all != Place::Unknown;
    let confidence = if has_handshake && by_all == by_handshake {
        if at_host { Confidence::Proved } else { Confidence::Consistent }
    } else if at_host && (!has_handshake || by_handshake == Place::Unknown) {
        Confidence::Consistent
    } else {
        Confidence::Possible
    };
    let known_by = match turnarounds_ns {
        _ if loopback => KnownBy::Loopback,
        [None, None] => KnownBy::Nothing,
        [None, _] | [_, None] => KnownBy::OneSide,
        _ if by_all == Place::Unknown => KnownBy::Short,
        _ if has_handshake => KnownBy::Handshake,
        _ => KnownBy::Answers,
    };
    let place = if known { by_all } else { Place::Unknown };
    Vantage { place, confidence: known.then_some(confidence), known_by, turnarounds_ns }
}

/// The capture point according to the turnarounds of the client and the server.
fn place_of(turnarounds_ns: [Option<i64>; 2], tick_ns: i64) -> Place {
    let [Some(to_client_ns), Some(to_server_ns)] = turnarounds_ns else { return Place::Unknown };
    let total_ns = to_client_ns.saturating_add(to_server_ns);
    if total_ns < MIN_PATH_NS.max(tick_ns.saturating_mul(MIN_TICKS)) {
        return Place::Unknown;
    }
    let near_ns = NEAR_SHARE * total_ns as f64;
    match (to_client_ns, to_server_ns) {
        (client, _) if (client as f64) < near_ns => Place::Client,
        (_, server) if (server as f64) < near_ns => Place::Server,
        (client, server) if client > HOST_NS && server > HOST_NS => Place::Middle,
        _ => Place::Unknown,
    }
}

/// The turnaround of host `side` (0 client, 1 server): the shortest time from the capture point to this host and back,
/// or `None` without proof. Answers faster than `min_ns`, the tick of the clock, do not count.
///
/// A host that never had to answer has only the echoed timestamps in its own data, which include the delay of the
/// application. If routers lie only on the other side of the capture point, the turnaround of such a host is 0.
///
/// A single answer does not count if it took longer than the RTT of any path. Such an answer means that an earlier ACK
/// of the host was lost or not captured.
#[must_use]
pub fn turnaround_ns(row: &ConnectionRow, side: usize, min_ns: i64) -> Option<i64> {
    let other = 1 - side;
    let reaction = row.behaviours.get(side)?.reaction.min_ns.get();
    let rtt = &row.counts.get(other)?.rtt;
    let answered = [reaction, rtt.min_ns()].into_iter().flatten().min().filter(|ns| *ns >= min_ns);
    let too_late_alone = rtt.samples == 1 && answered.is_some_and(|ns| ns > LONGEST_PATH_NS);
    if is_unasked(row, side) && is_on_the_link(row, side) {
        return Some(0);
    }
    answered.filter(|_| !too_late_alone)
}

/// Whether host `side` never had to answer in this capture. The result is false if both ends are one host.
pub(crate) fn is_unasked(row: &ConnectionRow, side: usize) -> bool {
    let unanswered = row.counts.get(1 - side).is_none_or(|counts| counts.rtt.min_ns().is_none());
    unanswered && !is_loopback(row)
}

/// Whether the TTLs show routers on the path to the other host, but none on the path to host `side`.
fn is_on_the_link(row: &ConnectionRow, side: usize) -> bool {
    let ttl = |side: usize| row.behaviours.get(side).map(|behaviour| behaviour.ttl).filter(|ttl| *ttl > 0);
    ttl(side)
        .zip(ttl(1 - side))
        .is_some_and(|(own, other)| INITIAL_TTLS.contains(&own) && !INITIAL_TTLS.contains(&other))
}

/// Whether both ends are one host, which sends, captures and receives each packet at the same time. Packets with a
/// loopback address never leave the host (RFC 1122, 3.2.1.3).
pub(crate) fn is_loopback(row: &ConnectionRow) -> bool {
    let within = |address: IpAddr| address.to_canonical().is_loopback();
    row.client.0 == row.server.0 || (within(row.client.0) && within(row.server.0))
}

/// Whether the capture was taken at the host with turnaround `to_it_ns`. The other host has turnaround `to_other_ns`. A
/// value of `to_it_ns` that cannot be distinguished from 0 also gives true.
pub(crate) fn is_near(to_it_ns: i64, to_other_ns: i64) -> bool {
    to_it_ns < NO_DISTANCE_NS || (to_it_ns as f64) < NEAR_SHARE * (to_it_ns.saturating_add(to_other_ns)) as f64
}

#[cfg(test)]
mod tests {
    use super::{Confidence, KnownBy, Place, place};

    const MS: i64 = 1_000_000;
    const NONE: [Option<i64>; 2] = [None, None];

    /// The place and its evidence. Turnarounds and handshake are in microseconds, and the clock's tick is in
    /// nanoseconds.
    fn seen(
        turnarounds_us: (i64, i64),
        handshake_us: Option<(i64, i64)>,
        tick_ns: i64,
    ) -> (Place, Option<Confidence>, KnownBy) {
        let ns = |(client, server): (i64, i64)| [Some(client * 1_000), Some(server * 1_000)];
        let found = place(false, ns(turnarounds_us), handshake_us.map_or(NONE, ns), tick_ns);
        (found.place, found.confidence, found.known_by)
    }

    #[test]
    fn a_place_and_how_sure_it_is() {
        use Confidence::{Consistent, Possible, Proved};
        use KnownBy::{Answers, Handshake, Short};
        use Place::{Client, Middle, Server, Unknown};
        let table = [
            ((10, 20_000), Some((10, 20_000)), 1, (Client, Some(Proved), Handshake)),
            ((20_000, 10), Some((20_000, 10)), 1, (Server, Some(Proved), Handshake)),
            ((9_000, 11_000), Some((9_000, 11_000)), 1, (Middle, Some(Consistent), Handshake)),
            ((9_000, 11_000), None, 1, (Middle, Some(Possible), Answers)),
            ((10, 20_000), None, 1, (Client, Some(Consistent), Answers)),
            // The handshake shows a different capture point, or none.
            ((10, 20_000), Some((9_000, 20_000)), 1, (Client, Some(Possible), Handshake)),
            ((10, 20_000), Some((400, 500)), 1, (Client, Some(Consistent), Handshake)),
            // A turnaround of a tenth of the RTT is too long for a capture at the client. In the second row, half a
            // millisecond can be the delay of the host itself.
            ((2_000, 18_000), None, 1, (Middle, Some(Possible), Answers)),
            ((500, 600), None, 1, (Unknown, None, Short)),
            ((40, 50), None, 1, (Unknown, None, Short)),
            // Both turnarounds together must be at least two ticks of 10 ms.
            ((10, 19_000), None, 10 * MS, (Unknown, None, Short)),
            ((10, 20_000), None, 10 * MS, (Client, Some(Consistent), Answers)),
        ];
        for (turnarounds, handshake, tick_ns, expected) in table {
            assert_eq!(seen(turnarounds, handshake, tick_ns), expected, "{turnarounds:?} {handshake:?} {tick_ns}");
        }
    }

    #[test]
    fn without_answers_of_both_hosts_the_place_is_unknown() {
        let table = [
            (false, NONE, KnownBy::Nothing),
            (false, [Some(MS), None], KnownBy::OneSide),
            (false, [None, Some(MS)], KnownBy::OneSide),
            (true, [Some(10), Some(MS)], KnownBy::Loopback),
        ];
        for (loopback, turnarounds, expected) in table {
            let found = place(loopback, turnarounds, NONE, 1);
            assert_eq!((found.place, found.confidence, found.known_by), (Place::Unknown, None, expected));
        }
    }
}
