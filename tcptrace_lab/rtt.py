"""Round-trip samples → their median and 95th percentile, for each direction, with bounded memory.

A capture may hold more samples than memory. So samples are counted by their value rounded to three significant figures; the
quantile is the mean of the samples in the bucket that holds its rank. It is exact where the samples in that bucket are
equal, as in all small captures, and otherwise within half a unit of the third figure (0.5 % at worst).
"""

from __future__ import annotations

import polars as pl

FIGURES = 3
"""Significant figures of a bucket: at most 900 buckets a decade. The choice is a heuristic."""

QUANTILES = {"p50_ns": 0.50, "p95_ns": 0.95}
"""Column → the share of samples at or below it (nearest rank)."""

_DIRECTION = ("conn", "from_client")


def quantiles(segments: pl.LazyFrame) -> pl.DataFrame:
    """Quantiles of `rtt_ns`, by the sender of the data that was timed.

    Args:
        segments: rows of `schema.SEGMENTS`, of which `conn`, `from_client` and `rtt_ns` are read.

    Returns:
        `conn from_client p50_ns p95_ns` (nanoseconds), sorted; one row for each direction that has samples. `from_client` is true for
        the round trips of the client's data, which are samples on the *server's* ACKs.
    """
    counted = (
        segments.filter(pl.col("rtt_ns").is_not_null())
        .group_by("conn", ~pl.col("from_client"), pl.col("rtt_ns").round_sig_figs(FIGURES).alias("bucket_ns"))
        .agg(samples=pl.len(), sum_ns=pl.col("rtt_ns").sum())
        .collect(engine="streaming")
        .sort(*_DIRECTION, "bucket_ns")
    )
    samples = pl.col("samples").cast(pl.Int64)
    ranked = counted.with_columns(
        rank=samples.cum_sum().over(_DIRECTION),
        total=samples.sum().over(_DIRECTION),
        mean_ns=(pl.col("sum_ns") / samples).round().cast(pl.Int64),
    )
    picks = [_at_rank(share).alias(name) for name, share in QUANTILES.items()]
    return ranked.group_by(_DIRECTION, maintain_order=True).agg(picks)


def _at_rank(share: float) -> pl.Expr:
    """The value of the first bucket that reaches the nearest rank, ⌈share · total⌉."""
    return pl.col("mean_ns").filter(pl.col("rank") >= share * pl.col("total")).first()
