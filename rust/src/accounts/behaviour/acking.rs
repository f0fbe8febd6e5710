//! How a side acknowledges: how much at a time, and how long after.

use serde::{Deserialize, Serialize};

use super::event::Event;
use crate::accounts::rtt_figures::RttFigures;
use crate::connection::Half;
use crate::nullable::Nullable;
use crate::wire::TcpFlags;

/// An ACK this much later than the soonest ones was not let go by the newest segment that it covers, but by a timer or the
/// program (a heuristic: hosts answer within microseconds, their scheduling in milliseconds).
const PROMPT_NS: i64 = 2_000_000;
/// Linux takes no less for a full segment when it counts what it has not acknowledged (`TCP_MIN_RCVMSS`).
const LEAST_FULL_BYTES: u32 = 536;
/// Width of a bucket of delays.
const BUCKET_NS: i64 = 2_000_000;
/// Buckets of delays; the last holds all that are longer. Beyond 250 ms the timers in use differ no more.
const BUCKETS: usize = 128;
/// Period of the timer that BSD and its kin share among all connections (`tcp_fasttimo`, 200 ms).
const HEARTBEAT_NS: i64 = 200_000_000;
/// Upper ends of the classes of segments per ACK but the last.
const SEGMENT_CLASSES: [u32; 5] = [1, 2, 3, 4, 8];

/// The accumulators; `schema.py` says what each means. Only ACKs without data count: the others answer when the program does.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // one fact has one home
pub struct Acking {
    /// ACKs by the segments that each covers: 1, 2, 3, 4, 5 to 8, more.
    pub by_segments: [u32; SEGMENT_CLASSES.len() + 1],
    pub stretch_acks: u32,
    pub prompt_acks: u32,
    pub prompt_min_bytes: u32,
    pub prompt_small_pairs: u32,
    pub delayed_acks: u32,
    pub delayed_several: u32,
    pub delayed_max_bytes: u32,
    pub lag: RttFigures,
    /// Of delayed ACKs: cosines and sines of their times in the period of a heartbeat.
    pub heartbeat: (f64, f64),
    delays: Option<Box<[u16]>>,
}

impl Acking {
    /// Delayed ACKs by their delay, in buckets of 2 ms, up to the last that is not empty; `None` without any.
    #[must_use]
    pub fn delays(&self) -> Option<&[u16]> {
        let delays = self.delays.as_deref()?;
        let used = delays.iter().rposition(|count| *count > 0)?;
        delays.get(..=used)
    }

    /// How closely the times of delayed ACKs keep to one phase of a heartbeat of 200 ms: 1 all at one phase, about
    /// 1/√n where there is none (the mean resultant length of Rayleigh's test).
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

/// A segment acknowledges data of `data_sender` for the first time; `acking` is what its own sender shows.
#[inline]
pub(super) fn take(event: &Event<'_>, now: Nullable, acking: &mut Option<Box<Acking>>, data_sender: &Half) {
    let Event { segment, acked, .. } = *event;
    let controls = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST;
    // Covering a SYN or FIN is no matter of policy: those are acknowledged at once.
    let of_data = acked.segments > 0 && event.ack.is_some_and(|ack| ack > 1) && data_sender.figures.fin_segments == 0;
    if segment.payload_bytes > 0 || segment.flags.any(controls) || !of_data {
        return;
    }
    let least_ns = data_sender.figures.rtt_min_ns.get();
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
    let (Some(rtt_ns), Some(lag_ns), Some(least_ns)) = (acked.rtt_ns.get(), acked.lag_ns.get(), least_ns) else {
        return;
    };
    if lag_ns >= 0 {
        acking.lag.add(lag_ns);
    }
    let beyond_ns = rtt_ns - least_ns;
    if beyond_ns <= PROMPT_NS {
        let least = if acking.prompt_acks == 0 { bytes } else { acking.prompt_min_bytes };
        acking.prompt_min_bytes = least.min(bytes);
        acking.prompt_acks = acking.prompt_acks.saturating_add(1);
        let most = if mss > 0 { mss } else { u32::MAX };
        let full = data_sender.figures.max_segment_bytes.min(most).max(LEAST_FULL_BYTES);
        acking.prompt_small_pairs += u32::from(acked.segments == 2 && bytes <= full);
        return;
    }
    // What a queue delays comes among other ACKs; a timer's ACK comes after silence as long as the delay, less a quarter.
    let silent = event.since_previous.get().is_none_or(|silent_ns| silent_ns >= beyond_ns - beyond_ns / 4);
    if covers_all && silent {
        acking.delayed(lag_ns.saturating_sub(least_ns), acked.segments, bytes, now);
    }
}
