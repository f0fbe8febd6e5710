"""Matches the connections of two captures by sequence numbers, because NAT possibly changed addresses and ports."""

from __future__ import annotations

import polars as pl

from tcptrace_lab.pair.packets import SYN

MIN_SHARED = 2
"""Minimum number of common packets if the ports differ. A single 32-bit sequence number can coincide by chance."""

MAX_HALVES_A_KEY = 4
"""A key is ignored if this many directions of one capture have it. Such a key identifies nothing and could make the join huge."""

SAMPLED_KEYS = 1_000_000
"""Approximate maximum number of keys per capture, without SYNs. If a capture has more keys, they are sampled evenly."""

PORTS = ("client_port", "server_port")


def paired(first: pl.DataFrame, second: pl.DataFrame, ports: tuple[pl.DataFrame, pl.DataFrame]) -> pl.DataFrame:
    """Pair the connections of two captures. Each connection gets at most one partner.

    Args:
        first: rows of `packets.identities` of the first capture.
        second: rows of `packets.identities` of the second capture.
        ports: rows of `schema.CONNECTIONS` of both captures. Connections with a single common packet must have equal ports.

    Returns:
        `a b swapped shared`, sorted by `a`. `a` and `b` are the connection numbers. `swapped` is True if the client of one capture is the
        server of the other. `shared` is the number of common packets.
    """
    shared = _keys(first, "a").join(_keys(second, "b"), on=["seq", "length", "controls"])
    counted = (
        shared.with_columns(swapped=pl.col("a_from_client") != pl.col("b_from_client")).group_by("a", "b", "swapped").agg(shared=pl.len())
    )
    same_ports = _same_ports(counted, ports)
    believed = counted.filter((pl.col("shared") >= MIN_SHARED) | same_ports)
    return _best(believed.sort("shared", "a", "b", descending=[True, False, False])).sort("a")


def _keys(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the keys of each direction: the distinct `seq length controls` of its packets with payload, SYN, FIN or RST."""
    keys = (
        rows.lazy()
        .filter((pl.col("length") > 0) | (pl.col("controls") != 0))
        .select("seq", "length", "controls", pl.col("conn").alias(name), pl.col("from_client").alias(f"{name}_from_client"))
        .unique()
        .filter(pl.len().over("seq", "length", "controls") < MAX_HALVES_A_KEY)
        .collect()
    )
    if keys.height <= SAMPLED_KEYS:
        return keys
    share = keys.height // SAMPLED_KEYS + 1  # a hash of the key decides, so that both captures keep the same keys
    drawn = pl.struct("seq", "length").hash(seed=0) % share == 0
    return keys.filter((pl.col("controls") & SYN != 0) | drawn)


def _same_ports(counted: pl.DataFrame, ports: tuple[pl.DataFrame, pl.DataFrame]) -> pl.Series:
    known = counted
    for name, table in zip(("a", "b"), ports, strict=True):
        known = known.join(table.select(pl.col("conn").alias(name), *(pl.col(port).alias(f"{name}_{port}") for port in PORTS)), on=name)
    same_order = (pl.col("a_client_port") == pl.col("b_client_port")) & (pl.col("a_server_port") == pl.col("b_server_port"))
    swapped_order = (pl.col("a_client_port") == pl.col("b_server_port")) & (pl.col("a_server_port") == pl.col("b_client_port"))
    same = known.select("a", "b", "swapped", same=pl.when("swapped").then(swapped_order).otherwise(same_order))
    return counted.join(same, on=["a", "b", "swapped"], how="left", maintain_order="left")["same"]


def _best(rows: pl.DataFrame) -> pl.DataFrame:
    """Go through the rows in order of preference, and keep a row if neither of its connections has a partner yet."""
    taken: tuple[set[int], set[int]] = set(), set()
    keep = []
    for a, b in rows.select("a", "b").iter_rows():
        free = a not in taken[0] and b not in taken[1]
        keep.append(free)
        if free:
            taken[0].add(a)
            taken[1].add(b)
    return rows.filter(pl.Series(keep, dtype=pl.Boolean)).select("a", "b", "swapped", "shared")
