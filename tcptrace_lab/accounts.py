"""Where the time of every direction went, for all connections of a capture, in bounded memory.

The ledger of some connections at a time is added up and kept as one row per connection; a capture with millions of them is gone through
in ranges of their numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab import ledger, schema
from tcptrace_lab.ordered import Ordered

if TYPE_CHECKING:
    from collections.abc import Callable

RANGE_CONNECTIONS = 131_072
"""Connections whose sums are held at a time: at most 17 causes for each direction, in practice three or four; about 30 MB, and as much
again while they are joined."""

TOGETHER = 8_192
"""Connections whose sums become rows at a time."""

PART_ROWS = 65_536
"""Rows kept in memory before they go to temporary files: about 18 MB."""

_TIMES_KNOWN = pl.col("first_ts_ns").is_not_null() & pl.col("last_ts_ns").is_not_null()
"""Without times there is no ledger."""


def accounts(segments: pl.LazyFrame, connections: pl.LazyFrame, count: int, progress: Callable[[int], None] | None = None) -> pl.LazyFrame:
    """The sums of every connection's ledger.

    Args:
        segments: rows of `schema.SEGMENTS`, at least those that `ledger.waits` needs.
        connections: rows of `schema.CONNECTIONS`.
        count: one more than the greatest number of a connection.
        progress: called now and then with the number of connections that are done.

    Returns:
        Rows of `schema.ACCOUNTS`, by `conn`, one for each connection. Raises OutputUnwritable where temporary files have no room.
    """
    rows = Ordered(schema.ACCOUNTS.polars_schema(), "conn", PART_ROWS)
    for first in range(0, count, RANGE_CONNECTIONS):
        whole = count <= RANGE_CONNECTIONS
        here = _numbered(first, RANGE_CONNECTIONS)
        own = connections if whole else connections.filter(here)
        sums = ledger.sums(segments if whole else segments.filter(here), own)
        lives = own.select("conn", known=_TIMES_KNOWN).collect(engine="streaming")
        for few in (_numbered(start, TOGETHER) for start in range(first, min(count, first + RANGE_CONNECTIONS), TOGETHER)):
            rows.add(_by_connection(ledger.by_cause(sums.filter(few)), lives.filter(few)))
        if progress is not None:
            progress(min(count, first + RANGE_CONNECTIONS))
    return rows.finish()


def _numbered(first: int, count: int) -> pl.Expr:
    """Whether a connection is one of so many from this number on."""
    return pl.col("conn").is_between(first, first + count, closed="left")


def in_ranges(
    table: Callable[[pl.LazyFrame, pl.LazyFrame], pl.LazyFrame], segments: pl.LazyFrame, connections: pl.LazyFrame, count: int
) -> pl.LazyFrame:
    """A table of every connection's waits (`ledger.intervals`, `stalls.stalls`), some connections at a time, in that table's order.

    Args:
        table: makes it of segments and connections.
        segments: as for `accounts`, as are the others.
        connections: as for `accounts`.
        count: as for `accounts`.
    """
    if count <= RANGE_CONNECTIONS:
        return table(segments, connections)
    ranges = [_numbered(first, RANGE_CONNECTIONS) for first in range(0, count, RANGE_CONNECTIONS)]
    return pl.concat([table(segments.filter(here), connections.filter(here)) for here in ranges])


def _by_connection(sums: pl.DataFrame, lives: pl.DataFrame) -> pl.DataFrame:
    """`conn from_client cause ns`, and `conn known` of all connections → rows of `schema.ACCOUNTS`."""
    side = pl.when(pl.col("from_client")).then(pl.lit("client")).otherwise(pl.lit("server"))
    named = sums.select(
        "conn",
        pl.concat_str(side, pl.lit("_"), pl.col("cause").cast(pl.String).str.replace_all("-", "_"), pl.lit("_ns")).alias("column"),
        "ns",
    )
    names = [name for name in schema.ACCOUNTS.names if name != "conn"]
    wide = named.pivot(on="column", on_columns=names, index="conn", values="ns", aggregate_function="first")
    whole = lives.sort("conn").join(wide, on="conn", how="left", maintain_order="left")
    told = whole.with_columns(pl.when("known").then(pl.col(names).fill_null(0)))
    return told.select(pl.col(name).cast(dtype) for name, dtype in schema.ACCOUNTS.polars_schema().items())
