//! How a host sends: whether Nagle's algorithm delays its small segments, its initial window, and segmentation offload.

use serde::{Deserialize, Serialize};

use super::event::Event;
use super::turnaround::Answering;
use crate::connection::{CAUSAL_NS, CLUSTER_BYTES, DirectionState, Kind};
use crate::nullable::Nullable;
use crate::wire::TcpFlags;

/// If more than this is in flight, a small segment proves nothing. A Linux sender that is short of send memory sends
/// what it has, even with Nagle's algorithm (`tcp_sendmsg_locked`, `wait_for_space`). The least send memory is 4,608
/// bytes (`SOCK_MIN_SNDBUF`).
const PROOF_FLIGHT_BYTES: i64 = 4096;
/// Smallest capacity of a send buffer: the default of 4.2BSD.
pub(crate) const MIN_BUFFER_BYTES: i64 = 2048;
/// A host that reacts within this time is at the capture point, because hosts alone take this long (a heuristic).
const HOST_NS: i64 = 200_000;
/// Segments that Nagle's algorithm never delays: a close sends the remaining data, and urgent data leaves at
/// once (Linux, `tcp_send_fin`; 4.4BSD, `tcp_output`).
pub(crate) const NEVER_HELD: u16 = TcpFlags::FIN | TcpFlags::SYN | TcpFlags::URG;
/// A shorter wait is not attributed to Nagle's algorithm, because applications also write this often (a heuristic).
const MIN_HOLD_NS: i64 = 2_000_000;

/// The accumulators; `tcptrace_lab/schema/` defines each.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // each is defined in `tcptrace_lab/schema/`
pub struct Sending {
    pub super_segments: u32,
    /// Segments on the wire beyond the captured ones, because super-segments were split.
    pub hidden_segments: u64,
    /// Data segments captured after their acknowledgment.
    pub late_segments: u32,
    /// Allocated with the first evidence.
    pub nagle: Option<Box<Nagle>>,
    pub initial_bytes: u32,
    pub initial_segments: u32,
    /// Offset after the newest small segment (`snd_sml` in Linux).
    small_end: Nullable,
    /// When the first ACK of data was captured.
    first_ack_ts_ns: Nullable,
    initial_over: bool,
    /// When an ACK without data emptied the flight.
    emptied_ts_ns: Nullable,
    /// That flight ended with a small segment.
    emptied_of_small: bool,
    /// That flight may have filled the send buffer: never was much more in flight.
    emptied_of_all: bool,
}

/// Evidence for and against Nagle's algorithm.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // each is defined in `tcptrace_lab/schema/`
pub struct Nagle {
    pub small_in_flight: Count,
    pub small_over_full: Count,
    pub holds: Count,
    pub holds_over_full: Count,
    pub holds_ambiguous: u32,
    pub releases: u32,
}

/// A number of events, and the frame of the first.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Count {
    pub count: u32,
    /// Frame number; 0 if there is none.
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

/// Whether `bytes` of `sender` end in a segment smaller than full-sized.
///
/// Full-sized is the MSS. If the path MTU is smaller, no segment of a bulk transfer reaches the MSS, so the longest
/// segment seen counts as well. A transfer of small writes shows no such length; then segments below half of the MSS
/// are small. Half of the largest window ever offered counts as full-sized in any case (RFC 9293, 3.8.6.2.1).
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
    /// Takes a segment with data; `answering` belongs to its sender.
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

    /// Counts data that leaves before the first ACK of data can have arrived. Measured at the capture point, an ACK
    /// takes at least as long as this host's fastest reaction, less 1/8.
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

    /// Takes a small segment as evidence for or against Nagle's algorithm (RFC 1122, 4.2.3.4; Linux has Minshall's
    /// variant, `tcp_nagle_check`).
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
        // A segment that would not have fitted the window before that ACK waited for the window.
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

    /// Takes an ACK of new data of `data_sender`.
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
