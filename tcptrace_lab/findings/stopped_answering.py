"""Receivers that stop answering: after their last segment, the sender retransmits the same data until it gives up or the capture ends.

A path that loses single packets is a different fault with a different remedy, although both cost retransmission timeouts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.findings.path_mtu import MIN_SENT

if TYPE_CHECKING:
    from collections.abc import Collection


def silent_ns(segments: pl.LazyFrame, directions: Collection[tuple[int, bool]]) -> dict[tuple[int, bool], int]:
    """Return, for directions whose receiver stopped answering, the time (ns) from its last segment to the last retransmit of data.

    Args:
        segments: rows of `schema.SEGMENTS`. Read once.
        directions: connection and direction of those that lost time to timeouts.
    """
    if not directions:
        return {}
    col = pl.col
    here = segments.filter(col("conn").is_in(sorted({conn for conn, _ in directions})))
    columns = ("conn", "from_client", "frame", "ts_ns", "seq", "payload_bytes")
    rows = here.select(*columns, again=col("retransmit_trigger").is_not_null()).collect()
    found = {}
    for conn, from_client in directions:
        of_conn = rows.filter(col("conn") == conn)
        last = of_conn.filter(col("from_client") != from_client).select(col("frame").max(), ts_ns=col("ts_ns").max())
        if last["frame"][0] is None:
            continue
        after = (col("from_client") == from_client) & (col("payload_bytes") > 0) & (col("frame") > last["frame"][0])
        later = of_conn.filter(after & col("again"))
        sent = of_conn.filter((col("from_client") == from_client) & (col("payload_bytes") > 0)).group_by("seq").len()
        times = later.group_by("seq").len().join(sent, on="seq", suffix="_in_all")
        if not times.is_empty() and times["len_in_all"].max() >= MIN_SENT and times["len"].max() >= MIN_SENT - 1:  # type: ignore[operator]
            found[conn, from_client] = int(later["ts_ns"].max() - last["ts_ns"][0])
    return found
