//! Groups UDP datagrams into flows. The client of a flow is the sender of its first datagram. The row of a datagram
//! contains the time since the last datagram of its sender, and the time since the last datagram of the peer. The row
//! of a flow contains totals.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::datagram_figures::FlowFigures;
use super::datagram_rows::{DatagramRow, FlowRow};
use super::histogram::{BUCKET_BITS, MAX_BUCKETS};
use crate::nullable::Nullable;
use crate::wire::{Datagram, FlowKey};

/// Maximum number of tracked flows (about 80 MB). A further flow closes an old one and emits its row.
const MAX_LIVE: usize = 1 << 17;
/// Maximum number of stored datagram sizes in all directions together (100 MB). If there are more sizes, sizes are no
/// longer counted in any direction.
const MAX_SIZES: usize = if cfg!(test) { 1 << 10 } else { 8_000_000 };
/// Number of closed rows to emit at a time.
const CLOSED_ROWS: usize = 4096;
/// Number of adjacent flows to compare when room is needed. The flow with the longest silence is closed.
const CANDIDATES: usize = 32;

#[derive(Debug)]
struct Flow {
    key: FlowKey,
    number: u32,
    client_is_low: bool,
    /// Time of the client's last datagram, and time of the server's last datagram.
    last_ts_ns: [Nullable; 2],
    figures: FlowFigures,
}

impl Flow {
    fn row(self, knows_sizes: bool) -> FlowRow {
        let (low, high) = (self.key.low(), self.key.high());
        let (client, server) = if self.client_is_low { (low, high) } else { (high, low) };
        let (directions, echoes) = self.figures.finish(knows_sizes);
        FlowRow { flow: self.number, client, server, echoes, directions }
    }

    /// Time of the last datagram of either host.
    fn last_ts_ns(&self) -> Option<i64> {
        let [client, server] = self.last_ts_ns;
        client.get().max(server.get())
    }
}

/// The UDP flows of a capture.
#[derive(Debug, Default)]
pub struct Flows {
    hasher: RandomState,
    /// Index in `live` of each flow, found by the flow's endpoints.
    places: HashTable<u32>,
    live: Vec<Flow>,
    count: u32,
    /// Rows of flows that were closed to make room.
    closed: Vec<FlowRow>,
    closed_early: u64,
    /// Index of the next candidate for closing.
    next_candidate: usize,
    /// Number of histogram buckets in all flows, and number of low bits that bucket numbers omit.
    buckets: usize,
    widened_bits: u32,
    /// Number of stored sizes in all flows, and whether there were too many to store.
    sizes: usize,
    too_many_sizes: bool,
}

impl Flows {
    /// Number of flows that were closed to make room. Later datagrams of such a flow open a new flow.
    #[must_use]
    pub fn closed_early(&self) -> u64 {
        self.closed_early
    }

    /// Processes one datagram and returns its row.
    pub fn take(&mut self, datagram: &Datagram) -> DatagramRow {
        let place = self.find(datagram);
        let now = Nullable::from(datagram.ts_ns);
        let mut row = DatagramRow {
            frame: datagram.frame,
            ts_ns: now,
            payload_bytes: datagram.payload_bytes,
            captured_payload_bytes: datagram.captured_payload_bytes,
            fragments: datagram.fragments,
            ip_id: datagram.ip.id,
            ttl: datagram.ip.ttl,
            path: datagram.path,
            ..DatagramRow::default()
        };
        if let Some(flow) = self.live.get_mut(place) {
            row.flow = flow.number;
            row.from_client = datagram.from_low == flow.client_is_low;
            let [client, server] = &mut flow.last_ts_ns;
            let (own, other) = if row.from_client { (client, server) } else { (server, client) };
            row.since_previous_ns = now.since(*own);
            row.since_other_ns = now.since(*other);
            *own = now;
            let figures = &mut flow.figures;
            let (buckets, sizes) = (figures.buckets(), figures.sizes());
            figures.add(&row, !self.too_many_sizes);
            self.buckets = self.buckets + figures.buckets() - buckets;
            self.sizes = self.sizes + figures.sizes() - sizes;
        }
        self.stay_within_bounds();
        row
    }

    /// Keeps buckets and sizes within their limits. If there are too many buckets, they become wider until at most half
    /// of the limit is used. If there are too many sizes, all sizes are removed.
    fn stay_within_bounds(&mut self) {
        if self.buckets > MAX_BUCKETS {
            while self.buckets > MAX_BUCKETS / 2 && self.widened_bits < BUCKET_BITS {
                self.widened_bits += 1;
                self.live.iter_mut().for_each(|flow| flow.figures.widen(self.widened_bits));
                self.buckets = self.live.iter().map(|flow| flow.figures.buckets()).sum();
            }
        }
        if self.sizes > MAX_SIZES {
            self.too_many_sizes = true;
            self.sizes = 0;
            self.live.iter_mut().for_each(|flow| flow.figures.forget_sizes());
        }
    }

    /// The rows of closed flows if there are enough to emit, otherwise `None`.
    pub fn take_closed(&mut self) -> Option<Vec<FlowRow>> {
        (self.closed.len() >= CLOSED_ROWS).then(|| std::mem::replace(&mut self.closed, Vec::with_capacity(CLOSED_ROWS)))
    }

    /// Some of the remaining rows at the end of the capture, or `None` if there are no more.
    pub fn take_rest(&mut self) -> Option<Vec<FlowRow>> {
        let some = self.live.len().saturating_sub(CLOSED_ROWS);
        let knows_sizes = !self.too_many_sizes;
        self.closed.extend(self.live.drain(some..).map(|flow| flow.row(knows_sizes)));
        Some(std::mem::take(&mut self.closed)).filter(|rows| !rows.is_empty())
    }

    /// The index of the datagram's flow. If the flow does not exist yet, it is opened.
    fn find(&mut self, datagram: &Datagram) -> usize {
        let hash = self.hasher.hash_one(datagram.key);
        let same = |at: &u32| self.live.get(*at as usize).is_some_and(|flow| flow.key == datagram.key);
        if let Some(found) = self.places.find(hash, same) {
            return *found as usize;
        }
        let number = self.count;
        self.count += 1;
        let mut figures = FlowFigures::default();
        figures.widen(self.widened_bits);
        let (key, client_is_low) = (datagram.key, datagram.from_low);
        let flow = Flow { key, number, client_is_low, last_ts_ns: Default::default(), figures };
        let place = if self.live.len() < MAX_LIVE { self.live.len() } else { self.oldest() };
        match self.live.get_mut(place) {
            Some(old) => {
                let closed = std::mem::replace(old, flow);
                self.close(place, closed);
            }
            None => self.live.push(flow),
        }
        let (live, hasher) = (&self.live, &self.hasher);
        let rehash = |at: &u32| live.get(*at as usize).map_or(0, |flow| hasher.hash_one(flow.key));
        self.places.insert_unique(hash, place as u32, rehash);
        place
    }

    /// The index of the flow with the longest silence among the next few flows.
    fn oldest(&mut self) -> usize {
        let places = (0..CANDIDATES).map(|step| (self.next_candidate + step) % self.live.len());
        let place = places.min_by_key(|at| self.live.get(*at).and_then(Flow::last_ts_ns)).unwrap_or(0);
        self.next_candidate = (place + 1) % self.live.len();
        place
    }

    /// Closes a flow to make room for another one.
    fn close(&mut self, place: usize, flow: Flow) {
        self.closed_early += 1;
        self.buckets -= flow.figures.buckets();
        self.sizes -= flow.figures.sizes();
        let hash = self.hasher.hash_one(flow.key);
        if let Ok(entry) = self.places.find_entry(hash, |at| *at as usize == place) {
            entry.remove();
        }
        self.closed.push(flow.row(!self.too_many_sizes));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::{FlowRow, Flows, MAX_BUCKETS, MAX_SIZES};
    use crate::wire::{Datagram, FlowKey};

    /// A datagram to port 53.
    fn datagram(port: u16, ts_ns: i64, payload_bytes: u32) -> Datagram {
        let host = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        let key = FlowKey::between([(host(1), port), (host(2), 53)]);
        Datagram { key, from_low: true, ts_ns: Some(ts_ns), payload_bytes, fragments: 1, ..Datagram::default() }
    }

    /// The rows of all flows in order of their numbers.
    fn rows(mut flows: Flows) -> Vec<FlowRow> {
        let mut rows: Vec<_> = std::iter::from_fn(|| flows.take_rest()).flatten().collect();
        rows.sort_by_key(|row| row.flow);
        rows
    }

    #[test]
    fn different_sizes_are_counted_unless_there_are_too_many() {
        for (sizes, counted) in [(MAX_SIZES, Some(MAX_SIZES / 2)), (MAX_SIZES + 2, None)] {
            let mut flows = Flows::default();
            for size in 0..sizes as u32 {
                flows.take(&datagram((size % 2) as u16, 0, size));
            }
            let found: Vec<_> = rows(flows).iter().map(|row| row.directions[0].distinct_sizes).collect();
            assert_eq!(found, [counted; 2]);
        }
    }

    #[test]
    fn quantiles_of_many_gaps_are_less_exact_and_take_bounded_memory() {
        let mut flows = Flows::default();
        let mut now_ns = 0;
        for step in 0..4 * MAX_BUCKETS as i64 {
            now_ns += 1_000_000 + 1_000 * step;
            flows.take(&datagram(1, now_ns, 9));
            assert!(flows.buckets <= MAX_BUCKETS);
        }
        assert!(flows.widened_bits > 0);
        let width = 0.001 * f64::from(1 << flows.widened_bits);
        let [row] = rows(flows).try_into().unwrap();
        let (found, expected) = (row.directions[0].gap.p50_ns.value() as f64, 1e6 + 1e3 * 2.0 * MAX_BUCKETS as f64);
        assert!((found - expected).abs() < expected * width, "{found} is not {expected} within {width}");
    }

    #[test]
    fn each_flow_has_one_row() {
        let mut flows = Flows::default();
        for number in 0..10_000 {
            flows.take(&datagram(number % 5_000, number.into(), 1));
        }
        let rows = rows(flows);
        assert!(rows.iter().map(|row| row.flow).eq(0..5_000));
        assert!(rows.iter().all(|row| row.directions[0].datagrams == 2));
    }
}
