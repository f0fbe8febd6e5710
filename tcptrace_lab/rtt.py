"""Times of each direction (round trips, lags of ACKs) → their median and 95th percentile, in the pass that reads them, with bounded memory.

A capture may hold more samples than memory. So samples are counted in buckets that are 0.1 % wide; the quantile is the mean of the
samples in the bucket that holds its rank. It is exact where those are equal, as in all small captures, and otherwise
within 0.1 % (wider where very many connections are open at a time, see `MOST_BUCKETS`). What belongs to a connection is
forgotten when the connection is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

QUANTILES = {"p50_ns": 0.50, "p95_ns": 0.95}
"""Column → the share of samples at or below it (nearest rank)."""

DROPPED_BITS = 13
"""A bucket is a 32-bit float without its last 13 of 23 fraction bits: the 10 that stay make steps of 2^-10."""

BUCKET_BITS = 31 - DROPPED_BITS
"""Bits of a bucket's number (a float without its sign)."""

MERGE_ROWS = 8_000_000
"""Buckets (24 bytes each) that are collected before equal ones are added up: 190 MB, and as much again while that is done."""

MOST_BUCKETS = 4_000_000
"""Buckets that may remain after that; where there are more, all become twice as wide. It takes 65,000 connections open at a time, each with
30 different round trips both ways."""

PART_ROWS = 1_000_000
"""Buckets that are sorted at a time."""


class Samples:
    """Counts times, each of one direction of a connection."""

    def __init__(self) -> None:
        """No samples yet."""
        self._counts: list[pl.DataFrame] = [_counts(np.empty(0, np.uint64), np.empty(0, np.int64))]
        self._rows = 0
        self._merge_at = MERGE_ROWS
        self._blurred_bits = 0

    def count(self, conn: pl.Series, from_client: pl.Series, sample_ns: pl.Series) -> None:
        """Count some samples: the connection and the direction of each, and its nanoseconds."""
        times_ns = sample_ns.to_numpy()
        direction = conn.to_numpy().astype(np.uint64) * 2 + from_client.to_numpy()
        bucket = np.maximum(times_ns, 0).astype(np.float32).view(np.uint32) >> DROPPED_BITS  # a clock that steps back makes samples below 0
        counts = _counts(self._blurred(direction << BUCKET_BITS | bucket), times_ns)
        self._counts.append(counts)
        self._rows += counts.height
        if self._rows > self._merge_at:
            self._merge()

    def quantiles(self) -> pl.DataFrame:
        """The quantiles of all samples so far.

        Returns:
            `conn from_client p50_ns p95_ns` (nanoseconds), sorted; one row for each direction that has samples.
        """
        counts = pl.concat(self._counts, rechunk=False)
        parts = 1 + counts.height // PART_ROWS
        step = (int(counts["key"].to_numpy().max(initial=0)) // parts >> BUCKET_BITS) + 1 << BUCKET_BITS  # whole directions
        return pl.concat(
            _quantiles(counts.filter(pl.col("key").is_between(part * step, (part + 1) * step, closed="left"))) for part in range(parts)
        )

    def take(self, conn: pl.Series) -> pl.DataFrame:
        """The quantiles of some connections, as `quantiles` gives them; their samples are forgotten."""
        counts = pl.concat(self._counts)
        wanted = np.isin((counts["key"].to_numpy() >> (BUCKET_BITS + 1)).astype(np.int64), conn.to_numpy().astype(np.int64))
        self._counts = [counts.filter(~wanted)]
        self._rows = self._counts[0].height
        return _quantiles(counts.filter(wanted))

    def _merge(self) -> None:
        """Add up equal buckets, and make them wider until they are few enough."""
        merged = _merged(pl.concat(self._counts))
        while merged.height > MOST_BUCKETS and self._blurred_bits < BUCKET_BITS:
            self._blurred_bits += 1
            merged = _merged(merged.with_columns(key=self._blurred(merged["key"].to_numpy())))
        self._counts, self._rows = [merged], merged.height
        self._merge_at = max(MERGE_ROWS, 2 * merged.height)

    def _blurred(self, key: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """`key` without the bits that wider buckets do without."""
        mask: NDArray[np.uint64] = key >> np.uint64(self._blurred_bits) << np.uint64(self._blurred_bits)
        return mask


class RttSamples(Samples):
    """Counts round trips as segments go by (a `segments.Watcher`). Those of the client's data are samples on the *server's* ACKs."""

    columns = ("conn", "from_client", "rtt_ns")

    def add(self, rows: pl.DataFrame) -> None:
        """Count the samples in some rows of `schema.SEGMENTS`."""
        samples = rows.select(self.columns).drop_nulls("rtt_ns")
        self.count(samples["conn"], ~samples["from_client"], samples["rtt_ns"])


def _merged(counts: pl.DataFrame) -> pl.DataFrame:
    return counts.group_by("key").agg(pl.col("samples", "sum_ns").sum())


def _quantiles(counts: pl.DataFrame) -> pl.DataFrame:
    """The quantiles of the directions whose buckets these are."""
    counts = _merged(counts).sort("key")
    direction = counts["key"].to_numpy() >> BUCKET_BITS
    upto = np.cumsum(counts["samples"].to_numpy())
    mean_ns = np.rint(counts["sum_ns"].to_numpy() / counts["samples"].to_numpy()).astype(np.int64)
    last = np.flatnonzero(np.diff(direction, append=np.uint64(0xFFFF_FFFF_FFFF_FFFF)))  # the largest bucket of each direction
    total = np.diff(upto[last], prepend=0)
    found = {name: mean_ns[np.searchsorted(upto, upto[last] - total + np.ceil(share * total))] for name, share in QUANTILES.items()}
    return pl.DataFrame({"conn": (direction[last] >> 1).astype(np.int64), "from_client": (direction[last] & 1).astype(bool), **found})


def _counts(key: NDArray[np.uint64], times_ns: NDArray[np.int64]) -> pl.DataFrame:
    """`key samples sum_ns`: the samples of each bucket of each direction, unsorted."""
    return (
        pl.DataFrame({"key": key, "time_ns": times_ns}).group_by("key").agg(samples=pl.len().cast(pl.Int64), sum_ns=pl.col("time_ns").sum())
    )
