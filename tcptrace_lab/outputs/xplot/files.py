"""Writes the xplot graphs of all connections to a folder, with tcptrace's file names: `a2b_tsg.xpl`, `b2a_tsg.xpl`, `c2d_…`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.outputs.tcptrace_listing import hosts
from tcptrace_lab.outputs.xplot.graphs import Graphs
from tcptrace_lab.process.output import refused

if TYPE_CHECKING:
    from collections.abc import Iterable

COLUMNS = ("ts_ns", "seq", "ack", "payload_bytes", "flags", "window_bytes", "sack_blocks", "kind", "ce", "rtt_ns")
"""Columns of a segment that the graphs use, in this order."""

_CONNECTION = ("conn", "client_addr", "client_port", "server_addr", "server_port", "first_ts_ns", "last_frame", "client_isn", "server_isn")

SLICE_SEGMENTS = 65_536
"""Number of segments that are drawn before their text is written to files. Their drawings take about 100 MB of memory."""


class _Open:
    """The graphs of a connection that has further segments to draw."""

    def __init__(self, row: dict[str, Any], folder: Path) -> None:
        client, server = (f"{row[f'{side}_addr']}:{row[f'{side}_port']}" for side in ("client", "server"))
        a, b = hosts(row["conn"])
        begin_ns = row["first_ts_ns"] or 0
        self.last_frame = row["last_frame"]
        self.client = Graphs(f"{client}_==>_{server}", row["client_isn"] or 0, begin_ns)
        self.server = Graphs(f"{server}_==>_{client}", row["server_isn"] or 0, begin_ns)
        self._names = {f"{a}2{b}": self.client, f"{b}2{a}": self.server}
        self._folder = folder
        self._begun = False

    def write(self) -> None:
        """Append to the files everything that was drawn since the last call."""
        for name, graphs in self._names.items():
            for end, plot in graphs.plots().items():
                with (self._folder / f"{name}_{end}.xpl").open("a" if self._begun else "w", encoding="utf-8") as file:
                    file.write(plot.take())
        self._begun = True

    def end(self) -> None:
        """End all graphs, and write what is not yet written."""
        self.client.end()
        self.server.end()
        self.write()


def write(segments: pl.LazyFrame, connections: pl.LazyFrame, folder: str) -> None:
    """Draw the graphs of all connections. Segments without a timestamp are skipped.

    Args:
        segments: rows of `schema.SEGMENTS`, in capture order.
        connections: rows of `schema.CONNECTIONS`.
        folder: destination folder; created if it does not exist.

    Raises:
        OutputUnwritable: the folder or a file cannot be written.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        _draw(segments, connections.select(_CONNECTION).collect(), Path(folder))
    except OSError as error:
        raise refused(error, folder) from error


def _draw(segments: pl.LazyFrame, connections: pl.DataFrame, folder: Path) -> None:
    place = {conn: position for position, conn in enumerate(connections["conn"])}
    is_open: dict[int, _Open] = {}
    drawn = segments.filter(pl.col("ts_ns").is_not_null()).select("frame", "conn", "from_client", *COLUMNS)
    for batch in drawn.collect_batches(maintain_order=True, chunk_size=SLICE_SEGMENTS):
        touched: set[int] = set()
        for _, conn, from_client, *segment in batch.iter_rows():
            if conn not in is_open:
                is_open[conn] = _Open(connections.row(place[conn], named=True), folder)
            touched.add(conn)
            graphs = is_open[conn]
            sender, receiver = (graphs.client, graphs.server) if from_client else (graphs.server, graphs.client)
            sender.sent(tuple(segment))
            receiver.received(tuple(segment))
        for conn in touched:
            is_open[conn].write()
        if not batch.is_empty():
            _close(is_open, int(batch["frame"][-1]))
    _close(is_open, None)


def _close(is_open: dict[int, _Open], last_frame: int | None) -> None:
    """End the graphs of connections whose last segment is in frame `last_frame` or earlier. None ends all graphs."""
    over: Iterable[int] = [conn for conn, one in is_open.items() if last_frame is None or one.last_frame <= last_frame]
    for conn in over:
        is_open.pop(conn).end()
