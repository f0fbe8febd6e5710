//! Round trips to a sender at the time, as other connections between the same two hosts show them
//! (`docs/how-it-decides.md`, 5).
//!
//! A host that sends only when it has been asked shows no queue: its answer acknowledges the request, and may have
//! waited for its application as well. A sender with bytes in flight answers ACKs at once. So its segments show how long
//! a packet takes at that time from the capture point to this host and back, and the packets of all connections between
//! the two hosts stand in the same queues.

use std::sync::Arc;

use super::super::waits::record::WaitRecord;
use crate::sender::NS_PER_MS;

/// Of the round trips in each span of this length, the shortest is kept (a heuristic). It is shorter than the times in
/// which queues change, and long enough to contain a segment that left as soon as an ACK arrived.
const SPAN_NS: i64 = 10 * NS_PER_MS;

/// A round trip, and when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    ts_ns: i64,
    ns: i64,
}

impl Sample {
    fn span(self) -> i64 {
        self.ts_ns.div_euclid(SPAN_NS)
    }
}

/// The shortest round trips of one direction, in order of time.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<Sample>);

impl Samples {
    /// Adds the round trip that a wait of the direction shows, if it shows one. At most `most` are kept.
    ///
    /// The departure echoes the timestamp of the ACK that released it. After data of the peer, or with nothing in flight,
    /// the application decides when to continue.
    pub fn add(&mut self, record: &WaitRecord, most: usize) {
        let wait = &record.wait;
        let is_released = wait.since_ack_ns.is_some()
            && !wait.peer_first_ns.is_some()
            && wait.flight_after_bytes.get().is_some_and(|flight| flight > 0)
            && record.payload_bytes > 0
            && record.retransmit_trigger.is_none();
        let Some(ns) = wait.echo_ns.get().filter(|_| is_released) else { return };
        let sample = Sample { ts_ns: record.ts_ns, ns };
        let has_room = self.0.len() < most;
        if let Some(last) = self.0.last_mut().filter(|last| last.span() == sample.span()) {
            if ns < last.ns {
                *last = sample;
            }
        } else if has_room {
            self.0.push(sample);
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The shortest round trip of one span, and the shortest of other connections than the one that shows it.
#[derive(Clone, Copy, Debug)]
struct Span {
    conn: u32,
    shortest: Sample,
    of_others: Option<Sample>,
}

/// The round trips from the capture point to one host and back, as the connections of that host with another one show
/// them.
#[derive(Clone, Debug, Default)]
pub struct RoundTrips(Vec<Span>);

impl RoundTrips {
    /// Combines the samples of several connections.
    #[must_use]
    pub fn of(samples: impl IntoIterator<Item = (u32, Samples)>) -> Self {
        let of_one = |(conn, Samples(some)): (u32, Samples)| {
            some.into_iter().map(move |shortest| Span { conn, shortest, of_others: None })
        };
        let mut spans: Vec<_> = samples.into_iter().flat_map(of_one).collect();
        spans.sort_by_key(|span| (span.shortest.span(), span.shortest.ns, span.conn));
        spans.dedup_by(|longer, kept| {
            let same = longer.shortest.span() == kept.shortest.span();
            if same && longer.conn != kept.conn {
                kept.of_others.get_or_insert(longer.shortest);
            }
            same
        });
        Self(spans)
    }

    /// The round trip that a packet takes which passes the capture point at `left_ns` and is not back before `end_ns`, as
    /// other connections than `conn` show it.
    ///
    /// Packets do not overtake each other. So the first one counts that left later and came back meanwhile; else the last
    /// one that came back meanwhile: it was still on its way when this packet left.
    fn round_trip_ns(&self, left_ns: i64, end_ns: i64, conn: u32) -> Option<i64> {
        let first = self.0.partition_point(|span| span.shortest.span() < left_ns.div_euclid(SPAN_NS));
        let spans = self.0.iter().skip(first).take_while(|span| span.shortest.span() <= end_ns.div_euclid(SPAN_NS));
        let of_others = spans.filter_map(|span| if span.conn == conn { span.of_others } else { Some(span.shortest) });
        let mut last_ns = None;
        for Sample { ts_ns, ns } in of_others.filter(|sample| (left_ns..=end_ns).contains(&sample.ts_ns)) {
            last_ns = Some(ns);
            if ts_ns.saturating_sub(ns) >= left_ns {
                break;
            }
        }
        last_ns
    }
}

/// What the neighbours of one connection show about the way to its sender.
#[derive(Clone, Debug)]
pub struct Neighbours {
    conn: u32,
    round_trips: Arc<RoundTrips>,
}

impl Neighbours {
    /// The neighbours of connection `conn`.
    #[must_use]
    pub fn new(conn: u32, round_trips: Arc<RoundTrips>) -> Self {
        Self { conn, round_trips }
    }

    /// The round trip to the sender and back of a packet that passed the capture point at `left_ns`, and was not
    /// answered before `end_ns`.
    pub(in super::super) fn round_trip_ns(&self, left_ns: i64, end_ns: i64) -> Option<i64> {
        self.round_trips.round_trip_ns(left_ns, end_ns, self.conn)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::waits::record::WaitRecord;
    use super::{NS_PER_MS, RoundTrips, Samples};
    use crate::nullable::Nullable;

    fn some(value: i64) -> Nullable {
        Some(value).into()
    }

    /// A segment of a full flight that an ACK released.
    fn released(at_ms: i64, echo_ms: i64) -> WaitRecord {
        let mut record = WaitRecord { ts_ns: at_ms * NS_PER_MS, payload_bytes: 1448, ..WaitRecord::default() };
        record.wait.since_ack_ns = some(0);
        record.wait.flight_after_bytes = some(14_480);
        record.wait.echo_ns = some(echo_ms * NS_PER_MS);
        record
    }

    fn samples(records: &[WaitRecord]) -> Samples {
        let mut samples = Samples::default();
        for record in records {
            samples.add(record, 100);
        }
        samples
    }

    /// The round trip that connection `conn` sees, of a packet that left at one time and came back at another.
    fn seen_ms(trips: &RoundTrips, left_ms: i64, end_ms: i64, conn: u32) -> Option<i64> {
        trips.round_trip_ns(left_ms * NS_PER_MS, end_ms * NS_PER_MS, conn).map(|ns| ns / NS_PER_MS)
    }

    #[test]
    fn the_first_packet_that_left_later_counts_or_else_the_last_before() {
        let trips = RoundTrips::of([(7, samples(&[released(1000, 80), released(1050, 90), released(1100, 60)]))]);
        assert_eq!(
            seen_ms(&trips, 930, 1200, 8),
            Some(90),
            "the one that left at 920 does not count: that of 960 left later"
        );
        assert_eq!(seen_ms(&trips, 990, 1200, 8), Some(60), "left at 1040");
        assert_eq!(seen_ms(&trips, 990, 1060, 8), Some(90), "only what left before is back");
        assert_eq!(seen_ms(&trips, 1001, 1040, 8), None, "nothing came back meanwhile");
        assert_eq!(seen_ms(&trips, 1101, 1200, 8), None, "too early");
    }

    #[test]
    fn the_shortest_of_a_span_counts_and_a_connection_is_no_witness_for_itself() {
        let mine = samples(&[released(1000, 30), released(1001, 25), released(1040, 20)]);
        let other = samples(&[released(1002, 80), released(1009, 90)]);
        let trips = RoundTrips::of([(7, mine), (8, other)]);
        assert_eq!([7, 8, 9].map(|conn| seen_ms(&trips, 900, 1010, conn)), [Some(80), Some(25), Some(25)]);
    }

    #[test]
    fn what_may_have_waited_for_the_application_is_no_sample() {
        let mut answer = released(1000, 80);
        answer.wait.peer_first_ns = some(70 * NS_PER_MS);
        let mut first_of_a_write = released(1000, 80);
        first_of_a_write.wait.flight_after_bytes = some(0);
        let mut without_ack = released(1000, 80);
        without_ack.wait.since_ack_ns = Nullable::NULL;
        assert!(samples(&[answer, first_of_a_write, without_ack]).is_empty());
        assert!(!samples(&[released(1000, 80)]).is_empty());
    }
}
