//! The flow table: the connections that are followed at a time, by their endpoints. They are found, opened, and closed when they are
//! over.
//!
//! A connection that is closed is handed out and forgotten: a segment that still comes for it would open another one,
//! where Wireshark counts it to the first. So nothing is closed while there are few at a time, and beyond that only what
//! by TCP's own times can send no more, was silent for hours, or has to make room. One whose ports are used again gets
//! no more segments in any case, and is closed at once.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::connection::Connection;
use super::only::Only;
use super::rows::{ClosedBy, ConnectionRow, SegmentSink};
use super::times::{BUCKET_BITS, MOST_BUCKETS};
use crate::accounts::Accounts;
use crate::connection::Revisions;
use crate::nullable::Nullable;
use crate::wire::Segment;

/// Most connections that are followed at a time, by all tables together: about 520 MB, and 300 MB where they have ended. Past it, for
/// each new one an old one is closed.
const MAX_LIVE: usize = 1 << 17;
/// While there are fewer at a time (about 65 MB), by all tables together, none is closed before the capture ends.
const FEW: usize = 1 << 14;
/// What one of several tables has beyond its even part of [`FEW`], because endpoints are not divided evenly: six standard deviations
/// of a random division into eight.
const UNEVEN_PART: usize = 8;
/// One that has ended and was silent for so long is closed: twice the maximum segment lifetime of 2 minutes, the wait
/// after which no segment of it can be on its way any more (RFC 9293, 3.4.2 and 3.6.1).
const TIME_WAIT_NS: i64 = 240_000_000_000;
/// One that has not ended is closed when it was silent for so long: 2 hours and 4 minutes, what a translator has to keep
/// an established connection for, because keepalives come every two hours (RFC 5382, REQ-5).
const IDLE_NS: i64 = 7_440_000_000_000;
/// Connections that are looked at for that whenever one is opened: so all are, before twice as many have come.
const SWEPT: usize = 2;
/// Flows whose place is kept at hand, in 64 KB: the table of all of them does not fit a core's caches.
const LATELY: usize = 1 << 13;
/// Rows of closed connections handed out at a time.
const CLOSED_ROWS: usize = 4096;
/// Of so many neighbours the one to close is chosen: one that has ended before one that has not, then the one silent
/// longest. Among thousands of idle connections a sample finds one as good as the oldest (a heuristic).
const CANDIDATES: usize = 32;
/// Where room is needed, one that has ended and was silent for so long is closed without looking further (a heuristic:
/// stray segments of a close come within a round trip or two).
const OVER_NS: i64 = 1_000_000_000;

/// Whether accounts are kept of connections, which take most of the time and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accounting {
    /// They are.
    #[default]
    Kept,
    /// They are not: connections have no rows, and departures tell nothing of their waits.
    Omitted,
}

/// The connections of a capture, by their endpoints.
#[derive(Debug, Default)]
pub struct Connections {
    hasher: RandomState,
    /// Flow → place of its newest connection.
    flows: HashTable<u32>,
    /// The same of those that came lately, by the low bits of the hash, with its high ones: a later one takes the place of an
    /// earlier one. A wrong one is told by these, because to look at its connection would take memory in that is far away.
    lately: Vec<(u32, u32)>,
    live: Slabs,
    latest: usize,
    count: usize,
    /// Number of the next connection.
    next: u32,
    /// They are those of one of 2^bits flow tables, which share the limits below.
    shared_bits: u32,
    /// Places whose connection was closed, and not yet taken by another.
    vacant: Vec<u32>,
    /// Rows of connections that were closed.
    closed: Vec<ConnectionRow>,
    closed_for_room: u64,
    closed_idle: u64,
    /// Where the search for some to close goes on.
    hand: usize,
    accounts: Accounting,
    /// Buckets of times, of all connections together, and by how many bits they are wider than at first.
    buckets: usize,
    blurred_bits: u32,
    /// Connections known from a pass before, if only some are wanted.
    only: Option<Arc<Only>>,
    revisions: Revisions,
}

impl Connections {
    /// Number of connections seen.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// True before the first segment.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many had not ended when they were closed to make room.
    #[must_use]
    pub fn closed_for_room(&self) -> u64 {
        self.closed_for_room
    }

    /// How many had not ended when they were closed because of a long silence.
    #[must_use]
    pub fn closed_idle(&self) -> u64 {
        self.closed_idle
    }

    /// All connections, or only those.
    #[must_use]
    pub fn of(only: Option<Arc<Only>>, accounts: Accounting) -> Self {
        Self::one_of(0, only, accounts)
    }

    /// One of 2^`shared_bits` flow tables that share the limits on connections followed at a time.
    pub(crate) fn one_of(shared_bits: u32, only: Option<Arc<Only>>, accounts: Accounting) -> Self {
        Self { shared_bits, accounts, only, lately: vec![(0, 0); LATELY >> shared_bits], ..Self::default() }
    }

    /// The next connection gets this number.
    #[inline]
    pub(crate) fn number_from(&mut self, next: u32) {
        self.next = next;
    }

    /// Takes one segment in, concludes, and adds its row to `rows`.
    #[inline]
    pub fn take(&mut self, segment: &Segment, rows: &mut impl SegmentSink) {
        let number = match &self.only {
            None => None,
            Some(only) => match only.number(&segment.key, segment.frame) {
                None => return,
                number => number,
            },
        };
        let at = self.find(segment, number);
        self.latest = at;
        if let Some(connection) = self.live.get_mut(at) {
            match self.accounts {
                Accounting::Kept => {
                    let before = connection.times.len();
                    connection.take::<true>(segment, &mut self.revisions, rows);
                    self.buckets = self.buckets + connection.times.len() - before;
                    if connection.has_ended() {
                        connection.end();
                    }
                }
                Accounting::Omitted => connection.take::<false>(segment, &mut self.revisions, rows),
            }
        }
        if self.buckets > MOST_BUCKETS >> self.shared_bits {
            self.blur();
        }
    }

    /// Makes the buckets of times wider, until there are half as many as there may be.
    #[cold]
    fn blur(&mut self) {
        while self.buckets > (MOST_BUCKETS / 2) >> self.shared_bits && self.blurred_bits < BUCKET_BITS {
            self.blurred_bits += 1;
            self.buckets = 0;
            for connection in self.live.slabs.iter_mut().flatten().filter(|connection| !connection.handed_out) {
                connection.times.blur(self.blurred_bits);
                self.buckets += connection.times.len();
            }
        }
    }

    /// What later segments showed of earlier ones so far.
    #[must_use]
    pub fn revisions(&self) -> &Revisions {
        &self.revisions
    }

    /// Hands out what later segments showed of earlier ones.
    #[must_use]
    pub fn take_revisions(&mut self) -> Revisions {
        std::mem::take(&mut self.revisions)
    }

    /// The rows of connections that were closed, once they are many.
    pub fn take_closed(&mut self) -> Option<Vec<ConnectionRow>> {
        let rows = CLOSED_ROWS >> self.shared_bits;
        (self.closed.len() >= rows).then(|| std::mem::replace(&mut self.closed, Vec::with_capacity(rows)))
    }

    /// At the end: some of the rows that were not yet handed out, `None` if there are no more. Gives their memory back as
    /// it goes.
    pub fn take_rest(&mut self) -> Option<Vec<ConnectionRow>> {
        if !self.closed.is_empty() {
            return Some(std::mem::take(&mut self.closed));
        }
        let mut slab = std::mem::take(self.live.slabs.iter_mut().find(|slab| !slab.is_empty())?);
        Some(slab.iter_mut().filter(|connection| !connection.handed_out).filter_map(Connection::row).collect())
    }

    /// The place of the segment's connection, which is opened if need be; it has `number`, if that is known.
    #[inline]
    fn find(&mut self, segment: &Segment, number: Option<u32>) -> usize {
        let live = &self.live;
        let has_key = |at: usize| live.get(at).is_some_and(|connection| connection.key == segment.key);
        let takes_it = |connection: &Connection| {
            !connection.handed_out
                && number.map_or_else(|| !connection.is_reused_by(segment), |number| connection.number == number)
        };
        let goes_on = |at: usize| live.get(at).is_some_and(takes_it);
        if has_key(self.latest) && goes_on(self.latest) {
            return self.latest;
        }
        let hash = self.hasher.hash_one(segment.key);
        let (slot, tag) = (hash as usize % (LATELY >> self.shared_bits), (hash >> 32) as u32);
        if let Some((of, at)) = self.lately.get(slot).map(|(of, at)| (*of, *at as usize))
            && of == tag
            && has_key(at)
            && goes_on(at)
        {
            return at;
        }
        let place = match self.flows.find(hash, |at| has_key(*at as usize)).map(|at| *at as usize) {
            Some(found) if goes_on(found) => found,
            found => self.open(segment, hash, found, number),
        };
        if let Some(entry) = self.lately.get_mut(slot) {
            *entry = (tag, place as u32);
        }
        place
    }

    /// Begins a new connection; `before` is the place of the one that had the same endpoints.
    #[cold]
    fn open(&mut self, segment: &Segment, hash: u64, before: Option<usize>, number: Option<u32>) -> usize {
        let accounts = (self.accounts == Accounting::Kept).then(Accounts::default);
        let connection = Connection::new(segment, number.unwrap_or(self.next), accounts);
        self.next = self.next.wrapping_add(1);
        self.count += 1;
        if let Some(before) = before {
            self.close(before, ClosedBy::Reuse);
        } else if self.live.len - self.vacant.len() >= self.few() {
            self.sweep(segment.ts_ns.into());
        }
        let place = match self.vacant.pop() {
            Some(place) => place as usize,
            None if self.live.len < MAX_LIVE >> self.shared_bits => self.live.len,
            None => self.make_room(segment.ts_ns.into()),
        };
        self.live.put(place, connection);
        let (live, hasher) = (&self.live, &self.hasher);
        let rehash = |at: &u32| live.get(*at as usize).map_or(0, |connection| hasher.hash_one(connection.key));
        self.flows.insert_unique(hash, place as u32, rehash);
        place
    }

    /// So many at a time that some are closed before the capture ends.
    fn few(&self) -> usize {
        let even = FEW >> self.shared_bits;
        if self.shared_bits > 0 { even + even / UNEVEN_PART } else { even }
    }

    /// Closes those of the next few connections that are over.
    fn sweep(&mut self, now: Nullable) {
        for _ in 0..SWEPT {
            self.hand = (self.hand + 1) % self.live.len;
            let is_over = |connection: &Connection| {
                let bound_ns = if connection.has_ended() { TIME_WAIT_NS } else { IDLE_NS };
                !connection.handed_out && connection.silent_ns(now) >= bound_ns
            };
            if self.live.get(self.hand).is_some_and(is_over) {
                self.close(self.hand, ClosedBy::Idle);
            }
        }
    }

    /// Closes the most dispensable of the next few connections and gives its place.
    fn make_room(&mut self, now: Nullable) -> usize {
        let places = (0..CANDIDATES).map(|step| (self.hand + step) % self.live.len);
        let dispensable =
            |at: &usize| self.live.get(*at).map(|connection| (connection.has_ended(), connection.silent_ns(now)));
        let over = |at: &usize| dispensable(at).is_some_and(|(ended, silent_ns)| ended && silent_ns >= OVER_NS);
        let place = places.clone().find(over).or_else(|| places.max_by_key(dispensable)).unwrap_or(0);
        self.hand = (place + 1) % self.live.len;
        self.close(place, ClosedBy::Room);
        self.vacant.pop().map_or(place, |place| place as usize)
    }

    /// Hands a connection out; `reason` tells why, if it had not ended. Its place is vacant then.
    fn close(&mut self, place: usize, reason: ClosedBy) {
        let Some(connection) = self.live.get_mut(place) else { return };
        let ended = connection.has_ended();
        self.buckets -= connection.times.len();
        let row = connection.row();
        connection.handed_out = true;
        match reason {
            ClosedBy::Room if !ended => self.closed_for_room += 1,
            ClosedBy::Idle if !ended => self.closed_idle += 1,
            _ => {}
        }
        self.closed.extend(row.map(|row| if ended { row } else { ConnectionRow { closed_by: reason, ..row } }));
        let hash = self.hasher.hash_one(connection.key);
        if let Ok(entry) = self.flows.find_entry(hash, |at| *at as usize == place) {
            entry.remove();
        }
        self.vacant.push(place as u32);
    }
}

/// A list that grows without moving what it holds, and can be given back in parts.
#[derive(Debug, Default)]
struct Slabs {
    slabs: Vec<Vec<Connection>>,
    len: usize,
}

impl Slabs {
    /// Connections per slab: under a megabyte.
    const SIZE: usize = 1024;

    #[inline]
    fn get(&self, at: usize) -> Option<&Connection> {
        self.slabs.get(at / Self::SIZE)?.get(at % Self::SIZE)
    }

    #[inline]
    fn get_mut(&mut self, at: usize) -> Option<&mut Connection> {
        self.slabs.get_mut(at / Self::SIZE)?.get_mut(at % Self::SIZE)
    }

    /// Puts a connection at the end, or in the place of another.
    fn put(&mut self, at: usize, connection: Connection) {
        if let Some(place) = self.get_mut(at) {
            *place = connection;
            return;
        }
        if self.len.is_multiple_of(Self::SIZE) {
            self.slabs.push(Vec::with_capacity(Self::SIZE));
        }
        if let Some(slab) = self.slabs.last_mut() {
            slab.push(connection);
            self.len += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::{Accounting, Connections, FEW, IDLE_NS, MOST_BUCKETS};
    use crate::flows::SegmentRow;
    use crate::wire::{FlowKey, Segment, TcpFlags};

    fn ack(flow: usize, ts_ns: i64) -> Segment {
        let host = |bits: usize| IpAddr::V4(Ipv4Addr::from_bits(bits as u32));
        let key = FlowKey::between([(host(flow), 1024), (host(1 << 31), 80)]);
        Segment { ts_ns: Some(ts_ns), key, from_low: true, flags: TcpFlags(TcpFlags::ACK), ..Segment::default() }
    }

    /// Data of 100 bytes, or its ACK after `lag_ns`.
    fn exchange(flow: usize, number: i64, lag_ns: i64) -> [Segment; 2] {
        let (data, answer) = (ack(flow, number * 1_000_000_000), ack(flow, number * 1_000_000_000 + lag_ns));
        let sent = number as u32 * 100;
        [
            Segment { seq: sent + 1, payload_bytes: 100, captured_payload_bytes: 100, ..data },
            Segment { from_low: false, ack: sent + 101, ..answer },
        ]
    }

    #[test]
    fn quantiles_of_many_times_are_less_exact_and_take_bounded_memory() {
        let mut connections = Connections::of(None, Accounting::Kept);
        let mut rows = Vec::<SegmentRow>::new();
        let lag_ns = |number: i64| (1_000_000.0 * 1.01_f64.powi(number as i32)) as i64;
        for number in 0..200 {
            for flow in 0..10 {
                for segment in exchange(flow, number, lag_ns(number)) {
                    connections.take(&segment, &mut rows);
                    assert!(connections.buckets <= MOST_BUCKETS);
                }
            }
        }
        assert!(connections.blurred_bits > 0);
        let width = 0.001 * f64::from(1 << connections.blurred_bits);
        let rows = connections.take_rest().unwrap();
        assert_eq!(rows.len(), 10);
        for row in rows {
            let found = row.times.map(|times| times.rtt.p50_ns.get()).into_iter().flatten().next().unwrap() as f64;
            let expected = lag_ns(99) as f64;
            assert!((found - expected).abs() <= expected * (0.01 + width), "{found} {expected}");
        }
    }

    /// Its place is still vacant then, and among those that came lately.
    #[test]
    fn what_comes_for_a_connection_closed_after_hours_of_silence_opens_another() {
        let mut connections = Connections::of(None, Accounting::Omitted);
        let mut rows = Vec::<SegmentRow>::new();
        for flow in (0..FEW).chain([1]) {
            connections.take(&ack(flow, 0), &mut rows);
        }
        connections.take(&ack(FEW, IDLE_NS), &mut rows);
        assert_eq!((connections.len(), connections.closed_idle()), (FEW + 1, 2));
        connections.take(&ack(1, IDLE_NS), &mut rows);
        assert_eq!((connections.len(), connections.closed_idle()), (FEW + 2, 2));
        let numbers: Vec<_> = rows.iter().skip(FEW).map(|row| row.conn as usize).collect();
        assert_eq!(numbers, [1, FEW, FEW + 1]);
    }
}
