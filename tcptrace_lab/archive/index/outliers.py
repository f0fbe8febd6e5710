"""Finds outliers: transfers that are much slower than the other transfers between the same two hosts.

The modified z-score of a value is 0.6745 times its distance from the median, divided by the median absolute deviation. The score is
computed on logarithms, because a value of half the median is as likely as a value of twice the median. A score above 3.5 shows an outlier
(Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993). Only lower rates and longer times are reported. Outliers are not reported
among fewer than eight transfers between two hosts in one direction.
"""

from __future__ import annotations

import polars as pl

from tcptrace_lab.archive.index.transfers import PAIR

LEAST = 8
"""Minimum number of transfers between two hosts in one direction for outliers to be reported (a heuristic)."""

BOUND = 3.5
_SCALE = 0.6745
"""Median absolute deviation of a normal distribution with standard deviation 1."""

MIN_SPREAD = 0.05
"""Lower bound of the median absolute deviation of logarithms: about 5%.

Without this bound, small differences could be outliers (a heuristic).
"""

METRICS = {"rate_bps": ("rate", -1), "rtt_ns": ("round trip", 1), "syn_ns": ("handshake", 1)}
"""Name of each column of `transfers` that is compared, and the sign of a change that makes a transfer slower."""

MOST = 500


def outliers(transfers: pl.DataFrame) -> pl.DataFrame:
    """Return at most `MOST` outliers, the most extreme first.

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
        spread = (pl.col("log") - middle).abs().median().over(kind).clip(lower_bound=MIN_SPREAD)
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
