"""Computes the data of a report's figures in the engine (`rust/src/figures/`).

`Tracker` adds the state of one direction to the rows of its connection: the highest offset sent, the highest offset ACKed, and the right
edge of the window. `Series` reduces the rows to lines, marks, bursts of data segments, throughput, and bands of causes. Both accept batches
of rows of any size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import polars as pl

from tcptrace_lab import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab._core import ArrowStream

LINES, MARKS = _core.LINES, _core.MARKS
"""Names of the lines in a direction's figures, and of the marks in its time-sequence figure (described in `_core.pyi`)."""

FIN, SYN, RST = 1, 2, 4
"""Bits of `flags` (RFC 9293, 3.1)."""

MADE = ("t_ns", "mine", "sent", "acked", "edge", "sent_before", "flight", "offered")
"""Columns that `Tracker.follow` adds to the columns of the segments."""


_READ = ("frame", "ts_ns", "from_client", "seq", "ack", "payload_bytes", "flags", "window_bytes", "sack_blocks", "ack_lag_ns", "rtt_ns")


def has(flag: int) -> pl.Expr:
    """Return an expression that is true for segments with `flag`."""
    return (pl.col("flags") & flag) != 0


class State(NamedTuple):
    """The highest offset sent, the highest offset ACKed, and the right edge of the window; None while unknown."""

    sent: int | None = None
    acked: int | None = None
    edge: int | None = None


class Tracker:
    """Tracks the state of one direction through the rows of its connection."""

    def __init__(self, first_ts_ns: int, *, from_client: bool, state: State | None = None) -> None:
        """Start at the connection's first segment (time `first_ts_ns`), or at a later segment with the `state` before that segment."""
        self.from_client = from_client
        self._tracker = _core.Tracker(first_ts_ns, from_client, state or State())

    def follow(self, part: pl.DataFrame) -> pl.DataFrame:
        """Process the next rows of the connection: both directions, in frame order.

        Returns:
            The rows with the columns `MADE`. Unknown values are null. `t_ns` is the time since the connection's first segment; `mine` is
            true for segments of this direction. `sent`, `acked` and `edge` (of the window) are stream offsets after the row, and
            `sent_before` is `sent` before the row. `flight` and `offered` are in bytes.
        """
        return part.hstack(_table(self._tracker.follow(_coded(part))))


def _coded(rows: pl.DataFrame, *also: str) -> pl.DataFrame:
    """Return the segment columns that the engine needs for figures, with kinds as codes, and the columns `also`."""
    return rows[[*_READ, *also]].hstack([rows["kind"].to_physical()])


class Band(TypedDict):
    """An interval of one direction with one cause, in ns since the connection's first segment."""

    start_ns: int
    end_ns: int
    cause: str


class Direction(NamedTuple):
    """The data of one direction's figures. Rows are in frame order.

    Attributes:
        bursts: `t_ns t_end_ns low high segments payload_bytes frame frame_end`. One row per data segment; if there are too many segments,
            one row per run of segments. `low` and `high` (exclusive) are stream offsets.
        lines: name in `LINES` → `t_ns y frame`.
        line_counts: number of changes or samples of each line, including those left out.
        marks: name in `MARKS` → `t_ns low payload_bytes frame`; names without marks are absent.
        mark_counts: number of marks of each name in `marks`, including those left out.
        throughput: `t_ns unique_bytes` per bin, without empty bins.
        causes: the causes of the direction's waits, as adjacent bands.
    """

    bursts: pl.DataFrame
    lines: dict[str, pl.DataFrame]
    line_counts: dict[str, int]
    marks: dict[str, pl.DataFrame]
    mark_counts: dict[str, int]
    throughput: pl.DataFrame
    causes: list[Band]

    @property
    def merged(self) -> bool:
        """Whether some rows of `bursts` stand for several segments."""
        return bool((self.bursts["segments"] > 1).any())


class Series:
    """Collects the data of one direction's figures."""

    def __init__(self, *, begin_ns: int, bin_ns: int, run: int, silence_ns: int, pixel_ns: int) -> None:
        """Start without points. `begin_ns` is the time of the connection's first segment; `_core.Series` describes the other arguments."""
        self._begin_ns = begin_ns
        self._series = _core.Series(bin_ns, run, silence_ns, pixel_ns)

    def add(self, rows: pl.DataFrame) -> None:
        """Add the next rows of both directions, as `Tracker` returned them for the direction of this series."""
        self._series.add(_coded(rows, *MADE))

    def skip(self, rows: pl.DataFrame) -> None:
        """Process rows before the drawn section, because later rows can fill holes in the data that these rows contain."""
        self._series.skip(_coded(rows, *MADE))

    def add_waits(self, waits: pl.DataFrame) -> None:
        """Add the next intervals of the direction: `start_ns end_ns cause`."""
        self._series.add_waits(waits[["start_ns", "end_ns"]].hstack([waits["cause"].to_physical()]))

    def mark_counts(self) -> list[int]:
        """Return the number of marks of each name in `MARKS` so far."""
        return self._series.mark_counts()

    def reduced(self, keep: int, granted: Sequence[int]) -> Direction:
        """Return the series, with about `keep` points per line, and at most `granted` marks of each name in `MARKS`.

        The series is empty afterwards.
        """
        bursts, lines, marks, throughput, bands = self._series.finish(keep, granted)
        by_line = dict(zip(LINES, lines, strict=True))
        by_mark = {name: one for name, one in zip(MARKS, marks, strict=True) if one[0]}
        return Direction(
            bursts=_table(bursts),
            lines={name: _table(points) for name, (_, points) in by_line.items()},
            line_counts={name: count for name, (count, _) in by_line.items()},
            marks={name: _table(points) for name, (_, points) in by_mark.items()},
            mark_counts={name: count for name, (count, _) in by_mark.items()},
            throughput=_table(throughput),
            causes=[{"start_ns": start - self._begin_ns, "end_ns": end - self._begin_ns, "cause": cause} for start, end, cause in bands],
        )


def line_places(t_ns: pl.Series, y: pl.Series, keep: int) -> pl.Series:
    """Return the indices of about `keep` points that preserve the look of the line. Times and values are whole numbers."""
    places = pl.int_range(len(t_ns), dtype=pl.UInt64, eager=True)
    return _table(_core.line_points(pl.DataFrame({"t_ns": t_ns, "y": y, "frame": places}), keep))["frame"]


def _table(stream: ArrowStream) -> pl.DataFrame:
    columns: Any = stream  # Polars accepts Arrow streams, but its type hints do not
    return pl.DataFrame(columns)
