"""Draws the report's figures for one window of a connection.

The figures are thinned to the pixel columns of the screen; a narrow window shows single segments. All segments of a connection with at most
`SMALL_ROWS` segments are read. For a larger connection, the state before the window is computed, and then only the segments of the window
are read. A window that is itself too large is drawn batch by batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.engine import memory
from tcptrace_lab.engine.figures import RST, Direction, State, has
from tcptrace_lab.report.figures import plots, series
from tcptrace_lab.report.parts import connection_details
from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from tcptrace_lab.report.data_types import Drawings
    from tcptrace_lab.view.cached.store import Store

SMALL_ROWS = 100_000
"""Number of segments up to which a connection is always read as a whole. For a larger connection, it takes less time to compute the state
before the window and to read only the window."""

WHOLE_ROWS = 400_000
"""Maximum number of segments drawn at once. They take about 60 MB, with everything that is computed from them."""

_POINTS_PER_COLUMN = 3
"""Number of points of a line per pixel column. `downsampling` keeps up to four: first, last, lowest, highest."""

_MAX_POINTS = 6_000


def figures(store: Store, row: dict[str, Any], window_ns: tuple[int, int], width: int) -> Drawings:
    """Return the figures of a window.

    Args:
        store: the capture's tables.
        row: the connection's row of `schema.CONNECTIONS`.
        window_ns: from and to, in ns since the connection's first segment.
        width: pixel columns of a figure.
    """
    begin_ns = row["first_ts_ns"]
    duration_ns = max(row["last_ts_ns"] - begin_ns, 0) if begin_ns is not None else 0
    frame = plots.Frame(duration_ns, store.resolution_ns)
    if begin_ns is None:
        return connection_details.drawings(row, {}, frame, 1)
    segments = store.segments.of(row["conn"]).select(series.COLUMNS).filter(pl.col("ts_ns").is_not_null())
    overlapping = (pl.col("end_ns") > begin_ns + window_ns[0]) & (pl.col("start_ns") < begin_ns + window_ns[1])
    waits = store.waits.of(row["conn"]).select(series.WAIT_COLUMNS).filter(overlapping).collect()
    part = series.Part(*window_ns, min(width * _POINTS_PER_COLUMN, _MAX_POINTS))
    found = {
        from_client: _direction(segments, waits.filter(waits["from_client"] == from_client), row, part, from_client=from_client)
        for side, from_client in SIDES.items()
        if row[f"{side}_data_segments"]
    }
    bin_ns = max((own_bin_ns for _, own_bin_ns in found.values()), default=1)
    return connection_details.drawings(row, {side: direction for side, (direction, _) in found.items()}, frame, bin_ns, window_ns)


def _direction(
    segments: pl.LazyFrame, waits: pl.DataFrame, row: dict[str, Any], part: series.Part, *, from_client: bool
) -> tuple[Direction, int]:
    """Return the series of one direction in a window, and the width of its throughput bins."""
    begin_ns = row["first_ts_ns"]
    is_whole = part.from_ns <= 0 and part.to_ns >= row["last_ts_ns"] - begin_ns
    if row["client_segments"] + row["server_segments"] <= (WHOLE_ROWS if is_whole else SMALL_ROWS):
        return series.of_window(segments.collect(), waits, begin_ns, part, from_client=from_client)
    ts_ns, frame = pl.col("ts_ns") - begin_ns, pl.col("frame")
    inside = ts_ns.is_between(part.from_ns, part.to_ns)
    data = (pl.col("from_client") == from_client) & (pl.col("payload_bytes") > 0)
    looked_at = segments.select(
        inside.sum().alias("count"),
        (inside & data).sum().alias("data"),
        frame.filter(ts_ns < part.from_ns).max().alias("before"),
        frame.filter(ts_ns > part.to_ns).min().alias("after"),
    )
    count, data_segments, before, after = looked_at.collect(engine="streaming").row(0)
    first, last = before or row["first_frame"], after or row["last_frame"]
    if count > WHOLE_ROWS or first > last:  # too many segments, or the clock ran backwards
        return series.of_batches(memory.batches(segments), waits, begin_ns, part, data_segments, from_client=from_client)
    state = _state(segments.filter(frame < first), from_client=from_client)
    rows = segments.filter(frame.is_between(first, last)).collect()
    return series.of_window(rows, waits, begin_ns, part, from_client=from_client, state=state)


def _state(before: pl.LazyFrame, *, from_client: bool) -> State:
    """Return the state of a direction after the rows `before`, as `engine.figures.Tracker` keeps it.

    A query computes it without keeping the rows in memory.
    """
    mine, alive = pl.col("from_client") == from_client, ~has(RST)
    syn_and_fin = ((pl.col("flags") & 1) + ((pl.col("flags") & 2) // 2)).cast(pl.Int64)
    sent, acked = (
        before.select(
            (pl.col("seq") + pl.col("payload_bytes") + syn_and_fin).filter(mine & alive).max().alias("sent"),
            pl.col("ack").filter(~mine & alive).max().alias("acked"),
        )
        .collect(engine="streaming")
        .row(0)
    )
    if acked is None:
        return State(sent, None, None)
    current = before.filter(~mine & alive & (pl.col("ack") == acked) & pl.col("window_bytes").is_not_null())
    edges = current.select((pl.col("ack") + pl.col("window_bytes")).last().alias("edge")).collect(engine="streaming")
    return State(sent, acked, edges.item())
