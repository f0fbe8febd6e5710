"""Finds the pauses of a reading application from the windows that its host advertises.

The right edge of the window is the ACK number plus the window. The edge equals the number of bytes that the application has read, plus the
capacity of the receive buffer. The edge does not move while the application does not read. When the application reads again, its host sends
a window update, which acknowledges no new data. The right edge before this update, minus the capacity, is the number of bytes that the
application had read. The pause began when the first byte after these bytes had arrived.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.stacks.packet import FIN, SYN

if TYPE_CHECKING:
    from tcptrace_lab.replay.evidence import Evidence

RST = 0x04
"""RST bit of the TCP header (RFC 9293, 3.1)."""

MIN_PAUSE_NS = 5_000_000
"""Shorter pauses count as work of the application (a heuristic)."""

MIN_ROUNDS = 2
"""A pause lasts at least this many round trips, because the path can cause shorter gaps (docs/how-it-decides.md, 2.3)."""

MIN_RISE = 8
"""A window update shows a read if it opens at least 1/8 of the largest window. Rounding can cause smaller updates (a heuristic)."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause of `for_ns` ns, which begins when the application has read `read_bytes` bytes in total."""

    read_bytes: int
    for_ns: int


def pauses(evidence: Evidence, *, reader_is_client: bool) -> list[Pause]:
    """Return the pauses of the application at one end, in order; empty if the windows show no pauses."""
    reader, sender = ("client", "server") if reader_is_client else ("server", "client")
    capacity = evidence.row[f"{reader}_max_window_bytes"]
    if not capacity or not evidence.row[f"{sender}_payload_bytes"]:
        return []
    updates = _updates(evidence.segments, capacity, reader_is_client=reader_is_client)
    arrivals = evidence.segments.filter((pl.col("from_client") != reader_is_client) & (pl.col("payload_bytes") > 0)).select(
        end=(pl.col("seq") + pl.col("payload_bytes")).cum_max(), ts_ns="ts_ns"
    )
    transit_ns = int(evidence.row[f"rtt_to_{reader}_ns"] or 0)
    min_ns = max(MIN_PAUSE_NS, MIN_ROUNDS * evidence.base_rtt_ns)
    found: list[Pause] = []
    before_ns, read_before = begin_ns(evidence), 0
    for ts_ns, old_edge in updates.iter_rows():
        have_read = max(old_edge - capacity, read_before)
        unread = arrivals.filter(pl.col("end") > have_read)["ts_ns"]
        arrived_ns = unread[0] + transit_ns if have_read and len(unread) else 0
        for_ns = ts_ns - max(before_ns, arrived_ns)
        if for_ns >= min_ns:
            found.append(Pause(have_read, for_ns))
            read_before = have_read
        before_ns = ts_ns
    return found


def _updates(segments: pl.DataFrame, capacity: int, *, reader_is_client: bool) -> pl.DataFrame:
    """Return each window update that shows a read: its time `ts_ns`, and the offset of the right edge before this update."""
    mine = (pl.col("from_client") == reader_is_client) & pl.col("window_bytes").is_not_null() & (pl.col("flags") & RST == 0)
    edge = (pl.col("ack") + pl.col("window_bytes")).cum_max()
    edges = segments.filter(mine).with_columns(edge=edge, old_edge=edge.shift(1), old_ack=pl.col("ack").shift(1))
    rises = pl.col("edge") - pl.col("old_edge")
    plain = (pl.col("payload_bytes") == 0) & (pl.col("flags") & (SYN | FIN | RST) == 0)
    repeated = (pl.col("ack") == pl.col("old_ack")) & (pl.col("ack") > 1)
    return edges.filter(plain & repeated & (rises * MIN_RISE >= capacity)).select("ts_ns", pl.col("old_edge") - 1)


def begin_ns(evidence: Evidence) -> int:
    """Return the capture time (ns) of the client's first segment after its SYN. The applications can write from then on."""
    later = evidence.segments.filter(pl.col("from_client") & (pl.col("flags") & SYN == 0))["ts_ns"]
    return int(later[0]) if len(later) else int(evidence.row["first_ts_ns"])
