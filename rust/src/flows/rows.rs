//! The rows of segments and connections.

use std::net::IpAddr;

use super::times::DirectionTimes;
use crate::accounts::{Behaviour, Counts, Line, Rates, StatisticsFigures};
use crate::connection::{
    Confidence, DirectionFigures, EcnSignal, Evidence, Judged, Kind, ReleasedBy, ResetKind, RetransmitTrigger, Tfo,
};
use crate::nullable::Nullable;
use crate::sender::{SenderTotals, Wait};
use crate::wire::{AtmFacts, Ecn, Segment, TcpFlags};

/// One row of the segments table.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)] // `tcptrace_lab/schema/` defines each column
pub struct SegmentRow {
    pub frame: u64,
    pub ts_ns: Nullable,
    pub seq: i64,
    pub ack: Nullable,
    pub in_flight_bytes: Nullable,
    pub usable_window_bytes: Nullable,
    pub since_previous_ns: Nullable,
    pub since_last_ack_ns: Nullable,
    pub since_last_data_ns: Nullable,
    pub released_by_frame: Nullable,
    pub acked_bytes: Nullable,
    pub acked_unseen_bytes: Nullable,
    /// Number of the frame that proves the segment's kind, or 0 without such a frame.
    pub evidence_frame: u64,
    pub ack_lag_ns: Nullable,
    pub rtt_ns: Nullable,
    /// The SACK blocks as offsets: left edge, right edge, left edge, right edge, and so on.
    pub sack_blocks: Option<Box<[i64]>>,
    pub conn: u32,
    pub payload_bytes: u32,
    pub captured_payload_bytes: u32,
    pub window_bytes: Option<u32>,
    pub timestamps: Option<(u32, u32)>,
    pub ip_id: Option<u16>,
    pub flags: TcpFlags,
    pub from_client: bool,
    pub ttl: u8,
    pub ecn: Ecn,
    pub kind: Kind,
    pub evidence: Evidence,
    pub confidence: Confidence,
    pub retransmit_trigger: Option<RetransmitTrigger>,
    pub dsack: bool,
    pub reset_kind: Option<ResetKind>,
    pub tfo: Option<Tfo>,
    pub ecn_signal: Option<EcnSignal>,
    /// Number of transmissions of the segment's bytes up to this one, or 0 for a segment without sequence space.
    pub transmission: u8,
    pub released_by: Option<ReleasedBy>,
    pub path: u16,
    pub atm: Option<AtmFacts>,
    /// The wait before this segment, or `None` for a segment without sequence space.
    pub departure: Option<Wait>,
}

/// The connection and the direction of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub conn: u32,
    pub from_client: bool,
}

impl SegmentRow {
    /// The row of a classified segment, with the wait before it.
    #[inline]
    pub(crate) fn of(
        segment: &Segment,
        judged: Judged,
        wait: Option<Wait>,
        Place { conn, from_client }: Place,
    ) -> Self {
        let Judged { placed, ack, before, sack_blocks, verdict, signals, released, answer, transmission, .. } = judged;
        Self {
            frame: segment.frame,
            ts_ns: segment.ts_ns.into(),
            seq: placed.start,
            ack: ack.into(),
            in_flight_bytes: before.in_flight.into(),
            usable_window_bytes: before.usable_window.into(),
            since_previous_ns: before.since_previous,
            since_last_ack_ns: before.since_last_ack,
            since_last_data_ns: before.since_last_data,
            released_by_frame: released.and_then(|(_, frame)| frame).map(|frame| frame as i64).into(),
            acked_bytes: answer.acked_bytes,
            acked_unseen_bytes: answer.unseen_bytes,
            evidence_frame: verdict.frame,
            ack_lag_ns: answer.lag_ns,
            rtt_ns: answer.rtt_ns,
            sack_blocks,
            conn,
            payload_bytes: segment.payload_bytes,
            captured_payload_bytes: segment.captured_payload_bytes,
            window_bytes: before.window_bytes,
            timestamps: segment.options.timestamps,
            ip_id: segment.ip.id,
            flags: segment.flags,
            from_client,
            ttl: segment.ip.ttl,
            ecn: segment.ip.ecn,
            kind: verdict.kind,
            evidence: verdict.evidence,
            confidence: verdict.confidence,
            retransmit_trigger: verdict.retransmit_trigger,
            dsack: answer.dsack,
            reset_kind: signals.reset_kind,
            tfo: signals.tfo,
            ecn_signal: signals.ecn,
            transmission,
            released_by: released.map(|(by, _)| by),
            path: segment.path,
            atm: segment.atm,
            departure: wait,
        }
    }
}

/// Receives segment rows one by one.
pub trait SegmentSink {
    /// Receives the next row.
    fn push(&mut self, row: SegmentRow);

    /// Called when all data and the FINs of a connection are acknowledged. A few more segments can follow.
    fn over(&mut self, conn: u32) {
        let _ = conn;
    }
}

impl SegmentSink for Vec<SegmentRow> {
    #[inline]
    fn push(&mut self, row: SegmentRow) {
        Self::push(self, row);
    }
}

/// How the client was identified, in the order of `CLIENT_KNOWN_BY` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ClientKnownBy {
    /// The client sent the SYN.
    Syn,
    /// The server sent the SYN-ACK.
    SynAck,
    /// The first captured segment contains a request or a response.
    Data,
    /// The host with the lower port is the server.
    Port,
    /// The sender of the first captured segment counts as the client, because there is no better evidence.
    First,
}

/// What ended a connection, in the order of `CLOSED_BY` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ClosedBy {
    /// FINs from both hosts.
    Fin,
    /// A RST.
    Reset,
    /// The connection's ports were reused.
    Reuse,
    /// The capture ended.
    End,
    /// The engine needed room for other connections.
    Room,
    /// The connection was silent for hours while many others were tracked.
    Idle,
}

/// One row of the connections table.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // `tcptrace_lab/schema/` defines each column
pub struct ConnectionRow {
    pub conn: u32,
    pub client: (IpAddr, u16),
    pub server: (IpAddr, u16),
    pub client_known_by: ClientKnownBy,
    pub closed_by: ClosedBy,
    pub first_frame: u64,
    pub last_frame: u64,
    pub first_ts_ns: Nullable,
    pub last_ts_ns: Nullable,
    /// The tick of the capture's clock, if it is coarse.
    pub tick_ns: Option<i64>,
    pub syn_to_synack_ns: Nullable,
    pub synack_to_ack_ns: Nullable,
    pub line: Option<Line>,
    /// VPI and VCI.
    pub channel: Option<(u16, u16)>,
    /// The largest payload of a segment in either direction.
    pub full_segment_bytes: Option<u16>,
    /// The figures of both directions, the client's direction first.
    pub directions: [DirectionFigures; 2],
    /// The counts of both directions, the client's direction first.
    pub counts: [Counts; 2],
    /// The waits of both hosts, the client first.
    pub waits: [SenderTotals; 2],
    /// The rates of both directions, the client's direction first. `None` means too few data segments.
    pub rates: [Option<Box<Rates>>; 2],
    /// The statistics of both directions, the client's direction first.
    pub statistics: [StatisticsFigures; 2],
    /// The behaviour of both hosts, the client first.
    pub behaviours: [Behaviour; 2],
    /// The times of both directions, the client's direction first.
    pub times: [DirectionTimes; 2],
}
