//! One connection: the state of its two directions, its accounts, and the effect of each segment on them.

use super::handshake::{Handshake, guess_client};
use super::rows::{ClientKnownBy, ClosedBy, ConnectionRow, Place, SegmentRow, SegmentSink};
use super::times::Times;
use crate::accounts::{self, AccountedDirection, Accounts, Channels, DirectionAccount, line_of};
use crate::capture::Granularity;
use crate::connection::{
    DirectionState, Judged, Predicted, Revisions, Verdict, copied, copy_of, exchange, full_segment_bytes,
    settle_window_scales,
};
use crate::nullable::Nullable;
use crate::wire::{FlowKey, Segment, TcpFlags};

#[allow(clippy::struct_excessive_bools)] // each of them is a separate, named fact
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) key: FlowKey,
    pub(super) number: u32,
    pub(super) client_is_low: bool,
    pub(super) client_known_by: ClientKnownBy,
    pub(super) reset: bool,
    /// Whether the FINs of both hosts, and all data before them, are acknowledged.
    pub(super) over: bool,
    /// Whether the connection's row has been returned. After this, the connection gets no more segments.
    pub(super) handed_out: bool,
    pub(super) first_frame: u64,
    pub(super) last_frame: u64,
    pub(super) first_ts_ns: Nullable,
    pub(super) last_ts_ns: Nullable,
    granularity: Granularity,
    pub(super) handshake: Handshake,
    pub(super) channels: Channels,
    pub(super) client: DirectionState,
    pub(super) server: DirectionState,
    /// The accounts of both directions, or `None` in a pass without accounts.
    pub(super) accounts: Option<Accounts>,
    /// The times for quantiles; empty in a pass without accounts.
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
            over: false,
            handed_out: false,
            first_frame: segment.frame,
            last_frame: segment.frame,
            first_ts_ns: segment.ts_ns.into(),
            last_ts_ns: segment.ts_ns.into(),
            granularity: Granularity::default(),
            handshake: Handshake::default(),
            channels: Channels::default(),
            client: DirectionState::default(),
            server: DirectionState::default(),
            accounts,
            times: Times::default(),
        }
    }

    /// Whether `segment` is a SYN that opens a new connection on the same ports, because it has another ISN or follows
    /// a FIN or RST.
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

    /// Time since the connection's last segment, or 0 if a time is unknown.
    pub(super) fn silent_ns(&self, now: Nullable) -> i64 {
        now.since(self.last_ts_ns).get().unwrap_or(0)
    }

    /// Whether FINs of both hosts or a RST have ended the connection. After such an end, only stray segments are
    /// expected.
    pub(super) fn has_ended(&self) -> bool {
        self.reset || (self.client.figures.fin_segments > 0 && self.server.figures.fin_segments > 0)
    }

    /// Processes one segment. If `ACCOUNTS` is false, the compiled function contains no code for accounts.
    #[inline]
    pub(super) fn take<const ACCOUNTS: bool>(
        &mut self,
        segment: &Segment,
        revisions: &mut Revisions,
        rows: &mut impl SegmentSink,
    ) {
        self.take_by::<ACCOUNTS, true>(segment, revisions, rows);
    }

    /// Processes one segment. If `FAST_PATH` is set, header prediction processes the segments that it covers.
    #[expect(
        clippy::inline_always,
        reason = "measured: unless inlined, a pass without accounts contains the code for accounts"
    )]
    #[inline(always)]
    pub(super) fn take_by<const ACCOUNTS: bool, const FAST_PATH: bool>(
        &mut self,
        segment: &Segment,
        revisions: &mut Revisions,
        rows: &mut impl SegmentSink,
    ) {
        let from_client = segment.from_low == self.client_is_low;
        if ACCOUNTS {
            // The link can lose the end of an AAL5 PDU. Such a PDU is recognized only at the end of the channel's next
            // PDU, so its frame is processed after a later frame.
            self.first_frame = self.first_frame.min(segment.frame);
            self.last_frame = self.last_frame.max(segment.frame);
            self.first_ts_ns = self.first_ts_ns.earlier(segment.ts_ns.into());
            if let Some(step_ns) = Nullable::from(segment.ts_ns).since(self.last_ts_ns).get()
                && segment.frame != self.first_frame
            {
                self.granularity.take(step_ns);
            }
        }
        self.last_ts_ns = self.last_ts_ns.later(segment.ts_ns.into());
        let place = Place { conn: self.number, from_client };
        let (sender, receiver) =
            if from_client { (&mut self.client, &mut self.server) } else { (&mut self.server, &mut self.client) };
        let predicted = if FAST_PATH { Predicted::of(segment, sender, receiver) } else { None };
        if predicted.is_none() {
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
        let accounts = if ACCOUNTS { self.accounts.as_mut().and_then(Accounts::expanded) } else { None };
        let accounts = accounts.map(|[client, server]| if from_client { (client, server) } else { (server, client) });
        let sums = Sums { accounts, times: &mut self.times };
        match predicted {
            // Header prediction is compiled twice, because most of the work for data is not needed for an ACK.
            Some(predicted) if segment.payload_bytes > 0 => {
                let judged = predicted.exchange::<true>(segment, sender, receiver);
                finish::<ACCOUNTS>(segment, judged, sender, receiver, sums, place, rows);
            }
            Some(predicted) => {
                let judged = predicted.exchange::<false>(segment, sender, receiver);
                finish::<ACCOUNTS>(segment, judged, sender, receiver, sums, place, rows);
            }
            None => take_slow_path::<ACCOUNTS>(segment, sender, receiver, sums, place, revisions, rows),
        }
    }

    /// Stores the accounts compactly if all data is acknowledged, or if a RST ended the connection. Returns whether
    /// this segment made the connection `over`.
    #[cold]
    #[inline(never)]
    pub(super) fn end(&mut self) -> bool {
        let all_acked = self.client.in_flight() == Some(0) && self.server.in_flight() == Some(0);
        if self.reset || all_acked {
            self.accounts.iter_mut().for_each(Accounts::compact);
        }
        all_acked && !self.reset && !std::mem::replace(&mut self.over, true)
    }

    fn take_syn(&mut self, segment: &Segment, from_client: bool) {
        let answered = segment.flags.any(TcpFlags::ACK);
        self.handshake.take_syn(segment, from_client, answered);
        let direction = if from_client { &mut self.client } else { &mut self.server };
        direction.take_syn_options(segment);
        let server_answered = self.handshake.synack_seen;
        if from_client {
            self.client.anchor(segment, &mut self.server);
        } else {
            self.server.anchor(segment, &mut self.client);
        }
        settle_window_scales(&mut self.client, &mut self.server, server_answered);
    }

    /// The row of a finished connection. The row takes over the accounts, so a connection without accounts has no row.
    pub(super) fn row(&mut self) -> Option<ConnectionRow> {
        let [mut client_account, mut server_account] = *self.accounts.take()?.take()?;
        let client_direction = AccountedDirection { direction: &self.client, account: &mut client_account };
        let server_direction = AccountedDirection { direction: &self.server, account: &mut server_account };
        let waits = [
            client_direction.totals(&server_direction, self.last_ts_ns),
            server_direction.totals(&client_direction, self.last_ts_ns),
        ];
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
            tick_ns: self.granularity.tick_ns(),
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

/// The accumulators for a segment.
struct Sums<'a> {
    /// The accounts of the segment's sender and receiver, or `None` in a pass without accounts.
    accounts: Option<(&'a mut DirectionAccount, &'a mut DirectionAccount)>,
    times: &'a mut Times,
}

/// Processes a segment that header prediction does not cover.
#[inline]
fn take_slow_path<const ACCOUNTS: bool>(
    segment: &Segment,
    sender: &mut DirectionState,
    receiver: &mut DirectionState,
    sums: Sums<'_>,
    place: Place,
    revisions: &mut Revisions,
    rows: &mut impl SegmentSink,
) {
    let judged = exchange(segment, sender, receiver, revisions);
    finish::<ACCOUNTS>(segment, judged, sender, receiver, sums, place, rows);
}

/// Adds a classified segment to the accounts and times, makes it the sender's last segment, and emits its row.
#[expect(
    clippy::inline_always,
    reason = "measured: unless inlined, a pass without accounts contains the code for accounts"
)]
#[inline(always)]
fn finish<const ACCOUNTS: bool>(
    segment: &Segment,
    judged: Judged,
    sender: &mut DirectionState,
    receiver: &DirectionState,
    sums: Sums<'_>,
    place: Place,
    rows: &mut impl SegmentSink,
) {
    // `accounts::take` is a function and not a closure, so that the compiler makes separate versions for data and for
    // ACKs.
    let wait = match sums.accounts {
        Some((own, other)) if ACCOUNTS => {
            let (own, other) = (
                AccountedDirection { direction: sender, account: own },
                AccountedDirection { direction: receiver, account: other },
            );
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

/// Emits the row of a duplicate packet, which changes nothing else.
#[cold]
fn push_copy(
    segment: &Segment,
    verdict: Verdict,
    sender: &mut DirectionState,
    receiver: &mut DirectionState,
    place: Place,
    rows: &mut impl SegmentSink,
) {
    rows.push(SegmentRow::of(segment, copied(segment, verdict, sender, receiver), None, place));
}
