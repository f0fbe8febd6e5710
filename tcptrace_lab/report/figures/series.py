"""Reads the data of the figures of all chosen connections, in one pass over the segments and with bounded memory.

The tables of segments and intervals can be larger than memory. Each is read once, for all chosen connections and windows together. A slice
is reduced to a bounded number of points before the next slice is read. Exact counts are kept, so that the page can say how many points it
leaves out.

A *direction* is identified by its sender: `from_client=True` means the client's data, and the server's ACKs of this data. All times are in
ns since the connection's first segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.engine import memory
from tcptrace_lab.engine.figures import MARKS, Direction, State, Tracker
from tcptrace_lab.report.figures.collector import Collector, Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tcptrace_lab.report.data_types import Analysed
    from tcptrace_lab.report.figures.finding_windows import Window

SLICE_ROWS = 262_144
"""Number of rows per slice. A slice takes about 20 MB. A query costs as much for a few hundred rows as for a few thousand, so slices are
large."""

COLUMNS = (
    *("frame", "ts_ns", "conn", "from_client", "seq", "ack", "payload_bytes", "flags", "window_bytes", "sack_blocks", "kind"),
    *("ack_lag_ns", "rtt_ns"),
)
"""The columns of `schema.SEGMENTS` that the figures need."""

WAIT_COLUMNS = ("conn", "from_client", "start_ns", "end_ns", "cause")
"""The columns of `schema.LEDGER` that the figures need."""


class Whole(NamedTuple):
    """A direction that has figures on the page: its series, the duration of its connection, and whether it was captured at its sender."""

    direction: Direction
    duration_ns: int
    is_at_sender: bool


def read(analysis: Analysed, requests: Sequence[Request], windows: Sequence[Window] = ()) -> dict[int, dict[bool, Direction]]:
    """Read the series of all requested connections.

    Args:
        analysis: the analysis with segments and ledger.
        requests: the connections, each at most once.
        windows: windows of findings; they collect their rows in the same pass.

    Returns:
        `conn` → `from_client` → series.
    """
    directions: dict[int, dict[bool, _DirectionState]] = {request.conn: {} for request in requests}
    for request in requests:
        for side in request.data_segments:
            directions[request.conn][side] = _DirectionState(
                Tracker(request.first_ts_ns, from_client=side), Collector(request, from_client=side), []
            )
    for window in windows:
        conn, side, first_ts_ns = window.place[:3]
        directions.setdefault(conn, {}).setdefault(side, _DirectionState(Tracker(first_ts_ns, from_client=side), None, [])).windows.append(
            window
        )
    for segments, waits in _slices(_passing(analysis, sorted(directions))):
        parts = _by_connection(segments)
        del segments  # the parts are copies
        while parts:
            part = parts.pop(0)
            for state in directions[part.item(0, "conn")].values():
                state.take(part)
        for conn, own in _runs(waits):
            for state in directions[conn].values():
                state.wait(own)
    return {
        request.conn: {side: state.collector.finish() for side, state in directions[request.conn].items() if state.collector is not None}
        for request in requests
    }


def of_rows(rows: pl.DataFrame, *, from_client: bool) -> Direction:
    """Return the data of all figures for a few rows of one connection (from `Tracker`), with all points."""
    frames, begin_ns, span_ns = rows["frame"], rows["ts_ns"][0] - rows["t_ns"][0], rows["t_ns"][-1] - rows["t_ns"][0]
    side = {from_client: rows.height * len(MARKS)}
    request = Request(rows["conn"][0], frames[0], frames[-1], begin_ns, max(span_ns, 0), side, side, side)
    collector = Collector(request, from_client=from_client)
    collector.add(rows)
    return collector.finish()


class Part(NamedTuple):
    """A window of a direction, which is drawn at a larger scale than the whole direction.

    Times are in ns since the connection's first segment.

    Attributes:
        from_ns, to_ns: the window.
        points: maximum number of points per line, and of marks.
    """

    from_ns: int
    to_ns: int
    points: int


def of_window(
    rows: pl.DataFrame, waits: pl.DataFrame, first_ts_ns: int, part: Part, *, from_client: bool, state: State | None = None
) -> tuple[Direction, int]:
    """Return the data of a direction's figures within a window, and the width of a throughput bin.

    The segment before the window and the segment after the window are included, so that lines extend to both edges.

    Args:
        rows: rows of a connection, of both directions, in frame order, from its first segment or from `state`.
        waits: intervals of the direction that overlap the window: `start_ns end_ns cause`.
        first_ts_ns: time of the connection's first segment.
        part: the window.
        from_client: the direction, by its sender.
        state: the state before the first of the rows; None at the connection's first segment.
    """
    tracker = Tracker(first_ts_ns, from_client=from_client, state=state)
    tracked = tracker.follow(rows)
    inside = tracked["t_ns"].is_between(part.from_ns, part.to_ns).arg_true()
    later = (tracked["t_ns"] > part.to_ns).arg_true()
    begin = inside[0] if len(inside) else later[0] if len(later) else tracked.height
    end = inside[-1] + 1 if len(inside) else begin
    shown = tracked.slice(max(begin - 1, 0), min(end + 1, tracked.height) - max(begin - 1, 0))
    data_segments = shown.filter(shown["mine"] & (shown["payload_bytes"] > 0)).height
    collector = _collector_of(part, first_ts_ns, data_segments, from_client=from_client)
    collector.skip(tracked.head(max(begin - 1, 0)))
    if not shown.is_empty():
        collector.add(shown)
    _add_waits(collector, waits, part)
    return collector.finish(), collector.request.bin_ns


def of_batches(
    batches: Iterable[pl.DataFrame], waits: pl.DataFrame, first_ts_ns: int, part: Part, data_segments: int, *, from_client: bool
) -> tuple[Direction, int]:
    """Return the data that `of_window` returns, for a window with more rows than fit in memory.

    The segments before and after the window are not included.

    Args:
        batches: rows of a connection, of both directions, in frame order, from its first segment.
        waits: as for `of_window`.
        first_ts_ns: time of the connection's first segment.
        part: the window.
        data_segments: number of the direction's data segments in the window.
        from_client: the direction, by its sender.
    """
    tracker = Tracker(first_ts_ns, from_client=from_client)
    collector = _collector_of(part, first_ts_ns, data_segments, from_client=from_client)
    for batch in batches:
        tracked = tracker.follow(batch)
        collector.skip(tracked.filter(pl.col("t_ns") < part.from_ns))
        inside = tracked.filter(pl.col("t_ns").is_between(part.from_ns, part.to_ns))
        if not inside.is_empty():
            collector.add(inside)
    _add_waits(collector, waits, part)
    return collector.finish(), collector.request.bin_ns


def _collector_of(part: Part, first_ts_ns: int, data_segments: int, *, from_client: bool) -> Collector:
    side = {from_client: part.points}
    request = Request(0, 0, 0, first_ts_ns, part.to_ns - part.from_ns, {from_client: data_segments}, side, side)
    return Collector(request, from_client=from_client)


def _add_waits(collector: Collector, waits: pl.DataFrame, part: Part) -> None:
    """Add to the collector the parts of the intervals that are in the window."""
    begin_ns, end_ns = collector.request.first_ts_ns + part.from_ns, collector.request.first_ts_ns + part.to_ns
    overlapping = waits.filter((waits["end_ns"] > begin_ns) & (waits["start_ns"] < end_ns))
    collector.add_waits(overlapping.with_columns(pl.col("start_ns").clip(begin_ns), pl.col("end_ns").clip(None, end_ns)))


def _passing(analysis: Analysed, conns: Sequence[int]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield the segments and ledger intervals of these connections, in bounded batches and one pass over the capture.

    Segments are in frame order. The intervals of a connection follow all of its segments.
    """
    columns = [name for name in schema.SEGMENTS.names if name in COLUMNS]  # in the order of the source (see `reread.PULL_VALUES`)
    timed, own = pl.col("ts_ns").is_not_null(), pl.col("conn").is_in(conns)
    if not conns:
        return
    if analysis.together is not None:
        for segments, waits in analysis.together(conns, columns, WAIT_COLUMNS):
            yield segments.filter(timed) if segments["ts_ns"].null_count() else segments, waits
        return
    none_of_segments, none_of_waits = schema.SEGMENTS.no_rows(tuple(columns)), schema.LEDGER.no_rows(WAIT_COLUMNS)
    for batch in memory.batches(analysis.segments.filter(own & timed).select(columns)):
        for piece in batch.iter_slices(SLICE_ROWS):
            yield piece, none_of_waits
    for batch in memory.batches(analysis.ledger.filter(own).select(WAIT_COLUMNS)):
        yield none_of_segments, batch


def _slices(passing: Iterator[tuple[pl.DataFrame, pl.DataFrame]]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Merge batches into slices of at least `SLICE_ROWS` rows. The last slice can be smaller."""
    pending: list[tuple[pl.DataFrame, pl.DataFrame]] = []
    for both in passing:
        pending.append(both)
        del both  # a remaining reference would keep this batch in memory until the next batch
        if sum(segments.height + waits.height for segments, waits in pending) >= SLICE_ROWS:
            yield _take_pending(pending)
    if pending:
        yield _take_pending(pending)


def _take_pending(pending: list[tuple[pl.DataFrame, pl.DataFrame]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Concatenate all collected batches, and empty the list."""
    segments, waits = (pl.concat(rows) for rows in zip(*pending, strict=True))
    pending.clear()
    return segments, waits


def _by_connection(rows: pl.DataFrame) -> list[pl.DataFrame]:
    return [rows] if rows["conn"].n_unique() == 1 else rows.partition_by("conn", maintain_order=True)


def _runs(waits: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield each connection with its intervals, which are contiguous in `waits`."""
    begin = 0
    for length, conn in waits["conn"].rle().struct.unnest().iter_rows():
        yield conn, waits.slice(begin, length)
        begin += length


class _DirectionState(NamedTuple):
    """The consumers of one direction's rows: its tracker, the collector of its series (None without figures), and windows of findings."""

    tracker: Tracker
    collector: Collector | None
    windows: list[Window]

    def take(self, part: pl.DataFrame) -> None:
        """Pass the next rows of the connection to the consumers."""
        if self.collector is None and all(window.is_full for window in self.windows):
            return
        rows = self.tracker.follow(part)
        if self.collector is not None:
            self.collector.add(rows)
        for window in self.windows:
            window.pick(rows)

    def wait(self, waits: pl.DataFrame) -> None:
        """Pass the next ledger intervals of the connection to the consumers, after all segments of the connection."""
        own = waits.filter(waits["from_client"] == self.tracker.from_client).select("start_ns", "end_ns", "cause")
        if self.collector is not None:
            self.collector.add_waits(own)
        for window in self.windows:
            window.wait(own)
