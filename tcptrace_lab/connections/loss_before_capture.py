"""Computes how many segments and bytes a sender retransmitted at least, and at most.

The minimum is the number of captured retransmits. The maximum also counts segments that were lost before the capture point. IP IDs show how
many segments are missing from the capture (`missing_segments`), and each of them can be a retransmit. Some captured retransmits fill a hole
in the captured data. The original of such a retransmit is one of the missing segments, so the maximum counts the pair only once.

In a capture at the sender, no segment is missing, and the minimum equals the maximum.
"""

from __future__ import annotations

import polars as pl


def resent_segments(side: str) -> tuple[pl.Expr, pl.Expr]:
    """Return the minimum and the maximum number of segments that `side` retransmitted.

    The maximum is null if the number of missing segments is unknown.
    """
    least, longest = pl.col(f"{side}_retransmitted_segments"), pl.col(f"{side}_max_segment_bytes")
    filling = (pl.col(f"{side}_retransmitted_bytes") - _seen_again_bytes(side)).clip(0)
    fillers = pl.when(longest > 0).then((filling + longest - 1) // longest).otherwise(0)
    most = pl.col(f"{side}_missing_segments") + least - fillers
    return least, pl.when(most.is_not_null()).then(pl.max_horizontal(least, most))


def resent_bytes(side: str) -> tuple[pl.Expr, pl.Expr]:
    """Return the minimum and the maximum number of data bytes that `side` retransmitted.

    The maximum is null if the number of missing segments is unknown.
    """
    least = pl.col(f"{side}_retransmitted_bytes")
    most = _seen_again_bytes(side) + pl.col(f"{side}_missing_segments") * pl.col(f"{side}_max_segment_bytes")
    return least, pl.when(most.is_not_null()).then(pl.max_horizontal(least, most))


def _seen_again_bytes(side: str) -> pl.Expr:
    return pl.col(f"{side}_payload_bytes") - pl.col(f"{side}_unique_bytes")
