"""Sums up the ledger: one row per sent segment (departure) tells why the segment was not sent earlier."""

from __future__ import annotations

import polars as pl

from tcptrace_lab import schema

_NS = pl.col("end_ns") - pl.col("start_ns")
_LONGEST = _NS.arg_max()


def departures(ledger: pl.LazyFrame) -> pl.LazyFrame:
    """Return one row per departure: the sum of the intervals before it.

    Args:
        ledger: rows of `schema.LEDGER`, in time order within each direction.

    Returns:
        Rows of `schema.DEPARTURES`, in the order of the ledger. `conn` and `frame` identify the departure in `schema.SEGMENTS`.
    """
    frame = pl.col("frame_after").cast(pl.UInt64).alias("frame")
    waits = ledger.drop_nulls("frame_after").group_by("conn", "from_client", frame, maintain_order=True)
    sums = waits.agg(
        ts_ns=pl.col("end_ns").max(),
        wait_ns=_NS.sum(),
        cause=pl.col("cause").get(_LONGEST),
        cause_ns=_NS.max(),
        confidence=pl.col("confidence").get(_LONGEST),
    )
    return sums.select(schema.DEPARTURES.names)
