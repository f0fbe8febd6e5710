"""Times of each direction of UDP flows → median and 95th percentile, in one pass, with bounded memory.

A capture may hold more samples than memory, so samples are counted in buckets that are 0.1 % wide. A quantile is the mean of the samples in
the bucket that holds its rank. It is exact if these are equal, as in all small captures, and otherwise within 0.1 % (wider if very many
flows are open at a time, see `MAX_BUCKETS`). The samples of a flow are dropped when it is over. The engine counts the times of TCP
connections in buckets too (`rust/src/flows/times.rs`).
"""

from __future__ import annotations

import polars as pl

QUANTILES = {"p50_ns": 0.50, "p95_ns": 0.95}
"""Column → share of samples at or below it (nearest rank)."""

DROPPED_BITS = 13
"""A bucket is a 32-bit float without the last 13 of its 23 fraction bits: the remaining 10 give steps of 2^-10."""

BUCKET_BITS = 31 - DROPPED_BITS
"""Bits of a bucket number (a float without its sign)."""

MERGE_ROWS = 8_000_000
"""Buckets (24 bytes each) collected before equal ones are merged: 190 MB, and twice that during the merge."""

MAX_BUCKETS = 4_000_000
"""Buckets that may remain after a merge; if there are more, all become twice as wide. This happens with 65,000 flows open at a time, each
with 30 different times in both directions."""

PART_ROWS = 1_000_000
"""Buckets that are sorted at a time."""


_KEY, _BUCKETS = pl.col("key"), 1 << BUCKET_BITS
_TIME = pl.col("time_ns").clip(0)  # samples are negative if the clock ran backwards
_BUCKET = _TIME.cast(pl.Float32).reinterpret(dtype=pl.UInt32) // (1 << DROPPED_BITS)
_DIRECTION = pl.col("conn").cast(pl.UInt64) * 2 + pl.col("from_client").cast(pl.UInt64)


class Samples:
    """Counts times, each of one direction of a connection."""

    def __init__(self) -> None:
        """Start without samples."""
        self._counts: list[pl.DataFrame] = []
        self._rows = 0
        self._merge_at = MERGE_ROWS
        self._blurred_bits = 0

    def count(self, conn: pl.Series, from_client: pl.Series, sample_ns: pl.Series) -> None:
        """Count some samples: connection, direction and nanoseconds of each."""
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
        """Return the quantiles of all samples so far.

        Returns:
            `conn from_client p50_ns p95_ns` (nanoseconds), sorted; one row per direction with samples.
        """
        counts = self._together()
        parts = 1 + counts.height // PART_ROWS
        most = counts.select(_KEY.max().fill_null(0)).item() // _BUCKETS
        step = (most // parts + 1) * _BUCKETS  # whole directions
        return pl.concat(_quantiles(counts.filter(_KEY.is_between(part * step, (part + 1) * step, closed="left"))) for part in range(parts))

    def take(self, conn: pl.Series) -> pl.DataFrame:
        """Return the quantiles of some connections, in the form of `quantiles`, and drop their samples."""
        counts = self._together()
        wanted = (_KEY // (2 * _BUCKETS)).is_in(pl.lit(conn.cast(pl.UInt64)).implode())
        self._counts = [counts.filter(~wanted)]
        self._rows = self._counts[0].height
        return _quantiles(counts.filter(wanted))

    def _together(self) -> pl.DataFrame:
        return pl.concat(self._counts, rechunk=False) if self._counts else pl.DataFrame(schema=_COUNTS)

    def _merge(self) -> None:
        """Merge equal buckets, and widen them until they are few enough."""
        merged = _merged(self._together())
        while merged.height > MAX_BUCKETS and self._blurred_bits < BUCKET_BITS:
            self._blurred_bits += 1
            merged = _merged(merged.with_columns(self._blurred(_KEY)))
        self._counts, self._rows = [merged], merged.height
        self._merge_at = max(MERGE_ROWS, 2 * merged.height)

    def _blurred(self, key: pl.Expr) -> pl.Expr:
        """Drop the low bits of `key` that wider buckets ignore."""
        width = 1 << self._blurred_bits
        return key // width * width if self._blurred_bits else key


def _merged(counts: pl.DataFrame) -> pl.DataFrame:
    return counts.group_by("key").agg(pl.col("samples", "sum_ns").sum())


_COUNTS = {"key": pl.UInt64, "samples": pl.Int64, "sum_ns": pl.Int64}
"""Number and sum of the samples in each bucket of each direction, unsorted."""

_RANK = pl.col("samples").cum_sum()  # rank of the last sample in a bucket
_MEAN_NS = (pl.col("sum_ns") / pl.col("samples")).round(mode="half_to_even").cast(pl.Int64)
_OF_DIRECTION = {
    "conn": (_KEY.first() // (2 * _BUCKETS)).cast(pl.Int64),
    "from_client": _KEY.first() // _BUCKETS % 2 == 1,
    **{name: _MEAN_NS.filter(_RANK.ge((share * pl.col("samples").sum()).ceil())).first() for name, share in QUANTILES.items()},
}


def _quantiles(counts: pl.DataFrame) -> pl.DataFrame:
    """Return the quantiles of the directions with these buckets."""
    directions = _merged(counts).sort("key").group_by((_KEY // _BUCKETS).alias("direction"), maintain_order=True)
    return directions.agg(**_OF_DIRECTION)[list(_OF_DIRECTION)]
