//! A cost is the time that one direction of a connection loses to one cause. The largest costs of a capture show which
//! connections lose enough time for a finding. The largest costs are updated while the capture is read.

use std::cmp::Reverse;

use super::super::cause::{CAUSES, Cause};
use crate::flows::ConnectionRow;

/// By default, at most this many of the largest costs of a capture are kept.
pub const MOST: usize = 50;
/// Maximum number of connections with a failed handshake that are kept per capture. Those with the longest life are
/// kept.
pub const MAX_FAILED: usize = 1000;

/// Nanoseconds of each cause in one direction.
pub type Sums = [i64; CAUSES];

/// The thresholds above which a cause is worth a finding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worth {
    /// The cause.
    pub cause: Cause,
    /// Minimum time in nanoseconds.
    pub ns: i64,
    /// Minimum share of the direction's active time, which is its life without idle time.
    pub share: f64,
    /// Whether the cause counts only in the client's direction.
    pub of_client_alone: bool,
    /// Whether the cause counts only in directions with data.
    pub of_data_alone: bool,
}

/// The time for which one cause limited one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The connection.
    pub conn: u32,
    /// Whether the client is the sender of the direction.
    pub from_client: bool,
    /// The cause.
    pub cause: Cause,
    /// The time in nanoseconds.
    pub ns: i64,
}

impl Cost {
    /// The order of costs: the largest first. Equal costs are ordered by connection number, with the client's direction
    /// before the server's.
    fn order(&self) -> (Reverse<i64>, u32, bool, u8) {
        (Reverse(self.ns), self.conn, !self.from_client, self.cause as u8)
    }
}

/// The life of a connection in nanoseconds; `None` if the connection has no times.
pub(super) fn life_ns(row: &ConnectionRow) -> Option<i64> {
    row.last_ts_ns.since(row.first_ts_ns).get()
}

/// Whether the handshake failed: nobody answered the client's SYN, or a RST answered it. If the client sent anything
/// besides SYN and RST, the handshake did not fail: the client must have received answers that the capture lacks.
pub(super) fn has_failed(row: &ConnectionRow) -> bool {
    let [client, server] = &row.directions;
    let asked = client.syn_segments;
    let unanswered = server.segments == 0 && client.segments <= u64::from(asked) + u64::from(client.rst_segments);
    let refused = server.syn_segments == 0 && server.rst_segments > 0;
    asked > 0 && (unanswered || refused)
}

/// Returns those costs of a connection that are worth a finding.
pub(super) fn worth_telling(row: &ConnectionRow, sums: &[Sums; 2], worths: &[Worth]) -> Vec<Cost> {
    let Some(life_ns) = life_ns(row) else { return Vec::new() };
    let failed = has_failed(row);
    let mut costs = Vec::new();
    for ((sums, counts), from_client) in sums.iter().zip(&row.counts).zip([true, false]) {
        for worth in worths {
            let of = |cause: Cause| sums.get(cause as usize).copied().unwrap_or(0);
            let (ns, active_ns) = (of(worth.cause), life_ns - of(Cause::Idle));
            let asked = (from_client || !worth.of_client_alone)
                && (counts.payload_bytes > 0 || !worth.of_data_alone)
                && !(failed && worth.cause == Cause::Handshake);
            if asked && ns >= worth.ns && ns as f64 >= worth.share * active_ns as f64 {
                costs.push(Cost { conn: row.conn, from_client, cause: worth.cause, ns });
            }
        }
    }
    costs
}

#[derive(Clone, Debug, Default)]
pub(super) struct Costs {
    most: usize,
    /// The costs, largest first.
    largest: Vec<Cost>,
}

impl Costs {
    pub(super) fn new(most: usize) -> Self {
        Self { most, largest: Vec::new() }
    }

    /// Adds the costs of one connection. Returns whether any of these costs is among the largest.
    pub(super) fn add(&mut self, costs: &[Cost]) -> bool {
        let mut any = false;
        for cost in costs {
            let place = self.largest.partition_point(|other| other.order() <= cost.order());
            if place < self.most {
                self.largest.insert(place, *cost);
                self.largest.truncate(self.most);
                any = true;
            }
        }
        any
    }

    /// Whether a cost of `ns` nanoseconds would be among the largest.
    pub(super) fn may_take(&self, ns: i64) -> bool {
        self.largest.len() < self.most || self.largest.last().is_some_and(|least| ns >= least.ns)
    }

    pub(super) fn has(&self, conn: u32) -> bool {
        self.largest.iter().any(|cost| cost.conn == conn)
    }
}

/// The connections with a failed handshake that are kept so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Failed {
    /// Life and connection number, longest life first.
    longest: Vec<(Reverse<i64>, u32)>,
}

impl Failed {
    /// Adds a connection, if it is among the failed connections with the longest life. Returns whether it is.
    pub(super) fn add(&mut self, row: &ConnectionRow) -> bool {
        let Some(life_ns) = life_ns(row) else { return false };
        let this = (Reverse(life_ns), row.conn);
        let place = self.longest.partition_point(|other| *other <= this);
        let kept = place < MAX_FAILED;
        if kept {
            self.longest.insert(place, this);
            self.longest.truncate(MAX_FAILED);
        }
        kept
    }

    pub(super) fn has(&self, conn: u32) -> bool {
        self.longest.iter().any(|(_, other)| *other == conn)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Cost, Costs, MOST};
    use crate::ledger::Cause;

    /// Random costs of connections, in any order.
    fn costs() -> impl Strategy<Value = Vec<Vec<Cost>>> {
        let of_one = prop::collection::vec((any::<bool>(), 0..3_usize, 0_i64..30), 0..4);
        prop::collection::vec((0_u32..1000, of_one), 0..200).prop_map(|connections| {
            let made = connections.into_iter().map(|(conn, costs)| {
                let cost = |(from_client, cause, ns): (bool, usize, i64)| Cost {
                    conn,
                    from_client,
                    cause: Cause::ALL[cause],
                    ns,
                };
                costs.into_iter().map(cost).collect()
            });
            made.collect()
        })
    }

    proptest! {
        #[test]
        fn the_largest_costs_are_those_of_a_sorted_list(connections in costs()) {
            let mut kept = Costs::new(MOST);
            let mut all: Vec<Cost> = Vec::new();
            for costs in &connections {
                let any = kept.add(costs);
                all.extend(costs);
                all.sort_by_key(Cost::order);
                prop_assert!(any || costs.iter().all(|cost| !all[..all.len().min(MOST)].contains(cost) || kept.largest.contains(cost)));
            }
            all.truncate(MOST);
            prop_assert_eq!(kept.largest.iter().map(Cost::order).collect::<Vec<_>>(), all.iter().map(Cost::order).collect::<Vec<_>>());
        }
    }
}
