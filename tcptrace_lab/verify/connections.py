"""Looks up our connections by number, and finds connections that reuse the ports of an earlier connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Mapping

COLUMNS = (
    *("conn", "client_addr", "client_port", "server_addr", "server_port", "client_isn", "closed_by", "first_frame", "last_frame"),
    *(f"{side}_{name}" for side in SIDES for name in ("sack_permitted", "timestamps", "window_scale_offered")),
)
"""Columns that are stored. They take about 100 bytes per connection."""


class Connections:
    """Looks up rows of `schema.CONNECTIONS`, with the columns in `COLUMNS`."""

    def __init__(self, table: pl.LazyFrame) -> None:
        """`table` has the columns of `schema.CONNECTIONS`, in any order of rows."""
        self.table = table.select(COLUMNS).collect().sort("conn")
        self._conns = self.table["conn"]
        self._before = self._earlier_on_same_ports()

    def __getitem__(self, conn: int) -> Mapping[str, Any]:
        """Return the row of a connection; empty if the connection does not exist."""
        at = self._conns.search_sorted(conn)
        return self.table.row(int(at), named=True) if at < len(self._conns) and self._conns[int(at)] == conn else {}

    def earlier(self, conn: int) -> Mapping[str, Any]:
        """Return the row of the previous connection between the same endpoints; empty if there is none."""
        before = self._before.get(conn)
        return {} if before is None else self[before[0]]

    def begins_again(self, conn: int, frame: int) -> bool:
        """Return whether `frame` is the first frame of a connection that reuses ports."""
        before = self._before.get(conn)
        return before is not None and before[1] == frame

    def _earlier_on_same_ports(self) -> dict[int, tuple[int, int]]:
        """Return for each connection that reuses ports: the previous connection between its endpoints, and its own first frame."""
        ends = [pl.struct(pl.col(f"{side}_addr").alias("addr"), pl.col(f"{side}_port").alias("port")) for side in ("client", "server")]
        pair = pl.concat_list(ends).list.sort()
        rows = self.table.select("conn", "first_frame", pair=pair).sort("first_frame")
        before = rows.with_columns(before=pl.col("conn").shift(1).over("pair")).filter(pl.col("before").is_not_null())
        return {conn: (before, first) for conn, before, first in before.select("conn", "before", "first_frame").iter_rows()}
