"""Packet by packet: which packet of one capture is which of the other, told apart from its own resends and copies.

A packet is known again by its sequence number, length, SYN, FIN and RST, acknowledgment, and, where they pass the path unchanged, by its
TCP timestamp, SACK blocks and IP identification. What is left ambiguous after that (identical headers: resends within a tick of the
timestamps, on a stack that does not number its packets) is told apart by time, once the clocks are aligned on what is certain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tcptrace_lab.pair import clocks
from tcptrace_lab.pair.packets import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tcptrace_lab.pair.clocks import Clock

BASE = ("half", "start", "length", "controls", "ack")
"""What a packet keeps on any path that does not rewrite TCP itself."""

MARKS = ("tsval", "ip_id", "sacked")
"""What most paths leave alone, and what tells a resend from its original."""

PRESERVED_SHARE = 0.95
"""Of the packets that are certain by `BASE` alone, so many must have kept a mark, for the mark to tell packets apart. A choice of ours."""


def matched(sent: pl.DataFrame, received: pl.DataFrame) -> pl.DataFrame:
    """Match what is certain.

    Args:
        sent: packets as seen near their sender, with `row` (0, 1, …), `half` (a direction of a pair of connections), `there` (it goes from
            the first capture to the second) and `start`.
        received: packets as seen near their receiver, likewise; `start` in the same offsets.

    Returns:
        `sent_row received_row rank sent_count received_count key`: one row per row of either; null where it has no partner by rank
        within its key. Certain are those with one packet of each; the others have to be told apart.
    """
    keys = [*BASE, *MARKS]
    kept = _preserved(sent, received)
    sides = []
    for rows, name in ((sent, "sent"), (received, "received")):
        usable = rows.join(kept, on="half", how="left").with_columns(
            pl.when(pl.col(f"{mark}_kept")).then(mark).otherwise(ABSENT).alias(mark) for mark in MARKS
        )
        ranked = usable.select(*keys, pl.col("row").alias(f"{name}_row"))
        ranked = ranked.sort(f"{name}_row").with_columns(rank=pl.int_range(pl.len()).over(keys), count=pl.len().over(keys))
        sides.append(ranked.rename({"count": f"{name}_count"}))
    joined = sides[0].join(sides[1], on=[*keys, "rank"], how="full", coalesce=True)
    counts = [pl.col(f"{name}_count").max().over(keys).fill_null(0).alias(f"{name}_count") for name in ("sent", "received")]
    return joined.with_columns(counts).with_columns(key=pl.struct(keys).rank("dense"))


def _preserved(sent: pl.DataFrame, received: pl.DataFrame) -> pl.DataFrame:
    """Per `half`, whether each of `MARKS` passes the path unchanged: `half tsval_kept ip_id_kept`."""
    once = [rows.filter(pl.len().over(BASE) == 1).select(*BASE, *MARKS) for rows in (sent, received)]
    both = once[0].join(once[1], on=BASE, suffix="_there")
    shares = both.group_by("half").agg(
        ((pl.col(mark) == pl.col(f"{mark}_there")).mean() >= PRESERVED_SHARE).alias(f"{mark}_kept") for mark in MARKS
    )
    halves = pl.concat([sent.select("half"), received.select("half")]).unique()
    return halves.join(shares, on="half", how="left").with_columns(pl.col(f"{mark}_kept").fill_null(value=True) for mark in MARKS)


def align(found: pl.DataFrame, sent: pl.DataFrame, received: pl.DataFrame, resolution_ns: int) -> Clock | None:
    """The clocks, by the packets that are certain; see `clocks.align`."""
    certain = found.filter(pl.col("sent_count") == 1, pl.col("received_count") == 1)
    sent_rows, received_rows = certain["sent_row"].to_numpy(), certain["received_row"].to_numpy()
    sent_ns, received_ns = sent["ts_ns"].to_numpy()[sent_rows], received["ts_ns"].to_numpy()[received_rows]
    there = sent["there"].to_numpy()[sent_rows]
    return clocks.align(np.where(there, sent_ns, received_ns), np.where(there, received_ns, sent_ns), there, resolution_ns)


def settled(found: pl.DataFrame, sent_ns: NDArray[np.int64], arrived_ns: NDArray[np.int64], least_delay_ns: int) -> pl.DataFrame:
    """Tell the ambiguous ones apart by time.

    Args:
        found: as `matched` returns it.
        sent_ns: when they were sent, by row.
        arrived_ns: when they arrived, by row, on the same clock.
        least_delay_ns: no packet is taken to have arrived sooner.

    Returns:
        `sent_row received_row copy certain`: one row per match, per packet sent alone, and per packet received alone; `copy` is True
        for what arrived again of a packet that is matched elsewhere, `certain` where no time was needed.
    """
    single = (pl.col("sent_count") <= 1) & (pl.col("received_count") <= 1)
    rows: list[tuple[int | None, int | None, bool, bool]] = []
    for group in found.filter(~single).sort("key", "rank").partition_by("key", maintain_order=True):
        senders, receivers = (group[name].drop_nulls().to_list() for name in ("sent_row", "received_row"))
        rows += _by_time(senders, receivers, sent_ns, arrived_ns, least_delay_ns)
    columns = pl.Schema({"sent_row": pl.Int64, "received_row": pl.Int64, "copy": pl.Boolean, "certain": pl.Boolean})
    plain = found.filter(single).select("sent_row", "received_row", copy=pl.lit(value=False), certain=pl.lit(value=True))
    return pl.concat([plain.cast(columns), pl.DataFrame(rows, schema=columns, orient="row")])


def _by_time(
    senders: list[int], receivers: list[int], sent_ns: NDArray[np.int64], arrived_ns: NDArray[np.int64], least_ns: int
) -> Iterator[tuple[int | None, int | None, bool, bool]]:
    """Which arrival belongs to which of several like packets; in the order in which they were sent, as far as time admits it.

    With fewer arrivals than packets, each belongs to the last that can have arrived by then; what arrives beyond their number is a copy.
    """
    certain = len(senders) <= 1
    pairs: dict[int, int] = {}
    firsts = receivers[: len(senders)]
    free = list(senders)
    for received in reversed(firsts):
        possible = [sent for sent in free if sent_ns[sent] + least_ns <= arrived_ns[received]]
        if possible:
            pairs[received] = possible[-1]
            free = [sent for sent in free if sent < possible[-1]]
    for received in receivers:
        is_copy = received not in pairs and bool(pairs) and received >= min(pairs)
        yield pairs.get(received), received, is_copy, certain
    for sent in set(senders).difference(pairs.values()):
        yield sent, None, False, certain
