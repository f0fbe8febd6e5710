//! Statistics of one direction that classification does not need. Together with [`crate::connection::DirectionFigures`]
//! and [`super::Counts`], the statistics cover tcptrace's long listing, tshark's conversations, and round trips by TCP
//! timestamps (RFC 7323).
//!
//! A segment adds to the statistics of its sender, and the segment's ACK adds to the statistics of the peer. Figures
//! about rare events have an allocation of their own, so most connections need no memory for these figures.

use serde::{Deserialize, Serialize};

use super::rtt_figures::RttFigures;
use crate::connection::{
    Acknowledged, DirectionState, EcnSignal, FAST_RETRANSMIT_DUPLICATE_ACKS, Kind, Placed, Repeat,
};
use crate::nullable::Nullable;
use crate::wire::{Ecn, Segment, TcpFlags};

/// The figures of one direction.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // `tcptrace_lab/schema/` defines each field
pub struct StatisticsFigures {
    pub usual: Usual,
    pub rare: Rare,
}

/// Figures that nearly every direction has.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // `tcptrace_lab/schema/` defines each field
pub struct Usual {
    pub frame_bytes: u64,
    pub truncated_bytes: u64,
    pub window_sum_bytes: u64,
    pub window_samples: u64,
    pub max_gap_ns: Nullable,
    pub in_flight_sum_bytes: u64,
    pub in_flight_samples: u64,
    pub min_in_flight_bytes: Nullable,
    /// Integral of the bytes in flight up to `level_ts_ns`, in byte nanoseconds.
    pub in_flight_area: f64,
    pub stream_end: Nullable,
    pub advancing_acks: u64,
    pub acked_bytes: u64,
    pub acked_segments: u64,
    pub cumulatively_acked_segments: u64,
    pub rtt_handshake_ns: Nullable,
    pub rtt_timestamps: RttFigures,
    pub rtt_full_size: RttFigures,
    pub rtt_full_size_bytes: u32,
    pub max_acked_bytes: u32,
    pub max_acked_segments: u32,
    pub without_ack: u32,
    pub pushed_without_data: u32,
    pub min_segment_bytes: Option<u32>,
    pub initial_window_bytes: u32,
    pub initial_window_segments: u32,
    pub sack_segments: u32,
    pub dsack_segments: u32,
    pub max_sack_blocks: u8,
    /// Bytes in flight since `level_ts_ns`.
    level_bytes: i64,
    level_ts_ns: Nullable,
}

/// Figures about losses, retransmissions, urgent data, ECN and other rare events.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // `tcptrace_lab/schema/` defines each field
pub struct Rare {
    pub urgent_segments: u64,
    pub urgent_bytes: u64,
    pub zero_window_probe_bytes: u64,
    /// Segments that the path marked as Congestion Experienced (CE), and segments in which this host reports a reduced
    /// congestion window (CWR; RFC 3168, 6.1.2).
    pub ce_segments: u64,
    pub cwr_segments: u64,
    pub post_loss_acks: u64,
    pub triple_duplicate_acks: u64,
    pub max_retransmits: u16,
    /// Round trips of retransmitted segments. A round trip runs from the last transmission of a segment to the ACK for
    /// the end of this segment.
    pub rtt_retransmitted: RttFigures,
    /// Time between two successive transmissions of a segment.
    pub retransmit_interval: RttFigures,
}

/// The figures of one direction while its connection is tracked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Statistics {
    usual: Usual,
    rare: Option<Box<Rare>>,
}

/// One classified segment, with the state of both hosts just after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event<'a> {
    pub segment: &'a Segment,
    pub kind: Kind,
    pub placed: Placed,
    pub ack: Option<i64>,
    pub window_bytes: Option<u32>,
    pub since_previous: Nullable,
    pub repeat: Option<Repeat>,
    pub acknowledged: Acknowledged,
    /// The SACK blocks as offsets: left edge, right edge, left edge, right edge, and so on.
    pub sack_blocks: Option<&'a [i64]>,
    pub ecn: Option<EcnSignal>,
}

impl Event<'_> {
    /// Adds the segment to the statistics of its sender, and the segment's ACK to the statistics of the peer.
    #[inline]
    pub(super) fn count(
        &self,
        (own, sender): (&mut Statistics, &DirectionState),
        (others, receiver): (&mut Statistics, &DirectionState),
    ) {
        own.sent(self, sender.in_flight(), sender.figures.syn_segments > 0, sender.snd_una);
        others.received(self, receiver.in_flight().unwrap_or(0), receiver.duplicate_acks_received);
    }
}

impl Statistics {
    /// The figures so far.
    pub(crate) fn row(&self) -> StatisticsFigures {
        let mut usual = self.usual;
        if usual.max_gap_ns.value() < 0 {
            usual.max_gap_ns = Nullable::NULL; // The clock ran backwards at each segment, so there is no gap.
        }
        StatisticsFigures { usual, rare: self.rare.as_deref().copied().unwrap_or_default() }
    }

    #[cold]
    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_with(Box::default)
    }

    /// Adds a segment of this host. `una` is the end of the data that the peer has acknowledged.
    #[inline]
    fn sent(&mut self, event: &Event<'_>, in_flight: Option<i64>, has_syn: bool, una: Nullable) {
        let segment = event.segment;
        let flags = segment.flags;
        let usual = &mut self.usual;
        usual.frame_bytes += u64::from(segment.frame_bytes);
        usual.without_ack += u32::from(!flags.any(TcpFlags::ACK));
        if event.since_previous.value() > usual.max_gap_ns.value() {
            usual.max_gap_ns = event.since_previous;
        }
        if segment.payload_bytes > 0 {
            usual.data(segment);
            // All data that is sent before the first ACK of data belongs to the initial window (RFC 5681, 3.1).
            if has_syn && !event.kind.is_resent() && una.get().is_none_or(|una| una <= 1) {
                usual.initial_window_bytes = usual.initial_window_bytes.saturating_add(segment.payload_bytes);
                usual.initial_window_segments += 1;
            }
        } else if flags.any(TcpFlags::PSH) {
            usual.pushed_without_data += 1;
        }
        if !flags.any(TcpFlags::SYN | TcpFlags::RST) {
            usual.sample_window(event);
            usual.sample_in_flight(event.kind, in_flight);
        }
        usual.level(segment.ts_ns.into(), in_flight.unwrap_or(0));
        if event.acknowledged.payload_bytes > 0 {
            usual.advance(&event.acknowledged);
        }
        if let Some(blocks) = event.sack_blocks {
            usual.sack(event.ack, blocks);
        }
        if flags.any(TcpFlags::FIN) && !flags.any(TcpFlags::RST) {
            usual.stream_end = Some(event.placed.end - 1).into();
        }
        let is_marked = segment.ip.ecn.0 == Ecn::CE;
        let is_flagged = flags.any(TcpFlags::URG | TcpFlags::CWR);
        if is_flagged || is_marked || event.kind == Kind::ZeroWindowProbe || event.repeat.is_some() {
            self.sent_rarely(*event);
        }
    }

    #[cold]
    fn sent_rarely(&mut self, event: Event<'_>) {
        let segment = event.segment;
        let rare = self.rare();
        if segment.flags.any(TcpFlags::URG) && segment.payload_bytes > 0 {
            rare.urgent_segments += 1;
            rare.urgent_bytes += u64::from(segment.payload_bytes.min(segment.urgent.into()));
        }
        rare.ce_segments += u64::from(segment.ip.ecn.0 == Ecn::CE);
        rare.cwr_segments += u64::from(matches!(event.ecn, Some(EcnSignal::Reduced | EcnSignal::EchoReduced)));
        if event.kind == Kind::ZeroWindowProbe {
            rare.zero_window_probe_bytes += u64::from(segment.payload_bytes);
        }
        if let Some(repeat) = event.repeat {
            rare.max_retransmits = rare.max_retransmits.max(repeat.resends);
            let waited = Nullable::from(segment.ts_ns).since(repeat.before_ts_ns);
            if let Some(waited_ns) = waited.get().filter(|waited_ns| *waited_ns >= 0) {
                rare.retransmit_interval.add(waited_ns);
            }
        }
    }

    /// Adds a segment of the peer, whose ACK possibly covers data of this host.
    #[inline]
    fn received(&mut self, event: &Event<'_>, in_flight: i64, duplicate_acks: u32) {
        let now = Nullable::from(event.segment.ts_ns);
        let usual = &mut self.usual;
        usual.level(now, in_flight);
        let Acknowledged { newest, segments, echoed_ts_ns, sample_from_ns, syn_ts_ns, .. } = event.acknowledged;
        if syn_ts_ns.is_some() && !event.segment.flags.any(TcpFlags::RST) {
            usual.rtt_handshake_ns = Some(now.since(syn_ts_ns).value()).filter(|rtt_ns| *rtt_ns >= 0).into();
        }
        if segments > 0 {
            usual.cumulatively_acked_segments += u64::from(segments - u32::from(newest.is_some()));
            if let Some(rtt_ns) = now.since(echoed_ts_ns).get().filter(|rtt_ns| *rtt_ns >= 0) {
                usual.rtt_timestamps.add(rtt_ns);
            }
            if let Some(newest) = newest {
                usual.sample_full_size(newest.payload_bytes, now.since(sample_from_ns));
                if newest.overtaken || newest.resent {
                    let rare = self.rare();
                    if newest.overtaken {
                        rare.post_loss_acks += 1;
                    } else if let Some(rtt_ns) = now.since(newest.ts_ns).get().filter(|rtt_ns| *rtt_ns >= 0) {
                        rare.rtt_retransmitted.add(rtt_ns);
                    }
                }
            }
        }
        if event.kind == Kind::DuplicateAck && duplicate_acks == FAST_RETRANSMIT_DUPLICATE_ACKS {
            self.rare().triple_duplicate_acks += 1;
        }
    }
}

impl Usual {
    /// Integral of the bytes in flight up to the end of the connection, in byte nanoseconds.
    #[must_use]
    pub fn in_flight_area_until(&self, last_ts_ns: Nullable) -> f64 {
        let lasted_ns = last_ts_ns.since(self.level_ts_ns).get().unwrap_or(0).max(0);
        self.in_flight_area + self.level_bytes as f64 * lasted_ns as f64
    }

    /// Adds the payload length of a segment with data.
    #[inline]
    fn data(&mut self, segment: &Segment) {
        self.truncated_bytes += u64::from(segment.payload_bytes.saturating_sub(segment.captured_payload_bytes));
        self.min_segment_bytes =
            Some(self.min_segment_bytes.map_or(segment.payload_bytes, |least| least.min(segment.payload_bytes)));
    }

    #[inline]
    fn sample_window(&mut self, event: &Event<'_>) {
        if let (Some(window), Some(_)) = (event.window_bytes, event.ack) {
            self.window_sum_bytes += u64::from(window);
            self.window_samples += 1;
        }
    }

    /// Adds a sample of the bytes in flight. Only segments that were sent and captured in order give samples.
    #[inline]
    fn sample_in_flight(&mut self, kind: Kind, in_flight: Option<i64>) {
        let Some(in_flight) = in_flight else { return };
        if kind.is_resent() || matches!(kind, Kind::OutOfOrder | Kind::NetworkDuplicate) {
            return;
        }
        self.in_flight_sum_bytes = self.in_flight_sum_bytes.saturating_add(in_flight as u64);
        self.in_flight_samples += 1;
        if in_flight > 0 && self.min_in_flight_bytes.get().is_none_or(|least| in_flight < least) {
            self.min_in_flight_bytes = Some(in_flight).into();
        }
    }

    /// Records that `bytes` are in flight from `now` on.
    #[inline]
    fn level(&mut self, now: Nullable, bytes: i64) {
        if bytes == self.level_bytes {
            return;
        }
        if let Some(lasted_ns) = now.since(self.level_ts_ns).get().filter(|lasted_ns| *lasted_ns > 0) {
            self.in_flight_area += self.level_bytes as f64 * lasted_ns as f64;
        }
        (self.level_bytes, self.level_ts_ns) = (bytes, now);
    }

    /// Adds an ACK of this host for data of the peer.
    #[inline]
    fn advance(&mut self, acknowledged: &Acknowledged) {
        let bytes = u32::try_from(acknowledged.payload_bytes).unwrap_or(u32::MAX);
        self.advancing_acks += 1;
        self.acked_bytes += u64::from(bytes);
        self.acked_segments += u64::from(acknowledged.segments);
        self.max_acked_bytes = self.max_acked_bytes.max(bytes);
        self.max_acked_segments = self.max_acked_segments.max(acknowledged.segments);
    }

    /// Counts SACK blocks. A first block below the ACK, or inside the second block, is a D-SACK (RFC 2883, 4).
    fn sack(&mut self, ack: Option<i64>, blocks: &[i64]) {
        let (blocks, _) = blocks.as_chunks::<2>();
        self.sack_segments += 1;
        self.max_sack_blocks = self.max_sack_blocks.max(blocks.len() as u8);
        let Some([left, right]) = blocks.first() else { return };
        let acknowledged = ack.is_some_and(|ack| right <= &ack);
        let inside = blocks.get(1).is_some_and(|[from, to]| from <= left && right <= to);
        self.dsack_segments += u32::from(acknowledged || inside);
    }

    /// Adds a round trip of the largest segments so far. If a segment is larger than all earlier ones, the figures
    /// start anew.
    #[inline]
    fn sample_full_size(&mut self, payload_bytes: i64, rtt: Nullable) {
        let Some(rtt_ns) = rtt.get().filter(|rtt_ns| *rtt_ns >= 0) else { return };
        let Some(bytes) = u32::try_from(payload_bytes).ok().filter(|bytes| *bytes > 0) else { return };
        if bytes > self.rtt_full_size_bytes {
            (self.rtt_full_size_bytes, self.rtt_full_size) = (bytes, RttFigures::default());
        }
        if bytes == self.rtt_full_size_bytes {
            self.rtt_full_size.add(rtt_ns);
        }
    }
}
