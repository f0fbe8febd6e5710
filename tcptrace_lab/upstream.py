"""How much a side resent in truth, told from any place on the path: also where it was lost before it could be captured.

What the capture shows of it is the least. The most follows from two counts: segments that were sent and are not in the capture
(`missing_segments`, by IP identifications), each of which was or was not a resend; and resends that were captured, of which those that
filled a hole stand for a first copy that is among the missing, too, and are taken off again. At the sender nothing is missing, so that
both are equal; behind the loss they are equal where nothing but data is missing, as in a transfer one way.
"""

from __future__ import annotations

import polars as pl


def resent_segments(side: str) -> tuple[pl.Expr, pl.Expr]:
    """The least and the most segments that `side` resent; the most is null where the missing ones are not known."""
    least, longest = pl.col(f"{side}_retransmitted_segments"), pl.col(f"{side}_max_segment_bytes")
    filling = (pl.col(f"{side}_retransmitted_bytes") - _seen_again_bytes(side)).clip(0)
    fillers = pl.when(longest > 0).then((filling + longest - 1) // longest).otherwise(0)
    most = pl.col(f"{side}_missing_segments") + least - fillers
    return least, pl.when(most.is_not_null()).then(pl.max_horizontal(least, most))


def resent_bytes(side: str) -> tuple[pl.Expr, pl.Expr]:
    """The least and the most bytes of data that `side` resent; the most is null where the missing segments are not known."""
    least = pl.col(f"{side}_retransmitted_bytes")
    most = _seen_again_bytes(side) + pl.col(f"{side}_missing_segments") * pl.col(f"{side}_max_segment_bytes")
    return least, pl.when(most.is_not_null()).then(pl.max_horizontal(least, most))


def _seen_again_bytes(side: str) -> pl.Expr:
    return pl.col(f"{side}_payload_bytes") - pl.col(f"{side}_unique_bytes")
