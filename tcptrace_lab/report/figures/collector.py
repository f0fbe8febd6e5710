"""Collects the data series of one direction's figures, slice by slice, with a bounded number of points.

The engine reduces each slice of tracked rows (`engine.figures.Tracker`) before the next slice is read (`rust/src/figures/`). Exact counts
are kept, so that the page can say how many points it leaves out.
"""

from __future__ import annotations

from typing import NamedTuple

from tcptrace_lab.engine.figures import Direction, Series
from tcptrace_lab.report.figures import downsampling

PIXELS = 800
"""Number of pixels for the duration of a direction: the width of a figure's time axis on a desktop screen."""


class Request(NamedTuple):
    """A connection to draw, and the maximum numbers of its points.

    Attributes:
        conn, first_frame, last_frame, first_ts_ns, duration_ns: as in `schema.CONNECTIONS`.
        data_segments: number of data segments by direction (`from_client`); directions without data are absent.
        line_points: maximum number of points per line, by direction.
        mark_points: maximum number of marks in the time-sequence figure, by direction.
    """

    conn: int
    first_frame: int
    last_frame: int
    first_ts_ns: int
    duration_ns: int
    data_segments: dict[bool, int]
    line_points: dict[bool, int]
    mark_points: dict[bool, int]

    @property
    def bin_ns(self) -> int:
        """Width of a throughput bin in ns."""
        return bin_width_ns(self.duration_ns, max(self.data_segments.values(), default=0))


def bin_width_ns(duration_ns: int, data_segments: int) -> int:
    """Return a round bin width in ns (1, 2 or 5 times a power of ten), for 20 to 200 bins with about four data segments each."""
    bins = min(max(data_segments // 4, 20), 200)
    wanted_ns = max(duration_ns / bins, 1.0)
    decade = 1
    while decade * 10 <= wanted_ns:
        decade *= 10
    return next(decade * step for step in (1, 2, 5, 10) if decade * step >= wanted_ns)


class Collector(Series):
    """Collects the data series of one direction, slice by slice."""

    def __init__(self, request: Request, *, from_client: bool) -> None:
        """Prepare to collect the series of all figures."""
        self.request = request
        self._keep, self._mark_points = request.line_points[from_client], request.mark_points[from_client]
        points = max(self._keep, 1)
        super().__init__(
            begin_ns=request.first_ts_ns,
            bin_ns=request.bin_ns,
            run=-(-request.data_segments[from_client] // points),
            silence_ns=max(request.duration_ns // points, 1),
            pixel_ns=max(request.duration_ns // PIXELS, 1),
        )

    def finish(self) -> Direction:
        """Return the reduced series."""
        return self.reduced(self._keep, downsampling.share(self.mark_counts(), self._mark_points))
