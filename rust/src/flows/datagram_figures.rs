//! Figures of a UDP flow: sizes and pace of its datagrams, losses, and response times. A direction needs only a few
//! numbers, so the memory grows with the number of flows, and not with the number of datagrams.

use std::collections::BTreeSet;

use super::datagram_ids::DatagramIds;
use super::datagram_rows::{DatagramRow, Echoes, FlowDirection};
use super::histogram::{Histogram, Quantiles};
use crate::nullable::Nullable;

const NS_PER_S: f64 = 1e9;
const BITS_PER_BYTE: f64 = 8.0;
/// Coefficients of variation are rounded to 6 decimals. More decimals would show rounding errors even at a constant
/// pace.
const VARIATION_STEPS: f64 = 1e6;
/// The sets of values in a flow's histogram: the gaps between the client's datagrams, the gaps between the server's
/// datagrams, and the server's response times.
const CLIENT_GAPS: u32 = 0;
const SERVER_GAPS: u32 = 1;
const ECHOES: u32 = 2;

/// The totals of the datagrams of one direction.
#[derive(Clone, Debug, Default)]
struct Direction {
    datagrams: u64,
    payload_bytes: u64,
    fragmented: u64,
    min_bytes: Option<u32>,
    max_bytes: Option<u32>,
    first_ts_ns: Nullable,
    last_ts_ns: Nullable,
    gaps: u64,
    gap_sum_ns: i64,
    gap_squares: f64,
    gap_max_ns: Nullable,
    ids: DatagramIds,
    sizes: BTreeSet<u32>,
}

/// The totals of the datagrams of one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowFigures {
    directions: [Direction; 2],
    echoes: Echoes,
    times: Histogram,
}

impl FlowFigures {
    /// Adds a datagram, with its size only if `counts_sizes` is set.
    pub(super) fn add(&mut self, row: &DatagramRow, counts_sizes: bool) {
        let [client, server] = &mut self.directions;
        let (direction, gaps) = if row.from_client { (client, CLIENT_GAPS) } else { (server, SERVER_GAPS) };
        direction.add(row, counts_sizes);
        // A negative gap means that the clock ran backwards.
        let gap_ns = row.since_previous_ns.get();
        if let Some(gap_ns) = gap_ns.filter(|gap_ns| *gap_ns >= 0) {
            direction.add_gap(gap_ns);
            self.times.add(gaps, gap_ns);
        }
        // The server's first datagram after a datagram of the client is an answer.
        let echo_ns = row.since_other_ns.get().filter(|ns| *ns >= 0 && gap_ns.is_none_or(|gap_ns| gap_ns > *ns));
        if let Some(echo_ns) = echo_ns.filter(|_| !row.from_client) {
            self.echoes.samples += 1;
            self.echoes.min_ns = Nullable::from(Some(echo_ns)).earlier(self.echoes.min_ns);
            self.echoes.max_ns = Nullable::from(Some(echo_ns)).later(self.echoes.max_ns);
            self.times.add(ECHOES, echo_ns);
        }
    }

    pub(super) fn buckets(&self) -> usize {
        self.times.len()
    }

    /// Makes the histogram's buckets wider ([`Histogram::widen`]).
    pub(super) fn widen(&mut self, bits: u32) {
        self.times.widen(bits);
    }

    pub(super) fn sizes(&self) -> usize {
        self.directions.iter().map(|direction| direction.sizes.len()).sum()
    }

    pub(super) fn forget_sizes(&mut self) {
        for direction in &mut self.directions {
            direction.sizes.clear();
        }
    }

    /// The figures of the client and of the server, and the response times. If `knows_sizes` is false, the number of
    /// different sizes is `None`.
    pub(super) fn finish(self, knows_sizes: bool) -> ([FlowDirection; 2], Echoes) {
        let [client_gap, server_gap, echo] = self.times.quantiles();
        let [client, server] = self.directions;
        let directions = [client.figures(client_gap, knows_sizes), server.figures(server_gap, knows_sizes)];
        (directions, Echoes { quantiles: echo, ..self.echoes })
    }
}

impl Direction {
    fn add(&mut self, row: &DatagramRow, counts_sizes: bool) {
        let bytes = row.payload_bytes;
        self.datagrams += 1;
        self.payload_bytes += u64::from(bytes);
        self.fragmented += u64::from(row.fragments > 1);
        self.min_bytes = Some(self.min_bytes.map_or(bytes, |least| least.min(bytes)));
        self.max_bytes = self.max_bytes.max(Some(bytes));
        self.first_ts_ns = row.ts_ns.earlier(self.first_ts_ns);
        self.last_ts_ns = row.ts_ns.later(self.last_ts_ns);
        if let Some(id) = row.ip_id {
            self.ids.take(id);
        }
        if counts_sizes {
            self.sizes.insert(bytes);
        }
    }

    fn add_gap(&mut self, gap_ns: i64) {
        self.gaps += 1;
        self.gap_sum_ns = self.gap_sum_ns.saturating_add(gap_ns);
        self.gap_squares += (gap_ns as f64).powi(2);
        self.gap_max_ns = self.gap_max_ns.later(Some(gap_ns).into());
    }

    fn figures(self, gap: Quantiles, knows_sizes: bool) -> FlowDirection {
        let lasting_ns = self.last_ts_ns.since(self.first_ts_ns).get().filter(|ns| *ns > 0);
        let some = self.datagrams > 0;
        let losses = self.ids.losses();
        FlowDirection {
            datagrams: self.datagrams,
            payload_bytes: self.payload_bytes,
            fragmented_datagrams: self.fragmented,
            min_payload_bytes: self.min_bytes,
            mean_payload_bytes: some
                .then(|| (self.payload_bytes as f64 / self.datagrams as f64).round_ties_even() as i64),
            max_payload_bytes: self.max_bytes,
            distinct_sizes: knows_sizes.then_some(self.sizes.len()),
            first_ts_ns: self.first_ts_ns,
            last_ts_ns: self.last_ts_ns,
            rate_bps: lasting_ns.map(|ns| self.payload_bytes as f64 * BITS_PER_BYTE / (ns as f64 / NS_PER_S)),
            gap,
            gap_max_ns: self.gap_max_ns,
            gap_variation: self.gap_variation(),
            missing_datagrams: losses.missing,
            reordered_datagrams: losses.reordered,
        }
    }

    /// Coefficient of variation of the gaps, or `None` for fewer than two gaps, or if all gaps are 0.
    fn gap_variation(&self) -> Option<f64> {
        let mean_ns = self.gap_sum_ns as f64 / self.gaps as f64;
        let variance = self.gap_squares / self.gaps as f64 - mean_ns * mean_ns;
        let variation = variance.max(0.0).sqrt() / mean_ns;
        (self.gaps > 1 && self.gap_sum_ns > 0).then(|| (variation * VARIATION_STEPS).round() / VARIATION_STEPS)
    }
}
