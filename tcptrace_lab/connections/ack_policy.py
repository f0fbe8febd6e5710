"""Texts on how an endpoint sends ACKs, and counts of waits that look like Nagle's algorithm.

The engine determines both (`rust/src/hosts/`; columns of `schema.CONNECTIONS`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

HEARTBEAT_MS = 200
"""Period of the delayed-ACK timer of BSD and its descendants (`tcp_fasttimo`). An ACK is delayed until the timer fires, so by at most this
period."""

POLICIES = {
    "per-segment": "ACKs every segment",
    "per-2-segments": "ACKs every second segment of any size",
    "per-2-mss": "ACKs every two full segments' worth of data",
    "per-2": "ACKs every second full segment (by count or by bytes: unknown)",
    "buffer-35": "ACKs every 35% of its buffer",
    "buffer-50": "ACKs every half of its buffer",
    "stretch": "ACKs more than two segments at a time",
    "timer": "ACKs by its timer",
    "unknown": "follows an unknown ACK policy",
}
"""`schema.ACK_POLICIES` → description."""

PROVING_HOLDS = 3
"""Number of waits that prove that Nagle's algorithm is on."""

_Count = TypeVar("_Count", int, "pl.Expr")
"""A count of one connection, or the column of all connections."""


def holds(of: Callable[[str], _Count]) -> _Count:
    """Return how many small segments of an endpoint waited as if Nagle's algorithm delayed them; `of` returns a column of the endpoint."""
    return of("nagle_holds") + of("nagle_holds_over_full")


def sure_holds(of: Callable[[str], _Count]) -> _Count:
    """Return the number of waits that look like Nagle's algorithm and that a full send buffer does not explain equally well."""
    return holds(of) - of("nagle_holds_ambiguous")


def all_in_doubt(of: Callable[[str], int]) -> bool:
    """Return whether there are waits that look like Nagle's algorithm, and a full send buffer explains each of them equally well."""
    return holds(of) > 0 and sure_holds(of) == 0
