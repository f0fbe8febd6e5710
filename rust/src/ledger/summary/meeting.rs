//! Keeps connections until the end of the capture, and finds connections whose packets take the same path.
//! What one of these connections shows about the path helps to judge the waits of the others ([`Neighbours`]).

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::super::direction::{DirectionFacts, Neighbours, Queue, Samples};
use super::super::waits::log::{EndedLog, EndedWaits};
use super::super::waits::spool::Spool;
use super::threads::by_threads;
use crate::flows::ConnectionRow;

/// If a capture has more connections than this, each connection is judged alone. The limit bounds memory and time,
/// because connections that may share a path are kept until the capture ends.
pub const MAX_CONNECTIONS: usize = if cfg!(feature = "small-limits") { 8 } else { 1 << 10 };
/// A direction must have at least this many waits to be searched for queues on the path (a heuristic).
const MIN_RECORDS: u32 = 20;
/// Maximum number of samples of all connections together. Each takes 64 bytes.
const MAX_SAMPLES: usize = 1 << 20;
/// The kinds of evidence for queues, each with a direction of the connection (0 client, 1 server).
const WITNESSES: [(usize, Witness); 4] = [(0, Witness::Echo), (1, Witness::Echo), (0, Witness::Ack), (1, Witness::Ack)];

#[derive(Debug)]
pub(super) struct Ended {
    pub row: ConnectionRow,
    pub waits: EndedWaits,
    /// What other connections show about the path to the client, then about the path to the server.
    pub neighbours: [Option<Neighbours>; 2],
}

impl Ended {
    /// Creates an ended connection without neighbours.
    pub(super) fn alone((row, waits): (ConnectionRow, EndedWaits)) -> Self {
        Self { row, waits, neighbours: [None, None] }
    }

    /// The queueing delays that the waits of direction `side` show on the path to a host.
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

    /// Whether the waits of direction `side` can show queues on the path to a host. The kind of evidence determines
    /// whether this host is the sender or the receiver. The capture point must be away from this host.
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

/// The kinds of evidence for queues: segments of a host that were released by ACKs, or ACKs of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Witness {
    Echo,
    Ack,
}

/// The connections of a capture that have ended so far.
#[derive(Debug)]
pub(super) struct Meeting {
    connections: Vec<Ended>,
    /// Number of connections of the capture, as far as it is known.
    in_capture: usize,
    memory_bytes: usize,
    max_memory_bytes: usize,
    spool: Option<Spool>,
}

impl Meeting {
    /// Creates an empty list for a capture with at least `in_capture` connections. Waits use at most `max_memory_bytes`
    /// of memory.
    pub(super) fn of(in_capture: usize, max_memory_bytes: usize) -> Self {
        Self { connections: Vec::new(), in_capture, memory_bytes: 0, max_memory_bytes, spool: None }
    }

    /// Adds connections.
    ///
    /// # Errors
    /// Waits cannot be written to the spool.
    pub(super) fn add(&mut self, connections: impl IntoIterator<Item = Ended>) -> io::Result<()> {
        for connection in connections {
            self.memory_bytes += connection.waits.memory_bytes();
            self.connections.push(connection);
            if self.memory_bytes > self.max_memory_bytes {
                self.spill()?;
            }
        }
        self.in_capture = self.in_capture.max(self.connections.len());
        Ok(())
    }

    #[cold]
    fn spill(&mut self) -> io::Result<()> {
        if self.spool.is_none() {
            self.spool = Some(Spool::new()?);
        }
        let Some(spool) = &mut self.spool else { return Ok(()) };
        for connection in &mut self.connections {
            connection.waits.spill(spool)?;
        }
        self.memory_bytes = 0;
        spool.write()
    }

    /// Whether the capture has so many connections that each is judged alone.
    pub(super) fn is_too_large(&self) -> bool {
        self.in_capture > MAX_CONNECTIONS
    }

    /// Returns the connections, each with its neighbours unless the capture has too many connections.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub(super) fn into_connections(self, threads: usize) -> io::Result<Vec<Ended>> {
        if self.is_too_large() {
            return Ok(self.connections);
        }
        // The number of samples depends on the capture alone, so that a second pass over few connections has the same
        // results.
        let most = MAX_SAMPLES / (self.in_capture.max(1) * WITNESSES.len());
        let mut connections = self.connections;
        let has_company = company(&connections);
        let together = connections.iter().zip(&has_company).filter(|(_, has_company)| **has_company);
        let directions = together.flat_map(|(one, _)| WITNESSES.map(|(side, of)| (one, side, of)));
        let witnesses: Vec<_> = directions.filter(|(one, side, of)| one.is_witness(*side, *of)).collect();
        let samples = by_threads(threads, witnesses, |(connection, side, of)| {
            let samples = connection.samples(side, of, most)?;
            let reacts = if of == Witness::Echo { side } else { 1 - side };
            Ok((reacts, (host(&connection.row, reacts), of), (connection.row.conn, samples)))
        })?;
        let mut of_hosts: HashMap<_, Vec<_>, RandomState> = HashMap::default();
        let mut hosts: [BTreeSet<(IpAddr, Witness)>; 2] = Default::default();
        for (reacts, host, of_one) in samples.into_iter().filter(|(.., (_, samples))| !samples.is_empty()) {
            of_hosts.entry(host).or_default().push(of_one);
            hosts.get_mut(reacts).into_iter().for_each(|hosts| _ = hosts.insert(host));
        }
        let queues: HashMap<_, _, RandomState> =
            of_hosts.into_iter().map(|(host, some)| (host, Arc::new(Queue::of(some)))).collect();
        let shared = hosts.map(|hosts| {
            [Witness::Echo, Witness::Ack].map(|of| {
                let shown = hosts.iter().filter(|(_, kind)| *kind == of).filter_map(|host| queues.get(host));
                Arc::new(Queue::shared(shown.map(Arc::as_ref)))
            })
        });
        for connection in connections.iter_mut().zip(has_company).filter_map(|(one, met)| met.then_some(one)) {
            for ((side, known), shared) in (0..).zip(&mut connection.neighbours).zip(&shared) {
                let host = host(&connection.row, side);
                let own =
                    [Witness::Echo, Witness::Ack].map(|of| queues.get(&(host, of)).map(Arc::clone).unwrap_or_default());
                *known = Some(Neighbours::new(connection.row.conn, own, shared.clone()));
            }
        }
        Ok(connections)
    }
}

fn host(row: &ConnectionRow, side: usize) -> IpAddr {
    if side == 0 { row.client.0 } else { row.server.0 }
}

/// For each connection, whether another connection exists at some time of its life.
fn company(connections: &[Ended]) -> Vec<bool> {
    let life = |row: &ConnectionRow| row.first_ts_ns.get().zip(row.last_ts_ns.get());
    let mut lives: Vec<_> =
        (0..).zip(connections).filter_map(|(at, one)| life(&one.row).map(|life| (life, at))).collect();
    lives.sort_unstable();
    let mut has_company = vec![false; connections.len()];
    let mut longest: Option<(i64, usize)> = None;
    for ((first_ns, last_ns), at) in lives {
        for met in longest.filter(|(until_ns, _)| first_ns <= *until_ns).into_iter().flat_map(|(_, other)| [at, other])
        {
            has_company.get_mut(met).into_iter().for_each(|one| *one = true);
        }
        longest = longest.filter(|(until_ns, _)| *until_ns >= last_ns).or(Some((last_ns, at)));
    }
    has_company
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::super::Summaries;
    use super::super::rows::JudgedRows;
    use crate::flows::{Accounting, Connections};
    use crate::ledger::{Cause, EndedWaits, LiveWaits};
    use crate::wire::{FlowKey, Segment, TcpFlags};

    const MS: i64 = 1_000_000;
    const QUEUED_MS: i64 = 40;

    /// A segment between two hosts. The client has this port and is at the capture point.
    fn segment(ts_ms: i64, port: u16, from_client: bool, flags: u16, [seq, ack, bytes]: [u32; 3]) -> Segment {
        let host = |bits| IpAddr::V4(Ipv4Addr::from_bits(bits));
        Segment {
            ts_ns: Some(ts_ms * MS),
            key: FlowKey::between([(host(1), port), (host(2), 80)]),
            from_low: from_client,
            flags: TcpFlags(flags),
            seq,
            ack,
            window: 60_000,
            payload_bytes: bytes,
            captured_payload_bytes: bytes,
            ..Segment::default()
        }
    }

    /// The server is 20 ms away, and a queue delays all packets by 40 ms. An upload from port 1000 shows the queue,
    /// because its ACKs come after 60 ms. The answers to the requests from port 2000 also come after 60 ms.
    fn exchange() -> Vec<Segment> {
        let mut segments = Vec::new();
        for (port, at_ms) in [(1000, 0), (2000, 1)] {
            segments.push(segment(at_ms, port, true, TcpFlags::SYN, [0, 0, 0]));
            segments.push(segment(at_ms + 20, port, false, TcpFlags::SYN | TcpFlags::ACK, [0, 1, 0]));
            segments.push(segment(at_ms + 20, port, true, TcpFlags::ACK, [1, 1, 0]));
        }
        for number in 0..200 {
            let (at_ms, seq) = (30 + 5 * i64::from(number), 1 + 1000 * number);
            segments.push(segment(at_ms, 1000, true, TcpFlags::ACK, [seq, 1, 1000]));
            segments.push(segment(at_ms + 20 + QUEUED_MS, 1000, false, TcpFlags::ACK, [1, seq + 1000, 0]));
        }
        for turn in 0..12 {
            let (at_ms, asked, answered) = (200 + 60 * i64::from(turn), 1 + 100 * turn, 1 + 300 * turn);
            let pushed = TcpFlags::ACK | TcpFlags::PSH;
            segments.push(segment(at_ms, 2000, true, pushed, [asked, answered, 100]));
            segments.push(segment(at_ms + 20 + QUEUED_MS, 2000, false, pushed, [answered, asked + 100, 300]));
        }
        segments.sort_by_key(|one| one.ts_ns);
        (1..).zip(segments).map(|(frame, one)| Segment { frame, ..one }).collect()
    }

    /// Milliseconds with the cause `application` in the direction of the answers.
    fn application_ms(of: impl FnOnce(Summaries) -> Summaries, threads: usize) -> i64 {
        let (mut connections, mut rows) = (Connections::of(None, Accounting::Kept), Vec::new());
        let mut live = LiveWaits::default();
        for segment in exchange() {
            connections.take(&segment, &mut rows);
            rows.drain(..).for_each(|row| live.add(&row));
        }
        let mut summaries = of(Summaries::new(true, None, 0)).with_threads(threads);
        let (mut ended, mut judged) = (Vec::new(), JudgedRows::default());
        while let Some(rest) = connections.take_rest() {
            ended.extend(rest);
        }
        for row in ended {
            let waits: EndedWaits = live.end(row.conn);
            summaries.add([(row, waits)]).unwrap();
        }
        summaries.complete().unwrap();
        while summaries.go_on(&mut judged).unwrap() {}
        let applications = judged.ledger.iter().filter(|row| row.conn == 1 && !row.from_client);
        applications.filter(|row| row.interval.cause == Cause::Application).map(|row| row.interval.ns).sum::<i64>() / MS
    }

    #[test]
    fn neighbours_show_the_queue_also_from_the_spool_and_on_any_threads() {
        let alone_ms = application_ms(|summaries| summaries, 1);
        assert!(alone_ms >= 11 * QUEUED_MS, "{alone_ms}");
        let together_ms = application_ms(|summaries| summaries.with_neighbours(0, usize::MAX), 1);
        assert!(together_ms <= 12 * 10, "one packet of each 10 ms counts: {together_ms}");
        for (max_memory_bytes, threads) in [(0, 1), (0, 3), (700, 2), (usize::MAX, 3)] {
            let of = |summaries: Summaries| summaries.with_neighbours(0, max_memory_bytes);
            assert_eq!(application_ms(of, threads), together_ms, "{max_memory_bytes} bytes, {threads} threads");
        }
    }

    #[test]
    fn in_a_capture_with_too_many_connections_each_is_judged_alone() {
        let alone_ms = application_ms(|summaries| summaries, 1);
        assert_eq!(application_ms(|summaries| summaries.with_neighbours(super::MAX_CONNECTIONS + 1, 0), 1), alone_ms);
    }
}
