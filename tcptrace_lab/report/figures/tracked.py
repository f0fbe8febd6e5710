"""What is true just after each segment, for the data of one direction: how far it was sent and acknowledged, and where its window ends.

The rows of a connection come some at a time; what was true before them is kept from one time to the next.
"""

from __future__ import annotations

import polars as pl

FIN, SYN, RST = 1, 2, 4
"""Bits of `flags` (RFC 9293, 3.1)."""

MADE = ("t_ns", "mine", "sent", "acked", "edge", "sent_before", "flight", "offered")
"""The columns that `Tracker.follow` puts beside those of the segments."""


def has(flag: int) -> pl.Expr:
    """True for the segments that carry this bit."""
    return (pl.col("flags") & flag) != 0


class Tracker:
    """Follows one direction, named by its sender, through the rows of its connection."""

    def __init__(self, first_ts_ns: int, *, from_client: bool) -> None:
        """Begin at the connection's first segment."""
        self._first_ts_ns = first_ts_ns
        self._from_client = from_client
        self._sent: int | None = None
        self._acked: int | None = None
        self._edge: int | None = None

    def follow(self, part: pl.DataFrame) -> pl.DataFrame:
        """The next rows of the connection, both directions, in frame order.

        Returns:
            The rows with `t_ns` since the connection's first segment, `mine` (sent in this direction), and as offsets just after each row
            `sent`, `acked` and `edge` (of the window); `sent_before` the row, and in bytes `flight` and `offered`. Null while unknown.
        """
        mine = pl.col("from_client") == self._from_client
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
        # An ACK that arrives late, behind a newer one, says nothing about the window now.
        current = ~mine & ~reset & (pl.col("ack") == pl.col("acked"))
        edge = pl.when(current).then(pl.col("ack") + pl.col("window_bytes")).forward_fill().fill_null(pl.lit(self._edge, pl.Int64))
        rows = rows.with_columns(
            edge.alias("edge"),
            pl.col("sent").shift(1).fill_null(pl.lit(self._sent, pl.Int64)).alias("sent_before"),
            # Below zero, the ACK is for data that the capture did not see: then nobody knows what is on its way.
            pl.when(pl.col("sent") >= pl.col("acked")).then(pl.col("sent") - pl.col("acked")).alias("flight"),
            (edge - pl.col("acked")).alias("offered"),
        )
        self._sent, self._acked, self._edge = (rows.item(-1, name) for name in ("sent", "acked", "edge"))
        return rows
