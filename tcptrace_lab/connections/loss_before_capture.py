"""Computes bounds of the number of segments and bytes that a sender retransmitted, including losses before the capture point.

The number of captured retransmits is the lower bound. The upper bound adds the segments that were sent but are missing from the capture
(`missing_segments`, by IP ID), because each of them may be a retransmit. It subtracts the captured retransmits that filled a hole, because
the original of each is one of the missing segments. In a capture at the sender no segment is missing, so both bounds are equal. In a
capture behind the loss, both bounds are equal if only data segments are missing, as in a one-directional transfer.
"""

from __future__ import annotations

import polars as pl


def resent_segments(side: str) -> tuple[pl.Expr, pl.Expr]:
    """Return the minimum and the maximum number of segments that `side` retransmitted.

    The maximum is null if the missing segments are unknown.
    """
    least, longest = pl.col(f"{side}_retransmitted_segments"), pl.col(f"{side}_max_segment_bytes")
    filling = (pl.col(f"{side}_retransmitted_bytes") - _seen_again_bytes(side)).clip(0)
    fillers = pl.when(longest > 0).then((filling + longest - 1) // longest).otherwise(0)
    most = pl.col(f"{side}_missing_segments") + least - fillers
    return least, pl.when(most.is_not_null()).then(pl.max_horizontal(least, most))


def resent_bytes(side: str) -> tuple[pl.Expr, pl.Expr]:
    """Return the minimum and the maximum number of data bytes that `side` retransmitted.

    The maximum is null if the missing segments are unknown.
    """
    least = pl.col(f"{side}_retransmitted_bytes")
    most = _seen_again_bytes(side) + pl.col(f"{side}_missing_segments") * pl.col(f"{side}_max_segment_bytes")
    return least, pl.when(most.is_not_null()).then(pl.max_horizontal(least, most))


def _seen_again_bytes(side: str) -> pl.Expr:
    return pl.col(f"{side}_payload_bytes") - pl.col(f"{side}_unique_bytes")
