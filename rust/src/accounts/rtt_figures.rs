//! Count, mean, minimum, maximum and standard deviation of times.

use serde::{Deserialize, Serialize};

/// Running totals of time samples, such as round trips.
///
/// ```
/// use tcptrace_lab_core::accounts::RttFigures;
///
/// let mut rtt = RttFigures::default();
/// assert_eq!(rtt.mean_ns(), None);
/// [10, 20, 30].iter().for_each(|rtt_ns| rtt.add(*rtt_ns));
/// assert_eq!((rtt.min_ns(), rtt.mean_ns(), rtt.stdev_ns()), (Some(10), Some(20), Some(10)));
/// ```
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct RttFigures {
    /// Number of samples.
    pub samples: u64,
    /// Sum of the squared samples in ns².
    squares: f64,
    sum_ns: i64,
    min_ns: i64,
    max_ns: i64,
}

impl RttFigures {
    /// Adds a sample.
    #[inline]
    pub fn add(&mut self, rtt_ns: i64) {
        self.min_ns = if self.samples == 0 { rtt_ns } else { self.min_ns.min(rtt_ns) };
        self.max_ns = if self.samples == 0 { rtt_ns } else { self.max_ns.max(rtt_ns) };
        self.sum_ns = self.sum_ns.saturating_add(rtt_ns);
        self.squares += rtt_ns as f64 * rtt_ns as f64;
        self.samples += 1;
    }

    /// Smallest sample.
    #[inline]
    #[must_use]
    pub fn min_ns(&self) -> Option<i64> {
        (self.samples > 0).then_some(self.min_ns)
    }

    /// Mean of the samples, rounded down.
    #[must_use]
    pub fn mean_ns(&self) -> Option<i64> {
        // A broken clock can produce samples of centuries. The sum then stays at its maximum, so the quotient must be
        // limited to the range of the samples.
        (self.samples > 0).then(|| (self.sum_ns / self.samples as i64).clamp(self.min_ns, self.max_ns))
    }

    /// Sample standard deviation (divided by n - 1), or `None` for fewer than two samples.
    #[must_use]
    pub fn stdev_ns(&self) -> Option<i64> {
        let (samples, sum_ns) = (self.samples as f64, self.sum_ns as f64);
        let variance = (self.squares - sum_ns * sum_ns / samples) / (samples - 1.0);
        (self.samples > 1).then(|| variance.max(0.0).sqrt().round() as i64)
    }

    /// Largest sample.
    #[must_use]
    pub fn max_ns(&self) -> Option<i64> {
        (self.samples > 0).then_some(self.max_ns)
    }
}
