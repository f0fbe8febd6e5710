"""Which of two captures is nearer to a connection's client: by round trips, and by how often routers have counted its packets down."""

from __future__ import annotations

import polars as pl

KNOWN_BY = ("round_trips", "ttl", "order")
"""How it is known: a capture near the client sees long answers to the client and short ones to the server; routers decrement the TTL;
or it is only assumed that the captures were given in the order of the client's packets."""


def near_client(pairs: pl.DataFrame, first: pl.DataFrame, second: pl.DataFrame, a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """Add `first_is_near_client` and `known_by` to the pairs.

    Args:
        pairs: as `connections.paired` returns them.
        first: rows of the first capture as `packets.identities` makes them.
        second: those of the second.
        a: rows of `schema.CONNECTIONS` of the first capture, by pair.
        b: those of the second.

    The client is what the first capture calls so.
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
    known_by = pl.when(longer_ns != 0).then(pl.lit("round_trips")).when(hops != 0).then(pl.lit("ttl")).otherwise(pl.lit("order"))
    return pairs.with_columns(first_is_near_client=near, known_by=known_by)


def _hops(pairs: pl.DataFrame, first: pl.DataFrame, second: pl.DataFrame) -> pl.Series:
    """By how much more the second capture's packets of the client were counted down than the first's; 0 if nothing is known."""
    mean = pl.col("ttl").cast(pl.Float64).mean()
    a = first.filter("from_client").group_by("conn").agg(a_ttl=mean)
    b = second.group_by("conn", "from_client").agg(b_ttl=mean)
    joined = (
        pairs.with_columns(b_from_client=~pl.col("swapped"))
        .join(a, left_on="a", right_on="conn", how="left", maintain_order="left")
        .join(b, left_on=["b", "b_from_client"], right_on=["conn", "from_client"], how="left", maintain_order="left")
    )
    return joined.select((pl.col("a_ttl") - pl.col("b_ttl")).round(0).fill_null(0.0))["a_ttl"]
