//! One direction of a connection: the state of its sender as captured so far.

use super::figures::{DirectionFigures, MAX_WINDOW_SCALE, SynOptions};
use super::history::History;
use super::mss;
use super::recent::Recent;
use super::sequence_space::{Holes, Outstanding, Placed, Stamp};
use crate::nullable::Nullable;
use crate::wire::{Segment, TcpFlags};

/// Smaller windows fit the data by chance at some scale too often, because writes have sizes such as 1,024 and 4,096 (a
/// heuristic).
const MIN_USEFUL_WINDOW: u16 = 256;
/// Size of an mbuf cluster of 4.4BSD (`MCLBYTES`). 4.4BSD rounds a larger MSS down to whole clusters (`tcp_mss`).
pub(crate) const CLUSTER_BYTES: i64 = 2048;
/// For windows above this, Linux limits a segment to half of the window (`TCP_MSS_DEFAULT`, in
/// `tcp_bound_to_half_wnd`).
const TINY_WINDOW_BYTES: u32 = 536;

/// Bytes that must have been sent earlier, because a segment without data has a higher sequence number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overtaken {
    /// Offset after the last of them.
    pub end: i64,
    /// The segment that shows it.
    pub by: Stamp,
}

/// State of one direction, named after its sender. `snd_*` are the variables of RFC 9293, 3.3.1.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub(crate) struct DirectionState {
    /// Whether this host has sent anything in the capture.
    pub started: bool,
    /// Highest offset sent.
    pub snd_max: i64,
    /// Lowest offset not acknowledged; `None` until it is known.
    pub snd_una: Nullable,
    /// Offset that this host's last segment acknowledged.
    pub acked: Nullable,
    /// Receive window in the header of this host's last segment, not scaled.
    pub raw_window: u16,
    /// Receive window of this host's last segment, scaled; `None` while the scale is unknown.
    pub window_bytes: Option<u32>,
    /// Duplicate ACKs received for this host's data since the last ACK of new data.
    pub duplicate_acks_received: u32,
    /// Bytes of this host's data in the SACK blocks of the last ACK.
    pub sacked_bytes: i64,
    /// When `snd_una` last advanced.
    pub una_ts_ns: Nullable,
    /// Smoothed RTT (SRTT of RFC 6298, 2) from the capture point to the receiver and back.
    pub smoothed_rtt_ns: Nullable,
    /// Variation of the RTT (RTTVAR of RFC 6298, 2); 0 without samples.
    pub rtt_variation_ns: i64,
    /// Retransmissions, and what SACK blocks report about them; `None` until something is lost or repeated.
    pub history: Option<Box<History>>,
    /// The last segments of this host.
    pub recent: Recent,
    /// IP ID of its last segment.
    pub last_ip_id: Option<u16>,
    /// Whether that IP ID differs from the previous one, so that IP IDs distinguish packets.
    pub ip_id_moves: bool,
    /// It sent a SYN-ACK.
    pub syn_answered: bool,
    /// The peer did not accept the data of its SYN.
    pub syn_data_refused: bool,
    /// It uses Accurate ECN: its ECN flags are a counter (RFC 9768).
    pub accurate_ecn: bool,
    /// Frame of its first RST; 0 if there is none.
    pub reset_frame: u64,
    /// Frame of its last segment.
    pub last_sent_frame: u64,
    /// Its last segment was a keepalive probe.
    pub last_was_keepalive: bool,
    /// Its last segment was a zero-window probe.
    pub last_was_probe: bool,
    /// Its last segment carried data, so the next one may belong to the same burst.
    pub last_was_data: bool,
    /// Time of its last segment.
    pub last_ts_ns: Nullable,
    /// Time of its last segment with an ACK.
    pub last_ack_ts_ns: Nullable,
    /// Frame of its last segment with an ACK.
    pub last_ack_frame: u64,
    /// Time of its last segment with data.
    pub last_data_ts_ns: Nullable,
    /// First frame of the current burst.
    pub burst_frame: u64,
    pub outstanding: Outstanding,
    /// `None` until a segment skips bytes.
    pub holes: Option<Box<Holes>>,
    /// Bytes that were sent before a segment without data but not captured by then.
    pub overtaken: Option<Box<Overtaken>>,
    pub figures: DirectionFigures,
    /// Largest payload of its segments according to both SYNs; 0 while unknown.
    pub mss_bytes: u32,
}

impl DirectionState {
    /// Places a segment that this host sent. The first segment defines offset 0, as in Wireshark: a SYN has offset 0.
    /// Without a SYN, the first captured byte has offset 1; if a keepalive is first, the byte that it repeats precedes
    /// offset 1. A RST defines nothing, because anyone may have forged its sequence number (RFC 5961).
    #[inline]
    pub(crate) fn place(&mut self, segment: &Segment) -> Placed {
        let syn = segment.flags.any(TcpFlags::SYN);
        let first = if syn { segment.seq } else { segment.seq.wrapping_sub(1) };
        let isn = self.figures.isn.unwrap_or(first);
        let start = crate::seq::unwrap(segment.seq, isn, self.snd_max);
        if !segment.flags.any(TcpFlags::RST) {
            self.figures.isn = Some(isn);
            if !self.started {
                self.started = true;
                let repeats = self.snd_una.get().is_none() && is_single_without_push(segment);
                self.snd_max = start + i64::from(repeats);
            }
        }
        let controls = i64::from(syn) + i64::from(segment.flags.any(TcpFlags::FIN));
        Placed { start, end: start.saturating_add(i64::from(segment.payload_bytes) + controls) }
    }

    /// Moves offset 0 to a SYN that is captured after other segments (late, or after forged ones), unless data was
    /// already placed relative to the guessed offset 0. The ACKs of `receiver` are moved with it.
    pub(crate) fn anchor(&mut self, syn: &Segment, receiver: &mut DirectionState) {
        let guessed = self
            .figures
            .isn
            .filter(|isn| *isn != syn.seq && self.figures.syn_segments == 0 && self.figures.data_segments == 0);
        let Some(guessed) = guessed else { return };
        let shift = crate::seq::unwrap(syn.seq, guessed, self.snd_max);
        let moved = |offset: Nullable| Nullable::from(offset.get().map(|offset| offset - shift));
        self.figures.isn = Some(syn.seq);
        self.snd_max -= shift;
        self.snd_una = moved(self.snd_una);
        receiver.acked = moved(receiver.acked);
        self.outstanding = Outstanding::default();
        self.holes = None;
        self.overtaken = None;
    }

    /// Places an acknowledgment of this host's data. It defines offset 0 if nothing else has.
    #[inline]
    pub(crate) fn place_ack(&mut self, ack: u32) -> i64 {
        let isn = *self.figures.isn.get_or_insert_with(|| {
            self.snd_max = 1;
            ack.wrapping_sub(1)
        });
        crate::seq::unwrap(ack, isn, self.snd_max.max(self.snd_una.get().unwrap_or(self.snd_max)))
    }

    /// Bytes sent and not acknowledged (`FlightSize`); `None` until the peer's first ACK.
    #[inline]
    pub(crate) fn in_flight(&self) -> Option<i64> {
        self.snd_una.get().map(|una| (self.snd_max - una).max(0))
    }

    /// Whether the only segment of this host may be a keepalive without data. Its sequence number is then one too low
    /// (RFC 9293, 3.8.4). If the byte there is acknowledged later, it is not missing from the capture.
    #[cold]
    pub(crate) fn may_have_probed(&self) -> bool {
        let DirectionFigures { segments, data_segments, syn_segments, fin_segments, .. } = self.figures;
        segments == 1 && data_segments == 0 && syn_segments == 0 && fin_segments == 0
    }

    /// Updates the largest number of bytes in flight.
    #[inline]
    pub(crate) fn note_flight(&mut self) {
        if let Some(in_flight) = self.in_flight() {
            self.figures.max_in_flight_bytes = self.figures.max_in_flight_bytes.later(Some(in_flight).into());
        }
    }

    /// Usable window: room left in the window that `other` advertised.
    #[inline]
    pub(crate) fn usable_window(&self, other: &DirectionState) -> Option<i64> {
        Some(self.snd_una.get()?.saturating_add(i64::from(other.window_bytes?)) - self.snd_max)
    }

    /// Whether data up to `end` exactly fills this host's receive window at one of the possible scales. Used only while
    /// the scale is unknown.
    pub(crate) fn is_filled_by(&self, end: i64) -> bool {
        let Some(acked) = self.acked.get().filter(|_| self.window_bytes.is_none() && self.raw_window > 0) else {
            return false;
        };
        let (bytes, window) = (end.saturating_sub(acked), i64::from(self.raw_window));
        let most = if self.raw_window < MIN_USEFUL_WINDOW { 0 } else { MAX_WINDOW_SCALE };
        (0..=most).any(|scale| window << scale == bytes)
    }

    /// Number of segments of at most one MSS in `bytes`.
    #[inline]
    pub(crate) fn virtual_segments(&self, bytes: u32) -> u32 {
        if bytes > self.mss_bytes && self.mss_bytes > 0 { bytes.div_ceil(self.mss_bytes) } else { 1 }
    }

    /// The largest payload of its segments (SMSS, RFC 5681).
    ///
    /// This is normally the MSS of the SYNs. It is the longest captured payload if no SYN was captured, if a tunnel
    /// reduces the MSS slightly, or if the sender rounds the MSS down to whole clusters. It is half of the window if
    /// the sender limits its segments to that. `two_in_flight` says that two segments of the longest payload were in
    /// flight together; `max_window` is the largest window that the peer advertised.
    #[inline]
    pub(crate) fn smss_bytes(&self, max_window: u32, two_in_flight: bool) -> i64 {
        let longest = i64::from(self.figures.max_segment_bytes);
        let mss = i64::from(self.mss_bytes);
        if mss == 0 {
            return longest;
        }
        if longest >= mss {
            return mss;
        }
        let old = self.is_old();
        let tunnelled = longest * 10 >= mss * 9 && (!old || (two_in_flight && Self::are_full(longest, max_window)));
        if tunnelled || (old && self.rounds_down(mss, longest, max_window)) {
            return longest;
        }
        let half = Self::half_of(max_window);
        let halves = longest <= half || longest % half == 0;
        if !old && self.figures.syn_options.is_some() && halves { half.min(mss) } else { mss }
    }

    /// The largest segment that Linux sends into a window smaller than two segments: half of the largest window
    /// advertised, or all of a tiny one (`tcp_bound_to_half_wnd`). Two such segments may be captured as one. Other
    /// stacks treat segments of this size as full-sized while they have no more data (RFC 9293, 3.8.6.2.1).
    #[inline]
    fn half_of(max_window: u32) -> i64 {
        match max_window {
            0 => i64::MAX,
            1..=TINY_WINDOW_BYTES => max_window.into(),
            _ => i64::from(max_window / 2),
        }
    }

    /// Whether its longest segments are full-sized although the MSS is larger, because two of them were in flight
    /// together.
    ///
    /// Stacks that offer neither SACK nor timestamps still run over tunnels, where segments stay below the MSS
    /// (libslirp subtracts 20 bytes too many for the headers). Two of them in flight cannot be small segments: Nagle's
    /// algorithm does not send a second small segment, unless it is half of the largest window (4.4BSD, `tcp_output`).
    #[inline]
    fn are_full(longest: i64, max_window: u32) -> bool {
        longest * 2 < i64::from(max_window)
    }

    /// Whether its SYN offers neither SACK nor timestamps; false if no SYN was captured.
    #[inline]
    fn is_old(&self) -> bool {
        let refuses_both =
            |options: SynOptions| options.permits_sack() == Some(false) && options.offers_timestamps() == Some(false);
        self.figures.syn_options.is_some_and(refuses_both)
    }

    /// Whether a BSD stack sends a segment of this size regardless of Nagle's algorithm: half of the largest
    /// window (`tcp_output`).
    #[inline]
    pub(crate) fn is_half_a_window(&self, payload_bytes: u32, max_window: u32) -> bool {
        self.is_old() && max_window > 0 && payload_bytes >= max_window / 2
    }

    /// Whether `longest` is what 4.4BSD makes of an MSS above one cluster by rounding it down. Older BSDs do not round.
    /// They may send half of the largest window (`tcp_output`). In a throughput deadlock, they send the content of the
    /// send buffer, and such a segment is alone in flight except for a FIN.
    #[inline]
    fn rounds_down(&self, mss: i64, longest: i64, max_window: u32) -> bool {
        longest > 0
            && longest == mss / CLUSTER_BYTES * CLUSTER_BYTES
            && i64::from(max_window) > longest * 2 + CLUSTER_BYTES
            && self.figures.max_in_flight_bytes.get().unwrap_or(0) > longest + 1
    }

    /// Takes the options of this host's SYN. Of several SYNs, the first with completely captured options counts. If a
    /// SYN lacks an option of an earlier truncated SYN, it is a new attempt: XNU and Windows omit options after some
    /// attempts.
    pub(crate) fn take_syn_options(&mut self, syn: &Segment) {
        let options = &syn.options;
        let offered = SynOptions {
            mss: options.mss,
            window_scale: options.window_scale.map(|shift| shift.min(MAX_WINDOW_SCALE)),
            sack_permitted: options.sack_permitted,
            timestamps: options.timestamps.is_some(),
            cut: options.cut,
        };
        let known =
            self.figures.syn_options.filter(|before| !before.cut || offered.cut || !before.is_beginning_of(&offered));
        self.figures.syn_options = known.or(Some(offered));
    }

    /// The window that `segment` of this host advertises. Windows of SYNs are never scaled (RFC 7323, 2.2).
    #[inline]
    pub(crate) fn advertised(&self, segment: &Segment) -> Option<u32> {
        if segment.flags.any(TcpFlags::SYN) {
            return Some(u32::from(segment.window));
        }
        // A window of 0 is 0 at any scale.
        let shift = self.figures.window_scale.or_else(|| (segment.window == 0).then_some(0))?;
        Some(u32::from(segment.window) << shift.min(MAX_WINDOW_SCALE))
    }

    /// The history of this direction; created on first use.
    pub(crate) fn history_mut(&mut self) -> &mut History {
        self.history.get_or_insert_with(Box::default)
    }

    /// Takes an RTT sample (RFC 6298, 2.2 and 2.3).
    #[inline]
    pub(crate) fn add_rtt(&mut self, rtt_ns: i64) {
        self.figures.rtt_min_ns = self.figures.rtt_min_ns.earlier(Some(rtt_ns).into());
        let Some(srtt_ns) = self.smoothed_rtt_ns.get() else {
            self.smoothed_rtt_ns = Some(rtt_ns).into();
            self.rtt_variation_ns = rtt_ns >> 1;
            return;
        };
        let error_ns = rtt_ns.wrapping_sub(srtt_ns);
        self.rtt_variation_ns =
            self.rtt_variation_ns.wrapping_add(error_ns.wrapping_abs().wrapping_sub(self.rtt_variation_ns) >> 2);
        self.smoothed_rtt_ns = Some(srtt_ns.wrapping_add(error_ns >> 3)).into();
    }
}

/// Whether the segment carries one byte without PSH. Such a segment is a probe: PSH is set on the last byte of what an
/// application wrote (RFC 9293, 3.9.1.2, MUST-61), and a segment that is followed by more data is larger than one byte.
/// Stacks repeat the last byte as a keepalive (3.8.4), or send the next one as a zero-window probe (3.8.6.1).
#[inline]
pub(crate) fn is_single_without_push(segment: &Segment) -> bool {
    const OTHERS: u16 = TcpFlags::PSH | TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST | TcpFlags::URG;
    segment.payload_bytes == 1 && segment.flags.any(TcpFlags::ACK) && !segment.flags.any(OTHERS)
}

/// Derives the window scale of both hosts from the captured SYNs (RFC 7323, 2.2): both must offer one. A SYN-ACK
/// carries the option only if the SYN did, so a SYN-ACK with the option determines the scale of its own host. A SYN
/// without the option determines both: no scaling.
pub(crate) fn settle_window_scales(
    client: &mut DirectionState,
    server: &mut DirectionState,
    server_answered_syn: bool,
) {
    let offer = |direction: &DirectionState| direction.figures.syn_options.and_then(|options| options.scale_offered());
    let (of_client, of_server) = match (offer(client), offer(server)) {
        (Some(Some(client)), Some(Some(server))) => (Some(client), Some(server)),
        (Some(None), _) | (_, Some(None)) => (Some(0), Some(0)),
        (None, Some(server)) if server_answered_syn => (None, server),
        _ => (None, None),
    };
    client.figures.window_scale = of_client;
    server.figures.window_scale = of_server;
}

/// Derives the largest payload between the two hosts from the options that their SYNs have offered so far.
#[cold]
pub(crate) fn settle_mss(sender: &mut DirectionState, receiver: &mut DirectionState, v6: bool) {
    let offers = [sender.figures.syn_options, receiver.figures.syn_options];
    sender.mss_bytes = mss::segment_bytes(offers, v6);
    receiver.mss_bytes = sender.mss_bytes;
}
