"""Assigns each cause to a sender state of RFC 4898, so that results can be compared with those of other instruments.

RFC 4898 distinguishes three limits of an established connection's sender. `SndLimTimeRwin` is the time limited by the receive window.
`SndLimTimeCwnd` is the time limited by the congestion window, including loss recovery and timeouts. `SndLimTimeSnd` "MUST" include all
other time, such as time without data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tcptrace_lab.schema import CAUSES

if TYPE_CHECKING:
    from collections.abc import Mapping

RWIN: Final = frozenset({"receiver-window", "zero-window"})

CWND: Final = frozenset({"slow-start", "congestion-window", "loss-recovery", "timeout", "network"})
"""The cause `network` is here, because the sender waits for its congestion window while bytes are in transit or in a queue on the path."""

OUTSIDE: Final = frozenset({"handshake", "close", "unknown"})
"""Causes outside the three states: the connection is not established, or the capture does not show the sender's state."""

SND: Final = frozenset(CAUSES) - RWIN - CWND - OUTSIDE
"""All other causes: the application (`application`, `peer`, `idle`), and the sending host (its buffer, Nagle's algorithm, pacing)."""

TERMS: Final[Mapping[str, frozenset[str]]] = {"SndLimTimeSnd": SND, "SndLimTimeRwin": RWIN, "SndLimTimeCwnd": CWND}
"""Object of RFC 4898, 4 → causes whose times add up to the object's time."""


def columns(causes: frozenset[str], side: str) -> list[str]:
    """Return the columns of `schema.ACCOUNTS` with the time of these causes."""
    return [f"{side}_{cause.replace('-', '_')}_ns" for cause in CAUSES if cause in causes]


def times_ns(account: Mapping[str, int | None], side: str) -> dict[str, int]:
    """Return the time in ns of each object of RFC 4898 (`TERMS`) in one direction.

    Args:
        account: a row of `schema.ACCOUNTS`.
        side: the sender, `client` or `server`.
    """
    return {term: sum(account[name] or 0 for name in columns(causes, side)) for term, causes in TERMS.items()}
