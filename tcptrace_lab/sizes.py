"""Messages → sizes that are slow: ranges of message sizes in which TCP holds messages back, and in their neighbours it does not.

The test, in its steps; all thresholds are named below:

1. Messages in the order of their size: are those that stalled closer together than chance would put them (Wald and Wolfowitz' runs test)?
   Stalls that come at any size are not the sizes' doing. (Which waits count as stalls may be asked in several ways: `by_clarity`.)
2. Change points: the sizes are cut where the share of stalled messages changes (`size_cuts`). Cuts cost little if they leave hardly a
   message on the wrong side (a stack's rules know no chance). Where they do not, the shorter description decides: all normal sizes have one
   share of stalls and all slow ones another, or every part has a share of its own, or the share follows the size and there is no cut.
3. A range is slow if a quarter of its messages or more stalled, three at least, and that is no chance beside what normal sizes do; and the
   median time of the stalled is longer than what their size lets one expect (a line through all messages' times without the waits in which
   TCP held them back, Theil and Sen) by more than both 95 % intervals. (Not all need stall: receivers acknowledge at once for a while.)
4. A slow range that goes on to the largest (or smallest) size seen must begin at once, beside normal sizes and not far from them: a share
   that grows with size is a trend, and between sizes far apart it may grow. (Where another range ends, too, no trend explains both.)

Time is that from a message's first segment to its last, so the thinking of programs before and behind it is not in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from tcptrace_lab import size_cuts
from tcptrace_lab.size_choice import LEAST_MESSAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tcptrace_lab.size_cuts import Part

LEAST_IN_RANGE = 3
"""Messages of a range that stalled: three prove it (docs/how-it-decides.md, 2.4)."""

LEAST_NORMAL = 3
"""Messages outside of slow ranges without which nothing is normal, as many as prove a stall. Whether so few are chance, the tests say."""

RUNS_Z = -3.0
"""Normal deviate of the number of runs from which stalls are said to depend on size: one chance in 740."""

FEW_OF_A_KIND = 10
"""With fewer messages that stalled, or did not, the number of runs is far from normal, and its own distribution is summed."""

SLOW_SHARE, NORMAL_SHARE = 0.25, 0.1
"""Share of stalled messages from which a range is slow, and up to which it is normal (heuristics)."""

ALIKE_PART = 0.5
"""A slow part beside a slower one belongs to its range if its share is this part of the other's or more; else what it is, is not known."""

CHANCE = 0.001
"""A range's share is no chance if what the normal messages show would give it less often than this (`predictive_tail`)."""

EDGE_QUARTER, EDGE_SHARE = 0.25, 0.9
"""A range with normal sizes on one side only must have at that edge, in this part of its messages, so much of its whole share."""

EDGE_GAP = 1 / 3
"""Between it and the normal size beside it there is less than this part of all sizes, or of their logarithms: a trend takes as much from
shares of 0.1 to 0.9 (`size_cuts.STEEPEST`)."""

EXCESS_PART = 2
"""The stalled messages' median exceeds what is normal by this part of the shortest wait that counts as a stall, or more (a heuristic)."""

Z_95 = 1.959964
"""Normal deviate of two-sided 95 % intervals."""

TREND_MESSAGES = 400
"""Messages through which the line of times without stalls is drawn: every pair of them is looked at."""


@dataclass(frozen=True, slots=True)
class SlowRange:
    """Message sizes that are slow. Intervals are of 95 %.

    Attributes:
        from_bytes, to_bytes: the smallest and the largest size seen in it.
        least_from_bytes, most_to_bytes: it may be as wide as this: up to the next normal size seen; None where there is none.
        messages: how many it has.
        stalled_share: of them, those that stalled.
        stalled_share_interval: Wilson's.
        median_ns: of the time from first to last segment.
        median_interval_ns: by order statistics.
        stalled_median_ns: of those that stalled.
        normal_median_ns: what messages of these sizes take if they do not stall.
        cost_ns: time beyond that, of all that stalled.
        rows: positions of its stalled messages in what was given.
    """

    from_bytes: int
    to_bytes: int
    least_from_bytes: int | None
    most_to_bytes: int | None
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
        """Whether there are normal sizes on both sides of it."""
        return self.least_from_bytes is not None and self.most_to_bytes is not None


@dataclass(frozen=True, slots=True)
class Look:
    """Which messages stalled, if a wait of so much is a stall.

    Attributes:
        stalled: whether TCP held the message back for long.
        least_ns: the shortest wait that counts, on a LAN.
    """

    stalled: NDArray[np.bool_]
    least_ns: int


def by_clarity(sizes: NDArray[np.int64], *looks: Look) -> list[Look]:
    """The looks at some messages, that first in which stalls stand together most by size; equals as they come."""
    order = np.argsort(sizes, kind="stable")
    return sorted(looks, key=lambda look: runs_z(look.stalled[order]))


def slow_ranges(sizes: NDArray[np.int64], times_ns: NDArray[np.int64], held_ns: NDArray[np.int64], look: Look) -> tuple[SlowRange, ...]:
    """The slow ranges among some messages.

    Args:
        sizes: bytes of each message.
        times_ns: from its first segment to its last.
        held_ns: of that, waits in which TCP held it back.
        look: which of them stalled.

    Returns:
        Ranges, ascending; none where there is nothing to tell or not enough to tell it by.
    """
    count, hits = int(sizes.size), int(look.stalled.sum())
    if count < LEAST_MESSAGES or hits < LEAST_IN_RANGE or count - hits < LEAST_NORMAL:
        return ()
    order = np.argsort(sizes, kind="stable")
    ordered = _Ordered(sizes[order], times_ns[order], look.stalled[order], look.least_ns)
    if runs_z(ordered.stalled) > RUNS_Z:
        return ()
    parts = size_cuts.parts(ordered.sizes, ordered.stalled)
    normal = [part for part in parts if part.share <= NORMAL_SHARE]
    usual = np.concatenate([np.arange(part.start, part.stop) for part in normal] or [np.arange(0)])
    if usual.size < LEAST_NORMAL:
        return ()
    seen = int(ordered.stalled[usual].sum()), usual.size
    trend = Trend.through(ordered.sizes, (times_ns - held_ns)[order])
    judged = [(part, _judged(ordered, part, normal, seen, trend, order)) for part in _joined(parts)]
    found = [(part, one) for part, one in judged if one is not None]
    no_trend = any(one.has_ends for _, one in found)
    return tuple(one for part, one in found if one.has_ends or _begins_at_once(ordered, part, normal, no_trend=no_trend))


@dataclass(frozen=True, slots=True)
class _Ordered:
    """Messages by size."""

    sizes: NDArray[np.int64]
    times_ns: NDArray[np.int64]
    stalled: NDArray[np.bool_]
    least_ns: int


@dataclass(frozen=True, slots=True)
class Trend:
    """The time by size of a message that is not held: a line by Theil and Sen, and how far its median may be off (95 %)."""

    at_zero_ns: float
    per_byte_ns: float
    error_ns: float

    @classmethod
    def through(cls, sizes: NDArray[np.int64], times_ns: NDArray[np.int64]) -> Trend:
        """The line through some messages, evenly chosen by size where there are many."""
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
        """Nanoseconds; never less than none."""
        return max(self.at_zero_ns + self.per_byte_ns * size_bytes, 0.0)


def runs_z(stalled: NDArray[np.bool_]) -> float:
    """How many runs of like messages there are, as a normal deviate from what chance would make: far below 0 where like stand together."""
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
    """How likely chance makes so many runs or fewer (Wald and Wolfowitz 1940): each kind makes as many, or one of them one more."""

    def ways(parts_of_ones: int, parts_of_zeros: int) -> int:
        return math.comb(ones - 1, parts_of_ones - 1) * math.comb(zeros - 1, parts_of_zeros - 1)

    return sum(ways(n // 2, n - n // 2) + ways(n - n // 2, n // 2) for n in range(2, runs + 1)) / math.comb(ones + zeros, ones)


def wilson(hits: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    share, square = hits / count, Z_95 * Z_95
    centre = (share + square / (2 * count)) / (1 + square / count)
    half = Z_95 / (1 + square / count) * math.sqrt(share * (1 - share) / count + square / (4 * count * count))
    return max(centre - half, 0.0), min(centre + half, 1.0)


def median_interval(ascending: NDArray[np.float64]) -> tuple[float, float]:
    """95 % interval of the median by order statistics (the binomial distribution by its normal approximation)."""
    count = ascending.size
    half = Z_95 * math.sqrt(count) / 2
    low = max(math.floor(count / 2 - half), 0)
    high = min(math.ceil(count / 2 + half), count - 1)
    return float(ascending[low]), float(ascending[high])


def _joined(parts: list[Part]) -> Iterator[slice]:
    """Neighbouring slow parts as one, if their shares are alike."""
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
    """The slow part as a range; None if chance explains it. `seen`: how many of how many normal messages stalled."""
    count, hits = part.stop - part.start, int(ordered.stalled[part].sum())
    if hits < LEAST_IN_RANGE or predictive_tail(hits, count, *seen) > CHANCE:
        return None
    below, above = [one for one in normal if one.stop <= part.start], [one for one in normal if one.start >= part.stop]
    held = np.flatnonzero(ordered.stalled[part]) + part.start
    expected = np.array([trend.at(float(size)) for size in ordered.sizes[held]])
    excess = np.sort(ordered.times_ns[held] - expected)
    if median_interval(excess)[0] <= trend.error_ns or float(np.median(excess)) * EXCESS_PART <= ordered.least_ns:
        return None
    low_ns, high_ns = median_interval(np.sort(ordered.times_ns[part].astype(np.float64)))
    return SlowRange(
        from_bytes=int(ordered.sizes[part.start]),
        to_bytes=int(ordered.sizes[part.stop - 1]),
        least_from_bytes=int(ordered.sizes[below[-1].stop - 1]) + 1 if below else None,
        most_to_bytes=int(ordered.sizes[above[0].start]) - 1 if above else None,
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
    """How likely at least so many of some messages stall, if they stall as those seen before: the share is not known, only its samples.

    The beta-binomial distribution that follows from Jeffreys' prior.
    """
    a, b = seen_hits + 0.5, seen - seen_hits + 0.5

    def nats(k: int) -> float:
        ways = math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1)
        return ways + _log_beta(a + k, b + count - k) - _log_beta(a, b)

    return min(math.fsum(math.exp(nats(k)) for k in range(hits, count + 1)), 1.0)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _begins_at_once(ordered: _Ordered, part: slice, normal: list[Part], *, no_trend: bool) -> bool:
    """Whether a range with normal sizes on one side only has an edge there, a sharp one if a trend is possible."""
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
    quarter = max(LEAST_IN_RANGE, math.ceil(EDGE_QUARTER * stalled.size))
    edge = stalled[:quarter] if beside_below else stalled[-quarter:]
    return float(edge.mean()) >= EDGE_SHARE * float(stalled.mean())
