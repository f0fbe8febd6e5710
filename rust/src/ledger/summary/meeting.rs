//! Finds connections between the same two hosts at the same time, so that the waits of each are judged with what the
//! others show about the path ([`Neighbours`]).

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::super::direction::{DirectionFacts, Neighbours, Queue, Samples};
use super::super::waits::log::{EndedLog, EndedWaits};
use super::threads::by_threads;
use crate::flows::ConnectionRow;

/// In captures with more connections, each is judged alone. This bounds memory, because connections that may meet wait for
/// each other, and time.
pub(super) const MAX_CONNECTIONS: usize = if cfg!(feature = "small-limits") { 8 } else { 1 << 10 };
/// A direction needs this many waits before they are read for what they show about the path (a heuristic).
const MIN_RECORDS: u32 = 20;
/// Maximum number of samples of all connections together. Each takes 72 bytes.
const MAX_SAMPLES: usize = 1 << 19;

/// A connection that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub row: ConnectionRow,
    pub waits: EndedWaits,
    /// What other connections show about the path to the sender of each direction: the client's, then the server's.
    pub neighbours: [Option<Neighbours>; 2],
}

impl Ended {
    /// Without neighbours.
    pub(super) fn alone((row, waits): (ConnectionRow, EndedWaits)) -> Self {
        Self { row, waits, neighbours: [None, None] }
    }

    /// The sender and the receiver of direction `side`.
    fn hosts(&self, side: usize) -> Hosts {
        let (client, server) = (self.row.client.0, self.row.server.0);
        if side == 0 { (client, server) } else { (server, client) }
    }

    /// What the waits of direction `side` show about a host.
    fn samples(&self, side: usize, of: Witness, most: usize) -> io::Result<Samples> {
        let (Some(log), Some(direction)) = (self.waits.directions.get(side), DirectionFacts::of(&self.row, side))
        else {
            return Ok(Samples::default());
        };
        // The handshake shows the round trip from the capture point to the client or to the server.
        let to_client = (side == 0) == (of == Witness::Echo);
        let handshake_ns = if to_client { self.row.synack_to_ack_ns } else { self.row.syn_to_synack_ns };
        let mut samples = Samples::since(direction.first_ts_ns, handshake_ns.get());
        log.each_record(|record| match of {
            Witness::Echo => samples.add_echo(record, most),
            Witness::Ack => samples.add_ack(record, direction.to_sender_ns, most),
        })?;
        Ok(samples)
    }

    /// Whether the waits of direction `side` can show something: about its sender only if the capture point is away from
    /// that host, about its receiver only if it is away from that one.
    fn is_witness(&self, side: usize, of: Witness) -> bool {
        let records = self.waits.directions.get(side).map_or(0, EndedLog::records);
        let shows = |one: &DirectionFacts| {
            !one.sender_unplaced
                && !one.lasts_too_long()
                && match of {
                    Witness::Echo => !one.near_sender && one.ticks_milliseconds,
                    Witness::Ack => !one.near_receiver,
                }
        };
        records >= MIN_RECORDS && DirectionFacts::of(&self.row, side).as_ref().is_some_and(shows)
    }
}

/// What shows queues: segments of a host that ACKs released, or ACKs of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Witness {
    Echo,
    Ack,
}

/// A sender and a receiver.
type Hosts = (IpAddr, IpAddr);

/// Sets the neighbours of the connections of a capture.
///
/// # Errors
/// The spool cannot be read.
pub(super) fn meet(connections: &mut [Ended], threads: usize) -> io::Result<()> {
    let has_company = company(connections);
    let together = || connections.iter().zip(&has_company).filter(|(_, has_company)| **has_company);
    let kinds = [(0, Witness::Echo), (1, Witness::Echo), (0, Witness::Ack), (1, Witness::Ack)];
    let directions = together().flat_map(|(one, _)| kinds.map(|(side, of)| (one, side, of)));
    let witnesses: Vec<_> = directions.filter(|(one, side, of)| one.is_witness(*side, *of)).collect();
    let most = MAX_SAMPLES / witnesses.len().max(1);
    let samples = by_threads(threads, witnesses, |(connection, side, of)| {
        let samples = connection.samples(side, of, most)?;
        let reacts = if of == Witness::Echo { side } else { 1 - side };
        Ok(((connection.hosts(reacts), of), (connection.row.conn, samples)))
    })?;
    let mut of_paths: HashMap<_, Vec<_>, RandomState> = HashMap::default();
    for (path, of_one) in samples.into_iter().filter(|(_, (_, samples))| !samples.is_empty()) {
        of_paths.entry(path).or_default().push(of_one);
    }
    let queues: HashMap<_, _, RandomState> =
        of_paths.into_iter().map(|(path, some)| (path, Arc::new(Queue::of(some)))).collect();
    for connection in connections.iter_mut().zip(has_company).filter_map(|(one, met)| met.then_some(one)) {
        connection.neighbours = [0, 1].map(|side| {
            let hosts = connection.hosts(side);
            let [before, there_and_back] =
                [Witness::Echo, Witness::Ack].map(|of| queues.get(&(hosts, of)).map(Arc::clone));
            let any = before.is_some() || there_and_back.is_some();
            any.then(|| Neighbours::new(connection.row.conn, before, there_and_back))
        });
    }
    Ok(())
}

/// Which connections share some of their time with another one between the same hosts.
fn company(connections: &[Ended]) -> Vec<bool> {
    let mut between: HashMap<Hosts, Vec<(i64, i64, usize)>, RandomState> = HashMap::default();
    for (place, connection) in connections.iter().enumerate() {
        if let Some((first_ns, last_ns)) = connection.row.first_ts_ns.get().zip(connection.row.last_ts_ns.get()) {
            let (one, other) = connection.hosts(0);
            between.entry((one.min(other), one.max(other))).or_default().push((first_ns, last_ns, place));
        }
    }
    let mut has_company = vec![false; connections.len()];
    let mut set = |place: usize| has_company.get_mut(place).into_iter().for_each(|one| *one = true);
    for mut lives in between.into_values() {
        lives.sort_unstable();
        let mut longest: Option<(i64, usize)> = None;
        for (first_ns, last_ns, place) in lives {
            if let Some((_, other)) = longest.filter(|(until_ns, _)| first_ns <= *until_ns) {
                set(place);
                set(other);
            }
            if longest.is_none_or(|(until_ns, _)| last_ns > until_ns) {
                longest = Some((last_ns, place));
            }
        }
    }
    has_company
}
