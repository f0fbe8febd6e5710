//! One direction of a connection: what its sender has shown so far.

use super::figures::{DirectionFigures, MAX_WINDOW_SCALE, SynOptions};
use super::history::History;
use super::mss;
use super::recent::Recent;
use super::sequence_space::{Holes, Outstanding, Placed, Stamp};
use crate::nullable::Nullable;
use crate::wire::{Segment, TcpFlags};

/// Smaller numbers fit by some scale too often: writes have sizes like 1,024 and 4,096 (a heuristic).
const LEAST_TELLING_WINDOW: u16 = 256;
/// A cluster of mbufs in 4.4BSD (`MCLBYTES`), to whole ones of which it rounds a larger MSS (`tcp_mss`).
pub(crate) const CLUSTER_BYTES: i64 = 2048;
/// Linux halves no smaller window (`TCP_MSS_DEFAULT`, in `tcp_bound_to_half_wnd`).
const TINY_WINDOW_BYTES: u32 = 536;

/// What a segment without data showed by its number: bytes up to `end` were sent before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overtaken {
    /// Offset behind the last of them.
    pub end: i64,
    /// Who showed it.
    pub by: Stamp,
}

/// State of one direction, named after its sender; `snd_*` as in RFC 9293, 3.3.1.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub(crate) struct Half {
    /// Whether this side was seen to send anything.
    pub started: bool,
    /// Highest offset sent.
    pub snd_max: i64,
    /// Lowest offset not acknowledged; `None` before anything is known.
    pub snd_una: Nullable,
    /// What this side's own last segment acknowledged.
    pub acked: Nullable,
    /// Window of this side's last segment: as in the header, and scaled.
    pub raw_window: u16,
    /// See `raw_window`; `None` while the scale is unknown.
    pub window_bytes: Option<u32>,
    /// Duplicate ACKs received for this side's data since the last new ACK.
    pub duplicate_acks_received: u32,
    /// Bytes of this side that the last ACK it received reports in SACK blocks.
    pub sacked_bytes: i64,
    /// When `snd_una` moved last.
    pub una_ts_ns: Nullable,
    /// Smoothed round trip and its variation (RFC 6298, 2), from the capture point to the receiver and back.
    pub smoothed_rtt_ns: Nullable,
    /// See `smoothed_rtt_ns`; 0 without samples.
    pub rtt_variation_ns: i64,
    /// What was resent, and what SACK blocks said of it; `None` while nothing went wrong.
    pub history: Option<Box<History>>,
    /// Its last segments.
    pub recent: Recent,
    /// IP identification of its last segment, and whether that differs from the one before: then it tells packets apart.
    pub last_ip_id: Option<u16>,
    /// See `last_ip_id`.
    pub ip_id_moves: bool,
    /// It sent a SYN with ACK.
    pub syn_answered: bool,
    /// The other side did not take the data of its SYN.
    pub syn_data_refused: bool,
    /// Its ECN flags are a counter (RFC 9768).
    pub accurate_ecn: bool,
    /// Frame of its first RST; 0: none.
    pub reset_frame: u64,
    /// Frame of its last segment.
    pub last_sent_frame: u64,
    /// Its last segment was a keepalive probe.
    pub last_was_keepalive: bool,
    /// Its last segment was a zero-window probe.
    pub last_was_probe: bool,
    /// Its last segment carried data, and so can be followed by the rest of a burst.
    pub last_was_data: bool,
    /// Time of its last segment.
    pub last_ts_ns: Nullable,
    /// Time and frame of its last segment with an ACK.
    pub last_ack_ts_ns: Nullable,
    /// See `last_ack_ts_ns`.
    pub last_ack_frame: u64,
    /// Time of its last segment with data.
    pub last_data_ts_ns: Nullable,
    /// First frame of the burst being sent.
    pub burst_frame: u64,
    pub outstanding: Outstanding,
    /// `None` while none was jumped over.
    pub holes: Option<Box<Holes>>,
    /// Bytes that were sent before a segment without data, and not seen by then.
    pub overtaken: Option<Box<Overtaken>>,
    pub figures: DirectionFigures,
    /// Largest payload of its segments by both SYNs; 0 while unknown.
    pub mss_bytes: u32,
}

impl Half {
    /// Places a segment that this side sent; the first one fixes offset 0 as Wireshark does: the SYN is 0, or else the
    /// first byte seen is 1, and one that a keepalive repeats was sent before. A RST fixes nothing: anyone may have made its
    /// numbers up (RFC 5961).
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

    /// A SYN that comes after other segments (late, or behind forged ones) moves offset 0 to itself, as long as no data
    /// was placed by the guess before. `receiver` has acknowledged by the same guess.
    pub(crate) fn anchor(&mut self, syn: &Segment, receiver: &mut Half) {
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

    /// Places an acknowledgment of this side's bytes; it fixes offset 0 if nothing else has.
    #[inline]
    pub(crate) fn place_ack(&mut self, ack: u32) -> i64 {
        let isn = *self.figures.isn.get_or_insert_with(|| {
            self.snd_max = 1;
            ack.wrapping_sub(1)
        });
        crate::seq::unwrap(ack, isn, self.snd_max.max(self.snd_una.get().unwrap_or(self.snd_max)))
    }

    /// Bytes sent and not acknowledged; `None` until the other side's first ACK.
    #[inline]
    pub(crate) fn in_flight(&self) -> Option<i64> {
        self.snd_una.get().map(|una| (self.snd_max - una).max(0))
    }

    /// Whether all that was seen of this side may be a keepalive without data: its number is one below the next one then
    /// (RFC 9293, 3.8.4), and what is acknowledged behind it is no byte that the capture missed.
    #[cold]
    pub(crate) fn may_have_probed(&self) -> bool {
        let DirectionFigures { segments, data_segments, syn_segments, fin_segments, .. } = self.figures;
        segments == 1 && data_segments == 0 && syn_segments == 0 && fin_segments == 0
    }

    /// Remembers the largest flight.
    #[inline]
    pub(crate) fn note_flight(&mut self) {
        if let Some(in_flight) = self.in_flight() {
            self.figures.max_in_flight_bytes = self.figures.max_in_flight_bytes.later(Some(in_flight).into());
        }
    }

    /// Room left in the window that `other` offered.
    #[inline]
    pub(crate) fn usable_window(&self, other: &Half) -> Option<i64> {
        Some(self.snd_una.get()?.saturating_add(i64::from(other.window_bytes?)) - self.snd_max)
    }

    /// Whether what ends at `end` fills the window that this side offers, whose scale is not known, by one of the scales there are.
    pub(crate) fn is_filled_by(&self, end: i64) -> bool {
        let Some(acked) = self.acked.get().filter(|_| self.window_bytes.is_none() && self.raw_window > 0) else {
            return false;
        };
        let (bytes, window) = (end.saturating_sub(acked), i64::from(self.raw_window));
        let most = if self.raw_window < LEAST_TELLING_WINDOW { 0 } else { MAX_WINDOW_SCALE };
        (0..=most).any(|scale| window << scale == bytes)
    }

    /// Segments of at most the MSS in `bytes`.
    #[inline]
    pub(crate) fn virtual_segments(&self, bytes: u32) -> u32 {
        if bytes > self.mss_bytes && self.mss_bytes > 0 { bytes.div_ceil(self.mss_bytes) } else { 1 }
    }

    /// The largest payload of its segments: the MSS in force, or what was seen where no SYN was, or where the path takes
    /// a little less (a tunnel), or where the sender rounds it to whole clusters, or what it makes of a small window.
    /// `two_flew`: two as long as the longest were in flight together. `most_window`: the largest window that it was offered.
    #[inline]
    pub(crate) fn full_bytes(&self, most_window: u32, two_flew: bool) -> i64 {
        let longest = i64::from(self.figures.max_segment_bytes);
        let mss = i64::from(self.mss_bytes);
        if mss == 0 {
            return longest;
        }
        if longest >= mss {
            return mss;
        }
        let old = self.is_old();
        let tunnelled = longest * 10 >= mss * 9 && (!old || (two_flew && Self::are_full(longest, most_window)));
        if tunnelled || (old && self.rounds_down(mss, longest, most_window)) {
            return longest;
        }
        let half = Self::half_of(most_window);
        let halves = longest <= half || longest % half == 0;
        if !old && self.figures.syn_options.is_some() && halves { half.min(mss) } else { mss }
    }

    /// What Linux sends at most into a window that is smaller than two segments: half of the largest that it was offered, or all of
    /// a tiny one (`tcp_bound_to_half_wnd`); two of them may be captured as one. Other stacks let so much leave as if it were full
    /// (RFC 9293, 3.8.6.2.1), until they have more.
    #[inline]
    fn half_of(most_window: u32) -> i64 {
        match most_window {
            0 => i64::MAX,
            1..=TINY_WINDOW_BYTES => most_window.into(),
            _ => i64::from(most_window / 2),
        }
    }

    /// Whether two of its segments with so much data, in flight together, are full ones though its MSS is larger. Many stacks
    /// offer neither SACK nor timestamps and are yet no older than tunnels (libslirp counts 20 bytes too much for the headers).
    /// Nagle's rule lets no second one that is not full leave, unless it is half of the largest window (4.4BSD,
    /// `tcp_output`).
    #[inline]
    fn are_full(longest: i64, most_window: u32) -> bool {
        longest * 2 < i64::from(most_window)
    }

    /// Whether its SYN offers neither SACK nor timestamps; false where it was not seen.
    #[inline]
    fn is_old(&self) -> bool {
        let refuses_both =
            |options: SynOptions| options.permits_sack() == Some(false) && options.offers_timestamps() == Some(false);
        self.figures.syn_options.is_some_and(refuses_both)
    }

    /// Whether BSD lets so much leave whatever Nagle's algorithm says: half of the largest window (`tcp_output`).
    #[inline]
    pub(crate) fn is_half_a_window(&self, payload_bytes: u32, most_window: u32) -> bool {
        self.is_old() && most_window > 0 && payload_bytes >= most_window / 2
    }

    /// Whether `longest` is what 4.4BSD makes of an MSS above a cluster. Its elders do not round; of them half of the largest
    /// window may leave (`tcp_output`), or what the buffer of a throughput deadlock holds, which is alone but for the FIN.
    #[inline]
    fn rounds_down(&self, mss: i64, longest: i64, most_window: u32) -> bool {
        longest > 0
            && longest == mss / CLUSTER_BYTES * CLUSTER_BYTES
            && i64::from(most_window) > longest * 2 + CLUSTER_BYTES
            && self.figures.max_in_flight_bytes.get().unwrap_or(0) > longest + 1
    }

    /// Takes what this side's SYN offers; of several the first of which all options were captured counts. One that lacks what
    /// a cut one before it offers is none of its copies: after some tries stacks leave options out (XNU, Windows).
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

    /// The window that `segment` of this side advertises; windows of SYNs are never scaled (RFC 7323, 2.2).
    #[inline]
    pub(crate) fn advertised(&self, segment: &Segment) -> Option<u32> {
        if segment.flags.any(TcpFlags::SYN) {
            return Some(u32::from(segment.window));
        }
        // Nothing is nothing at any scale.
        let shift = self.figures.window_scale.or_else(|| (segment.window == 0).then_some(0))?;
        Some(u32::from(segment.window) << shift.min(MAX_WINDOW_SCALE))
    }

    /// What went wrong, from now on.
    pub(crate) fn history_mut(&mut self) -> &mut History {
        self.history.get_or_insert_with(Box::default)
    }

    /// Takes a round-trip sample in (RFC 6298, 2.2 and 2.3).
    #[inline]
    pub(crate) fn add_rtt(&mut self, rtt_ns: i64) {
        self.figures.rtt_min_ns = self.figures.rtt_min_ns.earlier(Some(rtt_ns).into());
        let Some(smoothed_ns) = self.smoothed_rtt_ns.get() else {
            self.smoothed_rtt_ns = Some(rtt_ns).into();
            self.rtt_variation_ns = rtt_ns >> 1;
            return;
        };
        let error_ns = rtt_ns.wrapping_sub(smoothed_ns);
        self.rtt_variation_ns =
            self.rtt_variation_ns.wrapping_add(error_ns.wrapping_abs().wrapping_sub(self.rtt_variation_ns) >> 2);
        self.smoothed_rtt_ns = Some(smoothed_ns.wrapping_add(error_ns >> 3)).into();
    }
}

/// Whether it carries one byte and does not push it. The last byte of what a program has given is pushed (RFC 9293, 3.9.1.2,
/// MUST-61), and what has more behind it is not so small: so stacks repeat the byte before the next one to ask whether the other
/// side is there (3.8.4), or send the next one to ask whether a closed window has opened (3.8.6.1).
#[inline]
pub(crate) fn is_single_without_push(segment: &Segment) -> bool {
    const OTHERS: u16 = TcpFlags::PSH | TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST | TcpFlags::URG;
    segment.payload_bytes == 1 && segment.flags.any(TcpFlags::ACK) && !segment.flags.any(OTHERS)
}

/// The scale of each side's windows, as far as the SYNs seen tell (RFC 7323, 2.2): both must have offered one. A
/// SYN-ACK may offer a scale only in answer to one, so a SYN-ACK with the option settles its own side; a SYN without
/// it settles both.
pub(crate) fn settle_window_scales(client: &mut Half, server: &mut Half, server_answered_syn: bool) {
    let offer = |half: &Half| half.figures.syn_options.and_then(|options| options.scale_offered());
    let (of_client, of_server) = match (offer(client), offer(server)) {
        (Some(Some(client)), Some(Some(server))) => (Some(client), Some(server)),
        (Some(None), _) | (_, Some(None)) => (Some(0), Some(0)),
        (None, Some(server)) if server_answered_syn => (None, server),
        _ => (None, None),
    };
    client.figures.window_scale = of_client;
    server.figures.window_scale = of_server;
}

/// The largest payload that segments between the two sides can have, by all that their SYNs have offered so far.
#[cold]
pub(crate) fn settle_mss(sender: &mut Half, receiver: &mut Half, v6: bool) {
    let offers = [sender.figures.syn_options, receiver.figures.syn_options];
    sender.mss_bytes = mss::segment_bytes(offers, v6);
    receiver.mss_bytes = sender.mss_bytes;
}
