"""Messages → sizes that are slow: ranges of message sizes in which TCP holds messages back, and in their neighbours it does not.

The test, in its steps; all thresholds are named below:

1. Messages in the order of their size: are those that stalled closer together than chance would put them (Wald and Wolfowitz' runs test)?
   Stalls that come at any size are not the sizes' doing.
2. Change points: the sizes are cut where the share of stalled messages changes, by maximum likelihood with a penalty for each cut. The
   penalty is small if it then leaves hardly a message on the wrong side (a stack's rules know no chance), and large if it does not.
3. A range is slow if a quarter of its messages or more stalled, there are enough of them for that share to be no chance beside the normal
   ranges', and the median time of the stalled is longer than what their size lets one expect (a line through the messages of normal ranges
   that did not stall, Theil and Sen) by more than both 95 % intervals. (Not all need stall: receivers acknowledge at once for a while.)
4. A slow range that goes on to the largest (or smallest) size seen must begin at once, beside normal sizes: a share that grows with size
   is a trend.

Time is that from a message's first segment to its last, so the thinking of programs before and behind it is not in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

LEAST_MESSAGES = 20
"""Messages without which nothing is said (a heuristic)."""

LEAST_IN_RANGE = 3
"""Messages of a range ("three times = proved", rule book B, 5)."""

LEAST_NORMAL = 10
"""Messages outside of slow ranges that say what is normal (a heuristic)."""

RUNS_Z = -3.0
"""Normal deviate of the number of runs from which stalls are said to depend on size: one chance in 740."""

PENALTY_NATS = 2.0
"""What a change point must gain in log-likelihood: four stalled messages between normal ones pay for both ends of their range."""

STRAY_SHARE = 0.01
"""Messages on the wrong side (stalled in a part where most did not, or the reverse) above which stalls have a chance in them, and a change
point must gain twice the logarithm of the number of messages (four times what Schwarz' criterion asks of one more parameter)."""

SLOW_SHARE, NORMAL_SHARE = 0.25, 0.1
"""Share of stalled messages from which a range is slow, and up to which it is normal (heuristics)."""

CHANCE = 0.001
"""A range's share is no chance if the normal share would give it less often than this (Chernoff's bound)."""

EDGE_QUARTER, EDGE_SHARE = 0.25, 0.9
"""A range with normal sizes on one side only must have at that edge, in this part of its messages, so much of its whole share."""

LEAST_EXCESS_NS = 5_000_000
"""Excess of the stalled messages' median: half of the shortest stall that is told (`facts.STALL_NS`)."""

Z_95 = 1.959964
"""Normal deviate of two-sided 95 % intervals."""

MOST_BLOCKS = 2_000
"""Sizes, or neighbouring ones with the same share, among which change points are looked for: time grows with the square, 0.1 s here."""

TREND_MESSAGES = 400
"""Messages through which the line of normal times is drawn: every pair of them is looked at."""


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


def slow_ranges(sizes: NDArray[np.int64], times_ns: NDArray[np.int64], stalled: NDArray[np.bool_]) -> tuple[SlowRange, ...]:
    """The slow ranges among some messages.

    Args:
        sizes: bytes of each message.
        times_ns: from its first segment to its last.
        stalled: whether TCP held it back for long.

    Returns:
        Ranges, ascending; none where there is nothing to tell or not enough to tell it by.
    """
    count = int(sizes.size)
    if count < LEAST_MESSAGES or int(stalled.sum()) < LEAST_IN_RANGE or count - int(stalled.sum()) < LEAST_NORMAL:
        return ()
    order = np.argsort(sizes, kind="stable")
    ordered = _Ordered(sizes[order], times_ns[order], stalled[order])
    if runs_z(ordered.stalled) > RUNS_Z:
        return ()
    parts = _parts(ordered)
    normal = np.concatenate([np.arange(part.start, part.stop) for part in parts if ordered.share(part) <= NORMAL_SHARE] or [np.arange(0)])
    if normal.size < LEAST_NORMAL:
        return ()
    usual = wilson(int(ordered.stalled[normal].sum()), normal.size)[1]
    trend = Trend.through(ordered.sizes[normal][~ordered.stalled[normal]], ordered.times_ns[normal][~ordered.stalled[normal]])
    found = (_judged(ordered, part, parts, usual, trend, order) for part in _joined(ordered, parts))
    return tuple(one for one in found if one is not None)


@dataclass(frozen=True, slots=True)
class _Ordered:
    """Messages by size."""

    sizes: NDArray[np.int64]
    times_ns: NDArray[np.int64]
    stalled: NDArray[np.bool_]

    def share(self, part: slice) -> float:
        """Of stalled messages."""
        return float(self.stalled[part].mean())


@dataclass(frozen=True, slots=True)
class Trend:
    """The time of a normal message by its size: a line by Theil and Sen, and how far its median may be off (95 %)."""

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
    both = 2 * ones * zeros
    count = ones + zeros
    if both <= count:
        return 0.0
    expected = both / count + 1
    deviation = math.sqrt(both * (both - count) / (count * count * (count - 1)))
    runs = int(np.count_nonzero(stalled[1:] != stalled[:-1])) + 1
    return (runs - expected) / deviation


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


def _parts(ordered: _Ordered) -> list[slice]:
    """The messages cut where the share of stalled ones changes."""
    edges = _block_edges(ordered)
    found = _cut(ordered, edges, PENALTY_NATS)
    hits = [int(ordered.stalled[part].sum()) for part in found]
    strays = sum(min(hit, part.stop - part.start - hit) for hit, part in zip(hits, found, strict=True))
    count = ordered.sizes.size
    return found if strays <= STRAY_SHARE * count else _cut(ordered, edges, 2 * math.log(count))


def _cut(ordered: _Ordered, edges: NDArray[np.int64], penalty: float) -> list[slice]:
    """Optimal partitioning (Jackson et al. 2005) at some of `edges`."""
    hits = np.concatenate([[0], np.cumsum(ordered.stalled)])[edges].astype(np.float64)
    counts = edges.astype(np.float64)
    blocks = edges.size - 1
    best = np.full(blocks + 1, -np.inf)
    best[0] = 0.0
    cut = np.zeros(blocks + 1, np.int64)
    for end in range(1, blocks + 1):
        gain = best[:end] + _log_likelihood(hits[end] - hits[:end], counts[end] - counts[:end]) - penalty
        cut[end] = int(np.argmax(gain))
        best[end] = gain[cut[end]]
    ends = [blocks]
    while ends[-1] > 0:
        ends.append(int(cut[ends[-1]]))
    return [slice(int(edges[start]), int(edges[end])) for start, end in pairwise(reversed(ends))]


def _block_edges(ordered: _Ordered) -> NDArray[np.int64]:
    """Positions between which no cut can pay: messages of one size, and neighbouring sizes that all stalled or all did not."""
    starts = np.flatnonzero(np.diff(ordered.sizes, prepend=ordered.sizes[0] - 1))
    edges = np.append(starts, ordered.sizes.size)
    share = np.add.reduceat(ordered.stalled.astype(np.int64), starts) / np.diff(edges)
    pure = (share == 0) | (share == 1)
    same = np.concatenate([[False], pure[1:] & (share[1:] == share[:-1])])
    kept: NDArray[np.int64] = edges[np.append(~same, True)]
    if kept.size - 1 <= MOST_BLOCKS:
        return kept
    fewer: NDArray[np.int64] = kept[np.unique(np.linspace(0, kept.size - 1, MOST_BLOCKS + 1).astype(np.int64))]
    return fewer


def _log_likelihood(hits: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of so many stalled among so many, at their own share."""
    share = hits / counts
    misses = counts - hits
    with np.errstate(divide="ignore", invalid="ignore"):
        found: NDArray[np.float64] = np.where(hits > 0, hits * np.log(share), 0.0) + np.where(misses > 0, misses * np.log1p(-share), 0.0)
    return found


def _joined(ordered: _Ordered, parts: list[slice]) -> Iterator[slice]:
    """Neighbouring slow parts as one."""
    begun: slice | None = None
    for part in parts:
        slow = ordered.share(part) >= SLOW_SHARE
        if begun is not None and not slow:
            yield begun
        begun = None if not slow else part if begun is None else slice(begun.start, part.stop)
    if begun is not None:
        yield begun


def _judged(ordered: _Ordered, part: slice, parts: list[slice], usual: float, trend: Trend, order: NDArray[np.int64]) -> SlowRange | None:
    """The slow part as a range; None if chance or a trend explains it."""
    count, hits = part.stop - part.start, int(ordered.stalled[part].sum())
    if count < LEAST_IN_RANGE or count * _divergence(hits / count, usual) < -math.log(CHANCE):
        return None
    normal = [one for one in parts if ordered.share(one) <= NORMAL_SHARE]
    below, above = [one for one in normal if one.stop <= part.start], [one for one in normal if one.start >= part.stop]
    if not below and not above:
        return None
    beside = (bool(below) and below[-1].stop == part.start, bool(above) and above[0].start == part.stop)
    if not (below and above) and not _begins_at_once(ordered.stalled[part], *beside):
        return None
    held = np.flatnonzero(ordered.stalled[part]) + part.start
    expected = np.array([trend.at(float(size)) for size in ordered.sizes[held]])
    excess = np.sort(ordered.times_ns[held] - expected)
    if median_interval(excess)[0] <= max(trend.error_ns, LEAST_EXCESS_NS):
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


def _divergence(share: float, usual: float) -> float:
    """Kullback and Leibler's, in nats: what one message of a range tells against the usual share (Chernoff's bound); 0 below it."""
    if share <= usual:
        return 0.0
    rest = (1 - share) * math.log((1 - share) / (1 - usual)) if share < 1 else 0.0
    return share * math.log(share / usual) + rest


def _begins_at_once(stalled: NDArray[np.bool_], beside_below: bool, beside_above: bool) -> bool:  # noqa: FBT001  (which edge)
    """Whether a range with normal sizes on one side only has a sharp edge there."""
    if not beside_below and not beside_above:
        return False
    quarter = max(LEAST_IN_RANGE, math.ceil(EDGE_QUARTER * stalled.size))
    edge = stalled[:quarter] if beside_below else stalled[-quarter:]
    return float(edge.mean()) >= EDGE_SHARE * float(stalled.mean())
