"""The ledger → stalls: its intervals that are longer than a wait needs to be, each with what proves its cause.

A stall is an interval of more than `flow.STALL_NS`. The proof is what was true at the sender then: the values that the rules look at, the
frames around it, and the timer that the lateness of an ACK tells of, where it is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import directions, ledger, policy, rules, schema
from tcptrace_lab.rules.facts import flow, limits
from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Mapping

DELAYED = ("nagle-delayed-ack", "delayed-ack")
"""Causes that a delayed ACK ends."""

ACK_TIMERS = {40: "ack-40ms", 50: "ack-50ms", 100: "ack-100ms", 200: "ack-200ms"}
"""`policy.TIMERS` → `schema.STALL_TIMERS`."""

HEARTBEAT_NS = 215 * limits.NS_PER_MS
"""A heartbeat of 200 ms delays no ACK longer (and a path adds a little: `policy.TIMERS`)."""

_WAY = ("conn", "from_client")
_PROOF = (
    "acked_by_frame",
    "acked_lag_ns",
    "unacked_before_bytes",
    "unacked_bytes",
    "usable_before_bytes",
    "full_bytes",
    "payload_bytes",
)


LONG = pl.col("held_ns") >= flow.LEAST_STALL_NS
"""Departures that can have ended a stall."""


def stalls(segments: pl.LazyFrame, connections: pl.LazyFrame) -> pl.LazyFrame:
    """The stalls of all directions.

    Args:
        segments: rows of `schema.SEGMENTS`, at least `ledger.columns_read` of the departures that are `LONG`; read twice. These are kept in
            memory meanwhile.
        connections: rows of `schema.CONNECTIONS`, at least those of the segments.

    Returns:
        Rows of `schema.STALLS`, by connection; the client's before the server's, those of a direction in order of time.
    """
    long = segments.filter(LONG)
    spans = ledger.intervals(long, connections).join(_ways(connections), on=_WAY, how="left", maintain_order="left")
    held = spans.filter(pl.col("end_ns") - pl.col("start_ns") >= flow.STALL_NS)
    ended = long.select(*_WAY, pl.col("frame").cast(pl.Int64).alias("frame_after"), "kind", *_PROOF)
    rows = held.join(ended, on=[*_WAY, "frame_after"], how="left", maintain_order="left").with_columns(
        pl.col("cause").cast(pl.String), threshold_ns=flow.STALL_NS, round_trip_ns=limits.RTT_NS
    )
    rows = rows.with_columns(ack_late_ns=pl.when(pl.col("acked_lag_ns").is_not_null()).then(_late_ns())).with_columns(timer=_timer())
    rows = rows.select(pl.col(name).cast(dtype) for name, dtype in schema.STALLS.polars_schema().items())
    return rows.sort("conn", "from_client", "start_ns", "end_ns", descending=[False, True, False, False])


def _late_ns() -> pl.Expr:
    return (pl.col("acked_lag_ns") - pl.col("rtt_min_ns").fill_null(0)).clip(0)


def _ways(connections: pl.LazyFrame) -> pl.LazyFrame:
    """What the whole connection tells of each direction: its shortest round trips, and the timer of its receiver's ACKs."""
    concluded = policy.beside(connections)
    kinds = []
    for side, from_client in SIDES.items():
        (other,) = SIDES.keys() - {side}
        kinds.append(concluded.select("conn", from_client=pl.lit(from_client), ack_timer_kind=f"{other}_ack_timer_kind"))
    own = directions.of(connections).select(*_WAY, "rtt_min_ns", "rtt_whole_ns")
    return own.join(pl.concat(kinds), on=_WAY, how="left")


def _timer() -> pl.Expr:
    """The timer that ended the wait, if one did; it is told by the cause, or by how late the ACK was."""
    cause, late = pl.col("cause"), pl.col("ack_late_ns")
    delayed = cause.is_in(DELAYED)
    beats = delayed & (pl.col("ack_timer_kind") == "heartbeat") & (late < HEARTBEAT_NS)
    bands = (
        pl.when(delayed & late.is_between(timer.from_ms * limits.NS_PER_MS, timer.to_ms * limits.NS_PER_MS, closed="left")).then(
            pl.lit(ACK_TIMERS[timer.timer_ms])
        )
        for timer in policy.TIMERS
    )
    kind = pl.col("kind").cast(pl.String)
    return pl.coalesce(
        pl.when((cause == "timeout") & kind.is_in(schema.RESENT)).then(pl.lit("retransmission")),
        pl.when(kind == "tail_probe").then(pl.lit("tail-probe")),
        pl.when((kind == "zero_window_probe") & (cause != "receiver-window")).then(pl.lit("persist")),
        pl.when(beats).then(pl.lit("ack-heartbeat")),
        *bands,
    )


def proof(row: Mapping[str, Any]) -> str:
    """What its rule names, of a row of `schema.STALLS`: `1,024 bytes in flight, ACK in frame 12 came 43.2 ms late, …`; may be empty."""
    return ", ".join(words for value in rules.of_cause(row["cause"]).proof if (words := value.told(row)))
