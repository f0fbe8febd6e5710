"""The state of one direction after each segment: the highest offset sent, the highest offset ACKed, and the right edge of the window.

The rows of a connection arrive in batches. The engine's tracker keeps the state between batches (`rust/src/figures/state.rs`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl

from tcptrace_lab import _core

FIN, SYN, RST = 1, 2, 4
"""Bits of `flags` (RFC 9293, 3.1)."""

MADE = ("t_ns", "mine", "sent", "acked", "edge", "sent_before", "flight", "offered")
"""The columns that `Tracker.follow` adds to those of the segments."""


_READ = ("frame", "ts_ns", "from_client", "seq", "ack", "payload_bytes", "flags", "window_bytes", "sack_blocks", "ack_lag_ns", "rtt_ns")


def has(flag: int) -> pl.Expr:
    """An expression that is true for segments with this flag."""
    return (pl.col("flags") & flag) != 0


class State(NamedTuple):
    """The highest offset sent, the highest offset ACKed, and the right edge of the window; None while unknown."""

    sent: int | None = None
    acked: int | None = None
    edge: int | None = None


class Tracker:
    """Tracks the state of one direction, named by its sender, through the rows of its connection."""

    def __init__(self, first_ts_ns: int, *, from_client: bool, state: State | None = None) -> None:
        """Start at the connection's first segment, whose time is `first_ts_ns`, or with the `state` before a later one."""
        self.from_client = from_client
        self._tracker = _core.Tracker(first_ts_ns, from_client, state or State())

    def follow(self, part: pl.DataFrame) -> pl.DataFrame:
        """Process the next rows of the connection, of both directions, in frame order.

        Returns:
            The rows with the columns `MADE`: `t_ns` since the connection's first segment; `mine` (sent in this direction); the stream
            offsets `sent`, `acked` and `edge` (of the window) after the row; `sent_before`, the value of `sent` before the row; `flight`
            and `offered` in bytes. Unknown values are null.
        """
        made: Any = self._tracker.follow(coded(part))  # Polars accepts the Arrow stream interface, but its type hints lack it
        return part.hstack(pl.DataFrame(made))


def coded(rows: pl.DataFrame, *also: str) -> pl.DataFrame:
    """The columns of segments that the engine makes figures from, kinds as codes, and others."""
    return rows[[*_READ, *also]].hstack([rows["kind"].to_physical()])
