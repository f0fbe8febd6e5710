//! One connection: its two halves, its accounts, and what each of its segments does to them.

use super::handshake::{Handshake, guess_client};
use super::rows::{ClientKnownBy, ClosedBy, ConnectionRow, Place, SegmentRow, SegmentSink};
use super::times::Times;
use crate::accounts::{self, Account, Accounts, Channels, Side, line_of};
use crate::connection::{
    Half, Judged, Revisions, Usual, Verdict, copied, copy_of, exchange, full_segment_bytes, settle_window_scales,
};
use crate::nullable::Nullable;
use crate::wire::{FlowKey, Segment, TcpFlags};

/// One connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) key: FlowKey,
    pub(super) number: u32,
    pub(super) client_is_low: bool,
    pub(super) client_known_by: ClientKnownBy,
    pub(super) reset: bool,
    /// Its row was handed out: nothing may come to it any more.
    pub(super) handed_out: bool,
    pub(super) first_frame: u64,
    pub(super) last_frame: u64,
    pub(super) first_ts_ns: Nullable,
    pub(super) last_ts_ns: Nullable,
    pub(super) handshake: Handshake,
    pub(super) channels: Channels,
    pub(super) client: Half,
    pub(super) server: Half,
    /// `None` where none are kept.
    pub(super) accounts: Option<Accounts>,
    /// None are counted without accounts.
    pub(super) times: Times,
}

impl Connection {
    pub(super) fn new(segment: &Segment, number: u32, accounts: Option<Accounts>) -> Self {
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
            times: Times::default(),
        }
    }

    /// A SYN opens a new connection on the same ports if its ISN is another one, or after a FIN or RST.
    #[inline]
    pub(super) fn is_reused_by(&self, segment: &Segment) -> bool {
        if !segment.flags.any(TcpFlags::SYN) || segment.flags.any(TcpFlags::ACK) {
            return false;
        }
        let from_client = segment.from_low == self.client_is_low;
        let sender = if from_client { &self.client } else { &self.server };
        let closing = self.reset || self.client.figures.fin_segments > 0 || self.server.figures.fin_segments > 0;
        sender.figures.isn.is_some_and(|isn| isn != segment.seq || closing)
    }

    /// Time since its last segment; 0 where times are not known.
    pub(super) fn silent_ns(&self, now: Nullable) -> i64 {
        now.since(self.last_ts_ns).get().unwrap_or(0)
    }

    /// Whether nothing more is expected but stray segments.
    pub(super) fn has_ended(&self) -> bool {
        self.reset || (self.client.figures.fin_segments > 0 && self.server.figures.fin_segments > 0)
    }

    /// Takes one segment in. Compiled twice, so that a pass without accounts goes without all that only they need.
    #[inline]
    pub(super) fn take<const ACCOUNTS: bool>(
        &mut self,
        segment: &Segment,
        revisions: &mut Revisions,
        rows: &mut impl SegmentSink,
    ) {
        self.take_by::<ACCOUNTS, true>(segment, revisions, rows);
    }

    /// Takes one segment in; with `SHORT_WAY`, a usual one by header prediction.
    #[inline(always)]
    pub(super) fn take_by<const ACCOUNTS: bool, const SHORT_WAY: bool>(
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
                && let Some(copy) = copy_of(segment, sender, receiver)
            {
                return push_copy(segment, copy, sender, receiver, place, rows);
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
        let accounts = if ACCOUNTS { self.accounts.as_mut().and_then(Accounts::at_hand) } else { None };
        let accounts = accounts.map(|[client, server]| if from_client { (client, server) } else { (server, client) });
        let sums = Sums { accounts, times: &mut self.times };
        match usual {
            // Compiled twice: most of what is done for data has no meaning for an ACK.
            Some(usual) if segment.payload_bytes > 0 => {
                let judged = usual.exchange::<true>(segment, sender, receiver);
                conclude::<ACCOUNTS>(segment, judged, sender, receiver, sums, place, rows);
            }
            Some(usual) => {
                let judged = usual.exchange::<false>(segment, sender, receiver);
                conclude::<ACCOUNTS>(segment, judged, sender, receiver, sums, place, rows);
            }
            None => take_unusual::<ACCOUNTS>(segment, sender, receiver, sums, place, revisions, rows),
        }
    }

    /// Puts its accounts away, if all that was sent is acknowledged or given up.
    #[cold]
    #[inline(never)]
    pub(super) fn end(&mut self) {
        if self.reset || (self.client.in_flight() == Some(0) && self.server.in_flight() == Some(0)) {
            self.accounts.iter_mut().for_each(Accounts::put_away);
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
        settle_window_scales(&mut self.client, &mut self.server, server_answered);
    }

    /// Its row, at its end: its accounts go along, and without them there is none.
    pub(super) fn row(&mut self) -> Option<ConnectionRow> {
        let [mut client_account, mut server_account] = *self.accounts.take()?.take()?;
        let client_side = Side { half: &self.client, account: &mut client_account };
        let server_side = Side { half: &self.server, account: &mut server_account };
        let waits =
            [client_side.totals(&server_side, self.last_ts_ns), server_side.totals(&client_side, self.last_ts_ns)];
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
            full_segment_bytes: full_segment_bytes(&self.client.figures, &self.server.figures),
            directions,
            counts,
            rates: [client_account.rates, server_account.rates],
            waits,
            statistics: [client_account.statistics.row(), server_account.statistics.row()],
            behaviours: [client_account.behaviour, server_account.behaviour],
            times: std::mem::take(&mut self.times).quantiles(),
        })
    }
}

/// Where a segment is added up.
struct Sums<'a> {
    /// Its sender's, its receiver's; `None` where none are kept.
    accounts: Option<(&'a mut Account, &'a mut Account)>,
    times: &'a mut Times,
}

/// A segment that header prediction does not cover.
#[inline]
fn take_unusual<const ACCOUNTS: bool>(
    segment: &Segment,
    sender: &mut Half,
    receiver: &mut Half,
    sums: Sums<'_>,
    place: Place,
    revisions: &mut Revisions,
    rows: &mut impl SegmentSink,
) {
    let judged = exchange(segment, sender, receiver, revisions);
    conclude::<ACCOUNTS>(segment, judged, sender, receiver, sums, place, rows);
}

/// A segment was judged: its accounts (its sender's, its receiver's) and times take it in, later ones are judged by it, and its row leaves.
#[inline(always)]
fn conclude<const ACCOUNTS: bool>(
    segment: &Segment,
    judged: Judged,
    sender: &mut Half,
    receiver: &Half,
    sums: Sums<'_>,
    place: Place,
    rows: &mut impl SegmentSink,
) {
    // Not in a closure, which would be compiled once for all callers, and not for data and ACKs each.
    let wait = match sums.accounts {
        Some((own, other)) if ACCOUNTS => {
            let (own, other) = (Side { half: sender, account: own }, Side { half: receiver, account: other });
            accounts::take(segment, &judged, own, other)
        }
        _ => None,
    };
    if ACCOUNTS {
        sums.times.take(segment, &judged, place.from_client, receiver.figures.fin_segments > 0);
    }
    judged.remember(segment, sender);
    rows.push(SegmentRow::of(segment, judged, wait, place));
}

/// A packet that was there before has a row, and changes nothing.
#[cold]
fn push_copy(
    segment: &Segment,
    verdict: Verdict,
    sender: &mut Half,
    receiver: &mut Half,
    place: Place,
    rows: &mut impl SegmentSink,
) {
    rows.push(SegmentRow::of(segment, copied(segment, verdict, sender, receiver), None, place));
}
