//! The state of one direction of a connection, derived from the segments captured so far.

use super::figures::{DirectionFigures, MAX_WINDOW_SCALE, SynOptions};
use super::history::History;
use super::mss;
use super::recent::Recent;
use super::sequence_space::{Holes, Outstanding, Placed, Stamp};
use crate::nullable::Nullable;
use crate::wire::{Segment, TcpFlags};

/// If the unscaled window is below this value, only window scale 0 is tried (a heuristic). At a larger scale, a write
/// of 1,024 or 4,096 bytes would often fill a small window by chance.
const MIN_USEFUL_WINDOW: u16 = 256;
/// Size of an mbuf cluster of 4.4BSD (`MCLBYTES`). If the MSS is larger than a cluster, 4.4BSD rounds it down to whole
/// clusters (`tcp_mss`).
pub(crate) const CLUSTER_BYTES: i64 = 2048;
/// If the largest advertised window exceeds this size, Linux limits segments to half of the window (`TCP_MSS_DEFAULT`
/// in `tcp_bound_to_half_wnd`).
const TINY_WINDOW_BYTES: u32 = 536;

/// Bytes that were sent but are not captured yet. A captured segment without data has a higher sequence number, so
/// these bytes were sent before that segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overtaken {
    /// Offset after the last of these bytes.
    pub end: i64,
    /// The segment with the higher sequence number.
    pub by: Stamp,
}

/// The state of one direction; "this host" is its sender. `snd_*` are the variables of RFC 9293, 3.3.1.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // the flags are independent
pub(crate) struct DirectionState {
    /// Whether a segment of this host was captured.
    pub started: bool,
    /// Highest offset sent.
    pub snd_max: i64,
    /// Lowest offset of this host's data that is not acknowledged; `None` until it is known.
    pub snd_una: Nullable,
    /// Offset that this host's last segment acknowledged.
    pub acked: Nullable,
    /// Unscaled receive window in the header of this host's last segment.
    pub raw_window: u16,
    /// Scaled receive window of this host's last segment; `None` while the window scale is unknown.
    pub window_bytes: Option<u32>,
    /// Number of duplicate ACKs for this host's data since the last ACK of new data.
    pub duplicate_acks_received: u32,
    /// Number of bytes of this host's data in the SACK blocks of the peer's last ACK.
    pub sacked_bytes: i64,
    /// When `snd_una` last advanced.
    pub una_ts_ns: Nullable,
    /// Smoothed RTT (SRTT of RFC 6298, 2) from the capture point to the receiver and back.
    pub smoothed_rtt_ns: Nullable,
    /// Variation of the RTT (RTTVAR of RFC 6298, 2); 0 before the first RTT sample.
    pub rtt_variation_ns: i64,
    /// This host's retransmissions, and the peer's SACK blocks; `None` until this host retransmits or the peer sends
    /// SACK blocks.
    pub history: Option<Box<History>>,
    /// The last segments of this host, to recognize duplicates.
    pub recent: Recent,
    /// IP ID of this host's last segment.
    pub last_ip_id: Option<u16>,
    /// Whether the IP ID distinguishes this host's packets, because the last two segments have different IP IDs.
    pub ip_id_moves: bool,
    /// Whether this host sent a SYN-ACK.
    pub syn_answered: bool,
    /// Whether the peer did not accept the data in this host's SYN.
    pub syn_data_refused: bool,
    /// Whether this host uses Accurate ECN. If so, its ECN flags are a counter (RFC 9768).
    pub accurate_ecn: bool,
    /// Frame of this host's first RST; 0 if there is none.
    pub reset_frame: u64,
    /// Frame of this host's last segment.
    pub last_sent_frame: u64,
    /// Whether the last segment of this host was a keepalive probe.
    pub last_was_keepalive: bool,
    /// Whether the last segment of this host was a zero-window probe.
    pub last_was_probe: bool,
    /// Whether the last segment of this host carried data. If so, its next segment may belong to the same burst.
    pub last_was_data: bool,
    /// Time of this host's last segment.
    pub last_ts_ns: Nullable,
    /// Time of this host's last segment with the ACK flag.
    pub last_ack_ts_ns: Nullable,
    /// Frame of this host's last segment with the ACK flag.
    pub last_ack_frame: u64,
    /// Time of this host's last segment with data.
    pub last_data_ts_ns: Nullable,
    /// First frame of this host's current burst.
    pub burst_frame: u64,
    pub outstanding: Outstanding,
    /// The holes in the captured data; `None` until a segment skips bytes.
    pub holes: Option<Box<Holes>>,
    /// Bytes that were sent before a captured segment without data, but are not captured yet.
    pub overtaken: Option<Box<Overtaken>>,
    pub figures: DirectionFigures,
    /// Largest payload of this host's segments in bytes, derived from both SYNs; 0 while unknown.
    pub mss_bytes: u32,
}

impl DirectionState {
    /// Converts the sequence number of this host's segment to an offset. As in Wireshark, the first captured segment
    /// defines offset 0: a SYN has offset 0, and without a SYN the first captured byte has offset 1. If the first
    /// captured segment is a keepalive, the byte that it repeats counts as already sent. A RST does not define offset
    /// 0, because an attacker may have forged its sequence number (RFC 5961).
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

    /// Moves offset 0 to a SYN that was captured after other segments of this host. Either the SYN was captured late,
    /// or the other segments were forged. Offset 0 does not move if data already has offsets. The offset that
    /// `receiver` acknowledged is corrected too.
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

    /// Converts an acknowledgment number for this host's data to an offset. If offset 0 is not known yet, the
    /// acknowledgment number defines it.
    #[inline]
    pub(crate) fn place_ack(&mut self, ack: u32) -> i64 {
        let isn = *self.figures.isn.get_or_insert_with(|| {
            self.snd_max = 1;
            ack.wrapping_sub(1)
        });
        crate::seq::unwrap(ack, isn, self.snd_max.max(self.snd_una.get().unwrap_or(self.snd_max)))
    }

    /// Bytes that were sent and are not acknowledged (`FlightSize`, RFC 5681); `None` until the peer's first ACK.
    #[inline]
    pub(crate) fn in_flight(&self) -> Option<i64> {
        self.snd_una.get().map(|una| (self.snd_max - una).max(0))
    }

    /// Whether only one segment of this host was captured, and whether this segment may be a keepalive without data. A
    /// keepalive's sequence number is one below `SND.NXT` (RFC 9293, 3.8.4). The ACK of the peer is therefore one
    /// higher than this sequence number, although no byte is missing from the capture.
    #[cold]
    pub(crate) fn may_have_probed(&self) -> bool {
        let DirectionFigures { segments, data_segments, syn_segments, fin_segments, .. } = self.figures;
        segments == 1 && data_segments == 0 && syn_segments == 0 && fin_segments == 0
    }

    #[inline]
    pub(crate) fn note_flight(&mut self) {
        if let Some(in_flight) = self.in_flight() {
            self.figures.max_in_flight_bytes = self.figures.max_in_flight_bytes.later(Some(in_flight).into());
        }
    }

    /// Usable window: number of bytes that this host can still send into the window that `other` advertised.
    #[inline]
    pub(crate) fn usable_window(&self, other: &DirectionState) -> Option<i64> {
        Some(self.snd_una.get()?.saturating_add(i64::from(other.window_bytes?)) - self.snd_max)
    }

    /// Whether this host's receive window ends at the offset `end` of the peer's data, for one of the possible window
    /// scales. Returns false if the window scale is known.
    pub(crate) fn is_filled_by(&self, end: i64) -> bool {
        let Some(acked) = self.acked.get().filter(|_| self.window_bytes.is_none() && self.raw_window > 0) else {
            return false;
        };
        let (bytes, window) = (end.saturating_sub(acked), i64::from(self.raw_window));
        let most = if self.raw_window < MIN_USEFUL_WINDOW { 0 } else { MAX_WINDOW_SCALE };
        (0..=most).any(|scale| window << scale == bytes)
    }

    /// Number of segments on the wire for one captured segment of `bytes` bytes, which is greater than 1 if offload
    /// splits or merges segments. The result is 1 while the MSS is unknown.
    #[inline]
    pub(crate) fn virtual_segments(&self, bytes: u32) -> u32 {
        if bytes > self.mss_bytes && self.mss_bytes > 0 { bytes.div_ceil(self.mss_bytes) } else { 1 }
    }

    /// The largest payload of this host's segments (SMSS, RFC 5681), in bytes.
    ///
    /// The SMSS is normally the MSS of the SYNs. There are three cases in which the SMSS is the longest captured
    /// payload: no SYN was captured, a tunnel reduces the MSS slightly, or the sender rounds the MSS down to whole
    /// clusters. The SMSS is half of the window if the sender limits its segments to half of the window.
    /// `two_in_flight` is true if two segments of the longest payload were in flight at the same time; `max_window` is
    /// the largest window that the peer advertised.
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

    /// The largest payload that Linux sends into a window of less than two segments. This payload is half of the
    /// largest advertised window, or the whole window if the window is tiny (`tcp_bound_to_half_wnd`). With offload,
    /// two such segments may be captured as one. Every stack can send a segment of half of the largest window (RFC
    /// 9293, 3.8.6.2.1).
    #[inline]
    fn half_of(max_window: u32) -> i64 {
        match max_window {
            0 => i64::MAX,
            1..=TINY_WINDOW_BYTES => max_window.into(),
            _ => i64::from(max_window / 2),
        }
    }

    /// Whether this host's longest segments are full-sized although the MSS is larger. The caller checks first that two
    /// of these segments were in flight at the same time.
    ///
    /// A tunnel can make the full size of segments smaller than the MSS, even between hosts without SACK and
    /// timestamps. For example, libslirp subtracts 20 bytes too many for the headers. Two segments in flight are not
    /// small segments, because Nagle's algorithm allows only one small segment in flight. In 4.4BSD, a second small
    /// segment is sent only if it has at least half of the largest window (4.4BSD, `tcp_output`).
    #[inline]
    fn are_full(longest: i64, max_window: u32) -> bool {
        longest * 2 < i64::from(max_window)
    }

    /// Whether this host's SYN offers neither SACK nor timestamps; false if no SYN was captured.
    #[inline]
    fn is_old(&self) -> bool {
        let refuses_both =
            |options: SynOptions| options.permits_sack() == Some(false) && options.offers_timestamps() == Some(false);
        self.figures.syn_options.is_some_and(refuses_both)
    }

    /// Whether a segment of this size is at least half of the largest window. A BSD stack sends such a segment in spite
    /// of Nagle's algorithm (`tcp_output`).
    #[inline]
    pub(crate) fn is_half_a_window(&self, payload_bytes: u32, max_window: u32) -> bool {
        self.is_old() && max_window > 0 && payload_bytes >= max_window / 2
    }

    /// Whether `longest` is the MSS rounded down to whole clusters, as in 4.4BSD. Older BSDs do not round the MSS, but
    /// their longest segments can have such a length for two other reasons, which this function excludes. First, a
    /// segment can be half of the largest window (`tcp_output`). Second, a segment can be the whole send buffer in a
    /// throughput deadlock, in which only this segment and possibly a FIN are in flight.
    #[inline]
    fn rounds_down(&self, mss: i64, longest: i64, max_window: u32) -> bool {
        longest > 0
            && longest == mss / CLUSTER_BYTES * CLUSTER_BYTES
            && i64::from(max_window) > longest * 2 + CLUSTER_BYTES
            && self.figures.max_in_flight_bytes.get().unwrap_or(0) > longest + 1
    }

    /// Records the options of this host's SYN. If there are several SYNs, the first one with completely captured
    /// options is used. If a SYN lacks an option that an earlier truncated SYN has, the earlier options are kept: XNU
    /// and Windows omit options after some failed attempts.
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

    /// The window that this host advertises in `segment`; `None` while the window scale is unknown. The window in a SYN
    /// is never scaled (RFC 7323, 2.2).
    #[inline]
    pub(crate) fn advertised(&self, segment: &Segment) -> Option<u32> {
        if segment.flags.any(TcpFlags::SYN) {
            return Some(u32::from(segment.window));
        }
        // A window of 0 is 0 at any scale.
        let shift = self.figures.window_scale.or_else(|| (segment.window == 0).then_some(0))?;
        Some(u32::from(segment.window) << shift.min(MAX_WINDOW_SCALE))
    }

    pub(crate) fn history_mut(&mut self) -> &mut History {
        self.history.get_or_insert_with(Box::default)
    }

    /// Updates the RTT figures with one sample (RFC 6298, 2.2 and 2.3).
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

/// Whether the segment carries one byte without PSH, and therefore is a probe. The last byte of an application's write
/// has PSH (RFC 9293, 3.9.1.2, MUST-61), and a segment that is followed by more data is larger than one byte. A
/// keepalive repeats the last byte (RFC 9293, 3.8.4), and a zero-window probe sends the next byte (RFC 9293, 3.8.6.1).
#[inline]
pub(crate) fn is_single_without_push(segment: &Segment) -> bool {
    const OTHERS: u16 = TcpFlags::PSH | TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST | TcpFlags::URG;
    segment.payload_bytes == 1 && segment.flags.any(TcpFlags::ACK) && !segment.flags.any(OTHERS)
}

/// Derives the window scale of both hosts from the captured SYNs. Windows are scaled only if both SYNs have the window
/// scale option (RFC 7323, 2.2). A SYN-ACK has the option only if the SYN has it. A captured SYN-ACK with the option is
/// therefore enough to know its sender's scale. If either SYN lacks the option, neither window is scaled.
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

/// Derives the largest payload between the two hosts from the options of the SYNs captured so far.
#[cold]
pub(crate) fn settle_mss(sender: &mut DirectionState, receiver: &mut DirectionState, v6: bool) {
    let offers = [sender.figures.syn_options, receiver.figures.syn_options];
    sender.mss_bytes = mss::segment_bytes(offers, v6);
    receiver.mss_bytes = sender.mss_bytes;
}
