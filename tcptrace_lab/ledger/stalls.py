"""Finds the stalls in the ledger: the unusually long intervals, each with the evidence for its cause.

A stall lasts at least `threshold_ns` (`schema.WAITS`). The threshold is twice the shortest RTT, but at least 10 ms, and at most the
shortest RTT plus Linux's minimum RTO (docs/how-it-decides.md, 2.3). The proof of a stall consists of the sender's state at that time, the
frames around the stall, and the timer that a late ACK suggests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from tcptrace_lab import causes, schema
from tcptrace_lab.text.numbers import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)

MIN_STALL_NS = 10 * NS_PER_MS
"""Duration of the shortest stall."""

CAUSAL_NS = NS_PER_MS
"""An event within 1 ms of an earlier event can be the effect of that event (docs/how-it-decides.md, 2.2)."""

IS_STALL = pl.col("end_ns") - pl.col("start_ns") >= pl.col("threshold_ns")
"""Condition on rows of `schema.WAITS`: the interval is a stall."""


def stalls(ledger: Frame) -> Frame:
    """Return the intervals that are stalls.

    Args:
        ledger: rows of `schema.WAITS`.

    Returns:
        Rows of `schema.STALLS`, sorted by connection, direction (the client's first) and time.
    """
    listed = ledger.filter(IS_STALL).select(schema.STALLS.names)
    return listed.sort("conn", "from_client", "start_ns", "end_ns", descending=[False, True, False, False])


def proof(row: Mapping[str, Any]) -> str:
    """Return the proof of a stall as text, such as `1,024 bytes in flight, ACK in frame 12 came 43.2 ms late`; can be empty.

    Args:
        row: a row of `schema.STALLS`.
    """
    return ", ".join(words for value in causes.of_cause(row["cause"]).proof if (words := value.text_of(row)))
