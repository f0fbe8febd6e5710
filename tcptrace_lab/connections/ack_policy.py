"""Texts on the ACK policy of an endpoint, and counts of segments that Nagle's algorithm seems to delay.

The engine (`rust/src/hosts/`) determines the policy and the counts. They are columns of `schema.CONNECTIONS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

HEARTBEAT_MS = 200
"""Period of the delayed-ACK timer of BSD and its descendants (`tcp_fasttimo`). This period is also the longest delay of an ACK."""

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
"""ACK policy (`schema.ACK_POLICIES`) → description."""

PROVING_HOLDS = 3
"""If at least three small segments waited for an ACK, Nagle's algorithm is on."""

_Count = TypeVar("_Count", int, "pl.Expr")
"""A count of one connection, or a column with the counts of all connections."""


def holds(of: Callable[[str], _Count]) -> _Count:
    """Return the number of an endpoint's small segments that Nagle's algorithm seems to delay.

    Args:
        of: returns a column of the endpoint by name.
    """
    return of("nagle_holds") + of("nagle_holds_over_full")


def sure_holds(of: Callable[[str], _Count]) -> _Count:
    """Return the result of `holds` without the segments whose delay a full send buffer explains equally well."""
    return holds(of) - of("nagle_holds_ambiguous")


def all_in_doubt(of: Callable[[str], int]) -> bool:
    """Return whether a full send buffer explains every apparent delay by Nagle's algorithm equally well; false without such a delay."""
    return holds(of) > 0 and sure_holds(of) == 0
