//! The rows that leave this layer: one per segment, one per connection.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::behaviour::Behaviour;
use super::counts::Counts;
use super::departure::{Departure, Waits};
use super::evidence::{Confidence, EcnSignal, Evidence, ResentBy, ResetKind, Tfo};
use super::line::Line;
use super::rates::Rates;
use super::statistics::StatisticsFigures;
use crate::wire::{AtmFacts, Ecn, TcpFlags};

/// What a segment is. The order is that of `KINDS` in `schema.py`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// New data, or the first SYN or FIN.
    New,
    /// A pure ACK that is nothing more special.
    #[default]
    Ack,
    /// Bytes sent before; the cause is not told further.
    Retransmit,
    /// Resent after three duplicate ACKs (RFC 5681, 3.2).
    FastRetransmit,
    /// Resent by the retransmission timer (RFC 6298).
    RtoRetransmit,
    /// A tail loss probe (RFC 8985, 7).
    TailProbe,
    /// Resent although the first copy arrived.
    Spurious,
    /// Came behind later bytes, sent once.
    OutOfOrder,
    /// The capture holds the packet twice.
    CaptureDuplicate,
    /// A keepalive probe (RFC 9293, 3.8.4).
    Keepalive,
    /// The answer to it.
    KeepaliveAck,
    /// A probe into a closed window (RFC 9293, 3.8.6.1).
    ZeroWindowProbe,
    /// An ACK sent only to move the window.
    WindowUpdate,
    /// A duplicate ACK (RFC 5681, 2).
    DuplicateAck,
    /// A RST.
    Reset,
    /// Sent, and thrown away by the receiver's link because a part was lost or damaged (AAL5).
    LinkDamaged,
    /// Resent in the course of a recovery (RFC 6582, RFC 6675).
    RecoveryRetransmit,
    /// A SYN or SYN-ACK sent again.
    SynRetransmit,
    /// The network delivered the packet twice.
    NetworkDuplicate,
    /// The answer to a probe into a closed window that stays closed.
    ZeroWindowProbeAck,
    /// An ACK for a part of what was out when a recovery began (RFC 6582).
    PartialAck,
}

impl Kind {
    /// Whether it carries bytes that had been sent before.
    #[must_use]
    pub fn is_resent(self) -> bool {
        matches!(
            self,
            Self::Retransmit
                | Self::FastRetransmit
                | Self::RtoRetransmit
                | Self::TailProbe
                | Self::Spurious
                | Self::RecoveryRetransmit
                | Self::SynRetransmit
        )
    }
}

/// What let a data segment leave. The order is that of `RELEASED_BY` in `schema.py`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ReleasedBy {
    /// An ACK that arrived just before.
    Ack,
    /// The program wrote: nothing was in flight.
    Write,
    /// A timer of the sender.
    Timer,
    /// It follows another segment of the same burst.
    Burst,
    /// The capture does not tell.
    #[default]
    Unknown,
}

/// An `Option<i64>` in eight bytes, so that rows stay in a core's cache: the smallest i64, which no time, size or
/// offset of a capture reaches, stands for null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<i64>", into = "Option<i64>")] // one byte if null
pub struct Nullable(i64);

impl Nullable {
    /// Null.
    pub const NULL: Self = Self(i64::MIN);

    /// True unless null.
    #[inline]
    #[must_use]
    pub fn is_some(self) -> bool {
        self.0 != Self::NULL.0
    }

    /// The value; of no meaning if null.
    #[inline]
    #[must_use]
    pub fn value(self) -> i64 {
        self.0
    }

    /// The value, if there is one.
    #[inline]
    #[must_use]
    pub fn get(self) -> Option<i64> {
        self.is_some().then_some(self.0)
    }

    /// The larger of both that is known: null is the smallest number.
    #[inline]
    #[must_use]
    pub fn later(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// The smaller of both that is known.
    #[inline]
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        if self.is_some() && (self.0 < other.0 || !other.is_some()) { self } else { other }
    }

    /// `self - earlier`, where both are known.
    #[inline]
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        if self.is_some() && earlier.is_some() { Self(self.0.saturating_sub(earlier.0)) } else { Self::default() }
    }
}

impl Default for Nullable {
    fn default() -> Self {
        Self::NULL
    }
}

impl From<Nullable> for Option<i64> {
    #[inline]
    fn from(nullable: Nullable) -> Self {
        nullable.get()
    }
}

impl From<Option<i64>> for Nullable {
    #[inline]
    fn from(value: Option<i64>) -> Self {
        Self(value.unwrap_or(Self::NULL.0))
    }
}

/// One row of the segments table; `schema.py` says what each column means.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)] // one fact has one home
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
    /// 0: none.
    pub evidence_frame: u64,
    pub ack_lag_ns: Nullable,
    pub rtt_ns: Nullable,
    /// Left, right, left, right, …
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
    pub resent_by: Option<ResentBy>,
    pub dsack: bool,
    pub reset_kind: Option<ResetKind>,
    pub tfo: Option<Tfo>,
    pub ecn_signal: Option<EcnSignal>,
    /// How often these bytes were sent by now; 0 without sequence numbers.
    pub transmission: u8,
    pub released_by: Option<ReleasedBy>,
    pub path: u16,
    pub atm: Option<AtmFacts>,
    /// Of a segment that occupies sequence space.
    pub departure: Option<Departure>,
}

/// Where rows of segments go, one after the other.
pub trait SegmentSink {
    /// Takes the next one.
    fn push(&mut self, row: SegmentRow);
}

impl SegmentSink for Vec<SegmentRow> {
    #[inline]
    fn push(&mut self, row: SegmentRow) {
        Self::push(self, row);
    }
}

/// How the client was told from the server. The order is that of `CLIENT_KNOWN_BY` in `schema.py`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ClientKnownBy {
    /// It sent the SYN.
    Syn,
    /// The other side sent the SYN-ACK.
    SynAck,
    /// The first data seen is a request, or an answer.
    Data,
    /// The server's port is the lower one.
    Port,
    /// Only who was seen first is known.
    First,
}

/// What ended a connection. The order is that of `CLOSED_BY` in `schema.py`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ClosedBy {
    /// FINs of both sides.
    Fin,
    /// A RST.
    Reset,
    /// Its ports were used again.
    Reuse,
    /// The capture ended.
    End,
    /// Too many connections at a time: the engine let go of it.
    Room,
    /// It was silent for hours, among many others: the engine let go of it.
    Idle,
}

/// The figures of one direction that its segments are judged by, or that only what went wrong moves; the others are
/// [`Counts`]. `schema.py` says what each means.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // one fact has one home
pub struct DirectionFigures {
    pub segments: u64,
    pub data_segments: u64,
    pub spurious_retransmissions: u32,
    pub capture_duplicates: u32,
    pub network_duplicates: u32,
    pub not_captured_bytes: u64,
    pub not_captured_holes: u32,
    pub syn_segments: u32,
    pub fin_segments: u32,
    pub rst_segments: u32,
    /// Sequence number of offset 0; `None` before anything is known.
    pub isn: Option<u32>,
    pub syn_options: Option<SynOptions>,
    pub window_scale: Option<u8>,
    pub max_in_flight_bytes: Nullable,
    pub max_segment_bytes: u32,
    /// Beside the data of the first segment of that size; 0 if unknown.
    pub header_bytes: u16,
    pub rtt_min_ns: Nullable,
}

/// What a SYN offers, as far as it was captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is an option of its own
pub struct SynOptions {
    /// Largest segment the sender of the SYN wants to receive.
    pub mss: Option<u16>,
    /// Its window shift, limited to 14 (RFC 7323, 2.3).
    pub window_scale: Option<u8>,
    /// SACK permitted.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// The capture holds only the first of its options: of those that are not among them nothing is known.
    pub cut: bool,
}

impl SynOptions {
    /// Its window shift, `Some(None)` if it offers none; `None` if that is not known.
    #[must_use]
    pub fn scale_offered(&self) -> Option<Option<u8>> {
        (self.window_scale.is_some() || !self.cut).then_some(self.window_scale)
    }

    /// Whether all that a cut one shows stands in `whole`, too.
    #[must_use]
    pub fn is_beginning_of(&self, whole: &Self) -> bool {
        self.mss.is_none_or(|mss| whole.mss == Some(mss))
            && self.window_scale.is_none_or(|shift| whole.window_scale == Some(shift))
            && (whole.sack_permitted || !self.sack_permitted)
            && (whole.timestamps || !self.timestamps)
    }

    /// Whether it permits SACK; `None` if that is not known.
    #[must_use]
    pub fn permits_sack(&self) -> Option<bool> {
        (self.sack_permitted || !self.cut).then_some(self.sack_permitted)
    }

    /// Whether it offers timestamps; `None` if that is not known.
    #[must_use]
    pub fn offers_timestamps(&self) -> Option<bool> {
        (self.timestamps || !self.cut).then_some(self.timestamps)
    }
}

/// Samples of a time in sum: round trips, waits.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct RttFigures {
    /// Number of samples.
    pub samples: u64,
    /// Sum of their squares, ns².
    squares: f64,
    sum_ns: i64,
    min_ns: i64,
    max_ns: i64,
}

impl RttFigures {
    /// Takes one sample in.
    #[inline]
    pub fn add(&mut self, rtt_ns: i64) {
        self.min_ns = if self.samples == 0 { rtt_ns } else { self.min_ns.min(rtt_ns) };
        self.max_ns = if self.samples == 0 { rtt_ns } else { self.max_ns.max(rtt_ns) };
        self.sum_ns = self.sum_ns.saturating_add(rtt_ns);
        self.squares += rtt_ns as f64 * rtt_ns as f64;
        self.samples += 1;
    }

    /// Smallest sample.
    #[inline]
    #[must_use]
    pub fn min_ns(&self) -> Option<i64> {
        (self.samples > 0).then_some(self.min_ns)
    }

    /// Mean of the samples, rounded down.
    #[must_use]
    pub fn mean_ns(&self) -> Option<i64> {
        // The sum saturates where a hostile clock makes samples of centuries.
        (self.samples > 0).then(|| (self.sum_ns / self.samples as i64).clamp(self.min_ns, self.max_ns))
    }

    /// Standard deviation of the samples (of a sample: divided by n - 1); `None` below two.
    #[must_use]
    pub fn stdev_ns(&self) -> Option<i64> {
        let (samples, sum_ns) = (self.samples as f64, self.sum_ns as f64);
        let variance = (self.squares - sum_ns * sum_ns / samples) / (samples - 1.0);
        (self.samples > 1).then(|| variance.max(0.0).sqrt().round() as i64)
    }

    /// Largest sample.
    #[must_use]
    pub fn max_ns(&self) -> Option<i64> {
        (self.samples > 0).then_some(self.max_ns)
    }
}

/// One row of the connections table; `schema.py` says what each column means.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // one fact has one home
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
    pub syn_to_synack_ns: Nullable,
    pub synack_to_ack_ns: Nullable,
    pub line: Option<Line>,
    /// VPI and VCI.
    pub channel: Option<(u16, u16)>,
    /// Of either direction.
    pub full_segment_bytes: Option<u16>,
    /// Client's, server's.
    pub directions: [DirectionFigures; 2],
    /// The same.
    pub counts: [Counts; 2],
    /// The same.
    pub waits: [Waits; 2],
    /// The same; `None` where few data were sent.
    pub rates: [Option<Box<Rates>>; 2],
    pub statistics: [StatisticsFigures; 2],
    /// The same.
    pub behaviours: [Behaviour; 2],
}
