//! How a host acknowledges data: the number of segments per ACK, and the delay of the ACKs.

use serde::{Deserialize, Serialize};

use super::event::Event;
use crate::accounts::rtt_figures::RttFigures;
use crate::connection::DirectionState;
use crate::nullable::Nullable;
use crate::wire::TcpFlags;

/// An ACK counts as delayed if it is more than 2 ms later than the fastest ACKs (a heuristic: a host answers within
/// microseconds, but scheduling can take milliseconds).
const PROMPT_NS: i64 = 2_000_000;
/// The shortest segment that Linux counts as full-sized when it decides whether to send an ACK (`TCP_MIN_RCVMSS`).
const MIN_FULL_BYTES: u32 = 536;
const BUCKET_NS: i64 = 2_000_000;
/// Number of histogram buckets. The last bucket counts all delays above 250 ms. No known delayed-ACK timer runs for
/// longer.
const BUCKETS: usize = 128;
/// Period of BSD's delayed-ACK timer (`tcp_fasttimo`). At each expiry, the host sends the delayed ACKs of all
/// connections.
const HEARTBEAT_NS: i64 = 200_000_000;
/// Classes of ACKs by their number of covered segments: the upper bound of each class except the last.
const SEGMENT_CLASSES: [u32; 5] = [1, 2, 3, 4, 8];

/// The accumulators for pure ACKs. ACKs with data are not counted, because the application chooses their time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // `tcptrace_lab/schema/` defines each field
pub struct Acking {
    /// Number of ACKs that cover 1, 2, 3, 4, 5 to 8, and more than 8 segments.
    pub by_segments: [u32; SEGMENT_CLASSES.len() + 1],
    pub stretch_acks: u32,
    pub prompt_acks: u32,
    pub prompt_min_bytes: u32,
    pub prompt_small_pairs: u32,
    pub delayed_acks: u32,
    pub delayed_several: u32,
    pub delayed_max_bytes: u32,
    pub lag: RttFigures,
    /// Sum of the cosines and sum of the sines of all phases. A phase is the time of a delayed ACK within the period of
    /// a 200 ms timer.
    pub heartbeat: (f64, f64),
    pub(crate) delays: Option<Box<[u16]>>,
}

impl Acking {
    /// Number of delayed ACKs by delay, in buckets of 2 ms up to the longest delay, or `None` without delayed ACKs.
    #[must_use]
    pub fn delays(&self) -> Option<&[u16]> {
        let delays = self.delays.as_deref()?;
        let used = delays.iter().rposition(|count| *count > 0)?;
        delays.get(..=used)
    }

    /// The concentration of the delayed ACKs at one phase of a 200 ms timer (mean resultant length, Rayleigh's test).
    /// The concentration is 1 if all ACKs have the same phase, and about 1/√n for n ACKs without such a timer.
    #[must_use]
    pub fn concentration(&self) -> Option<f64> {
        (self.delayed_acks > 0).then(|| self.heartbeat.0.hypot(self.heartbeat.1) / f64::from(self.delayed_acks))
    }

    fn delayed(&mut self, delay_ns: i64, segments: u32, bytes: u32, now: Nullable) {
        self.delayed_acks = self.delayed_acks.saturating_add(1);
        self.delayed_several += u32::from(segments > 1);
        self.delayed_max_bytes = self.delayed_max_bytes.max(bytes);
        let bucket = ((delay_ns / BUCKET_NS).max(0) as usize).min(BUCKETS - 1);
        let delays = self.delays.get_or_insert_with(|| Box::from([0; BUCKETS]));
        if let Some(count) = delays.get_mut(bucket) {
            *count = count.saturating_add(1);
        }
        if let Some(ts_ns) = now.get() {
            let phase = ts_ns.rem_euclid(HEARTBEAT_NS) as f64 / HEARTBEAT_NS as f64 * std::f64::consts::TAU;
            self.heartbeat.0 += phase.cos();
            self.heartbeat.1 += phase.sin();
        }
    }
}

/// Counts an ACK for new data of `data_sender`. `acking` belongs to the sender of the ACK.
#[inline]
pub(super) fn take(event: &Event<'_>, now: Nullable, acking: &mut Option<Box<Acking>>, data_sender: &DirectionState) {
    let Event { segment, acked, .. } = *event;
    let controls = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST;
    // The ACK of a SYN or FIN is never delayed.
    let of_data = acked.segments > 0 && event.ack.is_some_and(|ack| ack > 1) && data_sender.figures.fin_segments == 0;
    if segment.payload_bytes > 0 || segment.flags.any(controls) || !of_data {
        return;
    }
    let min_ns = data_sender.figures.rtt_min_ns.get();
    let mss = data_sender.mss_bytes;
    let bytes = acked.bytes.get().unwrap_or(0).clamp(0, i64::from(u32::MAX)) as u32;
    let covers_all = event.ack == Some(data_sender.snd_max);
    let acking = acking.get_or_insert_default();
    let class = SEGMENT_CLASSES.iter().position(|most| acked.segments <= *most).unwrap_or(SEGMENT_CLASSES.len());
    if let Some(count) = acking.by_segments.get_mut(class) {
        *count = count.saturating_add(1);
    }
    let two_full = mss.saturating_mul(2);
    acking.stretch_acks += u32::from(acked.segments > 2 && mss > 0 && bytes > two_full);
    let (Some(rtt_ns), Some(lag_ns), Some(min_ns)) = (acked.rtt_ns.get(), acked.lag_ns.get(), min_ns) else {
        return;
    };
    if lag_ns >= 0 {
        acking.lag.add(lag_ns);
    }
    let beyond_ns = rtt_ns - min_ns;
    if beyond_ns <= PROMPT_NS {
        let least = if acking.prompt_acks == 0 { bytes } else { acking.prompt_min_bytes };
        acking.prompt_min_bytes = least.min(bytes);
        acking.prompt_acks = acking.prompt_acks.saturating_add(1);
        let most = if mss > 0 { mss } else { u32::MAX };
        let full = data_sender.figures.max_segment_bytes.min(most).max(MIN_FULL_BYTES);
        acking.prompt_small_pairs += u32::from(acked.segments == 2 && bytes <= full);
        return;
    }
    // A delay counts only if the host sent nothing during the last 3/4 of the delay. An ACK that closely follows
    // another one possibly waited in a queue.
    let silent = event.since_previous.get().is_none_or(|silent_ns| silent_ns >= beyond_ns - beyond_ns / 4);
    if covers_all && silent {
        acking.delayed(lag_ns.saturating_sub(min_ns), acked.segments, bytes, now);
    }
}
