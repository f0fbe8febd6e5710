//! Segments → connections: "what we conclude" from the order in which segments were captured.
//!
//! [`Connections`] finds the connection of each segment and keeps, per direction, a [`half::Half`]: the sequence space,
//! what is outstanding, the holes, the window. Each segment is judged against the state just before it, becomes a
//! [`SegmentRow`] that carries this context, and then moves the state on.

mod classify;
mod flows;
mod half;
mod holes;
mod only;
mod outstanding;
mod row;

pub use flows::{DatagramRow, FlowRow, Flows};
pub use only::{Known, Only};
pub use row::{
    ClientKnownBy, ClosedBy, ConnectionRow, DirectionFigures, Kind, Nullable, ReleasedBy, RttFigures, SegmentRow,
    SynOptions,
};

use std::hash::BuildHasher;
use std::sync::Arc;

use classify::Novelty;
use foldhash::fast::RandomState;
use half::{Half, Placed};
use hashbrown::HashTable;

use crate::seq;
use crate::wire::{FlowKey, Segment, TcpFlags};

/// Below this, ports are given to services (RFC 6335, 6): the side that has one is the server.
const FIRST_USER_PORT: u16 = 1024;
/// First four bytes of data that only a client sends first.
const REQUESTS: [&[u8; 4]; 8] = [b"GET ", b"POST", b"HEAD", b"PUT ", b"DELE", b"OPTI", b"CONN", b"PRI "];
/// First four bytes of data that only a server sends.
const ANSWERS: [&[u8; 4]; 2] = [b"HTTP", b"220 "];

/// One connection.
#[derive(Clone, Debug)]
struct Connection {
    key: FlowKey,
    number: u32,
    client_is_low: bool,
    client_known_by: ClientKnownBy,
    reset: bool,
    /// A later connection has the same ports.
    reused: bool,
    first_frame: u64,
    last_frame: u64,
    first_ts_ns: Nullable,
    last_ts_ns: Nullable,
    handshake: Handshake,
    client: Half,
    server: Half,
}

/// The three times of a handshake.
#[derive(Clone, Copy, Debug, Default)]
struct Handshake {
    syn_ts_ns: Nullable,
    synack_ts_ns: Nullable,
    ack_ts_ns: Nullable,
    synack_seen: bool,
    ack_seen: bool,
}

/// Most connections that are followed at a time: about 120 MB. Past it, for each new one an old one is
/// closed and handed out; captures with fewer at a time are followed to the end, whatever their number.
const MAX_LIVE: usize = 1 << 17;
/// Rows of closed connections handed out at a time.
const CLOSED_ROWS: usize = 4096;
/// Of so many neighbours the one to close is chosen: one that has ended before one that has not, then the one silent
/// longest. Among thousands of idle connections a sample finds one as good as the oldest (a heuristic).
const CANDIDATES: usize = 32;

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
            rows.push(connection.take(segment));
        }
    }

    /// The rows of connections that were closed to make room, once they are many.
    pub fn take_closed(&mut self) -> Option<Vec<ConnectionRow>> {
        (self.closed.len() >= CLOSED_ROWS).then(|| std::mem::replace(&mut self.closed, Vec::with_capacity(CLOSED_ROWS)))
    }

    /// The rows of all other connections, some at a time; gives their memory back as it goes. In the order of their
    /// numbers, unless some were closed to make room.
    pub fn into_rows(self) -> impl Iterator<Item = Vec<ConnectionRow>> {
        let live = self.live.slabs.into_iter().map(|slab| slab.iter().map(Connection::row).collect());
        std::iter::once(self.closed).chain(live).filter(|rows: &Vec<_>| !rows.is_empty())
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
        let same = |at: &u32| before == Some(*at as usize) || key_of(at) == Some(segment.key);
        if let Some(newest) = self.flows.find_mut(hash, same) {
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
        let place = places.max_by_key(dispensable).unwrap_or(0);
        self.hand = (self.hand + CANDIDATES) % self.live.len;
        if let Some(connection) = self.live.get(place) {
            let ended = connection.has_ended() || connection.reused;
            self.closed_early += u64::from(!ended);
            let closed_by = if ended { connection.row().closed_by } else { ClosedBy::Room };
            self.closed.push(ConnectionRow { closed_by, ..connection.row() });
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

impl Connection {
    fn new(segment: &Segment, number: u32) -> Self {
        let (client_known_by, sender_is_client) = guess_client(segment);
        Self {
            key: segment.key,
            number,
            client_is_low: segment.from_low == sender_is_client,
            client_known_by,
            reset: false,
            reused: false,
            first_frame: segment.frame,
            last_frame: segment.frame,
            first_ts_ns: segment.ts_ns.into(),
            last_ts_ns: segment.ts_ns.into(),
            handshake: Handshake::default(),
            client: Half::default(),
            server: Half::default(),
        }
    }

    /// A SYN opens a new connection on the same ports if its ISN is another one, or after a FIN or RST.
    #[inline]
    fn is_reused_by(&self, segment: &Segment) -> bool {
        if !segment.flags.any(TcpFlags::SYN) || segment.flags.any(TcpFlags::ACK) {
            return false;
        }
        let from_client = segment.from_low == self.client_is_low;
        let sender = if from_client { &self.client } else { &self.server };
        let closing = self.reset || self.client.figures.fin_segments > 0 || self.server.figures.fin_segments > 0;
        sender.isn.is_some_and(|isn| isn != segment.seq || closing)
    }

    /// Whether nothing more is expected but stray segments.
    fn has_ended(&self) -> bool {
        self.reset || (self.client.figures.fin_segments > 0 && self.server.figures.fin_segments > 0)
    }

    #[inline]
    fn take(&mut self, segment: &Segment) -> SegmentRow {
        let from_client = segment.from_low == self.client_is_low;
        self.last_frame = segment.frame;
        if let Some(ts_ns) = segment.ts_ns {
            self.first_ts_ns = Some(self.first_ts_ns.get().map_or(ts_ns, |first| first.min(ts_ns))).into();
            self.last_ts_ns = Some(self.last_ts_ns.get().map_or(ts_ns, |last| last.max(ts_ns))).into();
        }
        self.reset |= segment.flags.any(TcpFlags::RST);
        if segment.flags.any(TcpFlags::SYN) {
            self.take_syn(segment, from_client);
        } else if !self.handshake.ack_seen {
            self.handshake.take_ack(segment, from_client);
        }
        let (sender, receiver) =
            if from_client { (&mut self.client, &mut self.server) } else { (&mut self.server, &mut self.client) };
        exchange(segment, sender, receiver, self.number, from_client)
    }

    fn take_syn(&mut self, segment: &Segment, from_client: bool) {
        let answered = segment.flags.any(TcpFlags::ACK);
        self.handshake.take_syn(segment, from_client, answered);
        let half = if from_client { &mut self.client } else { &mut self.server };
        half.figures.syn_options = half.figures.syn_options.or_else(|| Half::syn_options(segment));
        let server_answered = self.handshake.synack_seen;
        if from_client {
            self.client.anchor(segment, &mut self.server);
        } else {
            self.server.anchor(segment, &mut self.client);
        }
        half::settle_window_scales(&mut self.client, &mut self.server, server_answered);
    }

    fn row(&self) -> ConnectionRow {
        let (low, high) = (self.key.low(), self.key.high());
        let (client, server) = if self.client_is_low { (low, high) } else { (high, low) };
        let closed_by = if self.client.figures.fin_segments > 0 && self.server.figures.fin_segments > 0 {
            ClosedBy::Fin
        } else if self.reset {
            ClosedBy::Reset
        } else if self.reused {
            ClosedBy::Reuse
        } else {
            ClosedBy::End
        };
        ConnectionRow {
            conn: self.number,
            client,
            server,
            client_known_by: self.client_known_by,
            closed_by,
            first_frame: self.first_frame,
            last_frame: self.last_frame,
            first_ts_ns: self.first_ts_ns,
            last_ts_ns: self.last_ts_ns,
            syn_to_synack_ns: self.handshake.synack_ts_ns.since(self.handshake.syn_ts_ns),
            synack_to_ack_ns: self.handshake.ack_ts_ns.since(self.handshake.synack_ts_ns),
            directions: [self.client.row(), self.server.row()],
        }
    }
}

impl Handshake {
    fn take_syn(&mut self, segment: &Segment, from_client: bool, answered: bool) {
        match (from_client, answered) {
            (true, false) if !self.synack_seen => self.syn_ts_ns = segment.ts_ns.into(),
            (false, true) if !self.synack_seen => {
                self.synack_seen = true;
                self.synack_ts_ns = segment.ts_ns.into();
            }
            _ => {}
        }
    }

    fn take_ack(&mut self, segment: &Segment, from_client: bool) {
        if from_client && self.synack_seen && segment.flags.any(TcpFlags::ACK) {
            self.ack_seen = true;
            self.ack_ts_ns = segment.ts_ns.into();
        }
    }
}

/// Who opened the connection, from the first segment seen of it, and whether that was its sender.
fn guess_client(segment: &Segment) -> (ClientKnownBy, bool) {
    if segment.flags.any(TcpFlags::SYN) {
        let answered = segment.flags.any(TcpFlags::ACK);
        return if answered { (ClientKnownBy::SynAck, false) } else { (ClientKnownBy::Syn, true) };
    }
    let data = segment.payload_start.to_be_bytes();
    if REQUESTS.contains(&&data) {
        return (ClientKnownBy::Data, true);
    }
    if ANSWERS.contains(&&data) {
        return (ClientKnownBy::Data, false);
    }
    let (low, high) = (segment.key.low().1, segment.key.high().1);
    let (from, to) = if segment.from_low { (low, high) } else { (high, low) };
    if from == to || (from >= FIRST_USER_PORT) == (to >= FIRST_USER_PORT) && from.abs_diff(to) < FIRST_USER_PORT {
        return (ClientKnownBy::First, true);
    }
    (ClientKnownBy::Port, from > to)
}

/// Judges one segment against the state of its two halves, and moves them on.
#[inline]
fn exchange(segment: &Segment, sender: &mut Half, receiver: &mut Half, conn: u32, from_client: bool) -> SegmentRow {
    let now = Nullable::from(segment.ts_ns);
    let placed = sender.place(segment);
    let ack = segment.flags.any(TcpFlags::ACK).then(|| receiver.place_ack(segment.ack));
    // What the receiver's link threw away was sent, but its acknowledgment and window never arrived.
    let arrived_ack = ack.filter(|_| !segment.damaged);
    let in_flight = sender.in_flight();
    let usable_window = sender.usable_window(receiver);
    let since_previous = now.since(sender.last_ts_ns);
    let sack_blocks = sack_blocks(segment, receiver);
    let reset = segment.flags.any(TcpFlags::RST);
    let novelty = if reset { Novelty::default() } else { novelty_of(segment, placed, sender) };
    let kind = classify::kind_of(segment, placed, ack, novelty, sender, receiver);
    let released = (segment.payload_bytes > 0).then(|| classify::released_by(segment, kind, sender, receiver));
    let window_bytes = sender.advertised(segment);
    count(segment, placed, kind, novelty, window_bytes, &mut sender.figures);
    if !reset {
        send(now, placed, kind, sender, receiver.started);
    }
    let answer = arrived_ack.map_or_else(Answer::default, |ack| {
        receiver.sacked_bytes = sack_blocks.as_deref().map_or(0, |blocks| sacked_beyond(ack, blocks));
        acknowledge(now, ack, kind, receiver)
    });
    remember(segment, arrived_ack, kind, window_bytes, released, sender);
    SegmentRow {
        frame: segment.frame,
        ts_ns: now,
        seq: placed.start,
        ack: ack.into(),
        in_flight_bytes: in_flight.into(),
        usable_window_bytes: usable_window.into(),
        since_previous_ns: since_previous,
        since_last_ack_ns: now.since(receiver.last_ack_ts_ns),
        since_last_data_ns: now.since(receiver.last_data_ts_ns),
        released_by_frame: released.and_then(|(_, frame)| frame).map(|frame| frame as i64).into(),
        acked_bytes: answer.acked_bytes,
        ack_lag_ns: answer.lag_ns,
        rtt_ns: answer.rtt_ns,
        sack_blocks,
        conn,
        payload_bytes: segment.payload_bytes,
        captured_payload_bytes: segment.captured_payload_bytes,
        window_bytes,
        timestamps: segment.options.timestamps,
        ip_id: segment.ip.id,
        flags: segment.flags,
        from_client,
        ttl: segment.ip.ttl,
        ecn: segment.ip.ecn,
        kind,
        released_by: released.map(|(by, _)| by),
        path: segment.path,
        atm: segment.atm,
    }
}

/// The SACK blocks of a segment as offsets of the stream that they report on.
#[inline]
fn sack_blocks(segment: &Segment, data_sender: &Half) -> Option<Box<[i64]>> {
    let blocks = &segment.options.sack;
    if blocks.is_empty() {
        return None;
    }
    let offset = |edge| seq::unwrap(edge, data_sender.isn.unwrap_or(0), data_sender.snd_max);
    Some(blocks.as_slice().iter().flat_map(|(left, right)| [offset(*left), offset(*right)]).collect())
}

/// Bytes in SACK blocks that are not acknowledged yet (a block below is a D-SACK, RFC 2883).
fn sacked_beyond(ack: i64, blocks: &[i64]) -> i64 {
    let (blocks, _) = blocks.as_chunks::<2>();
    blocks.iter().filter(|[left, _]| *left >= ack).map(|[left, right]| right.saturating_sub(*left).max(0)).sum()
}

/// Sequence numbers of the segment that were never seen; closes the holes they fill and opens the one they jump over.
#[inline]
fn novelty_of(segment: &Segment, placed: Placed, sender: &mut Half) -> Novelty {
    let beyond = (placed.end - placed.start.max(sender.snd_max)).max(0);
    let (filled, jumper) = sender.holes.fill(placed.start, placed.end);
    // A keepalive or an old ACK jumps over nothing: only what occupies sequence space shows a hole.
    if placed.start > sender.snd_max && placed.end > placed.start {
        sender.holes.open(sender.snd_max, placed.start, Half::jumper(segment));
    }
    Novelty { new: beyond + filled, jumper }
}

/// The segment occupies sequence space of its sender.
#[inline]
fn send(now: Nullable, placed: Placed, kind: Kind, sender: &mut Half, answered: bool) {
    if placed.end > sender.snd_max {
        let from = placed.start.max(sender.snd_max);
        if placed.start < sender.snd_max {
            sender.outstanding.seen_again(placed.start, sender.snd_max, now, kind.is_resent());
        }
        sender.outstanding.push(from, placed.end, now, answered);
        sender.snd_max = placed.end;
    } else if placed.end > placed.start {
        sender.outstanding.seen_again(placed.start, placed.end, now, kind.is_resent());
    }
    if let Some(in_flight) = sender.in_flight() {
        let most = sender.figures.max_in_flight_bytes.get().unwrap_or(0);
        sender.figures.max_in_flight_bytes = Some(in_flight.max(most)).into();
    }
}

/// What an acknowledgment tells.
#[derive(Clone, Copy, Debug, Default)]
struct Answer {
    acked_bytes: Nullable,
    lag_ns: Nullable,
    rtt_ns: Nullable,
}

/// `data_sender` sees its bytes below `ack` acknowledged.
#[inline]
fn acknowledge(now: Nullable, ack: i64, kind: Kind, data_sender: &mut Half) -> Answer {
    // The first ACK acknowledges at least what was seen: from the SYN on, or in mid-stream from offset 1.
    let first = i64::from(data_sender.figures.syn_segments == 0);
    let first_seen = if data_sender.started { ack.min(first) } else { ack };
    let una = data_sender.snd_una.get().unwrap_or(first_seen);
    data_sender.snd_una = Some(una).into();
    if kind == Kind::Reset && ack > data_sender.snd_max {
        return Answer { acked_bytes: Some(0).into(), ..Answer::default() };
    }
    if kind == Kind::DuplicateAck {
        data_sender.duplicate_acks_received += 1;
    }
    if ack > una {
        data_sender.snd_una = Some(ack).into();
        data_sender.duplicate_acks_received = 0;
    }
    let acknowledged = data_sender.outstanding.acknowledge(ack);
    if data_sender.figures.fin_segments > 0 {
        data_sender.outstanding.release();
    }
    let rtt_ns = now.since(acknowledged.sample_from_ns).get().filter(|rtt_ns| *rtt_ns >= 0);
    if let Some(rtt_ns) = rtt_ns {
        data_sender.figures.rtt.add(rtt_ns);
    }
    Answer {
        acked_bytes: Some((ack - una).max(0)).into(),
        lag_ns: now.since(acknowledged.oldest_ts_ns),
        rtt_ns: rtt_ns.into(),
    }
}

/// What later segments are judged by.
#[inline]
fn remember(
    segment: &Segment,
    ack: Option<i64>,
    kind: Kind,
    window_bytes: Option<u32>,
    released: Option<(ReleasedBy, Option<u64>)>,
    sender: &mut Half,
) {
    let now = Nullable::from(segment.ts_ns);
    sender.last_ts_ns = now;
    sender.last_was_keepalive = kind == Kind::Keepalive;
    sender.last_was_data = segment.payload_bytes > 0;
    if segment.payload_bytes > 0 {
        sender.last_data_ts_ns = now;
        sender.burst_frame = match released {
            Some((ReleasedBy::Burst, Some(first))) => first,
            _ => segment.frame,
        };
    }
    let Some(ack) = ack else { return };
    sender.last_ack_ts_ns = now;
    sender.last_ack_frame = segment.frame;
    // An old ACK that came late says nothing about the window of now (RFC 9293, 3.10.7.4: SND.WL2).
    if kind != Kind::Reset && sender.acked.get().is_none_or(|acked| ack >= acked) {
        sender.acked = Some(ack).into();
        sender.raw_window = segment.window;
        sender.window_bytes = window_bytes;
    }
}

/// Counts the segment.
#[inline]
fn count(
    segment: &Segment,
    placed: Placed,
    kind: Kind,
    novelty: Novelty,
    window_bytes: Option<u32>,
    figures: &mut DirectionFigures,
) {
    let flags = segment.flags;
    let payload = u64::from(segment.payload_bytes);
    figures.segments += 1;
    figures.pushed_segments += u32::from(flags.any(TcpFlags::PSH));
    figures.cut_segments += u64::from(segment.captured_payload_bytes < segment.payload_bytes);
    if payload > 0 {
        figures.data_segments += 1;
        figures.payload_bytes += payload;
        figures.max_segment_bytes = figures.max_segment_bytes.max(segment.payload_bytes);
        if let Some(ts_ns) = segment.ts_ns {
            figures.first_data_ts_ns = figures.first_data_ts_ns.get().or(Some(ts_ns)).into();
            figures.last_data_ts_ns = Some(ts_ns).into();
        }
        let controls = (placed.end - placed.start) as u64 - payload;
        let new_payload = (novelty.new as u64).saturating_sub(controls).min(payload);
        figures.unique_bytes += new_payload;
        if kind.is_resent() {
            // Bytes that fill a hole were resent too: their first copy was lost before it could be captured.
            let resent = if novelty.jumper.is_some() { payload } else { payload - new_payload };
            figures.retransmitted_bytes += resent;
        }
    } else if !flags.any(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST) {
        figures.pure_acks += 1;
    }
    figures.retransmitted_segments += u32::from(kind.is_resent());
    match kind {
        Kind::OutOfOrder => figures.out_of_order_segments += 1,
        Kind::DuplicateAck => figures.duplicate_acks += 1,
        Kind::Keepalive => figures.keepalives += 1,
        Kind::ZeroWindowProbe => figures.zero_window_probes += 1,
        Kind::WindowUpdate => figures.window_updates += 1,
        _ => {}
    }
    if flags.any(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST) {
        figures.syn_segments += u32::from(flags.any(TcpFlags::SYN));
        figures.fin_segments += u32::from(flags.any(TcpFlags::FIN));
        figures.rst_segments += u32::from(flags.any(TcpFlags::RST));
    }
    if flags.any(TcpFlags::RST) {
        return;
    }
    figures.zero_window_advertisements += u32::from(segment.window == 0);
    if let Some(window) = window_bytes {
        figures.max_window_bytes = Some(figures.max_window_bytes.map_or(window, |most| most.max(window)));
        if !flags.any(TcpFlags::SYN) {
            figures.min_window_bytes = Some(figures.min_window_bytes.map_or(window, |least| least.min(window)));
        }
    }
}
