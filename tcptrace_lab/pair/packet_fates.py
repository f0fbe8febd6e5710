"""The fate of each packet between two capture points: matched, lost, not captured, duplicated or outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcptrace_lab.pair.clocks import Clock
    from tcptrace_lab.pair.packet_store import Packets

FATES = ("matched", "lost", "not_captured", "only_at_receiver", "duplicated", "outside_overlap")
"""What happened to a packet between the two capture points.

- `matched`: seen at both points.
- `lost`: sent, and not seen to arrive.
- `not_captured`: sent, and missing from the receiver's capture, although the receiver ACKed it.
- `only_at_receiver`: seen only near the receiver.
- `duplicated`: a further arrival of a matched packet.
- `outside_overlap`: the other capture was not running.
"""


USUAL = 0.95
"""Quantile of the delays that is used as the longest usual delay of a packet (a heuristic)."""

_AT_BOTH = pl.col("sent_row").is_not_null() & pl.col("received_row").is_not_null()


@dataclass(frozen=True, slots=True)
class Seen:
    """The packets and the streams, as both captures contain them.

    Attributes:
        rows: `links` with each packet's fields from both captures. There is one row per packet or copy, in order of sending. Packets seen
            only near the receiver come last.
        arrived: ranges of the streams that were captured near the receiver (`direction left_start arrived_to`), sorted by start.
        acknowledged: highest stream offset that the receiver ACKed, per direction (`direction acked_to`).
    """

    rows: pl.DataFrame
    arrived: pl.DataFrame
    acknowledged: pl.DataFrame


def seen(links: pl.DataFrame, sent: Packets, received: Packets, sent_ns: NDArray[np.int64], arrived_ns: NDArray[np.int64]) -> Seen:
    """Join the packets of both captures.

    Args:
        links: as `match.settled` returns them.
        sent: packets as seen near their sender, by row.
        received: packets as seen near their receiver, by row.
        sent_ns: send times by row of `sent`, on the first capture's clock.
        arrived_ns: arrival times by row of `received`, on the first capture's clock.
    """
    return Seen(_joined(links, sent, received, sent_ns, arrived_ns), _arrived_ranges(received), _acknowledged(sent))


def packets(both: Seen, clock: Clock | None, spans: tuple[tuple[int, int], ...]) -> pl.DataFrame:
    """Determine the fate of each packet.

    Args:
        both: as `seen` returns it.
        clock: the second clock relative to the first.
        spans: first and last time of each capture, on its own clock.

    Returns:
        `direction there fate certain start length controls sent_frame received_frame sent_ns arrived_ns delay_ns reordered sent_rtt_ns
        received_rtt_ns`, in order of sending. Packets seen only near the receiver come last. Times are on the first capture's clock.
        `delay_ns` is null if the clocks are not aligned. `reordered` is True if the packet arrived after a packet of its direction that was
        sent later (RFC 4737, 3.3).
    """
    rows = _with_outside(both.rows, clock, spans)
    fate = (
        pl.when("copy")
        .then(pl.lit("duplicated"))
        .when(_AT_BOTH)
        .then(pl.lit("matched"))
        .when("outside_overlap")
        .then(pl.lit("outside_overlap"))
        .when(pl.col("sent_row").is_null())
        .then(pl.lit("only_at_receiver"))
        .when(pl.col("arrived_anyway"))
        .then(pl.lit("not_captured"))
        .otherwise(pl.lit("lost"))
    )
    judged = _in_doubt(_with_arrived_anyway(rows, both).with_columns(fate=fate.cast(pl.Enum(FATES))))
    judged = judged.with_columns(
        delay_ns=pl.when((pl.col("fate") == "matched") & pl.lit(clock is not None)).then(pl.col("arrived_ns") - pl.col("sent_ns"))
    )
    behind = pl.col("sent_row").cum_max().shift(1).over("direction", order_by="received_row") > pl.col("sent_row")
    late = judged.lazy().filter(pl.col("fate") == "matched").select("sent_row", late=behind.fill_null(value=False)).filter("late").collect()
    judged = judged.with_columns(reordered=(pl.col("fate") == "matched") & pl.col("sent_row").is_in(late["sent_row"].implode()))
    columns = (
        *("direction", "there", "fate", "certain", "start", "length", "controls", "sent_frame", "received_frame"),
        *("sent_ns", "arrived_ns", "delay_ns", "reordered", "sent_rtt_ns", "received_rtt_ns"),
    )
    return judged.select(columns)


def _joined(
    links: pl.DataFrame, sent: Packets, received: Packets, sent_ns: NDArray[np.int64], arrived_ns: NDArray[np.int64]
) -> pl.DataFrame:
    """Return the links between packets, with the fields of both captures. A packet's row number is its index in the store's columns."""
    links = links.sort("sent_row", "received_row", nulls_last=True)
    at, behind = links["sent_row"], links["received_row"]

    def own(name: str) -> pl.Series:
        """Return a field from the capture near the sender. If it is null there, take it from the capture near the receiver."""
        both = pl.DataFrame([sent.column(name).gather(at).alias("sent"), received.column(name).gather(behind).alias("received")])
        return both.select(pl.coalesce("sent", "received").alias(name)).to_series()

    return links.with_columns(
        *(own(name) for name in _OWN),
        sent.column("frame").gather(at).alias("sent_frame"),
        received.column("frame").gather(behind).alias("received_frame"),
        pl.Series("sent_ns", sent_ns).gather(at),
        pl.Series("arrived_ns", arrived_ns).gather(behind),
        sent.column("rtt_ns").gather(at).alias("sent_rtt_ns"),
        received.column("rtt_ns").gather(behind).alias("received_rtt_ns"),
    )


_OWN = ("direction", "there", "start", "length", "controls")


def _with_outside(rows: pl.DataFrame, clock: Clock | None, spans: tuple[tuple[int, int], ...]) -> pl.DataFrame:
    """Add `outside_overlap`: True for a packet in one capture if the other capture was not running when the packet passed there.

    If the clocks are aligned, the usual delay gives the time at the other capture point. Otherwise, a packet is outside if it precedes the
    first packet of its direction that is in both captures, or follows the last such packet.
    """
    if clock is None:
        both = rows.filter(_AT_BOTH)
        rows_of = {"sent_row": ("first_sent", "last_sent"), "received_row": ("first_received", "last_received")}
        ends = [end for row, (first, last) in rows_of.items() for end in (pl.col(row).min().alias(first), pl.col(row).max().alias(last))]
        placed = rows.join(both.group_by("direction").agg(ends), on="direction", how="left")
        within = [pl.col(row).is_between(first, last) for row, (first, last) in rows_of.items()]
        return placed.with_columns(outside_overlap=~pl.coalesce(*within, pl.lit(value=False)))
    first, second = spans
    moved = clock.on_first(np.array(second, dtype=np.int64))
    usual = rows.filter(_AT_BOTH).group_by("there").agg(min_ns=_DELAY_NS.min(), max_ns=_DELAY_NS.quantile(USUAL, "nearest").cast(pl.Int64))
    delays = {there: (min_ns, max_ns) for there, min_ns, max_ns in usual.iter_rows()}
    runs = (first, (int(moved[0]), int(moved[1])))

    def ran(there: bool) -> pl.Expr:  # noqa: FBT001  (a value of the column `there`)
        near_sender, near_receiver = runs if there else runs[::-1]
        min_ns, max_ns = (pl.lit(delay_ns, dtype=pl.Int64) for delay_ns in delays.get(there, (None, None)))
        due = [(pl.col("sent_ns") + delay_ns).is_between(*near_receiver) for delay_ns in (min_ns, max_ns)]
        left = [(pl.col("arrived_ns") - delay_ns).is_between(*near_sender) for delay_ns in (min_ns, max_ns)]
        return pl.when(pl.col("received_row").is_null()).then(due[0] & due[1]).otherwise(left[0] & left[1])

    return rows.with_columns(outside_overlap=~pl.when("there").then(ran(there=True)).otherwise(ran(there=False)))


_DELAY_NS = pl.col("arrived_ns") - pl.col("sent_ns")


def _arrived_ranges(received: Packets) -> pl.DataFrame:
    of_data = received.rows.filter(pl.col("length") > 0)
    ends = of_data.select("direction", left="start", right=pl.col("start") + pl.col("length")).collect().sort("direction", "left")
    reach = pl.col("right").cum_max().over("direction")
    runs = ends.with_columns(run=(pl.col("left") > reach.shift(1).over("direction")).fill_null(value=True).cum_sum())
    stretches = runs.group_by("direction", "run").agg(left_start=pl.col("left").min(), arrived_to=pl.col("right").max())
    return stretches.select("direction", "left_start", "arrived_to").sort("left_start")


def _acknowledged(sent: Packets) -> pl.DataFrame:
    """Return the highest acknowledged offset per direction. ACKs in one direction cover the data of the other direction."""
    known = sent.rows.filter(pl.col("acked").is_not_null()).select(pl.col("direction") ^ 1, "acked")
    return known.group_by("direction").agg(acked_to=pl.col("acked").max()).collect()


def _in_doubt(judged: pl.DataFrame) -> pl.DataFrame:
    """Mark lost packets without data as uncertain if the capture missed other packets. Nothing proves whether a pure ACK arrived."""
    missed_others = judged.filter(pl.col("fate") == "not_captured")["there"].unique()
    empty = (pl.col("fate") == "lost") & (pl.col("length") == 0)
    return judged.with_columns(certain=pl.col("certain") & ~(empty & pl.col("there").is_in(missed_others.implode())))


def _with_arrived_anyway(rows: pl.DataFrame, both: Seen) -> pl.DataFrame:
    """Add `arrived_anyway`: True if the receiver ACKed a packet's data, but no captured packet near the receiver contains this data."""
    alone = rows.filter(pl.col("received_row").is_null(), pl.col("length") > 0).select("sent_row", "direction", "start", "length")
    end = pl.col("start") + pl.col("length")
    looked_up = (
        alone.sort("start")
        .join_asof(both.arrived, left_on="start", right_on="left_start", by="direction", check_sortedness=False)
        .join(both.acknowledged, on="direction", how="left")
    )
    arrived = (pl.col("arrived_to") >= end).fill_null(value=False)
    anyway = looked_up.filter(~arrived & (pl.col("acked_to") >= end).fill_null(value=False))["sent_row"]
    return rows.with_columns(arrived_anyway=pl.col("received_row").is_null() & pl.col("sent_row").is_in(anyway.implode()))
