//! The state of one direction after each segment: the highest sent offset, the highest acknowledged offset, and the
//! right edge of the window.

use crate::connection::Kind;
use crate::wire::TcpFlags;

/// The kinds of the sender's segments that get a mark. All other kinds are ordinary.
pub(super) const SENDER_MARKS: [Kind; 13] = [
    Kind::Retransmit,
    Kind::FastRetransmit,
    Kind::RtoRetransmit,
    Kind::TailProbe,
    Kind::Spurious,
    Kind::RecoveryRetransmit,
    Kind::SynRetransmit,
    Kind::OutOfOrder,
    Kind::NetworkDuplicate,
    Kind::CaptureDuplicate,
    Kind::Keepalive,
    Kind::ZeroWindowProbe,
    Kind::Reset,
];

/// The first 8 kinds in `SENDER_MARKS` can fill holes: their bytes were sent before, but are possibly missing from the
/// capture.
const FILLING: usize = 8;

/// The first 12 kinds in `SENDER_MARKS` repeat bytes. Repeated bytes are new to the capture only above the highest sent
/// offset, or within a hole.
const AGAIN: usize = 12;

/// The properties of a segment that the figures need. Times are in nanoseconds. Offsets are stream offsets.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Segment<'a> {
    pub frame: i64,
    pub ts_ns: i64,
    pub from_client: bool,
    pub seq: i64,
    pub ack: Option<i64>,
    pub payload_bytes: i64,
    pub flags: TcpFlags,
    pub window_bytes: Option<i64>,
    /// The SACK blocks as offsets: left edge, right edge, left edge, right edge, and so on.
    pub sack_blocks: &'a [i64],
    /// Code of the segment's kind ([`Kind`]).
    pub kind: u8,
    pub ack_lag_ns: Option<i64>,
    pub rtt_ns: Option<i64>,
}

impl Segment<'_> {
    pub(super) fn end(&self) -> i64 {
        self.seq.saturating_add(self.payload_bytes)
    }

    /// Whether the segment has data. The payload of a RST does not count.
    pub(super) fn brings_data(&self) -> bool {
        self.payload_bytes > 0 && !self.flags.any(TcpFlags::RST)
    }

    /// The index of the segment's kind in `SENDER_MARKS`, or `None` for an ordinary segment.
    pub(super) fn mark(&self) -> Option<usize> {
        SENDER_MARKS.iter().position(|kind| *kind as u8 == self.kind)
    }

    /// Whether the segment can fill holes.
    pub(super) fn may_fill_holes(&self) -> bool {
        self.mark().is_some_and(|place| place < FILLING)
    }

    /// Number of new bytes. If the segment repeats bytes, only bytes above the highest sent offset count.
    pub(super) fn fresh_bytes(&self, sent_before: Option<i64>) -> i64 {
        let is_again = self.mark().is_some_and(|place| place < AGAIN);
        let from = sent_before.filter(|_| is_again).map_or(self.seq, |before| before.max(self.seq));
        self.end().saturating_sub(from).clamp(0, self.payload_bytes.max(0))
    }
}

/// The highest sent offset, the highest acknowledged offset, and the right edge of the window, each `None` while
/// unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct State {
    pub sent: Option<i64>,
    pub acked: Option<i64>,
    pub edge: Option<i64>,
}

/// A segment's time and direction, and the state of the tracked direction after this segment, with `None` for unknown
/// values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Tracked {
    /// Time since the connection's first segment.
    pub t_ns: i64,
    /// Whether the sender of the tracked direction sent the segment.
    pub mine: bool,
    pub sent: Option<i64>,
    pub acked: Option<i64>,
    pub edge: Option<i64>,
    /// The highest sent offset before this segment.
    pub sent_before: Option<i64>,
    /// Bytes that are sent but not acknowledged.
    pub flight: Option<i64>,
    /// Bytes from the highest acknowledged offset to the right edge of the window.
    pub offered: Option<i64>,
}

/// Tracks one direction through the segments of its connection.
#[derive(Debug)]
pub struct Tracker {
    first_ts_ns: i64,
    from_client: bool,
    state: State,
}

impl Tracker {
    /// A tracker that starts at any segment of the connection. `state` is the direction's state before this segment.
    /// `first_ts_ns` is the time of the connection's first segment.
    #[must_use]
    pub fn new(first_ts_ns: i64, from_client: bool, state: State) -> Self {
        Self { first_ts_ns, from_client, state }
    }

    /// The state after all segments so far.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Processes the next segment of the connection, in either direction.
    pub fn follow(&mut self, segment: &Segment) -> Tracked {
        let mine = segment.from_client == self.from_client;
        let sent_before = self.state.sent;
        if !segment.flags.any(TcpFlags::RST) {
            self.advance(segment, mine);
        }
        let State { sent, acked, edge } = self.state;
        let beyond = |end: Option<i64>| Some(end?.saturating_sub(acked?));
        Tracked {
            t_ns: segment.ts_ns.saturating_sub(self.first_ts_ns),
            mine,
            sent,
            acked,
            edge,
            sent_before,
            // A negative flight means that data below the ACK is missing from the capture, so the flight is unknown.
            flight: beyond(sent).filter(|flight| *flight >= 0),
            offered: beyond(edge),
        }
    }

    fn advance(&mut self, segment: &Segment, mine: bool) {
        let state = &mut self.state;
        if mine {
            let flags = [TcpFlags::SYN, TcpFlags::FIN].into_iter().filter(|flag| segment.flags.any(*flag)).count();
            state.sent = state.sent.max(Some(segment.end().saturating_add(flags as i64)));
            return;
        }
        state.acked = state.acked.max(segment.ack);
        // An old ACK that arrives after a newer one must not change the window.
        if segment.ack.is_some() && segment.ack == state.acked && segment.window_bytes.is_some() {
            state.edge = segment.ack.zip(segment.window_bytes).map(|(ack, window)| ack.saturating_add(window));
        }
    }
}
