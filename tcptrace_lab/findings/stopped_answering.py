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
        sent = of_conn.filter((col("from_client") == from_client) & (col("payload_bytes") > 0))
        is_unanswered = col("again") & (col("frame") > last["frame"][0])
        times = sent.group_by("seq").agg(in_all=pl.len(), unanswered=is_unanswered.sum()).filter(col("unanswered") > 0)
        if times.select((col("in_all") >= MIN_SENT).any() & (col("unanswered") >= MIN_SENT - 1).any()).item():
            found[conn, from_client] = int(sent.filter(is_unanswered).select(col("ts_ns").max() - last["ts_ns"][0]).item())
    return found
