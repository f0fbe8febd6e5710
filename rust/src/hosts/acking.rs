//! How a host acknowledges: what triggers an ACK, and how long its delayed-ACK timer runs.

use crate::accounts::Acking;
use crate::flows::ConnectionRow;

/// Width of a class of ACK delays in the histogram of [`Acking`].
const DELAY_CLASS_MS: i64 = 2;
/// Minimum number of ACKs for a verdict on the usual number of segments per ACK (a heuristic).
const MIN_ACKS: i64 = 5;
/// Minimum number of delayed ACKs for a verdict on the timer (`docs/how-it-decides.md`, 2.4).
const MIN_DELAYED: i64 = 3;
/// The delays of a fixed timer differ by at most 20 ms (a heuristic). The delays vary with the ticks of the host
/// (Linux: 4 or 10 ms) and with the path's jitter.
const FIXED_SPREAD_MS: i64 = 20;
/// Period of the timer in BSD and its descendants (`tcp_fasttimo`), which gives ACK delays from 0 to 200 ms. All
/// delayed ACKs have the same phase, because they are sent when the timer fires.
const HEARTBEAT_MS: i64 = 200;
/// A periodic timer (heartbeat) is assumed if delayed ACKs cluster at one phase of its period. The probability of such
/// a cluster by chance (Rayleigh's test) must be below 0.1%.
const HEARTBEAT_CHANCE: f64 = 0.001;
/// A host acknowledges every segment if at least 80% of its ACKs cover one segment (a heuristic). Hosts with another
/// rule also send some ACKs that cover one segment. Some stacks acknowledge a connection's first segments at once
/// (Linux: 16), and ACKs also go out with the application's data or at the end of a message.
const EARLY: f64 = 0.8;
/// A host follows a rule if at least half of the host's ACKs fit the rule (a heuristic).
const MOST: f64 = 0.5;
/// Quantiles of the ACK delays. The first and the third give the range of the delays, and the median identifies the
/// timer.
const SHARES: [f64; 3] = [0.1, 0.5, 0.9];

/// For each timer: its time, the lowest median delay that identifies it, and the upper limit of this median
/// (exclusive), all in ms (`docs/how-it-decides.md`, 2.5).
const TIMERS: [(i64, i64, i64); 4] = [(40, 35, 50), (50, 50, 60), (100, 95, 115), (200, 190, 215)];
/// Largest 10th percentile of the delays from a 200 ms timer. This limit excludes lwIP, whose timer fires every 250 ms
/// (`TCP_TMR_INTERVAL`). For example, all delays of lwIP are 210 ms if all segments arrive 40 ms after the timer fires.
const SOONEST_TO_MS: i64 = 206;
const TIMER_LIKE_LWIP_MS: i64 = 200;

/// The delayed-ACK timer whose range contains `delay_ms`.
pub(crate) fn fixed_timer_ms(delay_ms: i64) -> Option<i64> {
    let shows = |(_, from_ms, below_ms): &&(i64, i64, i64)| (*from_ms..*below_ms).contains(&delay_ms);
    TIMERS.iter().find(shows).map(|(timer_ms, ..)| *timer_ms)
}

/// What triggers an ACK, in the order of `ACK_POLICIES` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AckPolicy {
    /// Every segment.
    PerSegment,
    /// Every second segment of any size.
    PerTwoSegments,
    /// As many bytes as two full-sized segments have.
    PerTwoMss,
    /// Every second full-sized segment. Whether the host counts segments or bytes is unknown.
    PerTwo,
    /// As many bytes as 35% of the receive buffer.
    Buffer35,
    /// As many bytes as half of the receive buffer.
    Buffer50,
    /// More than two segments.
    Stretch,
    /// Only the timer.
    Timer,
    /// Not known.
    Unknown,
}

/// The kind of a delayed-ACK timer, in the order of `ACK_TIMER_KINDS` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TimerKind {
    /// The timer starts when a segment arrives.
    Fixed,
    /// The timer fires at fixed intervals, regardless of arriving segments.
    Heartbeat,
}

/// A delayed-ACK timer: its time in ms, and its kind.
pub type AckTimer = (i64, TimerKind);

/// How a host acknowledges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acknowledging {
    /// What triggers an ACK.
    pub policy: AckPolicy,
    /// Number of ACKs behind the verdict on the policy.
    pub samples: i64,
    /// The delayed-ACK timer of the host.
    pub timer: Option<AckTimer>,
    /// Range of the ACK delays, without the shortest and the longest 10%.
    pub delays_ms: Option<(i64, i64)>,
}

/// Properties of the ACK delays of a host.
struct Delays {
    /// The 10th percentile, the median and the 90th percentile ([`SHARES`]).
    quantiles_ms: [i64; 3],
    longest_ms: i64,
}

impl Delays {
    /// The properties of delays that are given as a number of ACKs for each class.
    fn of(classes: &[u16]) -> Self {
        let total: u64 = classes.iter().copied().map(u64::from).sum();
        let place = |share: f64| {
            let counted = classes.iter().scan(0_u64, |sum, count| {
                *sum += u64::from(*count);
                Some(*sum)
            });
            counted.take_while(|sum| (*sum as f64) < total as f64 * share).count() as i64 * DELAY_CLASS_MS
        };
        let [from_ms, median_ms, high_ms] = SHARES.map(place);
        let longest_ms = (classes.len() as i64 - 1) * DELAY_CLASS_MS;
        Self { quantiles_ms: [from_ms, median_ms, high_ms + DELAY_CLASS_MS], longest_ms }
    }

    /// The fixed timer that explains the delays.
    fn fixed(&self, delayed: i64) -> Option<i64> {
        let [from_ms, median_ms, to_ms] = self.quantiles_ms;
        let narrow = delayed >= MIN_DELAYED && to_ms - from_ms <= FIXED_SPREAD_MS;
        let soonest_to_ms = |timer_ms| if timer_ms == TIMER_LIKE_LWIP_MS { SOONEST_TO_MS } else { i64::MAX };
        fixed_timer_ms(median_ms).filter(|timer_ms| narrow && from_ms <= soonest_to_ms(*timer_ms))
    }

    /// Whether a periodic timer (heartbeat) explains the delays.
    fn beats(&self, acking: &Acking) -> bool {
        let rayleigh = acking.concentration().map(|mean| f64::from(acking.delayed_acks) * mean.powi(2));
        let [from_ms, _, to_ms] = self.quantiles_ms;
        to_ms - from_ms > FIXED_SPREAD_MS
            && self.longest_ms <= HEARTBEAT_MS
            && rayleigh.is_some_and(|rayleigh| rayleigh > -HEARTBEAT_CHANCE.ln())
    }
}

impl Acknowledging {
    /// How host `side` (0 client, 1 server) acknowledges.
    #[must_use]
    pub fn by_host(row: &ConnectionRow, side: usize) -> Self {
        let found = || {
            let acking = row.behaviours.get(side)?.acking.as_deref();
            let buffer_bytes = row.directions.get(side)?.window_scale.and(row.counts.get(side)?.max_window_bytes);
            Some(Self::of(acking, row.full_segment_bytes.map(i64::from), buffer_bytes.map(i64::from)))
        };
        found().unwrap_or(Self::NOT)
    }

    /// Whether a periodic timer (heartbeat) sends the delayed ACKs.
    #[must_use]
    pub fn beats(&self) -> bool {
        self.timer.is_some_and(|(_, kind)| kind == TimerKind::Heartbeat)
    }

    /// A host that never acknowledged data.
    const NOT: Self = Self { policy: AckPolicy::Unknown, samples: 0, timer: None, delays_ms: None };

    /// Draws the conclusions from one host's ACKs. `mss_bytes` is the payload of a full-sized segment, and
    /// `buffer_bytes` is the largest window that the host advertised.
    fn of(acking: Option<&Acking>, mss_bytes: Option<i64>, buffer_bytes: Option<i64>) -> Self {
        let Some(acking) = acking else { return Self::NOT };
        let delays = acking.delays().map(Delays::of);
        let timer = delays.as_ref().and_then(|delays| {
            let beats = delays.beats(acking).then_some((HEARTBEAT_MS, TimerKind::Heartbeat));
            beats.or_else(|| delays.fixed(acking.delayed_acks.into()).map(|ms| (ms, TimerKind::Fixed)))
        });
        let delayed = i64::from(acking.delayed_acks);
        let prompt = acking.by_segments.iter().copied().map(i64::from).sum::<i64>() - delayed;
        let policy = by_bytes(acking, mss_bytes, buffer_bytes).unwrap_or_else(|| by_count(acking, prompt, timer));
        let delays_ms = delays.map(|Delays { quantiles_ms: [from_ms, _, to_ms], .. }| (from_ms, to_ms));
        Self { policy, samples: prompt + delayed, timer, delays_ms }
    }
}

/// The rule about bytes that explains both the immediate and the delayed ACKs, or `None` if no rule or several rules
/// fit, or if a limit of one full-sized segment fits too.
fn by_bytes(acking: &Acking, mss_bytes: Option<i64>, buffer_bytes: Option<i64>) -> Option<AckPolicy> {
    let (prompt, delayed) = (i64::from(acking.prompt_acks), i64::from(acking.delayed_acks));
    let waited = (delayed > 0).then_some(i64::from(acking.delayed_max_bytes))?;
    let went = (prompt > 0).then_some(i64::from(acking.prompt_min_bytes))?;
    let fits = |bytes: Option<i64>| bytes.is_some_and(|bytes| waited < bytes && bytes <= went);
    let both = prompt >= MIN_DELAYED && delayed >= MIN_DELAYED;
    let rules = [
        (AckPolicy::PerTwoMss, mss_bytes.map(|mss| 2 * mss)),
        (AckPolicy::Buffer35, buffer_bytes.map(|buffer| (buffer * 35 + 99) / 100)),
        (AckPolicy::Buffer50, buffer_bytes.map(|buffer| buffer / 2)),
    ];
    let mut fitting = rules.into_iter().filter(|(_, bytes)| both && fits(*bytes)).map(|(policy, _)| policy);
    let found = fitting.next()?;
    (fitting.next().is_none() && !fits(mss_bytes)).then_some(found)
}

/// The rule about the number of segments per ACK. `prompt` is the number of ACKs without delay.
///
/// A delayed ACK of several segments counts as if it covered more than two segments. This way of counting can hide
/// [`AckPolicy::PerTwo`], but never gives `PerTwo` wrongly.
fn by_count(acking: &Acking, prompt: i64, timer: Option<AckTimer>) -> AckPolicy {
    let (delayed, several) = (i64::from(acking.delayed_acks), i64::from(acking.delayed_several));
    let [of_one, of_two, ..] = acking.by_segments.map(i64::from);
    let (one, two) = (of_one - (delayed - several), of_two);
    let more = prompt - one - two;
    let pairs = i64::from(acking.prompt_small_pairs);
    let at_least = |count: i64, share: f64, of: i64| count as f64 >= share * of as f64;
    let enough = prompt >= MIN_ACKS;
    let more_most = more as f64 > MOST * prompt as f64;
    if enough && pairs >= MIN_DELAYED && at_least(pairs, MOST, two) && !at_least(more, MOST, prompt) {
        AckPolicy::PerTwoSegments
    } else if enough && at_least(one, EARLY, prompt + delayed) {
        AckPolicy::PerSegment
    } else if enough && at_least(two, MOST, prompt) {
        if several >= MIN_DELAYED { AckPolicy::PerTwoMss } else { AckPolicy::PerTwo }
    } else if enough && more_most {
        AckPolicy::Stretch
    } else if timer.is_some() && delayed > prompt {
        AckPolicy::Timer
    } else {
        AckPolicy::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::{AckPolicy, Acking, Acknowledging, Delays, TimerKind};

    /// Pairs of a delay in ms and a number of ACKs.
    type Counts<'a> = &'a [(usize, u16)];

    /// Number of delayed ACKs for each class of 2 ms.
    fn classes(delays: Counts<'_>) -> Vec<u16> {
        let last = delays.iter().map(|(ms, _)| ms / 2).max().unwrap();
        let mut counts = vec![0; last + 1];
        for (ms, count) in delays {
            counts[ms / 2] += count;
        }
        counts
    }

    #[test]
    fn a_fixed_timer_is_known_by_the_median_and_a_narrow_range() {
        let table: [(Counts<'_>, Option<i64>); 9] = [
            (&[(40, 10)], Some(40)),
            (&[(34, 10)], None),
            (&[(36, 10)], Some(40)),
            (&[(48, 10)], Some(40)),
            (&[(50, 10)], Some(50)),
            (&[(60, 10)], None),
            (&[(200, 10)], Some(200)),
            // All delays are 210 ms. A timer of 250 ms that runs in step with the segments gives such delays, but a
            // timer of 200 ms does not.
            (&[(210, 10)], None),
            // The delays differ by up to 30 ms, even without the shortest and longest 10%.
            (&[(40, 10), (70, 5)], None),
        ];
        for (delays, expected) in table {
            assert_eq!(Delays::of(&classes(delays)).fixed(10), expected, "{delays:?}");
        }
        assert_eq!(Delays::of(&classes(&[(40, 2)])).fixed(2), None, "two show no timer");
    }

    #[test]
    fn quantiles_are_the_classes_that_reach_their_share() {
        let delays = Delays::of(&classes(&[(4, 1), (10, 8), (30, 1)]));
        assert_eq!((delays.quantiles_ms, delays.longest_ms), ([4, 10, 12], 30));
    }

    fn acking(by_segments: [u32; 6]) -> Acking {
        Acking { by_segments, ..Acking::default() }
    }

    fn policy(acking: &Acking) -> AckPolicy {
        Acknowledging::of(Some(acking), Some(1_000), Some(16_000)).policy
    }

    #[test]
    fn the_segments_per_ack_show_the_rule() {
        let table = [
            ([4, 0, 0, 0, 0, 0], AckPolicy::Unknown),
            ([5, 0, 0, 0, 0, 0], AckPolicy::PerSegment),
            ([8, 2, 0, 0, 0, 0], AckPolicy::PerSegment),
            ([7, 3, 0, 0, 0, 0], AckPolicy::Unknown),
            ([5, 5, 0, 0, 0, 0], AckPolicy::PerTwo),
            ([2, 2, 3, 2, 0, 0], AckPolicy::Stretch),
        ];
        for (by_segments, expected) in table {
            assert_eq!(policy(&acking(by_segments)), expected, "{by_segments:?}");
        }
        let pairs = Acking { prompt_small_pairs: 3, ..acking([2, 5, 0, 0, 0, 0]) };
        assert_eq!(policy(&pairs), AckPolicy::PerTwoSegments);
        let by_bytes = Acking { delayed_acks: 3, delayed_several: 3, ..acking([0, 8, 0, 0, 0, 0]) };
        assert_eq!(policy(&by_bytes), AckPolicy::PerTwoMss, "a second segment triggers none of the delayed ACKs");
    }

    #[test]
    fn a_rule_by_bytes_lies_between_what_waited_and_what_went() {
        // A full-sized segment has 1,000 bytes. The buffer has 16,000 bytes: 35% of them are 5,600, half are 8,000.
        let table = [
            (1_999, 2_000, AckPolicy::PerTwoMss),
            (5_599, 5_600, AckPolicy::Buffer35),
            (7_999, 8_000, AckPolicy::Buffer50),
            (5_599, 8_000, AckPolicy::Unknown),
            (2_000, 2_001, AckPolicy::Unknown),
            (999, 2_000, AckPolicy::Unknown),
        ];
        for (waited, went, expected) in table {
            let found = Acking {
                delayed_acks: 3,
                delayed_max_bytes: waited,
                prompt_acks: 3,
                prompt_min_bytes: went,
                ..acking([3, 0, 3, 0, 0, 0])
            };
            assert_eq!(policy(&found), expected, "{waited} {went}");
        }
        let few = Acking {
            delayed_acks: 2,
            delayed_max_bytes: 1_999,
            prompt_acks: 3,
            prompt_min_bytes: 2_000,
            ..acking([2, 0, 3, 0, 0, 0])
        };
        assert_eq!(policy(&few), AckPolicy::Unknown);
    }

    #[test]
    fn a_host_that_acknowledged_nothing_follows_no_rule() {
        assert_eq!(Acknowledging::of(None, None, None), Acknowledging::NOT);
        assert_eq!(TimerKind::Fixed as u8, 0);
    }
}
