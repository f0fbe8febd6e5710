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
    from collections.abc import Callable, Iterator

RANGE_CONNECTIONS = 131_072
"""Connections whose sums are held at a time: at most 17 causes for each direction, in practice three or four; about 30 MB, and as much
again while they are joined."""

PART_ROWS = 65_536
"""Rows kept in memory before they go to temporary files: about 18 MB."""

_KEY = ("conn", "from_client")


def accounts(segments: pl.LazyFrame, connections: pl.LazyFrame, count: int, progress: Callable[[int], None] | None = None) -> pl.LazyFrame:
    """The sums of every connection's ledger.

    Args:
        segments: rows of `schema.SEGMENTS`.
        connections: rows of `schema.CONNECTIONS`.
        count: one more than the greatest number of a connection.
        progress: called now and then with the number of connections that are done.

    Returns:
        Rows of `schema.ACCOUNTS`, by `conn`. Raises OutputUnwritable where temporary files have no room.
    """
    rows = Ordered(schema.ACCOUNTS.polars_schema(), "conn", PART_ROWS)
    for first in range(0, count, RANGE_CONNECTIONS):
        here = pl.col("conn").is_between(first, first + RANGE_CONNECTIONS, closed="left")
        whole = count <= RANGE_CONNECTIONS
        sums = ledger.totals(segments if whole else segments.filter(here), connections if whole else connections.filter(here))
        for part in _by_connection(sums):
            rows.add(part)
        if progress is not None:
            progress(min(count, first + RANGE_CONNECTIONS))
    return rows.finish()


def intervals(segments: pl.LazyFrame, connections: pl.LazyFrame, count: int) -> pl.LazyFrame:
    """Every connection's ledger, some connections at a time; arguments as for `accounts`.

    Returns:
        Rows of `schema.LEDGER`, in the order that `ledger.intervals` has them in.
    """
    if count <= RANGE_CONNECTIONS:
        return ledger.intervals(segments, connections)
    ranges = [pl.col("conn").is_between(first, first + RANGE_CONNECTIONS, closed="left") for first in range(0, count, RANGE_CONNECTIONS)]
    return pl.concat([ledger.intervals(segments.filter(here), connections.filter(here)) for here in ranges])


def _by_connection(sums: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """`conn from_client cause ns` → rows of `schema.ACCOUNTS`."""
    side = pl.when(pl.col("from_client")).then(pl.lit("client")).otherwise(pl.lit("server"))
    named = sums.select(
        "conn", pl.concat_str(side, pl.lit("_"), pl.col("cause").str.replace_all("-", "_"), pl.lit("_ns")).alias("column"), "ns"
    )
    names = [name for name in schema.ACCOUNTS.names if name != "conn"]
    wide = named.pivot(on="column", on_columns=names, index="conn", values="ns", aggregate_function="first")
    yield wide.select(pl.col(name).cast(dtype) for name, dtype in schema.ACCOUNTS.polars_schema().items()).sort("conn")
