//! The connections that are followed at a time, by their endpoints: found, opened, and closed to make room.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::Connection;
use super::only::Only;
use super::revisions::Revisions;
use super::row::{ClosedBy, ConnectionRow, Nullable, SegmentRow};
use crate::wire::Segment;

/// Most connections that are followed at a time: about 350 MB. Past it, for each new one an old one is
/// closed and handed out; captures with fewer at a time are followed to the end, whatever their number.
const MAX_LIVE: usize = 1 << 17;
/// Rows of closed connections handed out at a time.
const CLOSED_ROWS: usize = 4096;
/// Of so many neighbours the one to close is chosen: one that has ended before one that has not, then the one silent
/// longest. Among thousands of idle connections a sample finds one as good as the oldest (a heuristic).
const CANDIDATES: usize = 32;
/// One that has ended and was silent for so long is closed without looking further (a heuristic: stray segments of a
/// close come within a round trip or two).
const OVER_NS: i64 = 1_000_000_000;

/// The connections of a capture, by their endpoints.
#[derive(Debug, Default)]
pub struct Connections {
    hasher: RandomState,
    /// Flow → place of its newest connection.
    flows: HashTable<u32>,
    live: Slabs,
    latest: usize,
    count: usize,
    /// Rows of connections that were closed to make room.
    closed: Vec<ConnectionRow>,
    closed_early: u64,
    /// Where the search for one to close goes on.
    hand: usize,
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
    pub fn closed_early(&self) -> u64 {
        self.closed_early
    }

    /// All connections, or only those.
    #[must_use]
    pub fn of(only: Option<Arc<Only>>) -> Self {
        Self { only, ..Self::default() }
    }

    /// Takes one segment in, concludes, and adds its row to `rows`.
    #[inline]
    pub fn take(&mut self, segment: &Segment, rows: &mut Vec<SegmentRow>) {
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
            rows.push(connection.take(segment, &mut self.revisions));
        }
    }

    /// Hands out what later segments showed of earlier ones.
    #[must_use]
    pub fn take_revisions(&mut self) -> Revisions {
        std::mem::take(&mut self.revisions)
    }

    /// The rows of connections that were closed to make room, once they are many.
    pub fn take_closed(&mut self) -> Option<Vec<ConnectionRow>> {
        (self.closed.len() >= CLOSED_ROWS).then(|| std::mem::replace(&mut self.closed, Vec::with_capacity(CLOSED_ROWS)))
    }

    /// At the end: some of the rows that were not yet handed out, `None` if there are no more. Gives their memory back as
    /// it goes.
    pub fn take_rest(&mut self) -> Option<Vec<ConnectionRow>> {
        if !self.closed.is_empty() {
            return Some(std::mem::take(&mut self.closed));
        }
        let mut slab = std::mem::take(self.live.slabs.iter_mut().find(|slab| !slab.is_empty())?);
        Some(slab.iter_mut().map(Connection::row).collect())
    }

    /// The place of the segment's connection, which is opened if need be; it has `number`, if that is known.
    #[inline]
    fn find(&mut self, segment: &Segment, number: Option<u32>) -> usize {
        let goes_on = |connection: &Connection| {
            number.map_or_else(|| !connection.is_reused_by(segment), |number| connection.number == number)
        };
        if let Some(connection) = self.live.get(self.latest)
            && connection.key == segment.key
            && goes_on(connection)
        {
            return self.latest;
        }
        let hash = self.hasher.hash_one(segment.key);
        let live = &self.live;
        let same = |at: &u32| live.get(*at as usize).is_some_and(|connection| connection.key == segment.key);
        match self.flows.find(hash, same).map(|at| *at as usize) {
            Some(found) if live.get(found).is_some_and(goes_on) => found,
            found => self.open(segment, hash, found, number),
        }
    }

    /// Begins a new connection; `before` is the place of the one that had the same endpoints.
    #[cold]
    fn open(&mut self, segment: &Segment, hash: u64, before: Option<usize>, number: Option<u32>) -> usize {
        if let Some(reused) = before.and_then(|before| self.live.get_mut(before)) {
            reused.reused = true;
        }
        let connection = Connection::new(segment, number.unwrap_or(self.count as u32));
        self.count += 1;
        let place = if self.live.len < MAX_LIVE { self.live.len } else { self.make_room(segment.ts_ns) };
        self.live.put(place, connection);
        let (live, hasher) = (&self.live, &self.hasher);
        let key_of = |at: &u32| live.get(*at as usize).map(|connection| connection.key);
        if let Some(newest) = self.flows.find_mut(hash, |at| key_of(at) == Some(segment.key)) {
            *newest = place as u32;
        } else {
            let rehash = |at: &u32| key_of(at).map_or(0, |key| hasher.hash_one(key));
            self.flows.insert_unique(hash, place as u32, rehash);
        }
        place
    }

    /// Closes the most dispensable of the next few connections and gives its place.
    fn make_room(&mut self, now_ns: Option<i64>) -> usize {
        let places = (0..CANDIDATES).map(|step| (self.hand + step) % self.live.len);
        let dispensable = |at: &usize| {
            let connection = self.live.get(*at)?;
            let silent_ns = Nullable::from(now_ns).since(connection.last_ts_ns).get().unwrap_or(0);
            Some((connection.has_ended() || connection.reused, silent_ns))
        };
        let over = |at: &usize| dispensable(at).is_some_and(|(ended, silent_ns)| ended && silent_ns >= OVER_NS);
        let place = places.clone().find(over).or_else(|| places.max_by_key(dispensable)).unwrap_or(0);
        self.hand = (place + 1) % self.live.len;
        if let Some(connection) = self.live.get_mut(place) {
            let ended = connection.has_ended() || connection.reused;
            self.closed_early += u64::from(!ended);
            let row = connection.row();
            self.closed.push(if ended { row } else { ConnectionRow { closed_by: ClosedBy::Room, ..row } });
            let hash = self.hasher.hash_one(connection.key);
            if let Ok(entry) = self.flows.find_entry(hash, |at| *at as usize == place) {
                entry.remove();
            }
        }
        place
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
