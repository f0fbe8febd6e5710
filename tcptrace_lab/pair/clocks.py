"""Two clocks that saw the same packets → how far one is ahead of the other, how fast it runs away, and how sure that is.

Each packet gives a difference δ = (time in the second capture) − (time in the first). A packet on its way from the first point to the
second is late by its delay, so δ lies above the clocks' offset; one the other way lies below it. So the offset, as a line over time, must
run in the corridor between the lowest differences of one way and the highest of the other. The line's slope is the drift. A wrong
slope makes the corridor narrower (it touches one side early and the other late), so the drift is where the corridor is widest; as the
packets' least delays come back again and again, few packets are enough. The width of the corridor is the smallest round trip between
the points. Nothing in two captures tells how it is shared between the two ways: the offset given is the middle, which is exact if both
smallest delays are equal, and wrong by half the width at most.

After Paxson (On calibrating measurements of packet transit times, 1998) and Moon, Skelly and Towsley (Estimation and removal of clock
skew from network delay measurements, 1999), who fit a line below the delays of one way; the corridor of both ways needs no other assumption
than that delays are not negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    _Points = tuple[NDArray[np.float64], NDArray[np.float64]]

MOST_DRIFT = 1e-3
"""Two clocks drift apart by no more: each is disciplined within 500 ppm (the limit of NTP and of Linux's adjtimex), or replaced."""

RUNS, LEAST_IN_RUN = 8, 4
"""Runs of packets that must agree on the smallest delay; how well they do is the noise of the estimate. With fewer packets than so many
in each run, all that the delays vary is noise. Choices of ours."""

HULL_BUCKETS = 8_192
"""Parts of the packets of which the extreme differences are kept, first roughly, then along the slope that these give."""

SEARCH_STEPS = 110
"""Steps in which the interval of slopes shrinks by a third at least: 1e-3 · (2/3)^110 is less than a nanosecond in a century."""

LEAST_PACKETS = 1
"""Packets of each way that it takes to place the offset between."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The second capture's clock against the first's.

    Attributes:
        reference_ns: the first capture's time to which `offset_ns` applies: the middle of the packets.
        offset_ns: how far the second clock is ahead there.
        drift: seconds by which the second clock gains in a second of the first; 0 where none is seen.
        drift_error: by how much it can be wrong.
        error_ns: by how much the offset can be wrong anywhere among the packets, whatever the path does.
        symmetric_error_ns: by how much it can be wrong if the smallest delays of both ways are equal.
        round_trip_ns: the smallest round trip between the two points: the sum of both ways' smallest delays.
        packets: how many were used, there and back.
        stepped: no line fits: one of the clocks was set during the capture. Offset and delays are then not to be believed.
    """

    reference_ns: int
    offset_ns: int
    drift: float
    drift_error: float
    error_ns: int
    symmetric_error_ns: int
    round_trip_ns: int
    packets: tuple[int, int]
    stepped: bool

    def ahead_ns(self, first_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """How far the second clock is ahead at times of the first."""
        gained = np.rint((first_ns - self.reference_ns) * self.drift).astype(np.int64)
        ahead: NDArray[np.int64] = self.offset_ns + gained
        return ahead

    def on_first(self, second_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times of the second clock on the first."""
        nearly = second_ns - self.offset_ns
        return second_ns - self.ahead_ns(second_ns - self.ahead_ns(nearly))


class _Corridor:
    """The differences of both ways; times and differences are centred, so that floats keep nanoseconds."""

    def __init__(self, there: _Points, back: _Points, around: float) -> None:
        """`around`: a slope near those that will be asked for."""
        self._there, self._back = there, back
        self._low = _lower_chain(*there, around)
        time, height = _lower_chain(back[0], -back[1], -around)
        self._high = time, -height

    def upper(self, slope: float) -> float:
        """The highest line of this slope that no packet there lies below: its value at time 0."""
        time, difference = self._low
        return float((difference - slope * time).min())

    def lower(self, slope: float) -> float:
        """The lowest line of this slope that no packet back lies above: its value at time 0."""
        time, difference = self._high
        return float((difference - slope * time).max())

    def width(self, slope: float) -> float:
        """Between them; concave in the slope."""
        return self.upper(slope) - self.lower(slope)

    def noise(self, slope: float) -> float:
        """How far the extremes of runs of packets typically lie from the corridor's sides: both sides together."""
        above = _noise(*self._there, slope, self.upper(slope))
        below = _noise(self._back[0], -self._back[1], -slope, -self.lower(slope))
        return above + below

    def offsets(self, at: float, slopes: tuple[float, float]) -> tuple[float, float]:
        """The lowest and the highest offset at a time that any line through the corridor has."""
        low, high = slopes
        highest = _maximum(lambda slope: self.upper(slope) + slope * at, low, high)
        lowest = _maximum(lambda slope: -self.lower(slope) - slope * at, low, high)
        return self.lower(lowest) + lowest * at, self.upper(highest) + highest * at


def align(first_ns: NDArray[np.int64], second_ns: NDArray[np.int64], there: NDArray[np.bool_], resolution_ns: int) -> Clock | None:
    """Place the second clock against the first.

    Args:
        first_ns: when each packet was seen in the first capture.
        second_ns: when it was seen in the second.
        there: True for packets on their way from the first point to the second.
        resolution_ns: the coarser of the two clocks' steps.

    Returns:
        None with fewer than `LEAST_PACKETS` packets of either way.
    """
    counts = int(there.sum()), int((~there).sum())
    if min(counts) < LEAST_PACKETS:
        return None
    reference_ns = int(first_ns.min()) + (int(first_ns.max()) - int(first_ns.min())) // 2
    base_ns = int(second_ns[0]) - int(first_ns[0])
    time = (first_ns - reference_ns).astype(np.float64)
    difference = (second_ns - first_ns - base_ns).astype(np.float64)
    points = (time[there], difference[there]), (time[~there], difference[~there])
    widest = _maximum(_Corridor(*points, 0.0).width, -MOST_DRIFT, MOST_DRIFT)
    corridor = _Corridor(*points, widest)
    widest = _maximum(corridor.width, -MOST_DRIFT, MOST_DRIFT)
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
        round_trip_ns=round(upper - lower),
        packets=counts,
        stepped=corridor.width(widest) < -2 * resolution_ns,
    )


def _interval(corridor: _Corridor, widest: float, least_width: float) -> tuple[float, float]:
    """The slopes around the widest corridor's for which it is at least so wide."""

    def edge(inside: float, outside: float) -> float:
        if corridor.width(outside) >= least_width:
            return outside
        for _ in range(SEARCH_STEPS):
            between = (inside + outside) / 2
            inside, outside = (between, outside) if corridor.width(between) >= least_width else (inside, between)
        return inside

    return edge(widest, -MOST_DRIFT), edge(widest, MOST_DRIFT)


def _maximum(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a concave function is largest."""
    for _ in range(SEARCH_STEPS):
        third = (high - low) / 3
        if function(low + third) < function(high - third):
            low += third
        else:
            high -= third
    return (low + high) / 2


def _lower_chain(time: NDArray[np.float64], difference: NDArray[np.float64], around: float) -> _Points:
    """The lower chain of the points' convex hull; of a few thousand of them where there are more."""
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
    """Whether the middle of three points, in order of time, lies on or above the line between the others."""
    return bool((height[two] - height[one]) * (time[three] - time[one]) >= (height[three] - height[one]) * (time[two] - time[one]))


def _lowest_in_buckets(height: NDArray[np.float64]) -> NDArray[np.int64]:
    """The place of the lowest value in each of `HULL_BUCKETS` parts."""
    starts = np.linspace(0, height.size, HULL_BUCKETS, endpoint=False).astype(np.int64)
    bucket = np.repeat(np.arange(starts.size), np.diff(starts, append=height.size))
    places: NDArray[np.int64] = np.lexsort((height, bucket))[starts]
    return places


def _noise(time: NDArray[np.float64], difference: NDArray[np.float64], slope: float, at_zero: float) -> float:
    """How far the lowest differences of runs of packets lie above a line: their median."""
    residual = (difference - slope * time - at_zero)[np.argsort(time, kind="stable")]
    if residual.size < RUNS * LEAST_IN_RUN:
        return float(residual.max())
    return float(np.median([run.min() for run in np.array_split(residual, RUNS)]))
