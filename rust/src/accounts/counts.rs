//! The counts of one direction for the connections table, which classification does not need.

use serde::{Deserialize, Serialize};

use super::rtt_figures::RttFigures;
use crate::connection::{Kind, Novelty, Placed};
use crate::nullable::Nullable;
use crate::wire::{Segment, TcpFlags};

/// The counts of one direction.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // `tcptrace_lab/schema/` defines each field
pub struct Counts {
    pub payload_bytes: u64,
    pub unique_bytes: u64,
    pub retransmitted_segments: u32,
    pub retransmitted_bytes: u64,
    pub out_of_order_segments: u32,
    pub duplicate_acks: u32,
    pub pure_acks: u64,
    pub keepalives: u32,
    pub zero_window_probes: u32,
    pub window_updates: u32,
    pub zero_window_advertisements: u32,
    pub pushed_segments: u32,
    pub truncated_segments: u64,
    pub max_window_bytes: Option<u32>,
    pub min_window_bytes: Option<u32>,
    /// Number of ATM cells, or 0 for other links.
    pub cells: u64,
    pub rtt: RttFigures,
    pub first_data_ts_ns: Nullable,
    pub last_data_ts_ns: Nullable,
}

impl Counts {
    /// Counts a segment that this host sent.
    #[inline]
    pub(crate) fn sent(
        &mut self,
        segment: &Segment,
        placed: Placed,
        kind: Kind,
        novelty: Novelty,
        window_bytes: Option<u32>,
    ) {
        let flags = segment.flags;
        let payload = u64::from(segment.payload_bytes);
        self.cells += segment.atm.map_or(0, |atm| u64::from(atm.cells));
        self.pushed_segments += u32::from(flags.any(TcpFlags::PSH));
        self.truncated_segments += u64::from(segment.captured_payload_bytes < segment.payload_bytes);
        if payload > 0 {
            self.payload_bytes += payload;
            if let Some(ts_ns) = segment.ts_ns {
                self.first_data_ts_ns = self.first_data_ts_ns.get().or(Some(ts_ns)).into();
                self.last_data_ts_ns = Some(ts_ns).into();
            }
            let controls = (placed.end - placed.start) as u64 - payload;
            let new_payload = (novelty.new as u64).saturating_sub(controls).min(payload);
            self.unique_bytes += new_payload;
            if kind.is_resent() {
                // Bytes that fill a hole are retransmitted too, because the original bytes were lost before the capture
                // point.
                let resent = if novelty.jumper.is_some() { payload } else { payload - new_payload };
                self.retransmitted_bytes += resent;
            }
        } else if !flags.any(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST) {
            self.pure_acks += 1;
        }
        self.retransmitted_segments += u32::from(kind.is_resent());
        match kind {
            Kind::OutOfOrder => self.out_of_order_segments += 1,
            Kind::DuplicateAck => self.duplicate_acks += 1,
            Kind::Keepalive => self.keepalives += 1,
            Kind::ZeroWindowProbe => self.zero_window_probes += 1,
            Kind::WindowUpdate => self.window_updates += 1,
            _ => {}
        }
        if flags.any(TcpFlags::RST) {
            return;
        }
        self.zero_window_advertisements += u32::from(segment.window == 0);
        if let Some(window) = window_bytes {
            self.max_window_bytes = Some(self.max_window_bytes.map_or(window, |most| most.max(window)));
            if !flags.any(TcpFlags::SYN) {
                self.min_window_bytes = Some(self.min_window_bytes.map_or(window, |least| least.min(window)));
            }
        }
    }

    /// Adds the RTT sample that a segment of the peer completed, if there is one.
    #[inline]
    pub(crate) fn rtt_sampled(&mut self, rtt_ns: Nullable) {
        if let Some(rtt_ns) = rtt_ns.get() {
            self.rtt.add(rtt_ns);
        }
    }
}
