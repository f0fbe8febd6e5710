"""Chooses the connections to search for slow message sizes.

The search covers only dialogues: connections with data in both directions. TCP must have delayed their data for at least the length of one
stall. The connections with the longest delays come first, up to `MAX_SEGMENTS` segments.
"""

from __future__ import annotations

import polars as pl

from tcptrace_lab.ledger.stalls import MIN_STALL_NS
from tcptrace_lab.schema import SIDES

MIN_MESSAGES = 20
"""Minimum number of messages for a conclusion (a heuristic)."""

SIZE_CAUSES = ("nagle", "nagle-delayed-ack", "delayed-ack", "send-buffer", "receiver-window")
"""Causes whose stalls depend on the message size. The size decides how a message divides into segments and buffers. Losses, timeouts and
slow readers occur at any size."""

MAX_SEGMENTS = 2_000_000
"""Maximum number of segments that are read for all groups together. Reading them takes about ten seconds."""

MAX_GROUPS = 16
"""Maximum number of groups that are analyzed. The groups with most delayed time are chosen."""

MAX_CONNECTIONS = 4_096
"""Maximum number of connections in all groups together."""

PAIR = ("client_addr", "server_addr", "server_port")

_HELD_NS = pl.max_horizontal(*(pl.sum_horizontal(*(f"{side}_{cause.replace('-', '_')}_ns" for cause in SIZE_CAUSES)) for side in SIDES))
"""The delayed time of a connection: the time of `SIZE_CAUSES` in the direction where it is longer."""


def chosen(accounts: pl.LazyFrame, connections: pl.LazyFrame) -> pl.DataFrame:
    """Return `conn` and `group` of the connections to search.

    Args:
        accounts: rows of `schema.ACCOUNTS`.
        connections: rows of `schema.CONNECTIONS`.
    """
    long = accounts.select("conn", held=_HELD_NS).filter(pl.col("held") >= MIN_STALL_NS)
    stalled = long.top_k(MAX_CONNECTIONS, by=["held", "conn"], reverse=[False, True]).collect()
    if stalled.is_empty():
        return stalled.select("conn", group=pl.lit(0))
    ends = connections.select("conn", *PAIR, *(f"{side}_{name}" for side in SIDES for name in ("data_segments", "segments")))
    worst = ends.filter(pl.col("conn").is_in(stalled["conn"].to_list())).collect().join(stalled, on="conn")
    groups = worst.sort("conn").group_by(PAIR, maintain_order=True).agg(pl.col("held").sum())
    groups = groups.sort("held", descending=True, maintain_order=True).head(MAX_GROUPS).with_row_index("group")
    both = (pl.col("client_data_segments") > 0) & (pl.col("server_data_segments") > 0)
    members = (
        ends.filter(both & pl.col("server_addr").is_in(groups["server_addr"].unique().to_list()))
        .join(groups.lazy(), on=list(PAIR))
        .with_columns(
            turns=pl.min_horizontal("client_data_segments", "server_data_segments"),
            size=pl.col("client_segments") + pl.col("server_segments"),
        )
        .select("conn", "group", "held", "turns", "size")
        .sort("held", "conn", descending=[True, False])
        .head(MAX_CONNECTIONS)
        .collect()
    )
    alternating = members.filter(pl.col("turns").sum().over("group") >= MIN_MESSAGES)
    within = (pl.col("size").cum_sum() <= MAX_SEGMENTS) | (pl.int_range(pl.len()) == 0)
    return alternating.filter(within).select("conn", "group")
