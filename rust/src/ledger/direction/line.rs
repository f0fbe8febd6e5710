//! Serialization times: how long a segment occupies the line of each host, from a capture at the sender.

use crate::sender::{AROUND_BYTES, AROUND_IN_CELLS_BYTES, CELL_BYTES, LONGEST_NS, SenderTotals, TIMESTAMP_BYTES};

/// The smallest size of a segment on Ethernet, with all overhead (IEEE 802.3).
pub const MIN_FRAME_BYTES: i64 = 84;
/// Line rates of both directions count as equal if they differ by less than this share (a heuristic).
const ALIKE_SHARE: f64 = 0.05;
/// Line rates over ATM count as equal if they differ by less than this share. Numbers of cells are exact, so only the
/// capture's clock causes rounding errors.
const ALIKE_IN_CELLS_SHARE: f64 = 0.02;
/// A segment without data takes this many ATM cells.
const MIN_SEGMENT_CELLS: i64 = 2;
/// The longest serialization time of a segment (a heuristic: 1,538 bytes at 1,200 bit/s take 10 s).
const LONGEST_ON_LINE_NS: i64 = 16_000_000_000;

/// For how many nanoseconds a line was busy, and how many bytes it carried in this time.
type Busy = (Option<i64>, Option<i64>);

/// The line rates of both directions; unknown in a capture away from the sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    own: Option<(i64, i64)>,
    other: Option<(i64, i64)>,
}

impl Line {
    pub(super) fn of(totals: &SenderTotals, other: &SenderTotals, near_sender: bool, stamped: bool) -> Self {
        if !near_sender {
            return Self::default();
        }
        let option_bytes = if stamped { TIMESTAMP_BYTES } else { 0 };
        let cells =
            |payload: i64| (payload + option_bytes + AROUND_IN_CELLS_BYTES + CELL_BYTES - 1).div_euclid(CELL_BYTES);
        let line = busy(totals.serialization_ns.get(), totals.line_payload_bytes.get());
        let exchange = (totals.exchange_ns.get(), totals.exchange_bytes.get());
        let of_exchange = rate(exchange);
        let of_exchange_cells = rate((totals.exchange_ns.get(), totals.exchange_cells.get()));
        let min_segment_bytes = (option_bytes + AROUND_BYTES).max(MIN_FRAME_BYTES);
        let serialization_ns = totals.serialization_ns.get().map(|ns| ns as f64);
        let fin_ns = other.fin_ns.get().map(|ns| ns as f64);
        let line_payload = totals.line_payload_bytes.get();
        let by = |ns: Option<f64>, bytes: Option<i64>| ns.zip(bytes).map(|(ns, bytes)| ns / bytes as f64);
        let as_own =
            is_alike(of_exchange, by(serialization_ns, line_payload.map(|bytes| bytes + AROUND_BYTES)), ALIKE_SHARE)
                || is_alike(of_exchange_cells, by(serialization_ns, line_payload.map(cells)), ALIKE_IN_CELLS_SHARE);
        let as_fin = is_alike(of_exchange, by(fin_ns, Some(min_segment_bytes)), ALIKE_SHARE)
            || is_alike(of_exchange_cells, by(fin_ns, Some(MIN_SEGMENT_CELLS)), ALIKE_IN_CELLS_SHARE);
        let fallback = |first: Busy, second: Busy, is: bool| {
            let second = if is { second } else { (None, None) };
            (first.0.or(second.0), first.1.or(second.1))
        };
        let spaced = busy(other.spaced_ns.get(), other.spaced_payload_bytes.get());
        let other_line = busy(other.serialization_ns.get(), other.line_payload_bytes.get());
        // The peer's line spaces the peer's small segments if their rate equals the rate of this direction's line.
        let others = if is_alike(rate(spaced), rate(line), ALIKE_SHARE) {
            spaced
        } else {
            fallback(other_line, exchange, as_own || as_fin)
        };
        let known = |(ns, bytes): Busy| ns.zip(bytes).filter(|(_, bytes)| *bytes != 0);
        Self { own: known(fallback(line, exchange, as_fin)), other: known(others) }
    }

    /// Nanoseconds for which `bytes` keep the sender's line busy; 0 if its rate is unknown.
    #[must_use]
    pub fn own_ns(&self, bytes: i64) -> i64 {
        on_line(bytes, self.own)
    }

    /// How much longer a segment with this payload keeps the sender's line busy than a SYN does, in nanoseconds.
    #[must_use]
    pub fn own_beyond_least_ns(&self, payload_bytes: Option<i64>) -> i64 {
        on_line(beyond_least(payload_bytes), self.own)
    }

    /// How much longer a segment with this payload keeps the receiver's line busy than a SYN does, in nanoseconds.
    #[must_use]
    pub fn other_beyond_least_ns(&self, payload_bytes: Option<i64>) -> i64 {
        on_line(beyond_least(payload_bytes), self.other)
    }
}

fn beyond_least(payload_bytes: Option<i64>) -> i64 {
    (payload_bytes.unwrap_or(0) + (AROUND_BYTES - MIN_FRAME_BYTES)).max(0)
}

fn on_line(bytes: i64, busy: Option<(i64, i64)>) -> i64 {
    busy.map_or(0, |busy| at_rate(bytes, busy).clamp(0, LONGEST_NS))
}

/// Nanoseconds that `bytes` take at a rate. The rate is given as a time in nanoseconds and the number of bytes (more
/// than 0) that are sent in this time. The result is rounded down, and at most [`LONGEST_NS`].
pub(in super::super) fn at_rate(bytes: i64, (ns, of_bytes): (i64, i64)) -> i64 {
    let exact = || i64::try_from((i128::from(bytes) * i128::from(ns)).div_euclid(i128::from(of_bytes)));
    let at_rate_ns =
        bytes.checked_mul(ns).map_or_else(|| exact().unwrap_or(LONGEST_NS), |product| product.div_euclid(of_bytes));
    at_rate_ns.min(LONGEST_NS)
}

fn busy(ns: Option<i64>, payload_bytes: Option<i64>) -> Busy {
    (ns.map(|ns| ns.min(LONGEST_ON_LINE_NS)), payload_bytes.map(|bytes| bytes + AROUND_BYTES))
}

fn rate((ns, bytes): Busy) -> Option<f64> {
    ns.zip(bytes).map(|(ns, bytes)| ns as f64 / bytes as f64)
}

/// Whether both values are known and differ by at most `share` of the second value.
fn is_alike(one: Option<f64>, other: Option<f64>, share: f64) -> bool {
    one.zip(other).is_some_and(|(one, other)| (one - other).abs() <= share * other)
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_NS, Line};

    #[test]
    fn no_line_takes_longer_for_a_segment_than_the_longest_life() {
        let line = Line { own: Some((LONGEST_NS, 79)), other: Some((1_538_000, 1_538)) };
        assert_eq!(line.own_ns(1 << 32), LONGEST_NS);
        assert_eq!(line.other_beyond_least_ns(Some(1460)), 1_454_000);
    }
}
