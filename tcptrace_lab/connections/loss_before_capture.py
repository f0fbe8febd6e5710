"""How much a sender actually retransmitted, from any capture point: also where the loss occurs before the capture point.

The captured retransmits are the lower bound. The upper bound follows from two counts: segments that were sent but are missing from the
capture (`missing_segments`, by IP ID), each of which may be a retransmit; and captured retransmits that filled a hole, whose original is
among the missing segments and is subtracted. At the sender nothing is missing, so both bounds are equal. Behind the loss they are equal if
only data segments are missing, as in a one-directional transfer.
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
