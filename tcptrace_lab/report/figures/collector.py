"""Collects the series of one direction's figures, slice by slice, with a bounded number of points.

The engine reduces each slice of tracked rows (`engine.figures.Tracker`) before the next one is read (`rust/src/figures/`). Exact counts
remain, so that the page can state what it omits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tcptrace_lab.engine.figures import Series
from tcptrace_lab.report.figures import downsampling

if TYPE_CHECKING:
    import polars as pl

    from tcptrace_lab.report.data_types import Band

PIXELS = 800
"""Number of pixels in a direction's life: the width of a figure's axis on a desktop."""


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


@dataclass(slots=True)
class Direction:
    """The data of one direction's figures. Rows are in frame order.

    Attributes:
        bursts: `t_ns t_end_ns low high segments payload_bytes frame frame_end`: data segments, or runs of them if there are too many;
            stream offsets from `low` to `high` (exclusive).
        merged: whether `bursts` may contain runs of several segments.
        lines: `acked window_edge flight offered rtt ack_lag payload`, each with `t_ns y frame`.
        line_counts: number of changes or samples of each line, including those left out.
        marks: name in `engine.figures.MARKS` → `t_ns low payload_bytes frame`; without names that no segment has.
        mark_counts: number of marks of each name, including those left out.
        throughput: `t_ns unique_bytes` per bin, without empty bins.
        causes: the causes of its waits, as adjacent bands.
    """

    bursts: pl.DataFrame
    merged: bool
    lines: dict[str, pl.DataFrame]
    line_counts: dict[str, int]
    marks: dict[str, pl.DataFrame]
    mark_counts: dict[str, int]
    throughput: pl.DataFrame
    causes: list[Band]


def bin_width_ns(duration_ns: int, data_segments: int) -> int:
    """A round bin width (1, 2 or 5 times a power of ten) in ns, for 20 to 200 bins with about four data segments each."""
    bins = min(max(data_segments // 4, 20), 200)
    wanted_ns = max(duration_ns / bins, 1.0)
    decade = 1
    while decade * 10 <= wanted_ns:
        decade *= 10
    return next(decade * step for step in (1, 2, 5, 10) if decade * step >= wanted_ns)


class Collector:
    """Collects the series of one direction, slice by slice."""

    def __init__(self, request: Request, *, from_client: bool) -> None:
        """Collect for all figures."""
        self.request = request
        data_segments, points = request.data_segments[from_client], max(request.line_points[from_client], 1)
        self._merged = data_segments > request.line_points[from_client]
        self._keep, self._mark_points = request.line_points[from_client], request.mark_points[from_client]
        self._series = Series(
            bin_ns=request.bin_ns,
            run=-(-data_segments // points),
            silence_ns=max(request.duration_ns // points, 1),
            pixel_ns=max(request.duration_ns // PIXELS, 1),
        )

    def add(self, rows: pl.DataFrame) -> None:
        """Add the next rows of the connection, of both directions, as `Tracker` returns them for this direction."""
        self._series.add(rows)

    def skip(self, rows: pl.DataFrame) -> None:
        """Take the rows before those that are drawn: they may open holes that later rows fill."""
        self._series.skip(rows)

    def add_waits(self, waits: pl.DataFrame) -> None:
        """Add the next intervals of the direction: `start_ns end_ns cause`."""
        self._series.add_waits(waits)

    def finish(self) -> Direction:
        """The reduced series."""
        granted = downsampling.share(self._series.mark_counts(), self._mark_points)
        drawn = self._series.finish(self._keep, granted)
        begin_ns = self.request.first_ts_ns
        return Direction(
            bursts=drawn.bursts,
            merged=self._merged,
            lines=drawn.lines,
            line_counts=drawn.line_counts,
            marks=drawn.marks,
            mark_counts=drawn.mark_counts,
            throughput=drawn.throughput,
            causes=[{"start_ns": start - begin_ns, "end_ns": end - begin_ns, "cause": cause} for start, end, cause in drawn.bands],
        )
