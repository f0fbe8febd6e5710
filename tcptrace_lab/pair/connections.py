"""Which connection of one capture is which of the other: by sequence numbers, because addresses and ports may have been translated."""

from __future__ import annotations

import polars as pl

from tcptrace_lab.pair.packets import SYN

LEAST_SHARED = 2
"""Packets that two connections must share, unless their ports are the same: one 32-bit number can be the same by chance among many."""

MOST_HALVES_A_KEY = 4
"""A packet that so many directions or more of one capture have tells nothing, and a capture made to be slow would have it in all."""

SAMPLED_KEYS = 1_000_000
"""Keys looked at per capture, besides all SYNs: of more, an evenly drawn part is enough."""

PORTS = ("client_port", "server_port")


def paired(first: pl.DataFrame, second: pl.DataFrame, ports: tuple[pl.DataFrame, pl.DataFrame]) -> pl.DataFrame:
    """Pair the connections of two captures, each with one at most.

    Args:
        first: rows of the first capture, as `packets.identities` makes them.
        second: those of the second.
        ports: rows of `schema.CONNECTIONS` of each; where they share one packet only, the ports must be the same.

    Returns:
        `a b swapped shared`, by `a`: the numbers of the connections, whether what is called the client in one is called the server in the
        other, and how many packets they share.
    """
    shared = _keys(first, "a").join(_keys(second, "b"), on=["seq", "length", "controls"])
    counted = (
        shared.with_columns(swapped=pl.col("a_from_client") != pl.col("b_from_client")).group_by("a", "b", "swapped").agg(shared=pl.len())
    )
    same_ports = _same_ports(counted, ports)
    believed = counted.filter((pl.col("shared") >= LEAST_SHARED) | same_ports)
    return _best(believed.sort("shared", "a", "b", descending=[True, False, False])).sort("a")


def _keys(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """What tells connections apart: `seq length controls`, each once per direction, of packets that take sequence numbers."""
    keys = (
        rows.lazy()
        .filter((pl.col("length") > 0) | (pl.col("controls") != 0))
        .select("seq", "length", "controls", pl.col("conn").alias(name), pl.col("from_client").alias(f"{name}_from_client"))
        .unique()
        .filter(pl.len().over("seq", "length", "controls") < MOST_HALVES_A_KEY)
        .collect()
    )
    if keys.height <= SAMPLED_KEYS:
        return keys
    share = keys.height // SAMPLED_KEYS + 1  # by what the key is, so that the other capture draws the same ones
    drawn = pl.struct("seq", "length").hash(seed=0) % share == 0
    return keys.filter((pl.col("controls") & SYN != 0) | drawn)


def _same_ports(counted: pl.DataFrame, ports: tuple[pl.DataFrame, pl.DataFrame]) -> pl.Series:
    """Whether the two connections of each row have the same ports."""
    known = counted
    for name, table in zip(("a", "b"), ports, strict=True):
        known = known.join(table.select(pl.col("conn").alias(name), *(pl.col(port).alias(f"{name}_{port}") for port in PORTS)), on=name)
    one_way = (pl.col("a_client_port") == pl.col("b_client_port")) & (pl.col("a_server_port") == pl.col("b_server_port"))
    other_way = (pl.col("a_client_port") == pl.col("b_server_port")) & (pl.col("a_server_port") == pl.col("b_client_port"))
    same = known.select("a", "b", "swapped", same=pl.when("swapped").then(other_way).otherwise(one_way))
    return counted.join(same, on=["a", "b", "swapped"], how="left", maintain_order="left")["same"]


def _best(rows: pl.DataFrame) -> pl.DataFrame:
    """Of rows in order of preference, those whose connections no earlier row has taken."""
    taken: tuple[set[int], set[int]] = set(), set()
    keep = []
    for a, b in rows.select("a", "b").iter_rows():
        free = a not in taken[0] and b not in taken[1]
        keep.append(free)
        if free:
            taken[0].add(a)
            taken[1].add(b)
    return rows.filter(pl.Series(keep, dtype=pl.Boolean)).select("a", "b", "swapped", "shared")
