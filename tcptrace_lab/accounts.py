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
        here = pl.col("conn").is_between(first, first + RANGE_CONNECTIONS, closed="left")
        whole = count <= RANGE_CONNECTIONS
        sums = ledger.totals(segments if whole else segments.filter(here), connections if whole else connections.filter(here))
        lives = (connections if whole else connections.filter(here)).select("conn", known=_TIMES_KNOWN).collect(engine="streaming")
        rows.add(_by_connection(sums, lives))
        if progress is not None:
            progress(min(count, first + RANGE_CONNECTIONS))
    return rows.finish()


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
    ranges = [pl.col("conn").is_between(first, first + RANGE_CONNECTIONS, closed="left") for first in range(0, count, RANGE_CONNECTIONS)]
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
