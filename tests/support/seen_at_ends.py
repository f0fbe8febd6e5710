"""Adds to each segment the times at which its sender sent it and its receiver received it."""

from __future__ import annotations

import polars as pl


def shifted(segments: pl.LazyFrame, connections: pl.LazyFrame) -> pl.LazyFrame:
    """Add the times at which the endpoints sent and received each segment, so that a rule does not depend on the capture point.

    A segment is sent half a turnaround of the sender before its capture. It reaches its receiver half a turnaround of the receiver after
    its capture. The times are estimates. They assume equal delay in both directions, and no queue or host delay in the shortest turnaround.

    Args:
        segments: rows of `schema.SEGMENTS`; at least `conn from_client ts_ns`.
        connections: rows of `schema.CONNECTIONS`.

    Returns:
        `segments`, in their order, with `sender_ts_ns receiver_ts_ns` (nanoseconds since 1970; null where the turnaround is unknown).
    """
    ends = connections.select("conn", "rtt_to_client_ns", "rtt_to_server_ns")
    to_client, to_server = pl.col("rtt_to_client_ns"), pl.col("rtt_to_server_ns")
    from_client = pl.col("from_client")
    to_sender = pl.when(from_client).then(to_client).otherwise(to_server)
    to_receiver = pl.when(from_client).then(to_server).otherwise(to_client)
    joined = segments.join(ends, on="conn", how="left", maintain_order="left")
    return joined.with_columns(
        sender_ts_ns=pl.col("ts_ns") - to_sender // 2,
        receiver_ts_ns=pl.col("ts_ns") + to_receiver // 2,
    ).drop("rtt_to_client_ns", "rtt_to_server_ns")
