//! Medians and 95th percentiles of the round trips and ACK delays of one connection.

use super::histogram::{Histogram, Quantiles};
use crate::connection::Judged;
use crate::wire::{Segment, TcpFlags};

/// The times of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionTimes {
    /// Round trips of the data in this direction.
    pub rtt: Quantiles,
    /// Delays of pure ACKs from the sender of this direction.
    pub ack_lag: Quantiles,
}

#[derive(Clone, Copy)]
enum TimeKind {
    Rtt,
    AckLag,
}

/// The times of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Times(Histogram);

#[inline]
fn set(kind: TimeKind, from_client: bool) -> u32 {
    2 * kind as u32 + u32::from(!from_client)
}

impl Times {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds the times that the ACK in a segment shows. `other_has_finished` is true if the peer has already sent a FIN.
    #[inline]
    pub(super) fn take(&mut self, segment: &Segment, judged: &Judged, from_client: bool, other_has_finished: bool) {
        let answer = &judged.answer;
        let Some(rtt_ns) = answer.rtt_ns.get() else { return };
        // The RTT sample belongs to the direction of the acknowledged data.
        self.0.add(set(TimeKind::Rtt, !from_client), rtt_ns);
        let is_pure = segment.payload_bytes == 0 && !segment.flags.any(TcpFlags::FIN | TcpFlags::SYN | TcpFlags::RST);
        let beyond_syn = judged.ack.is_some_and(|ack| ack > 1);
        if let Some(lag_ns) = answer.lag_ns.get().filter(|lag_ns| *lag_ns >= 0)
            && is_pure
            && beyond_syn
            && !other_has_finished
        {
            self.0.add(set(TimeKind::AckLag, from_client), lag_ns);
        }
    }

    /// Makes the buckets wider: bucket numbers then omit their lowest `bits` bits.
    pub(super) fn widen(&mut self, bits: u32) {
        self.0.widen(bits);
    }

    /// The quantiles of both directions, the client's direction first.
    pub(super) fn quantiles(self) -> [DirectionTimes; 2] {
        let [client_rtt, server_rtt, client_lag, server_lag] = self.0.quantiles();
        [
            DirectionTimes { rtt: client_rtt, ack_lag: client_lag },
            DirectionTimes { rtt: server_rtt, ack_lag: server_lag },
        ]
    }
}
