"""Splits super-segments (offload) into the segments on the wire.

A capture at a sender with TSO or GSO shows data before the network card splits it. A capture at a receiver with GRO or LRO shows merged
segments. On the wire, there are ⌈length / MSS⌉ segments, and only the last segment can be smaller. Some calculations need these segments.
"""

from __future__ import annotations

import polars as pl

from tcptrace_lab import schema

_AT_THE_END = 0x01 | 0x08
"""FIN and PSH. When a segment is split, only its last piece has these flags (Linux: `tcp_gso_segment`)."""


def split(segments: pl.LazyFrame, connections: pl.LazyFrame) -> pl.LazyFrame:
    """Return the segments as they are on the wire.

    Each piece has the timestamp of its super-segment, because the capture does not show when the pieces were sent.

    Args:
        segments: rows of `schema.SEGMENTS`, all columns.
        connections: rows of `schema.CONNECTIONS`; at least `conn client_full_segment_bytes`.

    Returns:
        One row per piece, with the columns of `segments` in their order, `piece` (counted from 0) and `pieces`. Values that only one
        segment can have (newly acknowledged bytes, ACK lag, RTT) stay with the first piece; the later pieces have "burst" in
        `released_by`. Segments of connections without a known MSS stay whole.
    """
    full = connections.select("conn", _full="client_full_segment_bytes")  # the smaller MSS of the two SYNs, valid for both directions
    size, payload = pl.col("_full"), pl.col("payload_bytes")
    pieces = pl.when(payload > size).then((payload + size - 1) // size).otherwise(1)
    offset = pl.col("piece") * size
    first, last = pl.col("piece") == 0, pl.col("piece") == pl.col("pieces") - 1
    whole = pl.col("pieces") == 1
    return (
        segments.join(full, on="conn", how="left", maintain_order="left")
        .with_columns(pieces=pieces)
        .with_columns(piece=pl.int_ranges(0, "pieces"))
        .explode("piece")
        .with_columns(
            pl.when(whole).then("seq").otherwise(pl.col("seq") + offset).alias("seq"),
            pl.when(whole).then("payload_bytes").otherwise(pl.min_horizontal(payload - offset, size)).alias("payload_bytes"),
            pl.when(whole)
            .then("captured_payload_bytes")
            .otherwise((pl.col("captured_payload_bytes") - offset).clip(0, size))
            .alias("captured_payload_bytes"),
            pl.when(last).then("flags").otherwise(pl.col("flags") & ~pl.lit(_AT_THE_END, pl.UInt16)).alias("flags"),
            pl.when(first).then("in_flight_bytes").otherwise(pl.col("in_flight_bytes") + offset).alias("in_flight_bytes"),
            pl.when(first).then("usable_window_bytes").otherwise(pl.col("usable_window_bytes") - offset).alias("usable_window_bytes"),
            pl.when(first).then("since_previous_ns").otherwise(0).alias("since_previous_ns"),
            pl.when(first)
            .then("released_by")
            .otherwise(pl.lit("burst"))
            .cast(schema.SEGMENTS["released_by"].polars_type())
            .alias("released_by"),
            pl.when(first).then("released_by_frame").otherwise("frame").alias("released_by_frame"),
            pl.when(first).then("acked_bytes").otherwise(pl.when(pl.col("acked_bytes").is_not_null()).then(0)).alias("acked_bytes"),
            pl.when(first).then("ack_lag_ns").alias("ack_lag_ns"),
            pl.when(first).then("rtt_ns").alias("rtt_ns"),
        )
        .drop("_full")
    )
