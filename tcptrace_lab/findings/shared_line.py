"""Computes how long the data between two hosts kept the line busy. No setting of TCP makes a transfer faster than the line.

In a capture away from the sender, the shortest interval between two segments, relative to their size, gives an upper bound of the line's
rate. All connections between the two hosts share the line, so the data of one connection keeps the line busy for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

MOST = 1_000
"""Maximum number of connections between two hosts that are considered, those with most data first. With more connections, the line was busy
for longer than the result says."""

_OF_SENDER = ("payload_bytes", "line_payload_bytes", "serialization_ns", "first_data_ts_ns", "last_data_ts_ns")


def busy_ns(connections: pl.LazyFrame, directions: Collection[tuple[int, bool]]) -> dict[tuple[int, bool], int]:
    """Return how long the line was busy while each of these directions sent. All data between the direction's two hosts counts.

    Args:
        connections: rows of `schema.CONNECTIONS`; read only if there are directions.
        directions: number of the connection, and whether the client sends; captured away from the sender.

    Returns:
        ns per direction. A direction is left out if the capture shows no rate of its line.
    """
    if not directions:
        return {}
    ends = [f"{side}_addr" for side in SIDES]
    asked = ["conn", *ends, *(f"{side}_{name}" for side in SIDES for name in _OF_SENDER)]
    hosts = connections.filter(pl.col("conn").is_in([conn for conn, _ in directions])).select(ends).unique()
    rows = connections.select(asked).join(hosts, on=ends, how="semi").collect()
    sent: dict[tuple[str, str, bool], list[dict[str, Any]]] = {}
    for row in rows.iter_rows(named=True):
        for side, from_client in SIDES.items():
            own = {"conn": row["conn"], **{name: row[f"{side}_{name}"] for name in _OF_SENDER}}
            if own["payload_bytes"]:
                sent.setdefault((row["client_addr"], row["server_addr"], from_client), []).append(own)
    busy: dict[tuple[int, bool], int] = {}
    for (_, _, from_client), all_sent in sent.items():
        neighbours = sorted(all_sent, key=lambda own: -own["payload_bytes"])[:MOST]
        ns_per_byte = _ns_per_byte(neighbours)
        if ns_per_byte is not None:
            wanted = (own for own in all_sent if (own["conn"], from_client) in directions)
            busy |= {(own["conn"], from_client): round(ns_per_byte * _bytes_meanwhile(own, neighbours)) for own in wanted}
    return busy


def _ns_per_byte(sent: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the shortest time per byte that any of these directions shows; None if no direction shows one."""
    shown = [own["serialization_ns"] / own["line_payload_bytes"] for own in sent if own["serialization_ns"] and own["line_payload_bytes"]]
    return min(shown, default=None)


def _bytes_meanwhile(own: Mapping[str, Any], sent: Iterable[Mapping[str, Any]]) -> float:
    """Return the bytes that the directions `sent` carried while `own` sent. Each direction is assumed to send at a constant rate."""
    first_ns, last_ns = own["first_data_ts_ns"], own["last_data_ts_ns"]
    if first_ns is None or last_ns is None:
        return 0.0
    total = 0.0
    for other in sent:
        if other["first_data_ts_ns"] is not None and other["last_data_ts_ns"] is not None:
            lasted_ns = other["last_data_ts_ns"] - other["first_data_ts_ns"]
            common_ns = min(last_ns, other["last_data_ts_ns"]) - max(first_ns, other["first_data_ts_ns"])
            total += other["payload_bytes"] * (min(max(common_ns / lasted_ns, 0.0), 1.0) if lasted_ns > 0 else float(common_ns >= 0))
    return total
