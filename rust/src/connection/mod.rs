//! Segments → connections: "what we conclude" from the order in which segments were captured.
//!
//! [`Connections`] finds the connection of each segment and keeps, per direction, a [`half::Half`]: the sequence space,
//! what is outstanding, the holes, the window. Each segment is judged against the state just before it, becomes a
//! [`SegmentRow`] that carries this context, and then moves the state on.

#![allow(clippy::inline_always)] // measured: what is not inlined cannot drop what a pass without accounts does not need

mod account;
mod behaviour;
mod classify;
mod copies;
mod counts;
mod departure;
mod evidence;
mod exchange;
mod flows;
mod followed;
mod half;
mod hearing;
mod history;
mod holes;
mod line;
mod only;
mod outstanding;
mod queue;
mod ranges;
mod rates;
mod resent;
mod revisions;
mod row;
mod sending;
mod special;
mod statistics;
mod usual;

pub use behaviour::{Acking, Behaviour, Count, Nagle, Reaction, Sending, SynShape};
pub use counts::Counts;
pub use departure::{Departure, Waits};
pub use evidence::{Confidence, EcnSignal, Evidence, ResentBy, ResetKind, Tfo};
pub use flows::{DatagramRow, FlowRow, Flows};
pub use followed::{Accounting, Connections};
pub use line::Line;
pub use only::{Known, Only};
pub use rates::{Passed, Rates};
pub use revisions::{MAX_REVISIONS, Revision, Revisions};
pub use row::{
    ClientKnownBy, ClosedBy, ConnectionRow, DirectionFigures, Kind, Nullable, ReleasedBy, RttFigures, SegmentRow,
    SegmentSink, SynOptions,
};
pub use statistics::StatisticsFigures;

use account::Side;
use exchange::{Place, copied, exchange};
use half::Half;
use line::{Channels, line_of};
use usual::Usual;

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
    /// Its row was handed out: nothing may come to it any more.
    handed_out: bool,
    first_frame: u64,
    last_frame: u64,
    first_ts_ns: Nullable,
    last_ts_ns: Nullable,
    handshake: Handshake,
    channels: Channels,
    client: Half,
    server: Half,
    /// Where they are kept.
    accounts: Option<account::Accounts>,
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

impl Connection {
    fn new(segment: &Segment, number: u32, accounts: Option<account::Accounts>) -> Self {
        let (client_known_by, sender_is_client) = guess_client(segment);
        Self {
            key: segment.key,
            number,
            client_is_low: segment.from_low == sender_is_client,
            client_known_by,
            reset: false,
            handed_out: false,
            first_frame: segment.frame,
            last_frame: segment.frame,
            first_ts_ns: segment.ts_ns.into(),
            last_ts_ns: segment.ts_ns.into(),
            handshake: Handshake::default(),
            channels: Channels::default(),
            client: Half::default(),
            server: Half::default(),
            accounts,
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
        sender.figures.isn.is_some_and(|isn| isn != segment.seq || closing)
    }

    /// Time since its last segment; 0 where times are not known.
    fn silent_ns(&self, now: Nullable) -> i64 {
        now.since(self.last_ts_ns).get().unwrap_or(0)
    }

    /// Whether nothing more is expected but stray segments.
    fn has_ended(&self) -> bool {
        self.reset || (self.client.figures.fin_segments > 0 && self.server.figures.fin_segments > 0)
    }

    /// Takes one segment in. Compiled twice, so that a pass without accounts goes without all that only they need.
    #[inline]
    fn take<const ACCOUNTS: bool>(
        &mut self,
        segment: &Segment,
        revisions: &mut Revisions,
        rows: &mut impl SegmentSink,
    ) {
        self.take_by::<ACCOUNTS, true>(segment, revisions, rows);
    }

    /// The same; a usual segment goes the short way if there is one.
    #[inline(always)]
    fn take_by<const ACCOUNTS: bool, const SHORT_WAY: bool>(
        &mut self,
        segment: &Segment,
        revisions: &mut Revisions,
        rows: &mut impl SegmentSink,
    ) {
        let from_client = segment.from_low == self.client_is_low;
        if ACCOUNTS {
            // Not in order where the link lost the end of a PDU.
            self.first_frame = self.first_frame.min(segment.frame);
            self.last_frame = self.last_frame.max(segment.frame);
            self.first_ts_ns = self.first_ts_ns.earlier(segment.ts_ns.into());
        }
        self.last_ts_ns = self.last_ts_ns.later(segment.ts_ns.into());
        let place = Place { conn: self.number, from_client };
        let (sender, receiver) =
            if from_client { (&mut self.client, &mut self.server) } else { (&mut self.server, &mut self.client) };
        let usual = if SHORT_WAY { Usual::of(segment, sender, receiver) } else { None };
        if usual.is_none() {
            if sender.may_repeat(segment, receiver)
                && let Some(copy) = copies::copy_of(segment, sender, receiver)
            {
                return copied(segment, copy, sender, receiver, place, rows);
            }
            self.reset |= segment.flags.any(TcpFlags::RST);
            if segment.flags.any(TcpFlags::SYN) {
                self.take_syn(segment, from_client);
            }
        }
        if ACCOUNTS {
            segment.atm.iter().for_each(|atm| self.channels.add(*atm));
            if !self.handshake.ack_seen && !segment.flags.any(TcpFlags::SYN) {
                self.handshake.take_ack(segment, from_client);
            }
        }
        let (sender, receiver) =
            if from_client { (&mut self.client, &mut self.server) } else { (&mut self.server, &mut self.client) };
        sender.recent.push(segment);
        let accounts = if ACCOUNTS { self.accounts.as_mut().and_then(account::Accounts::at_hand) } else { None };
        let accounts = accounts.map(|[client, server]| if from_client { (client, server) } else { (server, client) });
        match usual {
            Some(usual) => usual.exchange::<ACCOUNTS>(segment, sender, receiver, accounts, place, rows),
            None => exchange::<ACCOUNTS>(segment, sender, receiver, accounts, place, revisions, rows),
        }
    }

    /// Puts its accounts away, if all that was sent is acknowledged or given up.
    #[cold]
    #[inline(never)]
    fn end(&mut self) {
        if self.reset || (self.client.in_flight() == Some(0) && self.server.in_flight() == Some(0)) {
            self.accounts.iter_mut().for_each(account::Accounts::put_away);
        }
    }

    fn take_syn(&mut self, segment: &Segment, from_client: bool) {
        let answered = segment.flags.any(TcpFlags::ACK);
        self.handshake.take_syn(segment, from_client, answered);
        let half = if from_client { &mut self.client } else { &mut self.server };
        half.take_syn_options(segment);
        let server_answered = self.handshake.synack_seen;
        if from_client {
            self.client.anchor(segment, &mut self.server);
        } else {
            self.server.anchor(segment, &mut self.client);
        }
        half::settle_window_scales(&mut self.client, &mut self.server, server_answered);
    }

    /// Its row, at its end: its accounts go along, and without them there is none.
    fn row(&mut self) -> Option<ConnectionRow> {
        let [mut client_account, mut server_account] = *self.accounts.take()?.take()?;
        let client_side = Side { half: &self.client, account: &mut client_account };
        let server_side = Side { half: &self.server, account: &mut server_account };
        let waits =
            [client_side.waits(&server_side, self.last_ts_ns), server_side.waits(&client_side, self.last_ts_ns)];
        let (low, high) = (self.key.low(), self.key.high());
        let (client, server) = if self.client_is_low { (low, high) } else { (high, low) };
        let closed_by = if self.client.figures.fin_segments > 0 && self.server.figures.fin_segments > 0 {
            ClosedBy::Fin
        } else if self.reset {
            ClosedBy::Reset
        } else {
            ClosedBy::End
        };
        let directions = [self.client.figures, self.server.figures];
        let counts = [client_account.counts, server_account.counts];
        Some(ConnectionRow {
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
            line: directions.iter().zip(&counts).find_map(|(figures, counts)| line_of(figures, counts)),
            channel: self.channels.only(),
            full_segment_bytes: behaviour::full_segment_bytes(&self.client.figures, &self.server.figures),
            directions,
            counts,
            rates: [client_account.rates, server_account.rates],
            waits,
            statistics: [client_account.statistics.row(), server_account.statistics.row()],
            behaviours: [client_account.behaviour, server_account.behaviour],
        })
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
