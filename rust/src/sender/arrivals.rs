//! Segments that were captured on their way to a sender and possibly have not arrived there yet.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::departure::Departure;
use crate::nullable::Nullable;

/// Maximum number of arrivals in the queue. If more segments are in transit, the oldest count as arrived.
const MAX_IN_TRANSIT: usize = if cfg!(all(feature = "small-limits", not(test))) { 1 << 3 } else { 1 << 10 };

const INITIAL_CAPACITY: usize = 4;

/// One segment of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Capture time.
    pub ts_ns: i64,
    /// Sequence offset that the segment acknowledges; `i64::MIN` if it acknowledges nothing.
    pub ack: i64,
    /// Right edge of the window that the segment advertises, if the window scale is known.
    pub edge: Nullable,
    /// Time from the capture of the oldest byte that the segment acknowledges to the capture of the segment.
    pub lag_ns: Nullable,
    /// RTT sample that the segment completes.
    pub rtt_ns: Nullable,
    /// The TCP timestamp of the segment, and the timestamp that it echoes.
    pub tsval: Option<u32>,
    pub tsecr: Option<u32>,
    /// Frame number.
    pub frame: u64,
    /// Whether the segment carries data, SYN or FIN, which the application sees.
    pub has_data: bool,
    /// Bytes of data.
    pub payload_bytes: u32,
    /// What the segment reports about losses.
    pub missing: Missing,
}

/// What a segment of the peer reports about losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Missing {
    /// No loss.
    #[default]
    Nothing,
    /// A possible loss: a duplicate ACK, or SACK blocks.
    Perhaps,
    /// Enough duplicate ACKs or SACK blocks for the sender to treat a segment as lost (RFC 5681, 3.2; `IsLost` of RFC
    /// 6675, 4).
    Lost,
}

/// The fields that differ from one arrival to the next.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Own {
    ts_ns: i64,
    /// Lower 32 bits of the frame number.
    frame: u32,
    /// TCP timestamp of the segment; 0 if it has none.
    tsval: u32,
}

/// The fields that are mostly equal in consecutive arrivals, for example at a host that only receives data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Common {
    ack: i64,
    edge: Nullable,
    lag_ns: Nullable,
    rtt_ns: Nullable,
    tsecr: Option<u32>,
    /// Upper 32 bits of the frame number.
    frame: u32,
    has_tsval: bool,
    has_data: bool,
    missing: Missing,
    payload_bytes: u32,
}

impl Arrival {
    #[inline]
    fn split(&self) -> (Own, Common) {
        let Self { ts_ns, ack, edge, lag_ns, rtt_ns, tsval, tsecr, frame, has_data, payload_bytes, missing } = *self;
        let own = Own { ts_ns, frame: frame as u32, tsval: tsval.unwrap_or(0) };
        let frame = (frame >> 32) as u32;
        let has_tsval = tsval.is_some();
        (own, Common { ack, edge, lag_ns, rtt_ns, tsecr, frame, has_tsval, has_data, missing, payload_bytes })
    }

    #[inline]
    fn of(own: Own, common: Common) -> Self {
        let Common { ack, edge, lag_ns, rtt_ns, tsecr, has_tsval, has_data, missing, payload_bytes, .. } = common;
        let frame = u64::from(common.frame) << 32 | u64::from(own.frame);
        let tsval = has_tsval.then_some(own.tsval);
        Self { ts_ns: own.ts_ns, ack, edge, lag_ns, rtt_ns, tsval, tsecr, frame, has_data, payload_bytes, missing }
    }
}

/// A queue of arrivals, 16 bytes each. The queue of a host that sends nothing stays full, and each new arrival replaces
/// the oldest.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Queue {
    /// Ring buffer, whose length is 0 or a power of two, at most [`MAX_IN_TRANSIT`].
    places: Vec<Own>,
    first: usize,
    len: usize,
    /// Number of arrivals removed so far.
    removed: u64,
    oldest: Common,
    newest: Common,
    /// The changes of the common part after the oldest arrival: the number of the arrival at which it changes, and the
    /// new common part. The first arrival of the direction has number 0.
    changes: VecDeque<(u64, Common)>,
}

impl Queue {
    #[inline]
    fn front(&self) -> Option<Arrival> {
        let own = self.places.get(self.first).filter(|_| self.len > 0)?;
        Some(Arrival::of(*own, self.oldest))
    }

    #[inline]
    fn push(&mut self, arrival: &Arrival) -> Option<Arrival> {
        let (own, common) = arrival.split();
        if self.len == 0 {
            (self.oldest, self.newest) = (common, common);
        } else if common != self.newest {
            self.changes.push_back((self.removed + self.len as u64, common));
            self.newest = common;
        }
        let oldest = if self.len == MAX_IN_TRANSIT { self.pop() } else { None };
        if self.len == self.places.len() {
            self.grow();
        }
        let behind = self.place(self.len);
        if let Some(place) = self.places.get_mut(behind) {
            *place = own;
            self.len += 1;
        }
        oldest
    }

    #[inline]
    fn pop(&mut self) -> Option<Arrival> {
        let front = self.front()?;
        self.first = self.place(1);
        self.len -= 1;
        self.removed += 1;
        if self.changes.front().is_some_and(|(at, _)| *at == self.removed)
            && let Some((_, common)) = self.changes.pop_front()
        {
            self.oldest = common;
        }
        Some(front)
    }

    #[cold]
    fn grow(&mut self) {
        self.places.rotate_left(self.first);
        self.first = 0;
        self.places.resize((self.len * 2).max(INITIAL_CAPACITY), Own::default());
    }

    /// Index in the ring buffer of the arrival that is `behind` places after the oldest one.
    #[inline]
    fn place(&self, behind: usize) -> usize {
        (self.first + behind) & self.places.len().wrapping_sub(1)
    }
}

/// The arrivals in transit, in capture order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Arrivals {
    queue: Option<Box<Queue>>,
    /// The last echoed timestamp, and the capture time of the first segment with this timestamp.
    echoed: Option<(u32, i64)>,
}

impl Arrivals {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.as_ref().is_none_or(|queue| queue.len == 0)
    }

    /// Adds an arrival. If the queue is full, removes and returns the oldest arrival.
    #[inline]
    pub(super) fn push(&mut self, arrival: &Arrival) -> Option<Arrival> {
        self.queue.get_or_insert_default().push(arrival)
    }

    pub(super) fn next_ns(&self) -> Option<i64> {
        Some(self.queue.as_deref()?.front()?.ts_ns)
    }

    /// Removes and returns the next arrival, whether it has reached the sender or not.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Arrival> {
        self.queue.as_deref_mut()?.pop()
    }

    /// Removes and returns the next arrival if it had reached the sender when `departure` was sent.
    ///
    /// Without timestamps, an arrival has reached the sender if it was captured at least `shift_ns` before the
    /// departure. With timestamps, the timestamp that the departure echoes decides. Arrivals with an older timestamp
    /// have reached the sender, and arrivals with a newer one have not. If several arrivals have the echoed timestamp,
    /// the first has reached the sender, and `shift_ns` decides about the others.
    ///
    /// There is one exception. If the departure acknowledges all data of the peer, arrivals up to this data have
    /// reached the sender, even with a newer timestamp. While an ACK is delayed, segments arrive whose timestamps are
    /// not echoed (RFC 7323, 4.3).
    pub(super) fn next_arrived(&mut self, departure: &Departure, shift_ns: i64) -> Option<Arrival> {
        let Arrival { tsval, ts_ns, .. } = self.queue.as_deref()?.front()?;
        let is_shown = || departure.shown_ns.get().is_some_and(|shown_ns| ts_ns <= shown_ns);
        let in_time = ts_ns.saturating_add(shift_ns) <= departure.ts_ns;
        let arrived = match tsval.zip(departure.tsecr) {
            Some((tsval, tsecr)) if tsval == tsecr => self.is_first_echoed(tsecr, ts_ns) || in_time,
            Some((tsval, tsecr)) => (tsval.wrapping_sub(tsecr) as i32) < 0 || is_shown(),
            None => in_time,
        };
        if arrived { self.pop() } else { None }
    }

    fn is_first_echoed(&mut self, tsecr: u32, ts_ns: i64) -> bool {
        let first = self.echoed.is_none_or(|(tsval, _)| tsval != tsecr);
        if first {
            self.echoed = Some((tsecr, ts_ns));
        }
        first
    }

    /// Time from the capture of the first segment with timestamp `tsecr` to `now_ns`. Null unless `tsecr` is the last
    /// echoed timestamp and the capture is away from the sender.
    pub(super) fn echo_ns(&self, tsecr: Option<u32>, now_ns: i64) -> Nullable {
        let echoed = self.echoed.filter(|(tsval, _)| Some(*tsval) == tsecr);
        echoed.map(|(_, ts_ns)| now_ns.saturating_sub(ts_ns)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrival, Arrivals, Departure, Missing, Nullable};

    fn ack(ts_ns: i64, ack: i64, tsval: Option<u32>) -> Arrival {
        let unknown = Nullable::default();
        Arrival {
            ts_ns,
            ack,
            edge: unknown,
            lag_ns: unknown,
            rtt_ns: unknown,
            tsval,
            tsecr: None,
            frame: 0,
            has_data: false,
            payload_bytes: 0,
            missing: Missing::Nothing,
        }
    }

    fn arrived(arrivals: &mut Arrivals, tsecr: Option<u32>, now_ns: i64, shift_ns: i64) -> Vec<i64> {
        let departure = Departure { tsecr, ts_ns: now_ns, ..Departure::default() };
        std::iter::from_fn(|| arrivals.next_arrived(&departure, shift_ns)).map(|arrival| arrival.ack).collect()
    }

    #[test]
    fn data_that_the_departure_acknowledges_has_arrived_although_its_timestamp_is_not_echoed() {
        let mut arrivals = Arrivals::default();
        for (ts_ns, offset, tsval) in [(0, 1000, 7), (10, 2000, 8), (30, 3000, 9)] {
            arrivals.push(&ack(ts_ns, offset, Some(tsval)));
        }
        let departure = Departure { tsecr: Some(7), ts_ns: 500, shown_ns: Some(10).into(), ..Departure::default() };
        let arrived: Vec<_> = std::iter::from_fn(|| arrivals.next_arrived(&departure, 20)).map(|one| one.ack).collect();
        assert_eq!(arrived, [1000, 2000]);
    }

    #[test]
    fn without_timestamps_an_ack_arrives_after_the_round_trip_to_the_sender() {
        let mut arrivals = Arrivals::default();
        arrivals.push(&ack(0, 1000, None));
        arrivals.push(&ack(30, 2000, None));
        assert_eq!(arrived(&mut arrivals, None, 20, 20), [1000]);
        assert_eq!(arrived(&mut arrivals, None, 49, 20), [0; 0]);
        assert_eq!(arrived(&mut arrivals, None, 50, 20), [2000]);
    }

    #[test]
    fn of_more_than_fit_the_oldest_are_handed_out_as_they_came() {
        let mut arrivals = Arrivals::default();
        let came = (0..2 * super::MAX_IN_TRANSIT as i64 + 44).map(|number| Arrival {
            frame: u64::from(u32::MAX) - 500 + number as u64,
            has_data: number % 5 > 0,
            missing: if number % 7 == 0 { Missing::Lost } else { Missing::Nothing },
            rtt_ns: Some(number).filter(|number| number % 97 == 0).into(),
            ..ack(number, number / 30, Some(number as u32 / 2).filter(|_| number % 64 > 0))
        });
        let mut out = Vec::new();
        for arrival in came.clone() {
            out.extend(arrivals.push(&arrival));
            if arrival.ts_ns == 2 {
                out.extend(arrivals.pop()); // This order makes the ring grow while its oldest arrival is in the middle.
            }
        }
        assert_eq!(out.len(), super::MAX_IN_TRANSIT + 44);
        out.extend(std::iter::from_fn(|| arrivals.pop()));
        assert!(arrivals.is_empty() && out.into_iter().eq(came));
    }

    #[test]
    fn an_echo_shows_what_arrived_and_that_nothing_newer_did() {
        let mut arrivals = Arrivals::default();
        for (ts_ns, offset, tsval) in [(0, 1000, 7), (10, 2000, 8), (11, 3000, 8), (12, 4000, 9)] {
            arrivals.push(&ack(ts_ns, offset, Some(tsval)));
        }
        // A queue delays the departure, so the departure is captured long after the round trip of 20 ns. The departure
        // echoes timestamp 8, so the arrival with timestamp 9 had not reached the sender when the departure was sent.
        assert_eq!(arrived(&mut arrivals, Some(8), 500, 20), [1000, 2000, 3000]);
        assert_eq!(arrivals.echo_ns(Some(8), 500).get(), Some(490));
    }
}
