"""Computes how much longer the originals of spurious retransmits were on the path than their retransmits, by TCP timestamps.

The sender's timestamp clock shows the time from an original to its retransmit at the sender. If this interval is shorter at the capture
point, the path delayed the original. In a capture at the sender, both intervals are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Collection

TICKS_PER_S: Final = (1000, 250, 100, 10)
"""Usual rates of timestamp clocks. RFC 7323, 5.4, asks for 1 to 1000 ticks per second."""

TOLERANCE: Final = 0.25
"""Maximum relative difference between the measured and the usual rate of a clock (a heuristic)."""

MIN_TICKS: Final = 50
"""Minimum number of ticks in a direction that show the rate of its clock (a heuristic)."""

_DIRECTION: Final = ("conn", "from_client")


def delays_ns(segments: pl.LazyFrame, directions: Collection[tuple[int, bool]]) -> dict[tuple[int, bool], int]:
    """Return the longest additional delay of an original in each of these directions; a direction without timestamps is left out.

    Args:
        segments: rows of `schema.SEGMENTS`.
        directions: number of the connection, and whether the client sends.
    """
    if not directions:
        return {}
    col = pl.col
    stamped = segments.filter(col("conn").is_in(sorted({conn for conn, _ in directions})) & col("tsval").is_not_null())
    is_spurious = col("kind").cast(pl.String) == "spurious"
    clocks = (
        stamped.group_by(_DIRECTION)
        .agg(
            ticks=col("tsval").cast(pl.Int64).max() - col("tsval").cast(pl.Int64).min(),
            ns=col("ts_ns").max() - col("ts_ns").min(),
            seqs=col("seq").filter(is_spurious).unique(),
        )
        .filter((col("ticks") >= MIN_TICKS) & (col("ns") > 0) & (col("seqs").list.len() > 0))
        .collect()
    )
    tick_ns = {
        (row["conn"], row["from_client"]): tick
        for row in clocks.iter_rows(named=True)
        if (tick := _tick_ns(row["ticks"] * NS_PER_S / row["ns"])) and (row["conn"], row["from_client"]) in directions
    }
    if not tick_ns:
        return {}
    sent = stamped.filter((col("payload_bytes") > 0) & col("seq").is_in(clocks["seqs"].explode().unique().to_list()))
    again: dict[tuple[int, bool], int] = {}
    first: dict[tuple[int, bool, int], tuple[int, int]] = {}
    asked = sent.select(*_DIRECTION, "seq", "ts_ns", "tsval", is_spurious.alias("spurious")).collect()
    for conn, from_client, seq, ts_ns, tsval, spurious in asked.iter_rows():
        own_tick_ns = tick_ns.get((conn, from_client))
        if own_tick_ns is None:
            continue
        before_ns, before = first.setdefault((conn, from_client, seq), (ts_ns, tsval))
        if spurious:
            delay_ns = (tsval - before) * own_tick_ns - (ts_ns - before_ns)
            again[conn, from_client] = max(again.get((conn, from_client), 0), delay_ns)
    return again


def _tick_ns(ticks_per_s: float) -> int | None:
    """Return the tick of the usual clock whose rate is nearest; None if none is near."""
    nearest = min(TICKS_PER_S, key=lambda usual: abs(ticks_per_s - usual) / usual)
    return NS_PER_S // nearest if abs(ticks_per_s - nearest) <= TOLERANCE * nearest else None
