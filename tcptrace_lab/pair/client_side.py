"""Decides which of two captures is nearer to a connection's client, by round-trip times and by TTLs."""

from __future__ import annotations

import polars as pl

KNOWN_BY = ("rtt", "ttl", "order")
"""Kinds of evidence for the capture that is nearer to the client.

- `rtt`: near the client, the client's data has a long RTT, and the server's data has a short RTT.
- `ttl`: routers decrement the TTL.
- `order`: there is no evidence, and the first capture is assumed to be nearer.
"""


def near_client(pairs: pl.DataFrame, first: pl.DataFrame, second: pl.DataFrame, a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """Add `first_is_near_client` and `known_by` to the pairs. The first capture determines which host is the client.

    Args:
        pairs: as `connections.paired` returns them.
        first: rows of `packets.identities` of the first capture.
        second: rows of `packets.identities` of the second capture.
        a: rows of `schema.CONNECTIONS` of the first capture, one per pair.
        b: rows of `schema.CONNECTIONS` of the second capture, one per pair.
    """
    swapped = pairs["swapped"]

    def of_b(client: str, server: str) -> pl.Expr:
        return pl.when(swapped).then(b[server]).otherwise(b[client])

    answer_to_client = a["client_rtt_min_ns"] - of_b("client_rtt_min_ns", "server_rtt_min_ns")
    answer_to_server = of_b("server_rtt_min_ns", "client_rtt_min_ns") - a["server_rtt_min_ns"]
    to_syn = pl.when(~swapped).then(a["syn_to_synack_ns"] - b["syn_to_synack_ns"])
    to_synack = pl.when(~swapped).then(b["synack_to_ack_ns"] - a["synack_to_ack_ns"])
    longer_ns = pl.sum_horizontal(*(gained.fill_null(0) for gained in (answer_to_client, answer_to_server, to_syn, to_synack)))
    hops = _hops(pairs, first, second)
    near = pl.when(longer_ns != 0).then(longer_ns > 0).when(hops != 0).then(hops > 0).otherwise(statement=True)
    known_by = pl.when(longer_ns != 0).then(pl.lit("rtt")).when(hops != 0).then(pl.lit("ttl")).otherwise(pl.lit("order"))
    return pairs.with_columns(first_is_near_client=near, known_by=known_by)


def _hops(pairs: pl.DataFrame, first: pl.DataFrame, second: pl.DataFrame) -> pl.Series:
    """Return the mean TTL of the client's packets in the first capture, minus that in the second capture; 0 if unknown."""
    mean = pl.col("ttl").cast(pl.Float64).mean()
    a = first.filter("from_client").group_by("conn").agg(a_ttl=mean)
    b = second.group_by("conn", "from_client").agg(b_ttl=mean)
    joined = (
        pairs.with_columns(b_from_client=~pl.col("swapped"))
        .join(a, left_on="a", right_on="conn", how="left", maintain_order="left")
        .join(b, left_on=["b", "b_from_client"], right_on=["conn", "from_client"], how="left", maintain_order="left")
    )
    return joined.select((pl.col("a_ttl") - pl.col("b_ttl")).round(0).fill_null(0.0))["a_ttl"]
