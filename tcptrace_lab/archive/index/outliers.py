"""Transfers unlike the others between the same two hosts: by medians, which a few odd ones do not move.

A value's modified z is its distance from the median in units of the median absolute deviation, on a logarithmic scale, because rates and
times are as often half as twice their median; beyond 3.5 it is an outlier (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993).
Only the bad side is told. Below eight transfers of a kind nothing is usual, so nothing is unusual.
"""

from __future__ import annotations

import polars as pl

from tcptrace_lab.archive.index.transfers import PAIR

LEAST = 8
"""Transfers between the same hosts, one way, from which one can be unlike the others (a heuristic)."""

BOUND = 3.5
_SCALE = 0.6745
"""Median absolute deviations of a normal distribution in a standard deviation."""

LEAST_SPREAD = 0.05
"""Where values hardly differ, the deviation is taken for 5 %: less is nothing to tell of (a heuristic)."""

METRICS = {"rate_bps": ("rate", -1), "rtt_ns": ("round trip", 1), "syn_ns": ("handshake", 1)}
"""Column of `transfers` → what it is, and which way is bad."""

MOST = 500


def outliers(transfers: pl.DataFrame) -> pl.DataFrame:
    """The transfers that are unlike the others between the same hosts, the oddest first.

    Args:
        transfers: rows of `transfers.transfers`.

    Returns:
        `capture conn from_client metric value median n z`.
    """
    kind = [*PAIR, "from_client"]
    found = []
    for column, (_, bad) in METRICS.items():
        known = transfers.filter(pl.col(column) > 0).with_columns(log=pl.col(column).log())
        middle = pl.col("log").median().over(kind)
        spread = (pl.col("log") - middle).abs().median().over(kind).clip(lower_bound=LEAST_SPREAD)
        z = bad * _SCALE * (pl.col("log") - middle) / spread
        odd = known.with_columns(n=pl.len().over(kind), z=z, median=pl.col(column).median().over(kind))
        odd = odd.filter((pl.col("n") >= LEAST) & (pl.col("z") > BOUND))
        found.append(
            odd.select(
                "capture",
                "conn",
                "from_client",
                pl.lit(column).alias("metric"),
                pl.col(column).cast(pl.Float64).alias("value"),
                pl.col("median").cast(pl.Float64),
                pl.col("n").cast(pl.Int64),
                "z",
            )
        )
    return pl.concat(found).sort("z", "capture", "conn", "from_client", "metric", descending=[True, False, False, True, False]).head(MOST)
