"""Computes how many segments and bytes a sender retransmitted at least, and at most.

The minimum is the number of captured retransmits. The maximum also counts segments that were lost before the capture point. IP IDs show how
many segments are missing from the capture (`missing_segments`), and each of them can be a retransmit. Some captured retransmits fill a hole
in the captured data. The original of such a retransmit is one of the missing segments, so the maximum counts the pair only once.

In a capture at the sender, no segment is missing, and the minimum equals the maximum.

If the originals of all retransmits were captured, or none of them, all losses were on one side of the capture point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

BEFORE: Final = "before the capture point"
AFTER: Final = "after the capture point"


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


def without_original(connection: Mapping[str, Any], side: str) -> int:
    """Return the minimum number of retransmits of `side` whose original is not in the capture."""
    names = ("payload_bytes", "unique_bytes", "retransmitted_bytes", "max_segment_bytes")
    payload, unique, resent, longest = (connection[f"{side}_{name}"] or 0 for name in names)
    return -(-max(resent - (payload - unique), 0) // longest) if longest else 0


def place(connection: Mapping[str, Any], side: str) -> str:
    """Return where the losses of the data of `side` were: `BEFORE` or `AFTER`; empty if on both sides, if unknown, or without losses.

    In a capture at the sender, all losses are after the capture point, which shows nothing about the path. Without the peer's ACKs, a
    retransmit does not show on which side of the capture point a segment or its ACK was lost.
    """
    other = "server" if side == "client" else "client"
    if connection["vantage"] == side or not connection[f"{other}_segments"]:
        return ""
    lost = (connection[f"{side}_retransmitted_segments"] or 0) - (connection[f"{side}_spurious_retransmissions"] or 0)
    missing, unseen = connection[f"{side}_missing_segments"] or 0, without_original(connection, side)
    if lost <= 0 or not connection[f"{side}_retransmitted_bytes"]:
        return BEFORE if missing and lost <= 0 else ""
    if unseen >= lost:
        return BEFORE
    return "" if unseen or missing else AFTER


def _seen_again_bytes(side: str) -> pl.Expr:
    return pl.col(f"{side}_payload_bytes") - pl.col(f"{side}_unique_bytes")
