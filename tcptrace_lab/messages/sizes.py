"""Finds slow message sizes: ranges of sizes in which TCP delays messages, while neighbouring sizes are normal.

The test has four steps. All thresholds are constants below.

1. Runs test (Wald and Wolfowitz): if all messages are sorted by size, the stalled messages must be closer together than by chance.
   Otherwise, the stalls do not depend on size. `by_clarity` compares several definitions of a stall.
2. Cuts: the sizes are cut where the share of stalled messages changes (`size_cuts`).
3. A part is a slow range if at least three of its messages and at least a quarter of them stalled. Chance must not explain the difference
   from normal sizes. Also, the stalled messages must take longer than expected for their size, and the difference must exceed the errors of
   their median and of the expected time (95 % intervals). The expected time is a Theil-Sen line through all times without the waits that
   TCP caused.
4. If a slow range extends to the largest (or smallest) size seen, it must have an abrupt edge on its other side, next to normal sizes.
   Otherwise, a share that grows with size (a trend) can explain the range. If another slow range has normal sizes on both sides, a trend is
   no explanation, and the edge need not be abrupt.

The time of a message is from its first to its last segment, so pauses of the applications before and after it do not count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from tcptrace_lab.messages import size_cuts
from tcptrace_lab.messages.size_choice import MIN_MESSAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tcptrace_lab.messages.size_cuts import Part

MIN_IN_RANGE = 3
"""Minimum number of stalled messages in a slow range. Three events of one kind count as proof (docs/how-it-decides.md, 2.4)."""

MIN_NORMAL = 3
"""Minimum number of messages outside slow ranges. The tests account for such small numbers."""

RUNS_Z = -3.0
"""Stalls depend on size if the number of runs, as a normal deviate, is at most this. Chance alone produces so few runs once in 740
cases."""

FEW_OF_A_KIND = 10
"""With fewer stalled or fewer other messages, the number of runs is not normally distributed, and its exact distribution is used."""

SLOW_SHARE, NORMAL_SHARE = 0.25, 0.1
"""A part is slow if at least the first share of its messages stalled, and normal if at most the second share stalled (heuristics)."""

ALIKE_PART = 0.5
"""Two neighbouring slow parts are one range if the smaller share of stalls is at least this part of the larger share."""

CHANCE = 0.001
"""A part is slow only if normal messages reach its share of stalls with at most this probability (`predictive_tail`)."""

EDGE_QUARTER, EDGE_SHARE = 0.25, 0.9
"""If a range has normal sizes on only one side, it needs an abrupt edge on that side. In the quarter of its messages next to the edge, the
share of stalls must be at least 0.9 times the share in the whole range."""

EDGE_GAP = 1 / 3
"""Maximum gap between a range and the nearest normal size, if the range has normal sizes on only one side. The gap is a share of the extent
of all sizes, or of their logarithms. Within a larger gap, a trend can grow from 0.1 to 0.9 (`size_cuts.STEEPEST`)."""

EXCESS_PART = 2
"""The stalled messages of a range must take longer than expected: by more than the shortest stall divided by this number (a heuristic)."""

Z_95 = 1.959964
"""Normal deviate of two-sided 95 % intervals."""

TREND_MESSAGES = 400
"""Maximum number of messages from which the line of expected times is computed. The computation compares every pair of them."""


@dataclass(frozen=True, slots=True)
class SlowRange:
    """A range of slow message sizes. Intervals are 95 % intervals.

    Attributes:
        from_bytes, to_bytes: smallest and largest message size in the range.
        min_from_bytes, max_to_bytes: the widest possible extent of the range, up to the next normal size seen; None if there is no such
            size.
        messages: number of messages.
        stalled_share: share of stalled messages.
        stalled_share_interval: Wilson's interval.
        median_ns: median time from first to last segment.
        median_interval_ns: interval by order statistics.
        stalled_median_ns: median time of the stalled messages.
        normal_median_ns: expected time of messages of these sizes without a stall.
        cost_ns: time beyond the expected time, summed over the stalled messages.
        rows: positions of its stalled messages in the input.
    """

    from_bytes: int
    to_bytes: int
    min_from_bytes: int | None
    max_to_bytes: int | None
    messages: int
    stalled_share: float
    stalled_share_interval: tuple[float, float]
    median_ns: int
    median_interval_ns: tuple[int, int]
    stalled_median_ns: int
    normal_median_ns: int
    cost_ns: int
    rows: tuple[int, ...]

    @property
    def has_ends(self) -> bool:
        """True if the range has normal sizes on both sides."""
        return self.min_from_bytes is not None and self.max_to_bytes is not None


@dataclass(frozen=True, slots=True)
class Look:
    """The messages that stalled according to one definition of a stall.

    Attributes:
        stalled: whether TCP delayed the message for long.
        min_ns: shortest wait that counts as a stall, on a LAN.
    """

    stalled: NDArray[np.bool_]
    min_ns: int


def by_clarity(sizes: NDArray[np.int64], *looks: Look) -> list[Look]:
    """Sort the definitions of a stall by how strongly the stalled messages cluster by size, the strongest first."""
    order = np.argsort(sizes, kind="stable")
    return sorted(looks, key=lambda look: runs_z(look.stalled[order]))


def slow_ranges(sizes: NDArray[np.int64], times_ns: NDArray[np.int64], held_ns: NDArray[np.int64], look: Look) -> tuple[SlowRange, ...]:
    """Return the slow ranges among some messages.

    Args:
        sizes: bytes of each message.
        times_ns: time from the first segment of each message to its last segment.
        held_ns: the part of this time in which TCP delayed the message.
        look: which of the messages stalled.

    Returns:
        Ranges, ascending; empty if there are none, or too few messages.
    """
    count, hits = int(sizes.size), int(look.stalled.sum())
    if count < MIN_MESSAGES or hits < MIN_IN_RANGE or count - hits < MIN_NORMAL:
        return ()
    order = np.argsort(sizes, kind="stable")
    ordered = _Ordered(sizes[order], times_ns[order], look.stalled[order], look.min_ns)
    if runs_z(ordered.stalled) > RUNS_Z:
        return ()
    parts = size_cuts.parts(ordered.sizes, ordered.stalled)
    normal = [part for part in parts if part.share <= NORMAL_SHARE]
    usual = np.concatenate([np.arange(part.start, part.stop) for part in normal] or [np.arange(0)])
    if usual.size < MIN_NORMAL:
        return ()
    seen = int(ordered.stalled[usual].sum()), usual.size
    trend = Trend.through(ordered.sizes, (times_ns - held_ns)[order])
    judged = [(part, _judged(ordered, part, normal, seen, trend, order)) for part in _joined(parts)]
    found = [(part, one) for part, one in judged if one is not None]
    no_trend = any(one.has_ends for _, one in found)
    return tuple(one for part, one in found if one.has_ends or _begins_at_once(ordered, part, normal, no_trend=no_trend))


@dataclass(frozen=True, slots=True)
class _Ordered:
    """Messages sorted by size."""

    sizes: NDArray[np.int64]
    times_ns: NDArray[np.int64]
    stalled: NDArray[np.bool_]
    min_ns: int


@dataclass(frozen=True, slots=True)
class Trend:
    """The expected time of a message without a stall, by its size: a Theil-Sen line, and the error of its median (95 %)."""

    at_zero_ns: float
    per_byte_ns: float
    error_ns: float

    @classmethod
    def through(cls, sizes: NDArray[np.int64], times_ns: NDArray[np.int64]) -> Trend:
        """Return the line through these messages. If there are many, an even selection by size is used."""
        chosen = np.unique(np.linspace(0, sizes.size - 1, min(sizes.size, TREND_MESSAGES)).astype(np.int64))
        x, y = sizes[chosen].astype(np.float64), times_ns[chosen].astype(np.float64)
        low, high = np.triu_indices(x.size, 1)
        apart = x[high] != x[low]
        slopes = (y[high] - y[low])[apart] / (x[high] - x[low])[apart]
        slope = float(np.median(slopes)) if slopes.size else 0.0
        rest = np.sort(y - slope * x)
        lowest, highest = median_interval(rest)
        middle = float(np.median(rest))
        return cls(middle, slope, max(highest - middle, middle - lowest))

    def at(self, size_bytes: float) -> float:
        """Return the expected time of a message of this size in nanoseconds, at least 0."""
        return max(self.at_zero_ns + self.per_byte_ns * size_bytes, 0.0)


def runs_z(stalled: NDArray[np.bool_]) -> float:
    """Return the number of runs as a normal deviate. If stalled messages cluster by size, the result is far below 0."""
    ones = int(stalled.sum())
    zeros = int(stalled.size) - ones
    if not ones or not zeros:
        return 0.0
    runs = int(np.count_nonzero(stalled[1:] != stalled[:-1])) + 1
    if min(ones, zeros) < FEW_OF_A_KIND:
        return NormalDist().inv_cdf(min(_so_few_runs(runs, ones, zeros), 0.5))
    both = 2 * ones * zeros
    count = ones + zeros
    expected = both / count + 1
    deviation = math.sqrt(both * (both - count) / (count * count * (count - 1)))
    return (runs - expected) / deviation


def _so_few_runs(runs: int, ones: int, zeros: int) -> float:
    """Return the probability that chance makes at most this many runs (Wald and Wolfowitz 1940).

    Runs of stalled messages alternate with runs of other messages, so their numbers are equal or differ by one.
    """

    def ways(parts_of_ones: int, parts_of_zeros: int) -> int:
        return math.comb(ones - 1, parts_of_ones - 1) * math.comb(zeros - 1, parts_of_zeros - 1)

    return sum(ways(n // 2, n - n // 2) + ways(n - n // 2, n // 2) for n in range(2, runs + 1)) / math.comb(ones + zeros, ones)


def wilson(hits: int, count: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    share, square = hits / count, Z_95 * Z_95
    centre = (share + square / (2 * count)) / (1 + square / count)
    half = Z_95 / (1 + square / count) * math.sqrt(share * (1 - share) / count + square / (4 * count * count))
    return max(centre - half, 0.0), min(centre + half, 1.0)


def median_interval(ascending: NDArray[np.float64]) -> tuple[float, float]:
    """Return the 95 % interval of the median by order statistics (the binomial distribution in its normal approximation)."""
    count = ascending.size
    half = Z_95 * math.sqrt(count) / 2
    low = max(math.floor(count / 2 - half), 0)
    high = min(math.ceil(count / 2 + half), count - 1)
    return float(ascending[low]), float(ascending[high])


def _joined(parts: list[Part]) -> Iterator[slice]:
    """Yield ranges of sizes. A range joins neighbouring parts in which similar shares of the messages stalled."""
    begun: slice | None = None
    before = 0.0
    for part in parts:
        goes_on = min(part.share, before) >= ALIKE_PART * max(part.share, before)
        if begun is not None and not (part.share >= SLOW_SHARE and goes_on):
            yield begun
            begun = None
        if part.share >= SLOW_SHARE:
            begun, before = slice(part.start if begun is None else begun.start, part.stop), part.share
    if begun is not None:
        yield begun


def _judged(
    ordered: _Ordered, part: slice, normal: list[Part], seen: tuple[int, int], trend: Trend, order: NDArray[np.int64]
) -> SlowRange | None:
    """Return the slow part as a range of sizes; None if chance explains its stalls.

    Args:
        ordered: all messages.
        part: positions of the slow part.
        normal: the normal parts.
        seen: number of stalled messages and number of all messages at normal sizes.
        trend: the expected time of a message.
        order: position of each ordered message in the input.
    """
    count, hits = part.stop - part.start, int(ordered.stalled[part].sum())
    if hits < MIN_IN_RANGE or predictive_tail(hits, count, *seen) > CHANCE:
        return None
    below, above = [one for one in normal if one.stop <= part.start], [one for one in normal if one.start >= part.stop]
    held = np.flatnonzero(ordered.stalled[part]) + part.start
    expected = np.array([trend.at(float(size)) for size in ordered.sizes[held]])
    excess = np.sort(ordered.times_ns[held] - expected)
    if median_interval(excess)[0] <= trend.error_ns or float(np.median(excess)) * EXCESS_PART <= ordered.min_ns:
        return None
    low_ns, high_ns = median_interval(np.sort(ordered.times_ns[part].astype(np.float64)))
    return SlowRange(
        from_bytes=int(ordered.sizes[part.start]),
        to_bytes=int(ordered.sizes[part.stop - 1]),
        min_from_bytes=int(ordered.sizes[below[-1].stop - 1]) + 1 if below else None,
        max_to_bytes=int(ordered.sizes[above[0].start]) - 1 if above else None,
        messages=count,
        stalled_share=hits / count,
        stalled_share_interval=wilson(hits, count),
        median_ns=round(float(np.median(ordered.times_ns[part]))),
        median_interval_ns=(round(low_ns), round(high_ns)),
        stalled_median_ns=round(float(np.median(ordered.times_ns[held]))),
        normal_median_ns=round(trend.at(float(np.median(ordered.sizes[part])))),
        cost_ns=round(float(excess.clip(0).sum())),
        rows=tuple(order[held].tolist()),
    )


def predictive_tail(hits: int, count: int, seen_hits: int, seen: int) -> float:
    """Return the probability that at least `hits` of `count` messages stall if they stall as often as messages of normal sizes.

    The share of stalls at normal sizes is only an estimate from `seen_hits` of `seen` messages. So the probability is that of the
    beta-binomial distribution that follows from Jeffreys' prior.
    """
    a, b = seen_hits + 0.5, seen - seen_hits + 0.5

    def nats(k: int) -> float:
        ways = math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1)
        return ways + _log_beta(a + k, b + count - k) - _log_beta(a, b)

    return min(math.fsum(math.exp(nats(k)) for k in range(hits, count + 1)), 1.0)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _begins_at_once(ordered: _Ordered, part: slice, normal: list[Part], *, no_trend: bool) -> bool:
    """Return whether a range has an edge on the only side with normal sizes. If a trend is possible, the edge must be abrupt."""
    beside_below = any(one.stop == part.start for one in normal)
    if not beside_below and not any(one.start == part.stop for one in normal):
        return False
    inside = part.start if beside_below else part.stop
    for scale in (ordered.sizes, np.log1p(ordered.sizes.clip(0))):
        if scale[inside] - scale[inside - 1] >= EDGE_GAP * (scale[-1] - scale[0]):
            return False
    if no_trend:
        return True
    stalled = ordered.stalled[part]
    quarter = max(MIN_IN_RANGE, math.ceil(EDGE_QUARTER * stalled.size))
    edge = stalled[:quarter] if beside_below else stalled[-quarter:]
    return float(edge.mean()) >= EDGE_SHARE * float(stalled.mean())
