"""Figures of each direction, from the fates of its packets: counts, delays and round-trip times."""

from __future__ import annotations

import polars as pl

QUANTILES = {"p50": 0.50, "p95": 0.95}
TIMES = ("one_way_delay", "ack_delay", "rtt", "path_rtt")
"""Times in the figures of each direction.

- `one_way_delay`: from the capture point near the sender to the one near the receiver.
- `ack_delay`: from data to its ACK at the point near the receiver. This is the delay that the receiving host adds.
- `rtt`: from data to its ACK at the point near the sender.
- `path_rtt`: RTT minus ACK delay. This is the delay of the path and its queues in both directions. It needs no aligned clocks.
"""


def directions(packets: pl.DataFrame) -> pl.DataFrame:
    """Compute the figures of each direction.

    Args:
        packets: as `packet_fates.packets` returns them.

    Returns:
        One row per `direction` of `Pair.packets`. The row has the numbers of packets `sent received matched lost lost_bytes not_captured
        only_at_receiver duplicated outside_overlap reordered uncertain`; `lost_bytes` is the payload of lost packets, including
        retransmits. Each of `TIMES` has the columns `<name>_samples`, `<name>_min_ns`, `_p50_ns`, `_p95_ns`, `_max_ns`.
    """
    fate = pl.col("fate")
    counts = packets.group_by("direction").agg(
        sent=pl.col("sent_frame").count(),
        received=pl.col("received_frame").count(),
        lost_bytes=pl.col("length").filter(fate == "lost").sum(),
        **{name: (fate == name).sum() for name in ("matched", "lost", "not_captured", "only_at_receiver", "duplicated", "outside_overlap")},
        reordered=pl.col("reordered").sum(),
        uncertain=(~pl.col("certain")).sum(),
    )
    # RTT and ACK delay belong to the direction of the data that the ACK covers, which is the other direction.
    acks = packets.filter(fate == "matched").select(
        direction=pl.col("direction") ^ 1,
        ack_delay="sent_rtt_ns",
        rtt="received_rtt_ns",
        path_rtt=pl.col("received_rtt_ns") - pl.col("sent_rtt_ns"),
    )
    delays = packets.group_by("direction").agg(_summary("delay_ns", "one_way_delay"))
    answers = acks.group_by("direction").agg(
        *_summary("ack_delay", "ack_delay"), *_summary("rtt", "rtt"), *_summary("path_rtt", "path_rtt")
    )
    return counts.join(delays, on="direction", how="left").join(answers, on="direction", how="left").sort("direction")


def _summary(column: str, name: str) -> list[pl.Expr]:
    value = pl.col(column)
    return [
        value.count().alias(f"{name}_samples"),
        value.min().alias(f"{name}_min_ns"),
        *(value.quantile(share, "nearest").cast(pl.Int64).alias(f"{name}_{rank}_ns") for rank, share in QUANTILES.items()),
        value.max().alias(f"{name}_max_ns"),
    ]
