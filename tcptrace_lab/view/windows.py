"""The report's figures for one window of a connection, thinned to the pixel columns of the screen, down to single segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.report.figures import plots, series
from tcptrace_lab.report.parts import connection_details
from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from tcptrace_lab.report.data_types import Drawings
    from tcptrace_lab.view.store import Store

_POINTS_PER_COLUMN = 3
"""Points of a line per pixel column (`downsampling` keeps up to four: first, last, lowest, highest)."""

_MAX_MARKS_AND_POINTS = 6_000


def figures(store: Store, row: dict[str, Any], window_ns: tuple[int, int], width: int) -> Drawings:
    """The figures of a window.

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
    rows = store.segments.of(row["conn"]).select(series.COLUMNS).filter(pl.col("ts_ns").is_not_null()).collect()
    waits = store.waits.of(row["conn"]).select(series.WAIT_COLUMNS).collect()
    part = series.Part(*window_ns, min(width * _POINTS_PER_COLUMN, _MAX_MARKS_AND_POINTS))
    directions, bin_ns = {}, 1
    for side, from_client in SIDES.items():
        if row[f"{side}_data_segments"] and not rows.is_empty():
            own = waits.filter(waits["from_client"] == from_client)
            directions[from_client], own_bin_ns = series.of_window(rows, own, begin_ns, part, from_client=from_client)
            bin_ns = max(bin_ns, own_bin_ns)
    return connection_details.drawings(row, directions, frame, bin_ns, window_ns)
