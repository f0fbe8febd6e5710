"""Pauses of a reading program, from the windows that its end offers.

The right edge of the window (ACK + window) is what the program has read plus what the buffer holds when it is empty. While the program
does not read, the edge stands still. When it reads again, a window update comes that acknowledges nothing new. So, at each such update, all
but a buffer below the old edge had been read, and the pause began when the last of those bytes had arrived.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.stacks.packet import FIN, SYN

if TYPE_CHECKING:
    from tcptrace_lab.replay.evidence import Evidence

RST = 0x04
"""Bit of the TCP header's flags (RFC 9293, 3.1)."""

LEAST_PAUSE_NS = 5_000_000
"""Shorter ones are a program's own work, not a pause (a heuristic)."""

LEAST_ROUNDS = 2
"""A pause is longer than this many round trips; the path may have made a shorter one (docs/how-it-decides.md, 2.3)."""

LEAST_RISE = 8
"""An update that opens the window by less than this part of the largest one is the kernel's rounding, not a read (a heuristic)."""


@dataclass(frozen=True, slots=True)
class Pause:
    """The program had read so many bytes in all, and then did not read for so long."""

    read_bytes: int
    for_ns: int


def pauses(evidence: Evidence, *, reader_is_client: bool) -> list[Pause]:
    """The pauses of one end's program, in order; none where windows do not show any."""
    reader, sender = ("client", "server") if reader_is_client else ("server", "client")
    capacity = evidence.row[f"{reader}_max_window_bytes"]
    if not capacity or not evidence.row[f"{sender}_payload_bytes"]:
        return []
    updates = _updates(evidence.segments, capacity, reader_is_client=reader_is_client)
    arrivals = evidence.segments.filter((pl.col("from_client") != reader_is_client) & (pl.col("payload_bytes") > 0)).select(
        end=(pl.col("seq") + pl.col("payload_bytes")).cum_max(), ts_ns="ts_ns"
    )
    transit_ns = int(evidence.row[f"to_{reader}_ns"] or 0)
    least_ns = max(LEAST_PAUSE_NS, LEAST_ROUNDS * evidence.round_trip_ns)
    found: list[Pause] = []
    before_ns, read_before = begin_ns(evidence), 0
    for ts_ns, old_edge in updates.iter_rows():
        have_read = max(old_edge - capacity, read_before)
        there = arrivals.filter(pl.col("end") > have_read)["ts_ns"]
        arrived_ns = there[0] + transit_ns if have_read and len(there) else 0
        for_ns = ts_ns - max(before_ns, arrived_ns)
        if for_ns >= least_ns:
            found.append(Pause(have_read, for_ns))
            read_before = have_read
        before_ns = ts_ns
    return found


def _updates(segments: pl.DataFrame, capacity: int, *, reader_is_client: bool) -> pl.DataFrame:
    """`ts_ns old_edge` of each window update that shows a read."""
    mine = (pl.col("from_client") == reader_is_client) & pl.col("window_bytes").is_not_null() & (pl.col("flags") & RST == 0)
    edge = (pl.col("ack") + pl.col("window_bytes")).cum_max()
    told = segments.filter(mine).with_columns(edge=edge, old_edge=edge.shift(1), old_ack=pl.col("ack").shift(1))
    rises = pl.col("edge") - pl.col("old_edge")
    plain = (pl.col("payload_bytes") == 0) & (pl.col("flags") & (SYN | FIN | RST) == 0)
    repeated = (pl.col("ack") == pl.col("old_ack")) & (pl.col("ack") > 1)
    return told.filter(plain & repeated & (rises * LEAST_RISE >= capacity)).select("ts_ns", pl.col("old_edge") - 1)


def begin_ns(evidence: Evidence) -> int:
    """When the client's first segment behind its SYN was captured: the programs may begin."""
    later = evidence.segments.filter(pl.col("from_client") & (pl.col("flags") & SYN == 0))["ts_ns"]
    return int(later[0]) if len(later) else int(evidence.row["first_ts_ns"])
