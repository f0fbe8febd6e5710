//! Groups UDP datagrams into flows. The first sender is the client. The row of each datagram holds the time since the
//! last datagram of its own host, and since the last one of the peer.

use std::hash::BuildHasher;
use std::net::IpAddr;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::nullable::Nullable;
use crate::wire::{Datagram, FlowKey};

/// One row of the datagrams table; `tcptrace_lab/schema/` defines each column.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // each is defined in `tcptrace_lab/schema/`
pub struct DatagramRow {
    pub frame: u64,
    pub ts_ns: Nullable,
    pub flow: u32,
    pub from_client: bool,
    pub payload_bytes: u32,
    pub captured_payload_bytes: u32,
    pub fragments: u16,
    pub since_previous_ns: Nullable,
    pub since_other_ns: Nullable,
    pub ip_id: Option<u16>,
    pub ttl: u8,
    pub path: u16,
}

/// One row of the flows table; `tcptrace_lab/schema/` defines each column.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // each is defined in `tcptrace_lab/schema/`
pub struct FlowRow {
    pub flow: u32,
    pub client: (IpAddr, u16),
    pub server: (IpAddr, u16),
}

/// Maximum number of flows tracked at a time: about 12 MB. Beyond it, each new flow closes an old one, whose
/// row is emitted.
const MAX_LIVE: usize = 1 << 17;
/// Number of closed rows emitted at a time.
const CLOSED_ROWS: usize = 4096;
/// Number of adjacent flows that are compared to close the longest silent one, as for connections.
const CANDIDATES: usize = 32;

#[derive(Debug)]
struct Flow {
    key: FlowKey,
    number: u32,
    client_is_low: bool,
    /// Time of the last datagram of the client and of the server.
    last_ts_ns: [Nullable; 2],
}

impl Flow {
    fn row(&self) -> FlowRow {
        let (low, high) = (self.key.low(), self.key.high());
        let (client, server) = if self.client_is_low { (low, high) } else { (high, low) };
        FlowRow { flow: self.number, client, server }
    }

    /// Time of the last datagram of either host.
    fn last_ts_ns(&self) -> Option<i64> {
        let [client, server] = self.last_ts_ns;
        client.get().max(server.get())
    }
}

/// The UDP flows of a capture, by their endpoints.
#[derive(Debug, Default)]
pub struct Flows {
    hasher: RandomState,
    /// Index of each flow in `live`, by its endpoints.
    places: HashTable<u32>,
    live: Vec<Flow>,
    count: u32,
    /// Rows of flows closed to make room.
    closed: Vec<FlowRow>,
    closed_early: u64,
    /// Where the search for a flow to close continues.
    next_candidate: usize,
}

impl Flows {
    /// Number of flows closed to make room. Later datagrams of such a flow count as another flow.
    #[must_use]
    pub fn closed_early(&self) -> u64 {
        self.closed_early
    }

    /// Takes one datagram. Returns its row.
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
        }
        row
    }

    /// The rows of flows closed to make room, once there are enough.
    pub fn take_closed(&mut self) -> Option<Vec<FlowRow>> {
        (self.closed.len() >= CLOSED_ROWS).then(|| std::mem::replace(&mut self.closed, Vec::with_capacity(CLOSED_ROWS)))
    }

    /// At the end, some of the remaining rows; `None` if there are no more.
    pub fn take_rest(&mut self) -> Option<Vec<FlowRow>> {
        let live = std::mem::take(&mut self.live);
        self.closed.extend(live.iter().map(Flow::row));
        Some(std::mem::take(&mut self.closed)).filter(|rows| !rows.is_empty())
    }

    /// Index of the datagram's flow; opens the flow if needed.
    fn find(&mut self, datagram: &Datagram) -> usize {
        let hash = self.hasher.hash_one(datagram.key);
        let same = |at: &u32| self.live.get(*at as usize).is_some_and(|flow| flow.key == datagram.key);
        if let Some(found) = self.places.find(hash, same) {
            return *found as usize;
        }
        let number = self.count;
        self.count += 1;
        let flow = Flow { key: datagram.key, number, client_is_low: datagram.from_low, last_ts_ns: Default::default() };
        let place = if self.live.len() < MAX_LIVE { self.live.len() } else { self.make_room() };
        match self.live.get_mut(place) {
            Some(closed) => *closed = flow,
            None => self.live.push(flow),
        }
        let (live, hasher) = (&self.live, &self.hasher);
        let rehash = |at: &u32| live.get(*at as usize).map_or(0, |flow| hasher.hash_one(flow.key));
        self.places.insert_unique(hash, place as u32, rehash);
        place
    }

    /// Closes the flow with the longest silence among the next few. Returns its index.
    fn make_room(&mut self) -> usize {
        let places = (0..CANDIDATES).map(|step| (self.next_candidate + step) % self.live.len());
        let place = places.min_by_key(|at| self.live.get(*at).and_then(Flow::last_ts_ns)).unwrap_or(0);
        self.next_candidate = (place + 1) % self.live.len();
        if let Some(flow) = self.live.get(place) {
            self.closed_early += 1;
            self.closed.push(flow.row());
            let hash = self.hasher.hash_one(flow.key);
            if let Ok(entry) = self.places.find_entry(hash, |at| *at as usize == place) {
                entry.remove();
            }
        }
        place
    }
}
