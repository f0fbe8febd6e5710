"""Ledger → stalls: the intervals that are unusually long, each with the proof of its cause.

A stall is an interval of at least `threshold_ns` (`schema.WAITS`): two RTTs, or 10 ms on a LAN, but at most one RTT plus the minimum
retransmission timeout of Linux (docs/how-it-decides.md, 2.3). Its proof is the sender's state at that time: the values that the rule of its
cause names, the frames around it, and the timer that a late ACK suggests.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import causes, schema
from tcptrace_lab.connections import ack_policy
from tcptrace_lab.text.numbers import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

DELAYED = ("nagle-delayed-ack", "delayed-ack")
"""Causes where a delayed ACK ends the wait."""

ACK_TIMERS = {40: "ack-40ms", 50: "ack-50ms", 100: "ack-100ms", 200: "ack-200ms"}
"""`ack_policy.TIMERS` → `schema.STALL_TIMERS`."""

LEAST_STALL_NS = 10 * NS_PER_MS
"""Shortest stall."""

CAUSAL_NS = NS_PER_MS
"""An event within this time after another may be its effect (docs/how-it-decides.md, 2.2)."""

HEARTBEAT_NS = 215 * NS_PER_MS
"""Longest ACK delay of a heartbeat of 200 ms, with a margin for the path (`ack_policy.TIMERS`)."""

IS_STALL = pl.col("end_ns") - pl.col("start_ns") >= pl.col("threshold_ns")
"""True for the rows of `schema.WAITS` that are stalls."""

_DIRECTION = ("conn", "from_client")


def stalls(ledger: pl.LazyFrame, connections: pl.LazyFrame) -> pl.LazyFrame:
    """Return the stalls among some intervals. They are held in memory.

    Args:
        ledger: rows of `schema.WAITS`; read once.
        connections: rows of `schema.CONNECTIONS`, at least those of the intervals.

    Returns:
        Rows of `schema.STALLS`, by connection, the client's direction before the server's, in time order.
    """
    wanted = (*(name for name in schema.STALLS.names if name != "timer"), "kind")
    rows = ledger.select(wanted).filter(IS_STALL)
    beats = rows.join(ack_policy.heartbeats(connections), on=_DIRECTION, how="left", maintain_order="left")
    listed = beats.select(*(_timer() if name == "timer" else pl.col(name) for name in schema.STALLS.names))
    return listed.sort("conn", "from_client", "start_ns", "end_ns", descending=[False, True, False, False])


@cache
def _timer() -> pl.Expr:
    """`timer`: the timer that ended the wait, if one did. The cause or the delay of the ACK determines which."""
    cause, late = pl.col("cause").cast(pl.String), pl.col("ack_late_ns")
    delayed = cause.is_in(DELAYED)
    beats = delayed & pl.col("beats") & (late < HEARTBEAT_NS)
    bands = (
        pl.when(delayed & late.is_between(timer.from_ms * NS_PER_MS, timer.to_ms * NS_PER_MS, closed="left")).then(
            pl.lit(ACK_TIMERS[timer.timer_ms])
        )
        for timer in ack_policy.TIMERS
    )
    kind = pl.col("kind").cast(pl.String)
    ended_by = pl.coalesce(
        pl.when((cause == "timeout") & kind.is_in(schema.RESENT)).then(pl.lit("retransmission")),
        pl.when(kind == "tail_probe").then(pl.lit("tail-probe")),
        pl.when((kind == "zero_window_probe") & (cause != "receiver-window")).then(pl.lit("persist")),
        pl.when(beats).then(pl.lit("ack-heartbeat")),
        *bands,
    )
    return ended_by.cast(schema.STALLS["timer"].polars_type()).alias("timer")


def proof(row: Mapping[str, Any]) -> str:
    """Return the proof that the rule names, from a row of `schema.STALLS`; may be empty.

    Example: `1,024 bytes in flight, ACK in frame 12 came 43.2 ms late, …`.
    """
    return ", ".join(words for value in causes.of_cause(row["cause"]).proof if (words := value.text_of(row)))
