"""Times of each direction of UDP flows → their median and 95th percentile, in the pass that reads them, with bounded memory.

A capture may hold more samples than memory. So samples are counted in buckets that are 0.1 % wide; the quantile is the mean of the
samples in the bucket that holds its rank. It is exact where those are equal, as in all small captures, and otherwise
within 0.1 % (wider where very many flows are open at a time, see `MOST_BUCKETS`). What belongs to a flow is forgotten when it is over.
The engine counts the times of TCP connections in the same way (`rust/src/flows/times.rs`).
"""

from __future__ import annotations

import polars as pl

QUANTILES = {"p50_ns": 0.50, "p95_ns": 0.95}
"""Column → the share of samples at or below it (nearest rank)."""

DROPPED_BITS = 13
"""A bucket is a 32-bit float without its last 13 of 23 fraction bits: the 10 that stay make steps of 2^-10."""

BUCKET_BITS = 31 - DROPPED_BITS
"""Bits of a bucket's number (a float without its sign)."""

MERGE_ROWS = 8_000_000
"""Buckets (24 bytes each) that are collected before equal ones are added up: 190 MB, and as much again while that is done."""

MOST_BUCKETS = 4_000_000
"""Buckets that may remain after that; where there are more, all become twice as wide. It takes 65,000 flows open at a time, each with
30 different round trips both ways."""

PART_ROWS = 1_000_000
"""Buckets that are sorted at a time."""


_KEY, _BUCKETS = pl.col("key"), 1 << BUCKET_BITS
_TIME = pl.col("time_ns").clip(0)  # a clock that steps back makes samples below 0
_BUCKET = _TIME.cast(pl.Float32).reinterpret(dtype=pl.UInt32) // (1 << DROPPED_BITS)
_DIRECTION = pl.col("conn").cast(pl.UInt64) * 2 + pl.col("from_client").cast(pl.UInt64)


class Samples:
    """Counts times, each of one direction of a connection."""

    def __init__(self) -> None:
        """No samples yet."""
        self._counts: list[pl.DataFrame] = []
        self._rows = 0
        self._merge_at = MERGE_ROWS
        self._blurred_bits = 0

    def count(self, conn: pl.Series, from_client: pl.Series, sample_ns: pl.Series) -> None:
        """Count some samples: the connection and the direction of each, and its nanoseconds."""
        if sample_ns.is_empty():
            return
        samples = pl.DataFrame({"conn": conn, "from_client": from_client, "time_ns": sample_ns})
        buckets = samples.group_by(self._blurred(_DIRECTION * _BUCKETS + _BUCKET).alias("key"))
        counts = buckets.agg(samples=pl.len().cast(pl.Int64), sum_ns=pl.col("time_ns").sum())
        self._counts.append(counts)
        self._rows += counts.height
        if self._rows > self._merge_at:
            self._merge()

    def quantiles(self) -> pl.DataFrame:
        """The quantiles of all samples so far.

        Returns:
            `conn from_client p50_ns p95_ns` (nanoseconds), sorted; one row for each direction that has samples.
        """
        counts = self._together()
        parts = 1 + counts.height // PART_ROWS
        most = counts.select(_KEY.max().fill_null(0)).item() // _BUCKETS
        step = (most // parts + 1) * _BUCKETS  # whole directions
        return pl.concat(_quantiles(counts.filter(_KEY.is_between(part * step, (part + 1) * step, closed="left"))) for part in range(parts))

    def take(self, conn: pl.Series) -> pl.DataFrame:
        """The quantiles of some connections, as `quantiles` gives them; their samples are forgotten."""
        counts = self._together()
        wanted = (_KEY // (2 * _BUCKETS)).is_in(pl.lit(conn.cast(pl.UInt64)).implode())
        self._counts = [counts.filter(~wanted)]
        self._rows = self._counts[0].height
        return _quantiles(counts.filter(wanted))

    def _together(self) -> pl.DataFrame:
        return pl.concat(self._counts, rechunk=False) if self._counts else pl.DataFrame(schema=_COUNTS)

    def _merge(self) -> None:
        """Add up equal buckets, and make them wider until they are few enough."""
        merged = _merged(self._together())
        while merged.height > MOST_BUCKETS and self._blurred_bits < BUCKET_BITS:
            self._blurred_bits += 1
            merged = _merged(merged.with_columns(self._blurred(_KEY)))
        self._counts, self._rows = [merged], merged.height
        self._merge_at = max(MERGE_ROWS, 2 * merged.height)

    def _blurred(self, key: pl.Expr) -> pl.Expr:
        """`key` without the bits that wider buckets do without."""
        width = 1 << self._blurred_bits
        return key // width * width if self._blurred_bits else key


def _merged(counts: pl.DataFrame) -> pl.DataFrame:
    return counts.group_by("key").agg(pl.col("samples", "sum_ns").sum())


_COUNTS = {"key": pl.UInt64, "samples": pl.Int64, "sum_ns": pl.Int64}
"""The samples of each bucket of each direction, unsorted."""

_RANK = pl.col("samples").cum_sum()  # of the last sample in a bucket
_MEAN_NS = (pl.col("sum_ns") / pl.col("samples")).round(mode="half_to_even").cast(pl.Int64)
_OF_DIRECTION = {
    "conn": (_KEY.first() // (2 * _BUCKETS)).cast(pl.Int64),
    "from_client": _KEY.first() // _BUCKETS % 2 == 1,
    **{name: _MEAN_NS.filter(_RANK.ge((share * pl.col("samples").sum()).ceil())).first() for name, share in QUANTILES.items()},
}


def _quantiles(counts: pl.DataFrame) -> pl.DataFrame:
    """The quantiles of the directions whose buckets these are."""
    directions = _merged(counts).sort("key").group_by((_KEY // _BUCKETS).alias("direction"), maintain_order=True)
    return directions.agg(**_OF_DIRECTION)[list(_OF_DIRECTION)]
