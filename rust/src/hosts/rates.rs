//! The rates of both ends of each direction, the upper bound of throughput that these rates give, and the reached share
//! of this bound.
//!
//! Abrams and Chen ("A New View on What Limits TCP/IP Throughput in Local Area Networks", 1991) derive the bound from
//! the rates of the two hosts. λ is the rate at which the sender can send. μ is the rate at which the receiver can
//! receive. Data cannot flow faster than the lower of the two rates. Idle time of the sender shows how far the
//! throughput stayed below λ.
//!
//! [`Rates`] contains the bytes and the times of the periods that show these rates. A rate is `None` if the capture
//! cannot show it. λ is known only in a capture at the sender, because the path changes the spacing of segments. A
//! capture at the receiver shows no queues of the path, because segments have already passed these queues.

use super::vantage::{is_near, turnaround_ns};
use crate::accounts::{Counts, Line, Passed, Rates};
use crate::connection::DirectionFigures;
use crate::flows::ConnectionRow;
use crate::sender::SenderTotals;

/// Minimum number of samples for a rate (a heuristic).
const MIN_SAMPLES: i64 = 10;
/// Bursts give a rate only if their average segment has at least 80% of the largest payload (a heuristic). No single
/// rate describes a mix of small and large segments, as in a dialogue before a bulk transfer.
const ALIKE_SHARE: f64 = 0.8;
/// If a bound is up to 5% below the delivered rate, the bound is raised to the delivered rate. If it is further below,
/// it is dropped (a heuristic).
const NOISE_SHARE: f64 = 0.05;
/// Factor from bytes per nanosecond to bits per second: 8 bits times 10^9 ns.
const BPS: f64 = 8e9;
/// If λ/μ differs from 1 by less than this limit, λ/μ counts as 1. With λ/μ = 1, the general M/M/1/K formula would
/// divide 0 by 0.
const EQUAL_RATES: f64 = 1e-6;
/// Flights are on a plateau if they did not grow for [`PLATEAU_ROUNDS`] RTTs and reach [`PLATEAU_SHARE`] of the largest
/// flight. A plateau can be below the largest flight, because large writes do not always fill the send buffer. A
/// plateau above [`BELOW_WINDOW_SHARE`] of the largest window is caused by the window (`docs/how-it-decides.md`, 4.12).
const PLATEAU_ROUNDS: u16 = 5;
const PLATEAU_SHARE: f64 = 0.8;
const BELOW_WINDOW_SHARE: f64 = 0.9;
/// The send buffer counts as full only if more than 4 times as many segments follow an ACK as are sent at other times
/// (a heuristic). If an application writes at its own pace, its segments do not follow ACKs.
const CLOCKED_PART: u64 = 4;
/// Link rates of Ethernet (IEEE 802.3) in b/s.
const ETHERNET_BPS: [f64; 8] = [1e7, 1e8, 1e9, 2.5e9, 5e9, 1e10, 2.5e10, 4e10];
/// Link rates of ATM in b/s: 25.6 Mb/s and TAXI-100 of the ATM Forum, and the cell rates of OC-3c and OC-12c (ANSI
/// T1.105).
const ATM_BPS: [f64; 4] = [25_600_000.0, 100_000_000.0, 149_760_000.0, 599_040_000.0];
/// A measured rate is a link rate if the two differ by at most [`LINE_SHARE`] (a heuristic; the clock of a link is
/// exact to 0.01%). The measurement needs [`LINE_SAMPLES`] samples, and its average segment needs [`FULL_SHARE`] of a
/// full-sized payload.
const LINE_SHARE: f64 = 0.01;
const LINE_SAMPLES: i64 = 50;
const FULL_SHARE: f64 = 0.98;

/// The cause of a direction's bound, in the order of `BOUND_BY` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BoundBy {
    /// λ, the rate of the sender.
    Send,
    /// μ, the rate of the receiver.
    Receive,
    /// The link rate without the overhead of framing and headers.
    Link,
}

/// The rates of both ends of one direction, and the bound that these rates give. `RATES` in `tcptrace_lab/schema/`
/// defines each field.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Bounds {
    pub send_bps: Option<f64>,
    pub send_samples: Option<i64>,
    pub drain_bps: Option<f64>,
    pub drain_samples: Option<i64>,
    pub read_bps: Option<f64>,
    pub read_samples: Option<i64>,
    pub receive_bps: Option<f64>,
    pub ratio: Option<f64>,
    pub link_bps: Option<f64>,
    pub link_bound_bps: Option<f64>,
    pub bound_bps: Option<f64>,
    pub bound_by: Option<BoundBy>,
    pub sent_bps: Option<f64>,
    pub reached_share: Option<f64>,
    pub idle_share: Option<f64>,
    pub base_rtt_ns: Option<i64>,
    pub send_buffer_needed_bytes: Option<i64>,
    pub receive_buffer_needed_bytes: Option<i64>,
    pub window_segments: Option<i64>,
    pub window_full_share: Option<f64>,
    pub send_buffer_estimate_bytes: Option<i64>,
}

/// The rates of the direction in which `side` (0 client, 1 server) sends.
#[must_use]
pub fn bounds(row: &ConnectionRow, side: usize) -> Bounds {
    let other = 1 - side;
    let found = || {
        let (figures, counts, behaviour) =
            (row.directions.get(side)?, row.counts.get(side)?, row.behaviours.get(side)?);
        let window = row.directions.get(other)?.window_scale.and(row.counts.get(other)?.max_window_bytes);
        let full_bytes = row.full_segment_bytes.map(i64::from);
        let header_bytes = Some(figures.header_bytes).filter(|bytes| *bytes > 0);
        let payload_share = || Some(row.line?.best_payload_share(row.full_segment_bytes?, header_bytes?));
        let facts = Facts {
            figures,
            counts,
            totals: row.waits.get(side)?,
            rates: row.rates.get(side)?.as_deref(),
            to_sender_ns: turnaround_ns(row, side, 0),
            to_receiver_ns: turnaround_ns(row, other, 0),
            window_bytes: window.map(i64::from),
            full_bytes,
            virtual_data_segments: figures.data_segments + behaviour.sending.hidden_segments,
            super_segments: behaviour.sending.super_segments,
            line: row.line,
            payload_share: payload_share(),
        };
        Some(facts.bounds())
    };
    found().unwrap_or_default()
}

/// The measurements of one direction.
struct Facts<'a> {
    figures: &'a DirectionFigures,
    counts: &'a Counts,
    totals: &'a SenderTotals,
    rates: Option<&'a Rates>,
    to_sender_ns: Option<i64>,
    to_receiver_ns: Option<i64>,
    /// The largest window that the receiver advertised.
    window_bytes: Option<i64>,
    full_bytes: Option<i64>,
    virtual_data_segments: u64,
    super_segments: u32,
    line: Option<Line>,
    /// The highest possible share of payload in the bytes on the link.
    payload_share: Option<f64>,
}

impl Facts<'_> {
    fn bounds(&self) -> Bounds {
        let near = self.to_sender_ns.zip(self.to_receiver_ns).is_some_and(|(own, other)| is_near(own, other));
        let (burst, drained, read) = match self.rates {
            Some(rates) => (Some(rates.burst), Some(rates.drained()), Some(rates.read())),
            None => (None, None, None),
        };
        let samples = |passed: Option<Passed>| passed.map(|passed| i64::from(passed.samples));
        let span_ns = self.counts.last_data_ts_ns.since(self.counts.first_data_ts_ns).get().filter(|ns| *ns > 0);
        let achieved_bps = span_ns.map(|ns| self.counts.unique_bytes as f64 * BPS / ns as f64);
        // The time starts with the first data segment, so this segment's bytes do not count.
        let average_bps = achieved_bps.map(|bps| bps * (1.0 - 1.0 / self.figures.data_segments as f64));
        let burst_bps = burst.filter(|burst| self.alike(burst)).and_then(|burst| rate(&burst));
        let delivered_bps = span_ns.and_then(|ns| self.delivered_bps(ns));
        let drain_bps = no_less(drained.and_then(|passed| rate(&passed)), delivered_bps);
        let read_bps = read.and_then(|passed| rate(&passed));
        let send_bps = burst_bps.filter(|_| near).and_then(|burst_bps| highest(Some(burst_bps), average_bps));
        let receive_bps = lowest(drain_bps, no_less(read_bps, delivered_bps.map(|bps| self.taken_bps(bps))));
        let ratio = send_bps.zip(receive_bps).map(|(send, receive)| send / receive);
        let burst_samples = samples(burst).filter(|_| self.super_segments == 0);
        let link_bps = (self.link_bps(drain_bps, samples(drained))).or_else(|| self.link_bps(burst_bps, burst_samples));
        let link_bound_bps = link_bps.zip(self.payload_share).map(|(link_bps, share)| link_bps * share);
        let link_bound_bps = no_less(link_bound_bps, delivered_bps);
        let bound_bps = lowest(lowest(send_bps, receive_bps), link_bound_bps);
        let base_rtt_ns = match (self.to_receiver_ns, self.to_sender_ns) {
            (Some(to_receiver_ns), _) if near => Some(to_receiver_ns),
            (Some(to_receiver_ns), Some(to_sender_ns)) => Some(to_receiver_ns.saturating_add(to_sender_ns)),
            _ => None,
        };
        let window_segments =
            self.window_bytes.zip(self.full_bytes).and_then(|(window, full)| window.checked_div(full));
        // The share of time in bursts is too small, because bursts exclude single segments and segments that an ACK
        // released. The sender is busy with these segments too, so `data_share` is used if it is larger.
        let burst_share = burst.zip(span_ns).filter(|_| near).map(|(burst, ns)| burst.ns as f64 / ns as f64);
        let data_share = average_bps.zip(send_bps).map(|(average, send)| average / send);
        Bounds {
            send_bps,
            send_samples: samples(burst),
            drain_bps,
            drain_samples: samples(drained),
            read_bps,
            read_samples: samples(read),
            receive_bps,
            ratio,
            link_bps,
            link_bound_bps,
            bound_bps,
            bound_by: bound_bps.and_then(|bound| bound_by(bound, send_bps, receive_bps, link_bound_bps)),
            sent_bps: achieved_bps,
            reached_share: bound_bps.map(|bound| reached_share(bound, achieved_bps, delivered_bps)),
            idle_share: highest(burst_share, data_share).map(|busy| (1.0 - busy).clamp(0.0, 1.0)),
            base_rtt_ns,
            send_buffer_needed_bytes: bytes_in(send_bps, base_rtt_ns),
            receive_buffer_needed_bytes: bytes_in(bound_bps, base_rtt_ns),
            window_segments,
            window_full_share: ratio.zip(window_segments).map(|(ratio, places)| window_full_share(ratio, places)),
            send_buffer_estimate_bytes: self.send_buffer(near),
        }
    }

    /// The rate at which data was delivered. A queue can still contain data when the last segment is sent. The time to
    /// drain this queue is estimated as the longest RTT minus the shortest.
    fn delivered_bps(&self, span_ns: i64) -> Option<f64> {
        let rtt = &self.counts.rtt;
        let queued_ns = rtt.max_ns().zip(rtt.min_ns()).map_or(0, |(most, least)| most - least);
        let (payload, segments) = (self.counts.payload_bytes, self.figures.data_segments);
        let first_bytes = payload.saturating_add(segments / 2).checked_div(segments)?;
        let bytes = self.counts.unique_bytes as f64 - first_bytes as f64;
        Some(bytes * BPS / (span_ns as f64 + queued_ns as f64))
    }

    /// The rate at which the application read, estimated from the delivered rate. A full receive buffer contains
    /// delivered bytes that the application has not read.
    fn taken_bps(&self, delivered_bps: f64) -> f64 {
        let held = self.window_bytes.map_or(1.0, |window| window as f64 / self.counts.unique_bytes as f64);
        delivered_bps * (1.0 - held.min(1.0))
    }

    /// Whether the segments of bursts are about equal in size.
    fn alike(&self, burst: &Passed) -> bool {
        let longest = i64::from(self.figures.max_segment_bytes);
        let largest = self.full_bytes.map_or(longest, |full| full.min(longest));
        burst.bytes as f64 >= ALIKE_SHARE * largest as f64 * f64::from(burst.samples)
    }

    /// The nominal link rate that fits a payload rate with its headers added, or `None` if no link rate is within
    /// [`LINE_SHARE`], or if the segments were not full-sized.
    fn link_bps(&self, rate_bps: Option<f64>, samples: Option<i64>) -> Option<f64> {
        let full_bytes = self.virtual_data_segments as f64 * self.full_bytes? as f64;
        let full = self.counts.payload_bytes as f64 >= FULL_SHARE * full_bytes && samples? >= LINE_SAMPLES;
        let on_link_bps = Some(rate_bps? / self.payload_share?).filter(|_| full)?;
        let known: &[f64] = match self.line? {
            Line::Ethernet => &ETHERNET_BPS,
            Line::Atm => &ATM_BPS,
        };
        known.iter().copied().find(|known_bps| (on_link_bps - known_bps).abs() <= LINE_SHARE * known_bps)
    }

    /// The size of flights at which the send buffer or a clamped congestion window stops the sender, or `None` if the
    /// flights reach no such plateau.
    ///
    /// The result is known only if the capture was taken at the sender, contains TCP timestamps, or shows pauses
    /// between flights. In other captures, ACKs release most segments one by one, and the path can cause the plateau.
    fn send_buffer(&self, near: bool) -> Option<i64> {
        let totals = self.totals;
        let (level, full) = (totals.level_flight_bytes.get()?, self.full_bytes?);
        let (largest, window) = (self.figures.max_in_flight_bytes.get()?, self.window_bytes?);
        let (clocked, unclocked) = (u64::from(totals.clocked), u64::from(totals.unclocked));
        let in_flights = near || totals.tick_ns.is_some() || 2 * clocked < self.figures.data_segments;
        let on_plateau = totals.level_rounds >= PLATEAU_ROUNDS
            && level as f64 >= PLATEAU_SHARE * largest as f64
            && level >= 2 * full
            && level as f64 <= BELOW_WINDOW_SHARE * window as f64
            && level + 2 * full <= window
            && clocked > CLOCKED_PART * unclocked
            && in_flights;
        on_plateau.then_some(level)
    }
}

fn bound_by(bound: f64, send: Option<f64>, receive: Option<f64>, line: Option<f64>) -> Option<BoundBy> {
    // `bound` is the lowest of the three rates.
    if receive.is_some_and(|receive| bound >= receive) {
        Some(BoundBy::Receive)
    } else if line.is_some_and(|line| bound >= (1.0 - LINE_SHARE) * line) {
        Some(BoundBy::Link) // within the tolerance, λ can be the rate of the link
    } else {
        send.map(|_| BoundBy::Send)
    }
}

/// Raises a bound to the delivered rate if the bound is slightly lower. A bound that is lower by more than
/// [`NOISE_SHARE`] gives `None`, because such a bound did not limit the data. A few long RTTs can look like a draining
/// queue and give a bound that is too low.
fn no_less(bound_bps: Option<f64>, delivered_bps: Option<f64>) -> Option<f64> {
    let bound_bps = bound_bps?;
    let Some(delivered_bps) = delivered_bps else { return Some(bound_bps) };
    (bound_bps >= (1.0 - NOISE_SHARE) * delivered_bps).then_some(bound_bps.max(delivered_bps))
}

/// The reached share of the bound, at most 1. A sender that fills a queue sends faster than the bound. In this case,
/// the share is computed from the delivered rate, which is not above the bound.
fn reached_share(bound_bps: f64, sent_bps: Option<f64>, delivered_bps: Option<f64>) -> f64 {
    let slow_enough = sent_bps.is_some_and(|sent_bps| sent_bps <= (1.0 + NOISE_SHARE) * bound_bps);
    let reached_bps = if slow_enough { sent_bps } else { delivered_bps };
    reached_bps.map_or(1.0, |bps| bps.min(bound_bps) / bound_bps)
}

fn rate(passed: &Passed) -> Option<f64> {
    let enough = i64::from(passed.samples) >= MIN_SAMPLES && passed.ns > 0 && passed.bytes > 0;
    enough.then(|| passed.bytes as f64 * BPS / passed.ns as f64)
}

/// The lower of the known values.
fn lowest(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    [one, other].into_iter().flatten().reduce(f64::min)
}

/// The higher of the known values.
fn highest(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    [one, other].into_iter().flatten().reduce(f64::max)
}

fn bytes_in(rate_bps: Option<f64>, time_ns: Option<i64>) -> Option<i64> {
    rate_bps.zip(time_ns).map(|(rate_bps, time_ns)| (rate_bps * time_ns as f64 / BPS).ceil() as i64)
}

/// The share of segments that find the receive buffer full. In an M/M/1/K queue, this share is (1 - r) r^K / (1 -
/// r^(K+1)). Here, r is λ/μ (`ratio`), and K is the size of the receive buffer in segments (`places`).
fn window_full_share(ratio: f64, places: i64) -> f64 {
    let places = places as f64;
    if (ratio - 1.0).abs() < EQUAL_RATES {
        return 1.0 / (places + 1.0);
    }
    if ratio < 1.0 {
        return (1.0 - ratio) * ratio.powf(places) / (1.0 - ratio.powf(places + 1.0));
    }
    let turned = 1.0 / ratio; // the formula with 1/r avoids powers that overflow
    (1.0 - turned) / (1.0 - turned.powf(places + 1.0))
}

#[cfg(test)]
mod tests {
    use super::{BoundBy, bound_by, bytes_in, no_less, reached_share, window_full_share};

    /// In an M/M/1/K queue, the probabilities of the states 0 to K are proportional to 1, r, …, r^K.
    #[test]
    fn a_full_buffer_is_as_likely_as_the_states_of_the_queue_say() {
        for ratio in [0.2_f64, 0.9, 1.0, 1.5, 40.0, 5000.0] {
            for places in [1, 2, 44] {
                let states: Vec<f64> = (0..=places).map(|state| ratio.powi(state)).collect();
                let expected = ratio.powi(places) / states.iter().sum::<f64>();
                let found = window_full_share(ratio, places.into());
                assert!((found - expected).abs() <= 1e-9 * expected, "{ratio} {places}");
            }
        }
    }

    #[test]
    fn the_lowest_rate_is_the_bound_and_the_line_has_a_tolerance() {
        let table = [
            ((Some(5.0), Some(4.0), None), Some(BoundBy::Receive)),
            ((Some(4.0), Some(5.0), None), Some(BoundBy::Send)),
            ((Some(5.0), None, Some(4.0)), Some(BoundBy::Link)),
            // The sender's rate is within 1% of the link's rate.
            ((Some(99.5), None, Some(100.0)), Some(BoundBy::Link)),
            ((Some(98.5), None, Some(100.0)), Some(BoundBy::Send)),
            ((Some(4.0), Some(4.0), Some(4.0)), Some(BoundBy::Receive)),
        ];
        for ((send, receive, line), expected) in table {
            let bound = [send, receive, line].into_iter().flatten().reduce(f64::min).unwrap();
            assert_eq!(bound_by(bound, send, receive, line), expected, "{send:?} {receive:?} {line:?}");
        }
    }

    #[test]
    fn a_bound_below_what_was_delivered_is_none() {
        let table = [
            ((Some(100.0), Some(90.0)), Some(100.0)),
            ((Some(100.0), Some(105.0)), Some(105.0)),
            ((Some(100.0), Some(106.0)), None),
            ((Some(100.0), None), Some(100.0)),
            ((None, Some(100.0)), None),
        ];
        for ((bound, delivered), expected) in table {
            assert_eq!(no_less(bound, delivered), expected, "{bound:?} {delivered:?}");
        }
    }

    #[test]
    fn what_a_fast_sender_reached_is_what_was_delivered() {
        let table = [
            ((Some(50.0), Some(40.0)), 0.5),
            ((Some(104.0), Some(90.0)), 1.0),
            ((Some(106.0), Some(90.0)), 0.9),
            ((Some(106.0), None), 1.0),
            ((None, None), 1.0),
        ];
        for ((sent, delivered), expected) in table {
            assert!((reached_share(100.0, sent, delivered) - expected).abs() < 1e-12, "{sent:?} {delivered:?}");
        }
    }

    #[test]
    fn buffers_hold_a_round_trip() {
        assert_eq!(bytes_in(Some(8_000_000.0), Some(1_500_001)), Some(1_501));
        assert_eq!(bytes_in(None, Some(1)), None);
    }
}
