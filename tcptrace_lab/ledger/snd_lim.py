"""Maps the causes to the three states of a sender in RFC 4898, so that results can be compared with those of other instruments.

RFC 4898 distinguishes three limits of an established connection's sender: the receive window (`SndLimTimeRwin`), the congestion window
including loss recovery and timeouts (`SndLimTimeCwnd`), and anything else, such as no data (`SndLimTimeSnd`, which "MUST" include all time
that fits neither of the others).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tcptrace_lab.schema import CAUSES

if TYPE_CHECKING:
    from collections.abc import Mapping

RWIN: Final = frozenset({"receiver-window", "zero-window"})

CWND: Final = frozenset({"slow-start", "congestion-window", "loss-recovery", "timeout", "network"})
"""`network` is one of these causes because the sender waits for its congestion window while bytes are in transit or in a queue on the
path."""

OUTSIDE: Final = frozenset({"handshake", "close", "unknown"})
"""Causes outside the three states: the connection is not established, or the capture does not show the sender's state."""

SND: Final = frozenset(CAUSES) - RWIN - CWND - OUTSIDE
"""All other causes: the application (`application`, `peer`, `idle`), and the sending host (its buffer, Nagle's algorithm, pacing)."""

TERMS: Final[Mapping[str, frozenset[str]]] = {"SndLimTimeSnd": SND, "SndLimTimeRwin": RWIN, "SndLimTimeCwnd": CWND}
"""Name of the object in RFC 4898, 4 → the causes whose times add up to it."""


def columns(causes: frozenset[str], side: str) -> list[str]:
    """Return the columns of `schema.ACCOUNTS` with the time of these causes."""
    return [f"{side}_{cause.replace('-', '_')}_ns" for cause in CAUSES if cause in causes]


def times_ns(account: Mapping[str, int | None], side: str) -> dict[str, int]:
    """Return the time (ns) of each object of RFC 4898 (`TERMS`) in one direction. `account` is a row of `schema.ACCOUNTS`."""
    return {term: sum(account[name] or 0 for name in columns(causes, side)) for term, causes in TERMS.items()}
