"""Aligns two clocks that timestamped the same packets: determines their offset, their drift, and the errors of both.

Each packet has a difference: its time in the second capture minus its time in the first. For a packet from the first capture point to the
second, the difference is the clocks' offset plus the packet's delay. For a packet in the other direction, it is the offset minus the delay.
Delays are not negative. So no packet of the first direction has a difference below the offset, and no packet of the other direction has a
difference above the offset. The offset changes over time along a straight line, whose slope is the drift. This line therefore lies in the
corridor between the differences of the two directions.

With a wrong slope, a line touches one side of the corridor early and the other side late, which makes the corridor narrower. So the slope
with the widest corridor is the drift. A few packets suffice, because delays return to their minimum again and again. The corridor is as
wide as the minimum round trip between the two points. Two captures cannot show how this round trip divides between the two directions. The
estimated offset is the middle of the corridor. It is exact if both minimum delays are equal, and otherwise wrong by at most half the width
of the corridor.

The method is based on Paxson (On calibrating measurements of packet transit times, 1998) and Moon, Skelly and Towsley (Estimation and
removal of clock skew from network delay measurements, 1999). Both papers fit a line below the delays of a single direction. A corridor
between both directions assumes nothing except that delays are not negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    _Points = tuple[NDArray[np.float64], NDArray[np.float64]]

MAX_DRIFT = 1e-3
"""Maximum drift between two clocks. NTP and Linux's adjtimex correct each clock by at most 500 ppm."""

RUNS, MIN_IN_RUN = 8, 4
"""Number of runs into which the packets are split in order of time, and minimum number of packets per run.

The noise of the estimate is the amount by which the minimum delays of the runs exceed the overall minimum. With fewer packets per run, the
full variation of the delays counts as noise (heuristics).
"""

HULL_BUCKETS = 8_192
"""Number of buckets into which large captures are divided. Only the extreme difference of each bucket enters the hull.

The difference is measured from a line. This line first has slope 0, and then the slope that was found.
"""

SEARCH_STEPS = 110
"""Number of search steps. Each step leaves at most 2/3 of the interval of slopes. At the end, the interval is narrower than 1 ns per
century."""

MIN_PACKETS = 1
"""Minimum number of packets per direction for an alignment."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Offset and drift of the second capture's clock, compared with the first capture's clock.

    Attributes:
        reference_ns: time of the first clock for which `offset_ns` is given. It is the middle of the packets' time span.
        offset_ns: how many ns the second clock is ahead at `reference_ns`.
        drift: seconds that the second clock gains per second of the first; 0 if no drift is significant.
        drift_error: maximum error of the drift.
        error_ns: maximum error of the offset within the packets' time span, for any path.
        symmetric_error_ns: maximum error of the offset if the minimum delays of both directions are equal.
        rtt_min_ns: minimum RTT between the two points: the sum of the minimum one-way delays.
        packets: numbers of packets used, from the first point to the second and in the other direction.
        stepped: True if no line fits, because one clock was set during the capture. Offset and delays are then invalid.
    """

    reference_ns: int
    offset_ns: int
    drift: float
    drift_error: float
    error_ns: int
    symmetric_error_ns: int
    rtt_min_ns: int
    packets: tuple[int, int]
    stepped: bool

    def ahead_ns(self, first_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many ns the second clock is ahead at the given times of the first clock."""
        gained = np.rint((first_ns - self.reference_ns) * self.drift).astype(np.int64)
        ahead: NDArray[np.int64] = self.offset_ns + gained
        return ahead

    def on_first(self, second_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Convert times of the second clock to the first clock."""
        nearly = second_ns - self.offset_ns
        return second_ns - self.ahead_ns(second_ns - self.ahead_ns(nearly))


class _Corridor:
    """The range of offsets that the packets of both directions allow.

    Times and differences are centred, so that floats can represent single nanoseconds.
    """

    def __init__(self, there: _Points, back: _Points, around: float) -> None:
        """Find the packets that bound the corridor. `around` is a slope near the slopes that will be requested."""
        self._there, self._back = there, back
        self._low = _lower_chain(*there, around)
        time, height = _lower_chain(back[0], -back[1], -around)
        self._high = time, -height

    def upper(self, slope: float) -> float:
        """Return the largest offset at time 0 with which a line of this slope is above no packet from the first point to the second."""
        time, difference = self._low
        return float((difference - slope * time).min())

    def lower(self, slope: float) -> float:
        """Return the smallest offset at time 0 with which a line of this slope is below no packet from the second point to the first."""
        time, difference = self._high
        return float((difference - slope * time).max())

    def width(self, slope: float) -> float:
        """Return the width of the corridor: largest minus smallest offset. The width is a concave function of the slope."""
        return self.upper(slope) - self.lower(slope)

    def noise(self, slope: float) -> float:
        """Return the sum of the noise at both sides of the corridor.

        The noise at one side is the typical distance between this side and the extreme value of a run.
        """
        above = _noise(*self._there, slope, self.upper(slope))
        below = _noise(self._back[0], -self._back[1], -slope, -self.lower(slope))
        return above + below

    def offsets(self, at: float, slopes: tuple[float, float]) -> tuple[float, float]:
        """Return the smallest and the largest offset at a time, for all lines in the corridor whose slope is between the two `slopes`."""
        low, high = slopes
        highest = _maximum(lambda slope: self.upper(slope) + slope * at, low, high)
        lowest = _maximum(lambda slope: -self.lower(slope) - slope * at, low, high)
        return self.lower(lowest) + lowest * at, self.upper(highest) + highest * at


def align(first_ns: NDArray[np.int64], second_ns: NDArray[np.int64], there: NDArray[np.bool_], resolution_ns: int) -> Clock | None:
    """Determine offset and drift of the second clock, compared with the first.

    Args:
        first_ns: time of each packet in the first capture.
        second_ns: time of each packet in the second capture.
        there: True for packets from the first point to the second.
        resolution_ns: the coarser resolution of the two clocks.

    Returns:
        The clock; None if a direction has fewer than `MIN_PACKETS` packets.
    """
    counts = int(there.sum()), int((~there).sum())
    if min(counts) < MIN_PACKETS:
        return None
    reference_ns = int(first_ns.min()) + (int(first_ns.max()) - int(first_ns.min())) // 2
    base_ns = int(second_ns[0]) - int(first_ns[0])
    time = (first_ns - reference_ns).astype(np.float64)
    difference = (second_ns - first_ns - base_ns).astype(np.float64)
    points = (time[there], difference[there]), (time[~there], difference[~there])
    widest = _maximum(_Corridor(*points, 0.0).width, -MAX_DRIFT, MAX_DRIFT)
    corridor = _Corridor(*points, widest)
    widest = _maximum(corridor.width, -MAX_DRIFT, MAX_DRIFT)
    noise = max(corridor.noise(widest), float(2 * resolution_ns))
    likely = _interval(corridor, widest, corridor.width(widest) - noise)
    drift = 0.0 if likely[0] <= 0 <= likely[1] else (likely[0] + likely[1]) / 2
    possible = _interval(corridor, widest, 0.0)
    upper, lower = corridor.upper(drift), corridor.lower(drift)
    middle = (upper + lower) / 2
    span = float(np.abs(time).max())
    drift_error = max(likely[1] - drift, drift - likely[0])
    errors_ns = [abs(bound - middle - drift * at) for at in (-span, 0.0, span) for bound in corridor.offsets(at, possible)]
    return Clock(
        reference_ns=reference_ns,
        offset_ns=base_ns + round(middle),
        drift=drift,
        drift_error=drift_error,
        error_ns=round(max(errors_ns)) + resolution_ns,
        symmetric_error_ns=round(min(noise / 2 + drift_error * span, max(errors_ns))) + resolution_ns,
        rtt_min_ns=round(upper - lower),
        packets=counts,
        stepped=corridor.width(widest) < -2 * resolution_ns,
    )


def _interval(corridor: _Corridor, widest: float, min_width: float) -> tuple[float, float]:
    """Return the interval of slopes around `widest` in which the corridor is at least `min_width` wide."""

    def edge(inside: float, outside: float) -> float:
        if corridor.width(outside) >= min_width:
            return outside
        for _ in range(SEARCH_STEPS):
            between = (inside + outside) / 2
            inside, outside = (between, outside) if corridor.width(between) >= min_width else (inside, between)
        return inside

    return edge(widest, -MAX_DRIFT), edge(widest, MAX_DRIFT)


def _maximum(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the argument that maximizes a concave function, by ternary search."""
    for _ in range(SEARCH_STEPS):
        third = (high - low) / 3
        if function(low + third) < function(high - third):
            low += third
        else:
            high -= third
    return (low + high) / 2


def _lower_chain(time: NDArray[np.float64], difference: NDArray[np.float64], around: float) -> _Points:
    """Return the lower part of the convex hull of the points.

    From more than `HULL_BUCKETS` points, only the lowest point of each bucket is used.
    """
    order = np.lexsort((difference, time))
    time, difference = time[order], difference[order]
    if time.size > HULL_BUCKETS:
        kept = _lowest_in_buckets(difference - around * time)
        time, difference = time[kept], difference[kept]
    chain: list[int] = []
    for point in range(time.size):
        while len(chain) > 1 and _turns_down(time, difference, chain[-2], chain[-1], point):
            chain.pop()
        chain.append(point)
    return time[chain], difference[chain]


def _turns_down(time: NDArray[np.float64], height: NDArray[np.float64], one: int, two: int, three: int) -> bool:
    """Return whether the second of three points, in order of time, lies on or above the line through the other two."""
    return bool((height[two] - height[one]) * (time[three] - time[one]) >= (height[three] - height[one]) * (time[two] - time[one]))


def _lowest_in_buckets(height: NDArray[np.float64]) -> NDArray[np.int64]:
    starts = np.linspace(0, height.size, HULL_BUCKETS, endpoint=False).astype(np.int64)
    bucket = np.repeat(np.arange(starts.size), np.diff(starts, append=height.size))
    places: NDArray[np.int64] = np.lexsort((height, bucket))[starts]
    return places


def _noise(time: NDArray[np.float64], difference: NDArray[np.float64], slope: float, at_zero: float) -> float:
    """Return the noise: the median distance between a line and the lowest difference of each run.

    If there are too few packets for runs, return the largest distance of a difference from the line.
    """
    residual = (difference - slope * time - at_zero)[np.argsort(time, kind="stable")]
    if residual.size < RUNS * MIN_IN_RUN:
        return float(residual.max())
    return float(np.median([run.min() for run in np.array_split(residual, RUNS)]))
