"""What became of each packet between two capture points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from tcptrace_lab.pair.clocks import Clock

FATES = ("matched", "lost", "not_captured", "unseen_by_sender", "copied", "outside")
"""Seen at both points · sent and never seen to arrive · sent, missing in the receiver's capture, and acknowledged all the same · seen only
behind the path · a further copy of a packet that is matched · sent or received while the other capture did not run."""


USUAL = 0.95
"""A packet may be on its way for as long as this share of those that arrived. A choice of ours."""

_AT_BOTH = pl.col("sent_row").is_not_null() & pl.col("received_row").is_not_null()


def packets(
    links: pl.DataFrame, sent: pl.DataFrame, received: pl.DataFrame, clock: Clock | None, spans: tuple[tuple[int, int], ...]
) -> pl.DataFrame:
    """Judge each packet.

    Args:
        links: as `match.settled` returns them.
        sent: the packets as seen near their sender, by row, with `sent_ns` on the first capture's clock.
        received: those seen near their receiver, with `arrived_ns`.
        clock: the second clock against the first.
        spans: the first and the last time of each capture, on its own clock.

    Returns:
        In the order in which they were sent, and behind them those that were only received: `half there fate certain start length
        controls sent_frame received_frame sent_ns arrived_ns delay_ns reordered sent_rtt_ns received_rtt_ns`. Times are on the first
        capture's clock; `delay_ns` is null where the clocks cannot be aligned. `reordered`: it arrived behind a packet of its direction
        that was sent later (RFC 4737, 3.3).
    """
    own = ["half", "there", "start", "length", "controls"]
    left = sent.select(pl.col("row").alias("sent_row"), *own, sent_frame="frame", sent_ns="sent_ns", sent_rtt_ns="rtt_ns")
    right = received.select(
        pl.col("row").alias("received_row"),
        *(pl.col(name).alias(f"{name}_there") for name in own),
        "acked",
        received_frame="frame",
        arrived_ns="arrived_ns",
        received_rtt_ns="rtt_ns",
    )
    rows = links.join(left, on="sent_row", how="left").join(right, on="received_row", how="left")
    rows = rows.with_columns(pl.coalesce(name, f"{name}_there").alias(name) for name in own)
    rows = _with_outside(rows, clock, spans)
    fate = (
        pl.when("copy")
        .then(pl.lit("copied"))
        .when(_AT_BOTH)
        .then(pl.lit("matched"))
        .when("outside")
        .then(pl.lit("outside"))
        .when(pl.col("sent_row").is_null())
        .then(pl.lit("unseen_by_sender"))
        .when(pl.col("arrived_anyway"))
        .then(pl.lit("not_captured"))
        .otherwise(pl.lit("lost"))
    )
    judged = _with_arrived_anyway(rows, sent, received).with_columns(fate=fate.cast(pl.Enum(FATES)))
    judged = judged.with_columns(
        delay_ns=pl.when((pl.col("fate") == "matched") & pl.lit(clock is not None)).then(pl.col("arrived_ns") - pl.col("sent_ns"))
    )
    behind = pl.col("sent_row").cum_max().shift(1).over("half", order_by="received_row") > pl.col("sent_row")
    orderly = judged.filter(pl.col("fate") == "matched").select("sent_row", reordered=behind.fill_null(value=False))
    columns = (
        *("half", "there", "fate", "certain", "start", "length", "controls", "sent_frame", "received_frame"),
        *("sent_ns", "arrived_ns", "delay_ns", "reordered", "sent_rtt_ns", "received_rtt_ns"),
    )
    joined = judged.join(orderly, on="sent_row", how="left").with_columns(pl.col("reordered").fill_null(value=False))
    return joined.sort("sent_row", "received_row", nulls_last=True).select(columns)


def _with_outside(rows: pl.DataFrame, clock: Clock | None, spans: tuple[tuple[int, int], ...]) -> pl.DataFrame:
    """Add `outside`: sent alone, and due when the receiver's capture did not run; or received alone, and sent when the sender's did not.

    Without aligned clocks order tells as much: what lies before the first packet of its direction that is in both, or behind the last.
    """
    if clock is None:
        both = rows.filter(_AT_BOTH)
        rows_of = {"sent_row": ("first_sent", "last_sent"), "received_row": ("first_received", "last_received")}
        ends = [end for row, (first, last) in rows_of.items() for end in (pl.col(row).min().alias(first), pl.col(row).max().alias(last))]
        placed = rows.join(both.group_by("half").agg(ends), on="half", how="left")
        within = [pl.col(row).is_between(first, last) for row, (first, last) in rows_of.items()]
        return placed.with_columns(outside=~pl.coalesce(*within, pl.lit(value=False)))
    first, second = spans
    moved = clock.on_first(np.array(second, dtype=np.int64))
    ran = pl.DataFrame(
        {
            "there": [True, False],
            "sender_from": [first[0], int(moved[0])],
            "sender_to": [first[1], int(moved[1])],
            "receiver_from": [int(moved[0]), first[0]],
            "receiver_to": [int(moved[1]), first[1]],
        }
    )
    delay_ns = pl.col("arrived_ns") - pl.col("sent_ns")
    usual = rows.filter(_AT_BOTH).group_by("there").agg(least_ns=delay_ns.min(), most_ns=delay_ns.quantile(USUAL, "nearest").cast(pl.Int64))
    known = rows.join(ran, on="there", how="left").join(usual, on="there", how="left")
    due = [(pl.col("sent_ns") + pl.col(name)).is_between("receiver_from", "receiver_to") for name in ("least_ns", "most_ns")]
    left = [(pl.col("arrived_ns") - pl.col(name)).is_between("sender_from", "sender_to") for name in ("least_ns", "most_ns")]
    return known.with_columns(outside=~pl.when(pl.col("received_row").is_null()).then(due[0] & due[1]).otherwise(left[0] & left[1]))


def _with_arrived_anyway(rows: pl.DataFrame, sent: pl.DataFrame, received: pl.DataFrame) -> pl.DataFrame:
    """Add `arrived_anyway`: data that no packet captured behind the path brought, and that the receiver acknowledged."""
    ends = received.filter(pl.col("length") > 0).select("half", left="start", right=pl.col("start") + pl.col("length")).sort("half", "left")
    reach = pl.col("right").cum_max().over("half")
    runs = ends.with_columns(run=(pl.col("left") > reach.shift(1).over("half")).fill_null(value=True).cum_sum())
    stretches = runs.group_by("half", "run").agg(pl.col("left").min(), pl.col("right").max()).sort("left")
    acknowledged = (
        sent.filter(pl.col("acked").is_not_null())
        .select(half=pl.col("half") ^ 1, acked="acked")  # what a direction acknowledges is the other's
        .group_by("half")
        .agg(acked_to=pl.col("acked").max())
    )
    end = pl.col("start") + pl.col("length")
    looked_up = (
        rows.drop("acked")
        .sort("start")
        .join_asof(
            stretches.select("half", left_start="left", brought_to="right"),
            left_on="start",
            right_on="left_start",
            by="half",
            check_sortedness=False,
        )
        .join(acknowledged, on="half", how="left")
    )
    brought = (pl.col("brought_to") >= end).fill_null(value=False)
    anyway = (pl.col("length") > 0) & ~brought & (pl.col("acked_to") >= end).fill_null(value=False)
    return looked_up.with_columns(arrived_anyway=anyway)
