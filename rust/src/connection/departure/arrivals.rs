//! What was captured on its way to a sender, and has perhaps not arrived there yet.

use super::super::row::Nullable;

/// Arrivals remembered that are on their way. More of them within one round trip count as arrived earlier than they did.
const MAX_ON_THE_WAY: usize = 1 << 10;

/// Places that a queue has at first.
const FIRST_PLACES: usize = 4;

/// One segment of the other side: one line of a cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(in super::super) struct Arrival {
    /// When it was captured.
    pub ts_ns: i64,
    /// What it acknowledges; below everything if nothing.
    pub ack: i64,
    /// Right edge of the window it offers, if its scale is known.
    pub edge: Nullable,
    /// Time since the oldest byte that it acknowledges was captured.
    pub lag_ns: Nullable,
    /// Its round-trip sample.
    pub rtt_ns: Nullable,
    /// Its TCP timestamp.
    pub tsval: Option<u32>,
    /// Its frame.
    pub frame: u64,
    /// It carries data, SYN or FIN: the program hears of it.
    pub has_data: bool,
}

/// The queue, in the order of the capture.
///
/// A side that only receives lets nothing leave that would empty it: it stays full, and each newcomer takes the place of the oldest,
/// so that one line of memory is touched and not two.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// A ring; its length is 0 or a power of two, at most [`MAX_ON_THE_WAY`].
    places: Vec<Arrival>,
    /// Place of the oldest.
    first: usize,
    len: usize,
    /// The timestamp echoed last, and when the first segment with it was captured.
    echoed: Option<(u32, i64)>,
}

impl Arrivals {
    /// Whether nothing is on its way.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// One more; hands out the oldest if there are too many.
    #[inline]
    pub(super) fn push(&mut self, arrival: Arrival) -> Option<Arrival> {
        if self.len == self.places.len() {
            if self.len == MAX_ON_THE_WAY {
                let oldest = self.places.get_mut(self.first).map(|place| std::mem::replace(place, arrival));
                self.first = self.place(1);
                return oldest;
            }
            self.grow(arrival);
        }
        let behind = self.place(self.len);
        if let Some(place) = self.places.get_mut(behind) {
            *place = arrival;
            self.len += 1;
        }
        None
    }

    /// Twice as many places; those that are free hold `filler`.
    #[cold]
    fn grow(&mut self, filler: Arrival) {
        self.places.rotate_left(self.first);
        self.first = 0;
        self.places.resize((self.len * 2).max(FIRST_PLACES), filler);
    }

    /// The place that comes so many behind that of the oldest.
    #[inline]
    fn place(&self, behind: usize) -> usize {
        (self.first + behind) & self.places.len().wrapping_sub(1)
    }

    #[inline]
    fn oldest(&self) -> Option<&Arrival> {
        if self.len > 0 { self.places.get(self.first) } else { None }
    }

    /// Whatever comes next, arrived or not.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Arrival> {
        let oldest = *self.oldest()?;
        self.first = self.place(1);
        self.len -= 1;
        Some(oldest)
    }

    /// The next one that had arrived when a segment that echoes `tsecr` was captured at `now_ns`.
    ///
    /// Where there are timestamps they tell it: what the segment echoes and all before it have arrived, and nothing newer
    /// (RFC 7323, 4.3). Of several with that same timestamp the first has, and the others if there was time.
    pub(super) fn next_arrived(&mut self, tsecr: Option<u32>, now_ns: i64, shift_ns: i64) -> Option<Arrival> {
        let &Arrival { tsval, ts_ns, .. } = self.oldest()?;
        let in_time = ts_ns.saturating_add(shift_ns) <= now_ns;
        let arrived = match tsval.zip(tsecr) {
            Some((tsval, tsecr)) if tsval == tsecr => self.is_first_echoed(tsecr, ts_ns) || in_time,
            Some((tsval, tsecr)) => (tsval.wrapping_sub(tsecr) as i32) < 0,
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

    /// Time since the first segment was captured whose timestamp `tsecr` echoes; known only away from the sender.
    pub(super) fn echo_ns(&self, tsecr: Option<u32>, now_ns: i64) -> Nullable {
        let echoed = self.echoed.filter(|(tsval, _)| Some(*tsval) == tsecr);
        echoed.map(|(_, ts_ns)| now_ns.saturating_sub(ts_ns)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrival, Arrivals, Nullable};

    fn ack(ts_ns: i64, ack: i64, tsval: Option<u32>) -> Arrival {
        let unknown = Nullable::default();
        Arrival { ts_ns, ack, edge: unknown, lag_ns: unknown, rtt_ns: unknown, tsval, frame: 0, has_data: false }
    }

    fn arrived(arrivals: &mut Arrivals, tsecr: Option<u32>, now_ns: i64, shift_ns: i64) -> Vec<i64> {
        std::iter::from_fn(|| arrivals.next_arrived(tsecr, now_ns, shift_ns)).map(|arrival| arrival.ack).collect()
    }

    #[test]
    fn without_timestamps_an_ack_arrives_after_the_round_trip_to_the_sender() {
        let mut arrivals = Arrivals::default();
        arrivals.push(ack(0, 1000, None));
        arrivals.push(ack(30, 2000, None));
        assert_eq!(arrived(&mut arrivals, None, 20, 20), [1000]);
        assert_eq!(arrived(&mut arrivals, None, 49, 20), [0; 0]);
        assert_eq!(arrived(&mut arrivals, None, 50, 20), [2000]);
    }

    #[test]
    fn of_more_than_fit_the_oldest_are_handed_out_in_order() {
        let mut arrivals = Arrivals::default();
        let mut out = Vec::new();
        let all = 2 * super::MAX_ON_THE_WAY as i64 + 44;
        for offset in 0..all {
            out.extend(arrivals.push(ack(offset, offset, None)));
            if offset == 3 {
                out.extend(arrivals.pop()); // so that the ring grows from its middle
            }
        }
        assert_eq!(out.len() + arrivals.len, all as usize);
        assert_eq!(arrivals.len, super::MAX_ON_THE_WAY);
        out.extend(std::iter::from_fn(|| arrivals.pop()));
        assert!(out.iter().map(|arrival| arrival.ack).eq(0..all));
        assert!(arrivals.is_empty());
    }

    #[test]
    fn an_echo_shows_what_arrived_and_that_nothing_newer_did() {
        let mut arrivals = Arrivals::default();
        for (ts_ns, offset, tsval) in [(0, 1000, 7), (10, 2000, 8), (11, 3000, 8), (12, 4000, 9)] {
            arrivals.push(ack(ts_ns, offset, Some(tsval)));
        }
        // Long after the round trip of 20, because the segment was queued: it echoes 8, so 9 had not arrived when it left.
        assert_eq!(arrived(&mut arrivals, Some(8), 500, 20), [1000, 2000, 3000]);
        assert_eq!(arrivals.echo_ns(Some(8), 500).get(), Some(490));
    }
}
