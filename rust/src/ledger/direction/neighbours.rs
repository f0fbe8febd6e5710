//! The queueing delay on the path from the capture point to a host, as other connections of this host show it
//! (`docs/how-it-decides.md`, 5). If connections to two other hosts show a queue at the same time, this queue is in the
//! part that the paths to all hosts share.
//!
//! A host that sends only answers does not show the queue on the path to it: an answer may also have waited for the
//! host's application. Two kinds of segments show queues, because no application delays them:
//!
//! - In the middle of a write, a sender sends a segment when an ACK arrives, and this segment echoes the timestamp of
//!   the ACK.
//! - A receiver acknowledges data as soon as it arrives, if more data follows.
//!
//! Packets do not overtake each other. If an ACK or data waits in a queue, a request that passes the capture point
//! after it waits too. The answer to this request is then also late.

use std::fmt;
use std::sync::Arc;

use super::super::waits::record::WaitRecord;
use crate::sender::{DRIFT_PART, NS_PER_MS};

/// Time is divided into spans of this length. In each span, only the ACK with the shortest queueing delay is kept (a
/// heuristic). Queues hardly change within a span. A span is nevertheless long enough to contain an ACK that released a
/// segment immediately.
const SPAN_NS: i64 = 10 * NS_PER_MS;
/// The timestamp of a segment and the timestamp that it echoes each have an error of up to one tick.
const TICKS_NS: i64 = 2 * NS_PER_MS;
/// The clocks of the host and of the capture each drift by at most 1/[`DRIFT_PART`].
const CLOCKS: i64 = 2;
/// At most this many spans are searched for an ACK before the request (a heuristic).
const MAX_SPANS: usize = 32;

/// A sample: when a packet passed the capture point, and the least time that it spent in queues. Some samples are for
/// the path to the host alone, others for this path and the return path together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    ts_ns: i64,
    queue_ns: i64,
}

impl Sample {
    fn span(self) -> i64 {
        self.ts_ns.div_euclid(SPAN_NS)
    }
}

/// The queueing delays that the segments of one direction show on the path to a host, in order of time.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    kept: Vec<Sample>,
    /// The shortest round trip between capture point and host so far, and when it ended.
    shortest: Option<(i64, i64)>,
}

impl Samples {
    /// Creates an empty list of samples. `handshake_ns` is the round trip between capture point and host in the
    /// handshake, if it is known; the handshake was at `ts_ns`.
    #[must_use]
    pub fn since(ts_ns: i64, handshake_ns: Option<i64>) -> Self {
        Self { kept: Vec::new(), shortest: handshake_ns.map(|ns| (ns, ts_ns)) }
    }

    /// Adds the queueing delay that the segment at the end of a wait shows on the path to the sender. At most `most`
    /// samples are kept.
    pub fn add_echo(&mut self, record: &WaitRecord, most: usize) {
        let wait = &record.wait;
        let Some((echo_ns, back_ns)) = wait.echo_ns.get().zip(wait.queueing_delay_ns.get()) else { return };
        // The queueing delay of the segment itself, which its timestamp shows, is subtracted.
        let Some(round_trip_ns) = echo_ns.checked_sub(back_ns).filter(|ns| *ns > 0) else { return };
        let (shortest_ns, at_ns) = self.shortest_with(round_trip_ns, record.ts_ns);
        if is_released(record) {
            let drift_ns = CLOCKS * (record.ts_ns.saturating_sub(at_ns) / DRIFT_PART);
            let queue_ns = (round_trip_ns - shortest_ns).saturating_sub(TICKS_NS + drift_ns).max(0);
            self.keep(Sample { ts_ns: record.ts_ns.saturating_sub(echo_ns), queue_ns }, most);
        }
    }

    /// Adds the queueing delay that the last ACK before a segment shows on the path to the receiver and back. The round
    /// trip between capture point and sender takes `to_sender_ns`. At most `most` samples are kept.
    pub fn add_ack(&mut self, record: &WaitRecord, to_sender_ns: i64, most: usize) {
        let wait = &record.wait;
        let Some((rtt_ns, ago_ns)) = wait.rtt_sample_ns.get().zip(wait.since_ack_ns.get()) else { return };
        let acked_ns = record.ts_ns.saturating_sub(ago_ns.saturating_add(to_sender_ns));
        let (shortest_ns, _) = self.shortest_with(rtt_ns, acked_ns);
        if !wait.peer_first_ns.is_some() && wait.flight_after_bytes.get().is_some_and(|flight| flight > 0) {
            self.keep(Sample { ts_ns: acked_ns.saturating_sub(rtt_ns), queue_ns: (rtt_ns - shortest_ns).max(0) }, most);
        }
    }

    /// The shortest round trip so far, including `round_trip_ns`, and the time at which it ended.
    fn shortest_with(&mut self, round_trip_ns: i64, ts_ns: i64) -> (i64, i64) {
        let shortest = self.shortest.filter(|(shortest_ns, _)| *shortest_ns < round_trip_ns);
        *self.shortest.insert(shortest.unwrap_or((round_trip_ns, ts_ns)))
    }

    fn keep(&mut self, sample: Sample, most: usize) {
        let has_room = self.kept.len() < most;
        match self.kept.last_mut() {
            Some(last) if last.span() == sample.span() => {
                *last = if sample.queue_ns <= last.queue_ns { sample } else { *last };
            }
            Some(last) if last.span() > sample.span() => {}
            _ if has_room => self.kept.push(sample),
            _ => {}
        }
    }

    /// Whether there are no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

/// Whether an ACK released the segment: the segment continues a write, bytes are in flight, and no data of the peer
/// arrived.
fn is_released(record: &WaitRecord) -> bool {
    let wait = &record.wait;
    wait.since_ack_ns.is_some()
        && !wait.peer_first_ns.is_some()
        && wait.flight_after_bytes.get().is_some_and(|flight| flight > 0)
        && record.payload_bytes > 0
        && !wait.small
        && !wait.small_before
        && record.retransmit_trigger.is_none()
}

/// The longest queueing delay in one span of time.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// The connection that shows this delay; in a shared queue, the number of the host.
    from: u32,
    longest: Sample,
    /// The longest queueing delay that connections (or hosts) other than `from` show.
    of_others: Option<Sample>,
}

/// The queueing delays between the capture point and a host over time, as the connections of this host show them.
#[derive(Clone, Default)]
pub struct Queue {
    spans: Vec<Span>,
    /// The shortest round trip between capture point and host.
    shortest_ns: i64,
}

impl fmt::Debug for Queue {
    /// Prints only the number of spans, because there may be many thousand.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Queue({} spans)", self.spans.len())
    }
}

impl Queue {
    /// Combines the samples of several connections of one host.
    #[must_use]
    pub fn of(samples: impl IntoIterator<Item = (u32, Samples)>) -> Self {
        let (mut spans, mut shortest_ns) = (Vec::new(), i64::MAX);
        for (from, samples) in samples {
            shortest_ns = samples.shortest.map_or(shortest_ns, |(ns, _)| ns.min(shortest_ns));
            spans.extend(samples.kept.into_iter().map(|longest| Span { from, longest, of_others: None }));
        }
        Self::sorted(spans, shortest_ns)
    }

    /// The queue that the paths to several hosts share: at each time, the queueing delay that at least two hosts show.
    #[must_use]
    pub fn shared<'a>(hosts: impl IntoIterator<Item = &'a Self>) -> Self {
        let (mut spans, mut shortest_ns) = (Vec::new(), i64::MAX);
        for (from, queue) in (0..).zip(hosts) {
            shortest_ns = shortest_ns.min(queue.shortest_ns);
            spans.extend(queue.spans.iter().map(|span| Span { from, of_others: None, ..*span }));
        }
        let both = Self::sorted(spans, shortest_ns);
        let of_two = |span: Span| span.of_others.map(|longest| Span { longest, of_others: None, ..span });
        Self { spans: both.spans.into_iter().filter_map(of_two).collect(), shortest_ns }
    }

    fn sorted(mut spans: Vec<Span>, shortest_ns: i64) -> Self {
        spans.sort_by_key(|span| (span.longest.span(), -span.longest.queue_ns, span.from));
        spans.dedup_by(|shorter, kept| {
            let same = shorter.longest.span() == kept.longest.span();
            if same && shorter.from != kept.from {
                kept.of_others.get_or_insert(shorter.longest);
            }
            same
        });
        Self { spans, shortest_ns }
    }

    /// The least time that a packet spends in the queue if it passes the capture point at `ts_ns`. The packet cannot
    /// overtake the ACK that passed before it. Samples of connection `but` do not count.
    fn ns_at(&self, ts_ns: i64, but: Option<u32>) -> i64 {
        let end = self.spans.partition_point(|span| span.longest.span() <= ts_ns.div_euclid(SPAN_NS));
        let before = self.spans.get(..end).unwrap_or_default().iter().rev().take(MAX_SPANS);
        let mut of_others =
            before.filter_map(|span| if Some(span.from) == but { span.of_others } else { Some(span.longest) });
        let last = of_others.find(|sample| sample.ts_ns <= ts_ns);
        last.map_or(0, |last| last.queue_ns.saturating_sub(ts_ns.saturating_sub(last.ts_ns)).max(0))
    }
}

/// What other connections show about the path from the capture point to the sender of a direction.
#[derive(Clone, Debug)]
pub struct Neighbours {
    conn: u32,
    /// Queues that other connections of the sender's host show: on the path to it, and on this path and back.
    own: [Arc<Queue>; 2],
    /// Queues that at least two hosts show: on the path to them, and on this path and back.
    shared: [Arc<Queue>; 2],
}

impl Neighbours {
    /// Creates the neighbours of connection `conn`. Each pair is the queue on the path to the host, and the queues on
    /// this path and the return path together.
    #[must_use]
    pub fn new(conn: u32, own: [Arc<Queue>; 2], shared: [Arc<Queue>; 2]) -> Self {
        Self { conn, own, shared }
    }

    /// Returns two lower bounds of the time in queues. The first is for a packet on the path to the sender, and the
    /// second is for the packet and its immediate answer together. A bound is 0 if nothing is known. The packet passed
    /// the capture point at `ts_ns`. The round trip between capture point and sender takes at least `to_sender_ns`. A
    /// shared queue does not count if the sender is less than half as far away as the hosts that show this queue:
    /// packets to such a sender may not pass the queue.
    pub(in super::super) fn queued_ns(&self, ts_ns: i64, to_sender_ns: i64) -> [i64; 2] {
        let own = self.own.each_ref().map(|queue| queue.ns_at(ts_ns, Some(self.conn)));
        let shared = self.shared.each_ref().map(|queue| {
            let is_behind = to_sender_ns.saturating_mul(2) >= queue.shortest_ns;
            if is_behind { queue.ns_at(ts_ns, None) } else { 0 }
        });
        let [there, there_and_back] = own;
        let [shared_there, shared_there_and_back] = shared;
        [there.max(shared_there), there_and_back.max(shared_there_and_back)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::waits::record::WaitRecord;
    use super::{NS_PER_MS, Queue, Samples};
    use crate::nullable::Nullable;

    fn some(ms: i64) -> Nullable {
        Some(ms * NS_PER_MS).into()
    }

    /// A segment of a full flight, released by an ACK that was captured `echo_ms` before. The segment itself waited
    /// `back_ms` in a queue.
    fn released(at_ms: i64, echo_ms: i64, back_ms: i64) -> WaitRecord {
        let mut record = WaitRecord { ts_ns: at_ms * NS_PER_MS, payload_bytes: 1448, ..WaitRecord::default() };
        record.wait.since_ack_ns = some(0);
        record.wait.flight_after_bytes = Some(14_480).into();
        record.wait.echo_ns = some(echo_ms);
        record.wait.queueing_delay_ns = some(back_ms);
        record
    }

    fn samples(records: &[WaitRecord]) -> Samples {
        let mut samples = Samples::default();
        for record in records {
            samples.add_echo(record, 100);
        }
        samples
    }

    /// The queueing delay that `queue` shows, rounded to milliseconds, because the allowance for clock drift subtracts
    /// a few microseconds.
    fn seen_ms(queue: &Queue, at_ms: i64, conn: u32) -> i64 {
        (queue.ns_at(at_ms * NS_PER_MS, Some(conn)) + NS_PER_MS / 2) / NS_PER_MS
    }

    #[test]
    fn a_packet_arrives_after_the_ack_before_it() {
        // The path takes 20 ms. The ACKs captured at 1000, 1100 and 1300 ms wait 62, 82 and 12 ms in queues. Two ticks,
        // or 2 ms, are subtracted from each.
        let queue = Queue::of([(
            7,
            samples(&[released(900, 20, 0), released(1082, 82, 0), released(1202, 102, 0), released(1332, 32, 0)]),
        )]);
        assert_eq!([1000, 1010, 1059, 1070].map(|ms| seen_ms(&queue, ms, 8)), [60, 50, 1, 0]);
        assert_eq!([1099, 1100, 1130, 1299, 1300].map(|ms| seen_ms(&queue, ms, 8)), [0, 80, 50, 0, 10]);
        assert_eq!(seen_ms(&queue, 100, 8), 0, "before the first");
    }

    #[test]
    fn the_queue_that_the_segment_itself_meets_is_not_before_the_host() {
        let queue = Queue::of([(7, samples(&[released(900, 20, 0), released(1082, 82, 50)]))]);
        assert_eq!(seen_ms(&queue, 1000, 8), 10);
    }

    #[test]
    fn in_a_span_the_shortest_of_a_connection_counts_and_none_is_a_witness_for_itself() {
        let mine = samples(&[released(900, 20, 0), released(1052, 52, 0), released(1053, 49, 0)]);
        let other = samples(&[released(900, 20, 0), released(1082, 82, 0), released(1088, 84, 0)]);
        let queue = Queue::of([(7, mine), (8, other)]);
        assert_eq!([7, 8, 9].map(|conn| seen_ms(&queue, 1004, conn)), [56, 27, 56]);
    }

    #[test]
    fn what_may_have_waited_for_the_application_is_no_sample() {
        let of = |change: fn(&mut WaitRecord)| {
            let mut record = released(1000, 80, 0);
            change(&mut record);
            samples(&[record]).is_empty()
        };
        assert!(!of(|_| {}));
        assert!(of(|answer| answer.wait.peer_first_ns = some(70)));
        assert!(of(|first| first.wait.flight_after_bytes = Some(0).into()));
        assert!(of(|unasked| unasked.wait.since_ack_ns = Nullable::NULL));
        assert!(of(|end_of_a_write| end_of_a_write.wait.small = true));
        assert!(of(|next_write| next_write.wait.small_before = true));
    }

    #[test]
    fn clocks_that_drift_show_no_queue() {
        // After 1,000 s, two clocks that each drift by 100 ppm can differ by 200 ms.
        let queue = Queue::of([(7, samples(&[released(900, 20, 0), released(1_000_900, 222, 0)]))]);
        assert_eq!(seen_ms(&queue, 1_000_678, 8), 0);
    }
}
