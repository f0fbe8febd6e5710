//! Finds the connections between the same two hosts, and lets the waits of each be judged with what the others show about
//! the path ([`Neighbours`]).

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::super::direction::{DirectionFacts, Neighbours, RoundTrips, Samples};
use super::super::waits::log::{EndedLog, EndedWaits};
use super::threads::by_threads;
use crate::flows::ConnectionRow;

/// A direction needs this many waits before they are read for what they show about the path (a heuristic).
const MIN_RECORDS: u32 = 20;
/// Maximum number of round trips that are kept at a time, 16 bytes each.
const MOST_SAMPLES: usize = 1 << 20;

/// A connection that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub row: ConnectionRow,
    pub waits: EndedWaits,
    /// What other connections show about the path of each direction: the client's, then the server's.
    pub neighbours: [Option<Neighbours>; 2],
}

/// A path from a host to another.
type Path = (IpAddr, IpAddr);

fn path(row: &ConnectionRow, side: usize) -> Path {
    let (client, server) = (row.client.0, row.server.0);
    if side == 0 { (client, server) } else { (server, client) }
}

/// Sets the neighbours of connections that ended together.
///
/// # Errors
/// The spool cannot be read.
pub(super) fn meet(connections: &mut [Ended], threads: usize) -> io::Result<()> {
    let mut between: HashMap<Path, u32, RandomState> = HashMap::default();
    for connection in &*connections {
        let (one, other) = path(&connection.row, 0);
        *between.entry((one.min(other), one.max(other))).or_default() += 1;
    }
    let is_alone = |(one, other): Path| between.get(&(one.min(other), one.max(other))).is_none_or(|count| *count < 2);
    let is_witness = |connection: &&Ended, side: usize| {
        let records = connection.waits.directions.get(side).map_or(0, EndedLog::records);
        let direction = || DirectionFacts::of(&connection.row, side);
        records >= MIN_RECORDS
            && !is_alone(path(&connection.row, side))
            && direction().is_some_and(|one| !one.near_sender && !one.sender_unplaced && !one.lasts_too_long())
    };
    let witnesses: Vec<_> = [0, 1]
        .into_iter()
        .flat_map(|side| connections.iter().filter(move |one| is_witness(one, side)).map(move |one| (one, side)))
        .collect();
    let most = MOST_SAMPLES / witnesses.len().max(1);
    let samples = by_threads(threads, witnesses, |(connection, side)| {
        let mut samples = Samples::default();
        if let Some(log) = connection.waits.directions.get(side) {
            log.each_record(|record| samples.add(record, most))?;
        }
        Ok((path(&connection.row, side), connection.row.conn, samples))
    })?;
    let mut of_paths: HashMap<Path, Vec<(u32, Samples)>, RandomState> = HashMap::default();
    for (path, conn, some) in samples.into_iter().filter(|(.., some)| !some.is_empty()) {
        of_paths.entry(path).or_default().push((conn, some));
    }
    let round_trips: HashMap<Path, Arc<RoundTrips>, RandomState> =
        of_paths.into_iter().map(|(path, some)| (path, Arc::new(RoundTrips::of(some)))).collect();
    for Ended { row, neighbours, .. } in connections {
        for (side, own) in neighbours.iter_mut().enumerate() {
            *own = round_trips.get(&path(row, side)).map(|trips| Neighbours::new(row.conn, Arc::clone(trips)));
        }
    }
    Ok(())
}
