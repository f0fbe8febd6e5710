"""What became of each packet → the figures of each direction."""

from __future__ import annotations

import polars as pl

QUANTILES = {"p50": 0.50, "p95": 0.95}
TIMES = ("delay", "ack_delay", "round_trip", "network")
"""`delay`: from point to point, one way. `ack_delay`: from a packet's passing the point near the receiver to its ACK's passing there: what
the receiver's host adds. `round_trip`: the same at the point near the sender. `network`: a round trip less its ACK delay: what path and
both its queues add, known without aligned clocks."""


def directions(packets: pl.DataFrame) -> pl.DataFrame:
    """The figures of each direction.

    Args:
        packets: as `between.packets` returns them.

    Returns:
        By `half`: `sent received matched lost lost_bytes not_captured unseen_by_sender copied outside reordered uncertain` (counts of
        packets, and bytes) and for each of `TIMES` `<name>_samples`, `<name>_min_ns`, `_p50_ns`, `_p95_ns`, `_max_ns`. `lost_bytes` is
        payload, resends included.
    """
    fate = pl.col("fate")
    counts = packets.group_by("half").agg(
        sent=pl.col("sent_frame").count(),
        received=pl.col("received_frame").count(),
        lost_bytes=pl.col("length").filter(fate == "lost").sum(),
        **{name: (fate == name).sum() for name in ("matched", "lost", "not_captured", "unseen_by_sender", "copied", "outside")},
        reordered=pl.col("reordered").sum(),
        uncertain=(~pl.col("certain")).sum(),
    )
    # Times that an ACK tells are those of the data of the other direction.
    acks = packets.filter(fate == "matched").select(
        half=pl.col("half") ^ 1,
        ack_delay="sent_rtt_ns",
        round_trip="received_rtt_ns",
        network=pl.col("received_rtt_ns") - pl.col("sent_rtt_ns"),
    )
    delays = packets.group_by("half").agg(_summary("delay_ns", "delay"))
    answers = acks.group_by("half").agg(
        *_summary("ack_delay", "ack_delay"), *_summary("round_trip", "round_trip"), *_summary("network", "network")
    )
    return counts.join(delays, on="half", how="left").join(answers, on="half", how="left").sort("half")


def _summary(column: str, name: str) -> list[pl.Expr]:
    value = pl.col(column)
    return [
        value.count().alias(f"{name}_samples"),
        value.min().alias(f"{name}_min_ns"),
        *(value.quantile(share, "nearest").cast(pl.Int64).alias(f"{name}_{rank}_ns") for rank, share in QUANTILES.items()),
        value.max().alias(f"{name}_max_ns"),
    ]
