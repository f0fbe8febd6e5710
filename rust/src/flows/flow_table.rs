//! The tracked connections. The flow table finds connections by their endpoints, and opens and closes connections.
//!
//! If a connection is closed too early, its later segments open a new connection, whereas Wireshark assigns these
//! segments to the old connection. While few connections are tracked, none is closed before the end of the capture.
//!
//! If many connections are tracked, a connection is closed for any of these reasons:
//! - TCP's time limits forbid further segments.
//! - The connection was silent for hours.
//! - The connection is over (all data and the FINs are acknowledged), and many others are over too.
//! - Room is needed.
//!
//! A connection is also closed as soon as its ports are reused, because it cannot get more segments.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::connection::Connection;
use super::histogram::{BUCKET_BITS, MAX_BUCKETS};
use super::only::Only;
use super::rows::{ClosedBy, ConnectionRow, SegmentSink};
use crate::accounts::Accounts;
use crate::connection::Revisions;
use crate::nullable::Nullable;
use crate::wire::Segment;

/// Maximum number of tracked connections in all tables together (about 520 MB). A further connection closes an old one.
const MAX_LIVE: usize = 1 << 17;
/// While fewer connections are tracked in all tables together (about 65 MB), none is closed before the end of the
/// capture.
const KEEP_ALL_BELOW: usize = 1 << 14;
/// Connections are not spread evenly over several tables, so each table can exceed its share of [`KEEP_ALL_BELOW`] by
/// 1/8. If connections are divided randomly among eight tables, 1/8 of a share is six standard deviations.
const UNEVEN_PART: usize = 8;
/// A connection that has ended is closed after a silence of 4 minutes, which is twice the maximum segment lifetime.
/// After such a silence, no segment of the connection can be in flight (RFC 9293, 3.4.2 and 3.6.1).
const TIME_WAIT_NS: i64 = 240_000_000_000;
/// Number of ended connections that all tables together keep open (about 40 MB). While there are more, each ended
/// connection is closed after a silence of [`OVER_NS`].
const MAX_OVER: usize = 1 << 14;
/// A connection that has not ended is closed after a silence of 2 hours and 4 minutes. A NAT must keep an established
/// connection for this time, because keepalives are sent every two hours (RFC 5382, REQ-5).
const IDLE_NS: i64 = 7_440_000_000_000;
/// Number of connections to check for silence whenever a connection is opened. Two checks per new connection ensure
/// that every connection has been checked before the number of connections doubles.
const SWEPT: usize = 2;
/// Number of connections to check whenever a connection is opened while more than [`MAX_OVER`] connections are over.
const SWEPT_OF_MANY: usize = 8;
/// Number of flows in the lookup cache, which takes 64 KB. The table of all flows does not fit into a core's caches.
const RECENT_FLOWS: usize = 1 << 13;
/// Number of closed rows to emit at a time.
const CLOSED_ROWS: usize = 1024;
/// Number of adjacent connections to compare when room is needed. A connection that has ended is closed first. If none
/// has ended, the connection with the longest silence is closed. Among thousands of idle connections, the longest
/// silence of any 32 is about as long as the longest silence of all (a heuristic).
const CANDIDATES: usize = 32;
/// Minimum silence before an ended connection is closed, because more than [`MAX_OVER`] connections are over, or to
/// make room (a heuristic: the last stray segments arrive within one or two round trips of the close).
const OVER_NS: i64 = 1_000_000_000;

/// Whether a pass keeps accounts of connections. The accounts take most of the time and memory of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accounting {
    /// The pass keeps accounts.
    #[default]
    Kept,
    /// The pass keeps no accounts: connections have no rows, and segments have no waits.
    Omitted,
}

/// The connections of a capture.
#[derive(Debug, Default)]
pub struct Connections {
    hasher: RandomState,
    /// Index of each flow's newest connection, found by the flow's endpoints.
    flows: HashTable<u32>,
    /// A cache of recently used flows. The low bits of a flow's hash select the entry. The entry contains the high bits
    /// of the hash and the index of the connection. A comparison of the high bits avoids most needless loads from main
    /// memory.
    recent_flows: Vec<(u32, u32)>,
    live: Slabs,
    latest: usize,
    count: usize,
    /// Number of the next connection.
    next: u32,
    /// Binary logarithm of the number of tables that share the limits equally.
    shared_bits: u32,
    /// Indices of free places in `live`.
    vacant: Vec<u32>,
    over: usize,
    closed: Vec<ConnectionRow>,
    closed_for_room: u64,
    closed_idle: u64,
    /// Index of the next candidate for closing.
    next_candidate: usize,
    accounts: Accounting,
    /// Number of histogram buckets in all connections, and number of low bits that bucket numbers omit.
    buckets: usize,
    widened_bits: u32,
    /// The requested connections of an earlier pass, or `None` for all connections.
    only: Option<Arc<Only>>,
    revisions: Revisions,
}

impl Connections {
    /// Number of connections so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether no connection has been opened yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of connections that were closed to make room before they had ended.
    #[must_use]
    pub fn closed_for_room(&self) -> u64 {
        self.closed_for_room
    }

    /// Number of connections that were closed after a long silence before they had ended.
    #[must_use]
    pub fn closed_idle(&self) -> u64 {
        self.closed_idle
    }

    /// A table for all connections, or only for those in `only`.
    #[must_use]
    pub fn of(only: Option<Arc<Only>>, accounts: Accounting) -> Self {
        Self::one_of(0, only, accounts)
    }

    /// One of 2^`shared_bits` flow tables. Each flow table has an equal share of the limits.
    pub(crate) fn one_of(shared_bits: u32, only: Option<Arc<Only>>, accounts: Accounting) -> Self {
        Self { shared_bits, accounts, only, recent_flows: vec![(0, 0); RECENT_FLOWS >> shared_bits], ..Self::default() }
    }

    /// Sets the number of the next connection.
    #[inline]
    pub(crate) fn number_from(&mut self, next: u32) {
        self.next = next;
    }

    /// Processes one segment and adds its row to `rows`.
    #[inline]
    ///
    /// ```
    /// use tcptrace_lab_core::connection::Kind;
    /// use tcptrace_lab_core::flows::{Accounting, Connections};
    /// use tcptrace_lab_core::wire::{Segment, TcpFlags};
    ///
    /// let (mut connections, mut rows) = (Connections::of(None, Accounting::default()), Vec::new());
    /// let flags = TcpFlags(TcpFlags::SYN);
    /// for ts_ns in [0, 1_000_000_000] {
    ///     connections.take(&Segment { flags, ts_ns: Some(ts_ns), ..Segment::default() }, &mut rows);
    /// }
    /// assert_eq!([rows[0].kind, rows[1].kind], [Kind::New, Kind::SynRetransmit]);
    /// ```
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
                }
                Accounting::Omitted => connection.take::<false>(segment, &mut self.revisions, rows),
            }
            if connection.has_ended() && connection.end() {
                self.over += 1;
                rows.over(connection.number);
            }
        }
        if self.buckets > MAX_BUCKETS >> self.shared_bits {
            self.widen();
        }
    }

    /// Makes the histogram buckets wider until at most half of the limit is used.
    #[cold]
    fn widen(&mut self) {
        while self.buckets > (MAX_BUCKETS / 2) >> self.shared_bits && self.widened_bits < BUCKET_BITS {
            self.widened_bits += 1;
            self.buckets = 0;
            for connection in self.live.slabs.iter_mut().flatten().filter(|connection| !connection.handed_out) {
                connection.times.widen(self.widened_bits);
                self.buckets += connection.times.len();
            }
        }
    }

    /// The revised kinds of earlier segments so far.
    #[must_use]
    pub fn revisions(&self) -> &Revisions {
        &self.revisions
    }

    /// Removes and returns the revised kinds of earlier segments.
    #[must_use]
    pub fn take_revisions(&mut self) -> Revisions {
        std::mem::take(&mut self.revisions)
    }

    /// The rows of closed connections if there are enough to emit, otherwise `None`.
    pub fn take_closed(&mut self) -> Option<Vec<ConnectionRow>> {
        let rows = CLOSED_ROWS >> self.shared_bits;
        (self.closed.len() >= rows).then(|| std::mem::replace(&mut self.closed, Vec::with_capacity(rows)))
    }

    /// Some of the remaining rows at the end of the capture, or `None` if no rows remain. The call frees the memory of
    /// these connections.
    pub fn take_rest(&mut self) -> Option<Vec<ConnectionRow>> {
        if !self.closed.is_empty() {
            return Some(std::mem::take(&mut self.closed));
        }
        let mut slab = std::mem::take(self.live.slabs.iter_mut().find(|slab| !slab.is_empty())?);
        Some(slab.iter_mut().filter(|connection| !connection.handed_out).filter_map(Connection::row).collect())
    }

    /// The index of the segment's connection. If the connection does not exist yet, it is opened, with the given
    /// `number` if there is one.
    #[inline]
    fn find(&mut self, segment: &Segment, number: Option<u32>) -> usize {
        let live = &self.live;
        let has_key = |at: usize| live.get(at).is_some_and(|connection| connection.key == segment.key);
        let takes_segment = |connection: &Connection| {
            !connection.handed_out
                && number.map_or_else(|| !connection.is_reused_by(segment), |number| connection.number == number)
        };
        let is_current = |at: usize| live.get(at).is_some_and(takes_segment);
        if has_key(self.latest) && is_current(self.latest) {
            return self.latest;
        }
        let hash = self.hasher.hash_one(segment.key);
        let (slot, tag) = (hash as usize % (RECENT_FLOWS >> self.shared_bits), (hash >> 32) as u32);
        if let Some((of, at)) = self.recent_flows.get(slot).map(|(of, at)| (*of, *at as usize))
            && of == tag
            && has_key(at)
            && is_current(at)
        {
            return at;
        }
        let place = match self.flows.find(hash, |at| has_key(*at as usize)).map(|at| *at as usize) {
            Some(found) if is_current(found) => found,
            found => self.open(segment, hash, found, number),
        };
        if let Some(entry) = self.recent_flows.get_mut(slot) {
            *entry = (tag, place as u32);
        }
        place
    }

    /// Opens a connection. `before` is the index of the previous connection between the same endpoints.
    #[cold]
    fn open(&mut self, segment: &Segment, hash: u64, before: Option<usize>, number: Option<u32>) -> usize {
        let accounts = (self.accounts == Accounting::Kept).then(Accounts::default);
        let connection = Connection::new(segment, number.unwrap_or(self.next), accounts);
        self.next = self.next.wrapping_add(1);
        self.count += 1;
        if let Some(before) = before {
            self.close(before, ClosedBy::Reuse);
        } else if self.live.len - self.vacant.len() >= self.keep_all_below() {
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

    /// While fewer connections are tracked in this table, none is closed before the end of the capture.
    fn keep_all_below(&self) -> usize {
        let even = KEEP_ALL_BELOW >> self.shared_bits;
        if self.shared_bits > 0 { even + even / UNEVEN_PART } else { even }
    }

    /// Checks the next few connections, and closes those with a long silence.
    fn sweep(&mut self, now: Nullable) {
        let many = self.over > MAX_OVER >> self.shared_bits;
        let (swept, over_ns) = if many { (SWEPT_OF_MANY, OVER_NS) } else { (SWEPT, TIME_WAIT_NS) };
        for _ in 0..swept {
            self.next_candidate = (self.next_candidate + 1) % self.live.len;
            let is_over = |connection: &Connection| {
                let bound_ns = match (connection.over, connection.has_ended()) {
                    (true, _) => over_ns,
                    (false, true) => TIME_WAIT_NS,
                    (false, false) => IDLE_NS,
                };
                !connection.handed_out && connection.silent_ns(now) >= bound_ns
            };
            if self.live.get(self.next_candidate).is_some_and(is_over) {
                self.close(self.next_candidate, ClosedBy::Idle);
            }
        }
    }

    /// Closes one of the next few connections: a connection that has ended, or else the connection with the longest
    /// silence. Returns a free index.
    fn make_room(&mut self, now: Nullable) -> usize {
        let places = (0..CANDIDATES).map(|step| (self.next_candidate + step) % self.live.len);
        let dispensable =
            |at: &usize| self.live.get(*at).map(|connection| (connection.has_ended(), connection.silent_ns(now)));
        let over = |at: &usize| dispensable(at).is_some_and(|(ended, silent_ns)| ended && silent_ns >= OVER_NS);
        let place = places.clone().find(over).or_else(|| places.max_by_key(dispensable)).unwrap_or(0);
        self.next_candidate = (place + 1) % self.live.len;
        self.close(place, ClosedBy::Room);
        self.vacant.pop().map_or(place, |place| place as usize)
    }

    /// Closes a connection and stores its row. `reason` matters only if the connection has not ended by itself.
    fn close(&mut self, place: usize, reason: ClosedBy) {
        let Some(connection) = self.live.get_mut(place) else { return };
        let ended = connection.has_ended();
        self.buckets -= connection.times.len();
        self.over -= usize::from(std::mem::take(&mut connection.over));
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

/// A list that does not move its connections when it grows, and whose memory can be freed in parts.
#[derive(Debug, Default)]
struct Slabs {
    slabs: Vec<Vec<Connection>>,
    len: usize,
}

impl Slabs {
    /// Number of connections per slab. A slab takes less than 1 MB.
    const SIZE: usize = 1024;

    #[inline]
    fn get(&self, at: usize) -> Option<&Connection> {
        self.slabs.get(at / Self::SIZE)?.get(at % Self::SIZE)
    }

    #[inline]
    fn get_mut(&mut self, at: usize) -> Option<&mut Connection> {
        self.slabs.get_mut(at / Self::SIZE)?.get_mut(at % Self::SIZE)
    }

    /// Stores a connection at index `at`, or appends the connection if `at` is beyond the end.
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

    use super::{Accounting, Connections, IDLE_NS, KEEP_ALL_BELOW, MAX_BUCKETS, MAX_OVER, OVER_NS, SWEPT_OF_MANY};
    use crate::flows::SegmentRow;
    use crate::wire::{FlowKey, Segment, TcpFlags};

    fn ack(flow: usize, ts_ns: i64) -> Segment {
        let host = |bits: usize| IpAddr::V4(Ipv4Addr::from_bits(bits as u32));
        let key = FlowKey::between([(host(flow), 1024), (host(1 << 31), 80)]);
        Segment { ts_ns: Some(ts_ns), key, from_low: true, flags: TcpFlags(TcpFlags::ACK), ..Segment::default() }
    }

    /// A segment with 100 bytes of data, and its ACK after `lag_ns`.
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
                    assert!(connections.buckets <= MAX_BUCKETS);
                }
            }
        }
        assert!(connections.widened_bits > 0);
        let width = 0.001 * f64::from(1 << connections.widened_bits);
        let rows = connections.take_rest().unwrap();
        assert_eq!(rows.len(), 10);
        for row in rows {
            let found = row.times.map(|times| times.rtt.p50_ns.get()).into_iter().flatten().next().unwrap() as f64;
            let expected = lag_ns(99) as f64;
            assert!((found - expected).abs() <= expected * (0.01 + width), "{found} {expected}");
        }
    }

    /// A handshake, the FINs of both hosts, and a last ACK or RST.
    fn whole(flow: usize, is_reset: bool) -> [Segment; 5] {
        let client = |flags, seq, ack_number| Segment { flags: TcpFlags(flags), seq, ack: ack_number, ..ack(flow, 0) };
        let server = |flags, seq, ack_number| Segment { from_low: false, ..client(flags, seq, ack_number) };
        let last = if is_reset { TcpFlags::RST } else { TcpFlags::ACK };
        [
            client(TcpFlags::SYN, 0, 0),
            server(TcpFlags::SYN | TcpFlags::ACK, 0, 1),
            client(TcpFlags::FIN | TcpFlags::ACK, 1, 1),
            server(TcpFlags::FIN | TcpFlags::ACK, 1, 2),
            client(last, 2, 2),
        ]
    }

    #[test]
    fn among_many_connections_that_are_over_one_is_closed_after_a_second_of_silence() {
        let closed = |is_reset, count, silent_ns| {
            let mut connections = Connections::of(None, Accounting::Omitted);
            let mut rows = Vec::<SegmentRow>::new();
            for segment in (0..count).flat_map(|flow| whole(flow, is_reset)) {
                connections.take(&segment, &mut rows);
            }
            connections.take(&ack(count, silent_ns), &mut rows);
            count + 1 + connections.vacant.len() - connections.live.len
        };
        let many = MAX_OVER + 1;
        assert_eq!(closed(false, many, OVER_NS), SWEPT_OF_MANY);
        assert_eq!(closed(false, many, OVER_NS - 1), 0);
        assert_eq!(closed(false, MAX_OVER, OVER_NS), 0);
        assert_eq!(closed(true, many, OVER_NS), 0);
    }

    /// The place of the closed connection is still free, and the cache of recent flows still refers to it.
    #[test]
    fn what_comes_for_a_connection_closed_after_hours_of_silence_opens_another() {
        let mut connections = Connections::of(None, Accounting::Omitted);
        let mut rows = Vec::<SegmentRow>::new();
        for flow in (0..KEEP_ALL_BELOW).chain([1]) {
            connections.take(&ack(flow, 0), &mut rows);
        }
        connections.take(&ack(KEEP_ALL_BELOW, IDLE_NS), &mut rows);
        assert_eq!((connections.len(), connections.closed_idle()), (KEEP_ALL_BELOW + 1, 2));
        connections.take(&ack(1, IDLE_NS), &mut rows);
        assert_eq!((connections.len(), connections.closed_idle()), (KEEP_ALL_BELOW + 2, 2));
        let numbers: Vec<_> = rows.iter().skip(KEEP_ALL_BELOW).map(|row| row.conn as usize).collect();
        assert_eq!(numbers, [1, KEEP_ALL_BELOW, KEEP_ALL_BELOW + 1]);
    }
}
