"""Matches the packets of two captures one by one, and distinguishes a packet from its retransmits and duplicates.

Sequence number, acknowledgment number, length, SYN, FIN and RST identify a packet. TCP timestamp, SACK blocks and IP identification are
also compared if the path leaves them unchanged. Packets with identical headers are ambiguous. For example, a stack that sets no IP
identification can send two retransmits within one tick of the timestamp clock. Ambiguous packets are matched by time, after the unambiguous
packets have been used to align the clocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from tcptrace_lab.pair import clocks
from tcptrace_lab.pair.packets import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tcptrace_lab.pair.clocks import Clock
    from tcptrace_lab.pair.packet_store import Packets

BASE = ("direction", "start", "length", "controls", "ack")
"""Fields that a path leaves unchanged, unless it rewrites TCP itself."""

MARKS = ("tsval", "ip_id", "sacked")
"""Fields that distinguish a retransmit from the original. Most paths leave them unchanged."""

PART_PACKETS = 65_536
"""Approximate number of packets that are matched together. They take about 50 MB of memory."""

PRESERVED_SHARE = 0.95
"""A mark is used if it stays unchanged in at least this share of the packets that `BASE` identifies (a heuristic)."""


@dataclass(frozen=True, slots=True)
class Found:
    """Packets matched by their headers.

    Attributes:
        single: `sent_row received_row` of packets whose headers are unique in both captures. A row is null if its capture lacks the packet.
        several: `sent_row received_row rank key` of packets with identical headers. Packets with identical headers share a `key`, and are
            paired in capture order.
    """

    single: pl.DataFrame
    several: pl.DataFrame


def matched(sent: Packets, received: Packets) -> Found:
    """Match packets by their headers.

    Args:
        sent: packets as captured near their sender, with `row` (0, 1, …), `direction` (a number, see `Pair`), `there`, `BASE` and `MARKS`.
            `there` is True from the first capture point to the second.
        received: packets as captured near their receiver, with the columns of `sent`. A packet has equal stream offsets in both.
    """
    sides = sent, received
    parts = 1 + max(rows.height for rows in sides) // PART_PACKETS
    kept = _preserved(sides, parts)
    found = [_matched(_part(sides, part, parts), kept, part) for part in range(parts)]
    return Found(pl.concat([one.single for one in found]), pl.concat([one.several for one in found]))


Sides: TypeAlias = tuple[pl.DataFrame, pl.DataFrame]
"""Packets as captured near their sender, and as captured near their receiver."""


def _part(sides: tuple[Packets, Packets], part: int, parts: int) -> Sides:
    """Return one part of the packets of both captures. Packets with equal headers are in the same part."""
    sent, received = (packets.of_keys((*BASE, *MARKS), part, parts) for packets in sides)
    return sent, received


def _matched(sides: Sides, kept: pl.DataFrame, part: int) -> Found:
    keys = [*BASE, *MARKS]
    ranks = []
    for rows, name in zip(sides, ("sent", "received"), strict=True):
        usable = rows.join(kept, on="direction", how="left").with_columns(
            pl.when(pl.col(f"{mark}_kept")).then(mark).otherwise(ABSENT).alias(mark) for mark in MARKS
        )
        ranked = usable.select(*keys, pl.col("row").alias(f"{name}_row"))
        ranked = ranked.sort(f"{name}_row").with_columns(rank=pl.int_range(pl.len()).over(keys), count=pl.len().over(keys))
        ranks.append(ranked.rename({"count": f"{name}_count"}))
    joined = ranks[0].join(ranks[1], on=[*keys, "rank"], how="full", coalesce=True)
    counts = [pl.col(f"{name}_count").max().over(keys).fill_null(0).alias(f"{name}_count") for name in ("sent", "received")]
    counted = joined.with_columns(counts)
    single = (pl.col("sent_count") <= 1) & (pl.col("received_count") <= 1)
    # Only ambiguous rows are ranked, because ranking all rows would take most of the time and memory of a part.
    several = counted.filter(~single)

    key = pl.struct(keys).rank("dense").cast(pl.Int64) + (part << 32)
    return Found(counted.filter(single).select("sent_row", "received_row"), several.select("sent_row", "received_row", "rank", key=key))


def _preserved(sides: tuple[Packets, Packets], parts: int) -> pl.DataFrame:
    """Return for each direction whether the path leaves each of `MARKS` unchanged: `direction tsval_kept ip_id_kept sacked_kept`."""
    same = [(pl.col(mark) == pl.col(f"{mark}_there")).sum().cast(pl.Int64).alias(mark) for mark in MARKS]
    counted = []
    for part in range(parts):
        once = [rows.filter(pl.len().over(BASE) == 1).select(*BASE, *MARKS) for rows in _part(sides, part, parts)]
        both = once[0].join(once[1], on=BASE, suffix="_there")
        counted.append(both.group_by("direction").agg(*same, packets=pl.len().cast(pl.Int64)))
    total = pl.concat(counted).group_by("direction").agg(pl.col(*MARKS, "packets").sum())
    shares = total.select("direction", *((pl.col(mark) / pl.col("packets") >= PRESERVED_SHARE).alias(f"{mark}_kept") for mark in MARKS))
    directions = pl.concat([packets.rows.select("direction").unique().collect() for packets in sides]).unique()
    return directions.join(shares, on="direction", how="left").with_columns(pl.col(f"{mark}_kept").fill_null(value=True) for mark in MARKS)


def align(found: Found, sent: Packets, received: Packets, resolution_ns: int) -> Clock | None:
    """Align the clocks with `clocks.align`, by the packets with unique headers."""
    certain = found.single.drop_nulls().sort("sent_row")
    sent_ns, received_ns, there = (
        packets.column(name).gather(certain[row]).to_numpy()
        for packets, name, row in ((sent, "ts_ns", "sent_row"), (received, "ts_ns", "received_row"), (sent, "there", "sent_row"))
    )
    return clocks.align(np.where(there, sent_ns, received_ns), np.where(there, received_ns, sent_ns), there, resolution_ns)


def settled(found: Found, sent_ns: NDArray[np.int64], arrived_ns: NDArray[np.int64], min_delay_ns: int) -> pl.DataFrame:
    """Resolve ambiguous packets by time.

    Args:
        found: as `matched` returns it.
        sent_ns: send times, by row.
        arrived_ns: arrival times, by row, on the same clock.
        min_delay_ns: minimum delay of a packet.

    Returns:
        `sent_row received_row copy certain`. There is one row per match, and one per packet that was seen only near its sender or only near
        its receiver. `copy` is True for a further arrival of a matched packet. `certain` is True if the match did not need times.
    """
    rows: list[tuple[int | None, int | None, bool, bool]] = []
    for group in found.several.sort("key", "rank").partition_by("key", maintain_order=True):
        senders, receivers = (group[name].drop_nulls().to_list() for name in ("sent_row", "received_row"))
        rows += _by_time(senders, receivers, sent_ns, arrived_ns, min_delay_ns)
    columns = pl.Schema({"sent_row": pl.Int32, "received_row": pl.Int32, "copy": pl.Boolean, "certain": pl.Boolean})
    plain = found.single.with_columns(copy=pl.lit(value=False), certain=pl.lit(value=True))
    return pl.concat([plain.cast(columns), pl.DataFrame(rows, schema=columns, orient="row")])


def _by_time(
    senders: list[int], receivers: list[int], sent_ns: NDArray[np.int64], arrived_ns: NDArray[np.int64], min_ns: int
) -> Iterator[tuple[int | None, int | None, bool, bool]]:
    """Assign arrivals to transmissions, for packets with identical headers. The order is kept, as far as the times allow.

    If there are fewer arrivals than transmissions, an arrival belongs to the last transmission that can have arrived by then. If there are
    more arrivals than transmissions, the surplus arrivals are copies.
    """
    certain = len(senders) <= 1
    pairs: dict[int, int] = {}
    firsts = receivers[: len(senders)]
    free = list(senders)
    for received in reversed(firsts):
        possible = [sent for sent in free if sent_ns[sent] + min_ns <= arrived_ns[received]]
        if possible:
            pairs[received] = possible[-1]
            free = [sent for sent in free if sent < possible[-1]]
    for received in receivers:
        is_copy = received not in pairs and bool(pairs) and received >= min(pairs)
        yield pairs.get(received), received, is_copy, certain
    for sent in set(senders).difference(pairs.values()):
        yield sent, None, False, certain
