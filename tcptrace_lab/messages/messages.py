"""Turns segments into application messages: runs of bytes in one direction, each with its duration, its stalls, its ACK and its answer.

The engine finds the messages (`rust/src/messages.rs`). The engine reads the segments, and its own notes on departures, once and in batches.
It keeps the last message of each direction in memory, and the messages that are not yet acknowledged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.engine import memory, reread
from tcptrace_lab.engine.spill import Spill
from tcptrace_lab.text.numbers import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Iterator

GAP_NS = 10 * NS_PER_MS
"""A pause of the application ends a message if it lasts at least 10 ms and at least two RTTs (a heuristic). A stall on a LAN also lasts at
least 10 ms (docs/how-it-decides.md, 2.3). The engine uses an equal value for `paused` (`schema.NOTES`)."""

BATCH_ROWS = 131_072
"""Number of segments per batch. They take about 10 MB."""

KEPT_MESSAGES = 262_144
"""Maximum number of messages kept in memory, about 40 MB. Further messages go to temporary files."""

RANGE_CONNECTIONS = 131_072
"""Number of connections processed together. Their notes and their last messages stay in memory."""


def messages(segments: pl.LazyFrame, notes: pl.LazyFrame, count: int) -> pl.LazyFrame:
    """Return the messages of some connections.

    Args:
        segments: rows of `schema.SEGMENTS` of these connections, in capture order.
        notes: rows of `schema.NOTES` of these connections: the engine's notes on departures. The notes of `RANGE_CONNECTIONS` connections
            are in memory at a time.
        count: one more than the greatest connection number.

    Returns:
        Rows of `schema.MESSAGES`; those of a direction are in time order.

    Raises:
        OutputUnwritable: no room for temporary files.
    """
    rows = Spill(schema.MESSAGES.polars_schema(), KEPT_MESSAGES)
    for first in range(0, count, RANGE_CONNECTIONS):
        here = pl.col("conn").is_between(first, first + RANGE_CONNECTIONS, closed="left")
        whole = count <= RANGE_CONNECTIONS
        for done in _found(segments if whole else segments.filter(here), notes if whole else notes.filter(here)):
            rows.add(done)
    return rows.finish()


def _found(segments: pl.LazyFrame, notes: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yield rows of `schema.MESSAGES`, each message when it is complete."""
    batches = memory.batches(segments.filter(_WANTED).select(_LOOKED_AT), BATCH_ROWS)
    return reread.messages(batches, notes.with_columns(pl.col("stall_cause").to_physical()).collect())


_WANTED = (pl.col("payload_bytes") > 0) | (pl.col("acked_bytes") > 0)
"""Segments that matter to messages: those with data, and the peer's ACKs between them."""

_LOOKED_AT = (
    *("conn", "from_client", "frame", "ts_ns", "seq", "ack", "payload_bytes", "flags", pl.col("kind").to_physical()),
    *("acked_bytes", "acked_unseen_bytes", "smss_bytes"),
)
