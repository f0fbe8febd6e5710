//! How a host sends: Nagle's algorithm, the initial window, and segmentation offload.

use serde::{Deserialize, Serialize};

use super::event::Event;
use super::turnaround::Answering;
use crate::connection::{CAUSAL_NS, CLUSTER_BYTES, DirectionState, Kind};
use crate::nullable::Nullable;
use crate::wire::TcpFlags;

/// If more than 4,096 bytes are in flight, a small segment does not prove that Nagle's algorithm is off. A Linux sender
/// without free send memory sends what it has, even with Nagle's algorithm (`tcp_sendmsg_locked`, `wait_for_space`).
/// Linux's minimum send memory is 4,608 bytes (`SOCK_MIN_SNDBUF`).
const PROOF_FLIGHT_BYTES: i64 = 4096;
/// The smallest send buffer that this analysis expects, in bytes: the default of 4.2BSD.
pub(crate) const MIN_BUFFER_BYTES: i64 = 2048;
/// A reaction within 0.2 ms means that the capture was taken at the host, because the reaction of the host alone takes
/// about 0.2 ms. The limit is a heuristic.
const HOST_NS: i64 = 200_000;
/// Nagle's algorithm never delays segments with these flags. A close sends the remaining data, and urgent data is sent
/// at once (Linux, `tcp_send_fin`; 4.4BSD, `tcp_output`).
pub(crate) const NEVER_HELD: u16 = TcpFlags::FIN | TcpFlags::SYN | TcpFlags::URG;
/// Shorter waits are not attributed to Nagle's algorithm, because applications often write at such intervals. The limit
/// is a heuristic.
const MIN_HOLD_NS: i64 = 2_000_000;

/// The accumulators for sent data.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // `tcptrace_lab/schema/` defines each field
pub struct Sending {
    pub super_segments: u32,
    /// Number of segments on the wire minus number of captured segments. The difference comes from offload, which
    /// splits segments after their capture.
    pub hidden_segments: u64,
    /// Number of data segments whose ACK was captured before them.
    pub late_segments: u32,
    /// Allocated with the first evidence.
    pub nagle: Option<Box<Nagle>>,
    pub initial_bytes: u32,
    pub initial_segments: u32,
    /// The end of the latest small segment, as an offset (`snd_sml` in Linux).
    small_end: Nullable,
    first_ack_ts_ns: Nullable,
    initial_over: bool,
    /// Capture time of the ACK after which nothing was in flight, or null if this ACK carried data.
    emptied_ts_ns: Nullable,
    /// Whether the last data before the last ACK was a small segment.
    emptied_of_small: bool,
    /// Whether the last ACK possibly emptied a full send buffer. This is possible if the ACK covered nearly as many
    /// bytes as the largest flight had.
    emptied_of_all: bool,
}

/// Evidence for and against Nagle's algorithm.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // `tcptrace_lab/schema/` defines each field
pub struct Nagle {
    pub small_in_flight: Count,
    pub small_over_full: Count,
    pub holds: Count,
    pub holds_over_full: Count,
    pub holds_ambiguous: u32,
    pub releases: u32,
}

/// The number of events of one kind, and the frame of the first event.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Count {
    pub count: u32,
    /// Frame number of the first event, or 0 without events.
    pub first: u64,
}

impl Count {
    fn add(&mut self, frame: u64) {
        self.first = if self.count == 0 { frame } else { self.first };
        self.count = self.count.saturating_add(1);
    }
}

impl Sending {
    #[cold]
    fn nagle(&mut self) -> &mut Nagle {
        self.nagle.get_or_insert_default()
    }
}

/// Whether a captured segment with `bytes` of payload is smaller than full-sized on the wire. If offload splits the
/// segment, its last piece decides.
///
/// A segment as long as the MSS is full-sized. A path MTU can keep all segments below the MSS. In this case, the
/// longest segments are full-sized if they exceed half of the MSS. A segment of at least half of the largest offered
/// window is never small (RFC 9293, 3.8.6.2.1).
#[inline]
fn is_small(bytes: u32, sender: &DirectionState, max_window: Option<u32>) -> bool {
    let (mss, longest) = (sender.mss_bytes, sender.figures.max_segment_bytes);
    if mss == 0 {
        return false;
    }
    if bytes >= mss {
        return bytes > mss && !bytes.is_multiple_of(mss);
    }
    (bytes < longest || longest <= mss / 2) && max_window.is_none_or(|window| bytes < window / 2)
}

impl Sending {
    /// Adds a segment with data. `answering` belongs to the sender of the segment.
    #[inline]
    pub(super) fn take(
        &mut self,
        event: &Event<'_>,
        now: Nullable,
        sender: &DirectionState,
        receiver: &DirectionState,
        answering: Answering,
    ) {
        let Event { segment, placed, kind, .. } = *event;
        let bytes = segment.payload_bytes;
        let small = kind == Kind::New && is_small(bytes, sender, event.offered_window_bytes);
        let initial = !self.initial_over && !segment.flags.any(TcpFlags::SYN);
        let own_turnaround = if small || initial { answering.turnaround_ns() } else { None };
        let pieces = sender.virtual_segments(bytes);
        if pieces > 1 {
            self.super_segments = self.super_segments.saturating_add(1);
            self.hidden_segments += u64::from(pieces - 1);
        }
        let first_time = matches!(kind, Kind::New | Kind::OutOfOrder);
        if first_time && sender.snd_una.is_some() && placed.end <= sender.snd_una.value() {
            self.late_segments = self.late_segments.saturating_add(1);
        }
        if initial {
            self.initial_window(kind, bytes, pieces, now, own_turnaround);
        }
        if small {
            self.take_small(*event, now, sender, receiver, own_turnaround);
            self.small_end = Some(placed.end).into();
        }
        self.emptied_ts_ns = Nullable::default();
    }

    /// Adds a segment to the initial window, unless the sender already has the first ACK of data. The ACK counts as
    /// arrived as soon as 7/8 of the host's fastest reaction time have passed since the ACK was captured.
    fn initial_window(&mut self, kind: Kind, bytes: u32, pieces: u32, now: Nullable, turnaround_ns: Option<i64>) {
        let acked_for = now.since(self.first_ack_ts_ns).get();
        let reaction_ns = turnaround_ns.filter(|least| *least > HOST_NS).map_or(0, |least| least - least / 8);
        let ack_arrived = acked_for.is_some_and(|ns| ns >= reaction_ns);
        if kind != Kind::New || ack_arrived {
            self.initial_over = true;
        } else {
            self.initial_bytes = self.initial_bytes.saturating_add(bytes);
            self.initial_segments = self.initial_segments.saturating_add(pieces);
        }
    }

    /// Counts a small segment as evidence for or against Nagle's algorithm (RFC 1122, 4.2.3.4). Linux has Minshall's
    /// variant (`tcp_nagle_check`).
    fn take_small(
        &mut self,
        event: Event<'_>,
        now: Nullable,
        sender: &DirectionState,
        receiver: &DirectionState,
        turnaround_ns: Option<i64>,
    ) {
        let Event { segment, placed, in_flight, .. } = event;
        if segment.flags.any(NEVER_HELD) {
            return;
        }
        let waited_ns = now.since(sender.last_data_ts_ns).get().unwrap_or(0);
        let last_ack = receiver.last_ack_ts_ns;
        let Some(in_flight) = in_flight else { return };
        if in_flight > 0 {
            if in_flight > PROOF_FLIGHT_BYTES {
                return;
            }
            let small_end = self.small_end.value();
            let earlier_small = small_end > placed.start - in_flight && small_end <= placed.start;
            if earlier_small {
                self.nagle().small_in_flight.add(segment.frame);
            } else if !event.in_burst {
                self.nagle().small_over_full.add(segment.frame);
            }
            return;
        }
        let emptied = self.emptied_ts_ns;
        // A segment beyond the previous window waited for the window update, not for Nagle's algorithm.
        if !emptied.is_some() || last_ack != emptied || waited_ns < MIN_HOLD_NS || event.needed_window {
            return;
        }
        let (of_small, of_all) = (self.emptied_of_small, self.emptied_of_all);
        let nagle = self.nagle();
        nagle.releases = nagle.releases.saturating_add(1);
        let late_ns = now.since(emptied).get().unwrap_or(i64::MAX).saturating_sub(turnaround_ns.unwrap_or(0));
        if late_ns <= CAUSAL_NS.min(waited_ns / 16) {
            let holds = if of_small { &mut nagle.holds } else { &mut nagle.holds_over_full };
            holds.add(segment.frame);
            nagle.holds_ambiguous = nagle.holds_ambiguous.saturating_add(u32::from(of_all));
        }
    }

    /// Records an ACK for new data of `data_sender`.
    #[inline]
    pub(super) fn acknowledged(&mut self, event: &Event<'_>, now: Nullable, data_sender: &DirectionState) {
        let Some(ack) = event.ack else { return };
        let emptied = ack >= data_sender.snd_max;
        let flight = event.acked.bytes.get().unwrap_or(0);
        let room = i64::from(data_sender.mss_bytes).max(CLUSTER_BYTES);
        let most = data_sender.figures.max_in_flight_bytes.get().unwrap_or(0);
        if ack > 1 && !self.first_ack_ts_ns.is_some() {
            self.first_ack_ts_ns = now;
        }
        self.emptied_of_small = self.small_end.value() == data_sender.snd_max;
        self.emptied_of_all = flight >= MIN_BUFFER_BYTES && flight + room > most;
        self.emptied_ts_ns = if emptied && event.segment.payload_bytes == 0 { now } else { Nullable::default() };
    }
}
