"""The state of one direction after each segment: the highest offset sent, the highest offset ACKed, and the right edge of the window.

The rows of a connection arrive in batches. The tracker keeps the state between batches.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

FIN, SYN, RST = 1, 2, 4
"""Bits of `flags` (RFC 9293, 3.1)."""

MADE = ("t_ns", "mine", "sent", "acked", "edge", "sent_before", "flight", "offered")
"""The columns that `Tracker.follow` adds to those of the segments."""


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
        self._first_ts_ns = first_ts_ns
        self.from_client = from_client
        self._sent, self._acked, self._edge = state or State()

    @property
    def state(self) -> State:
        """The state after the rows so far."""
        return State(self._sent, self._acked, self._edge)

    def follow(self, part: pl.DataFrame) -> pl.DataFrame:
        """Process the next rows of the connection, of both directions, in frame order.

        Returns:
            The rows with the columns `MADE`: `t_ns` since the connection's first segment; `mine` (sent in this direction); the stream
            offsets `sent`, `acked` and `edge` (of the window) after the row; `sent_before`, the value of `sent` before the row; `flight`
            and `offered` in bytes. Unknown values are null.
        """
        mine = pl.col("from_client") == self.from_client
        reset = has(RST)
        payload_end = pl.col("seq") + pl.col("payload_bytes")
        sent = pl.when(mine & ~reset).then(payload_end + has(SYN).cast(pl.Int64) + has(FIN).cast(pl.Int64))
        acked = pl.when(~mine & ~reset).then(pl.col("ack"))
        rows = part.with_columns(
            (pl.col("ts_ns") - self._first_ts_ns).alias("t_ns"),
            mine.alias("mine"),
            pl.max_horizontal(sent.cum_max().forward_fill(), pl.lit(self._sent, pl.Int64)).alias("sent"),
            pl.max_horizontal(acked.cum_max().forward_fill(), pl.lit(self._acked, pl.Int64)).alias("acked"),
        )
        # An old ACK that arrives after a newer one does not update the window.
        current = ~mine & ~reset & (pl.col("ack") == pl.col("acked"))
        edge = pl.when(current).then(pl.col("ack") + pl.col("window_bytes")).forward_fill().fill_null(pl.lit(self._edge, pl.Int64))
        rows = rows.with_columns(
            edge.alias("edge"),
            pl.col("sent").shift(1).fill_null(pl.lit(self._sent, pl.Int64)).alias("sent_before"),
            # A negative flight means that the ACK covers data missing from the capture, so the flight is unknown.
            pl.when(pl.col("sent") >= pl.col("acked")).then(pl.col("sent") - pl.col("acked")).alias("flight"),
            (edge - pl.col("acked")).alias("offered"),
        )
        self._sent, self._acked, self._edge = (rows.item(-1, name) for name in ("sent", "acked", "edge"))
        return rows
