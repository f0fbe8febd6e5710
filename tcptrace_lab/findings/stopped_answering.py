"""Finds receivers that stop answering.

After the receiver's last segment, the sender retransmits the same data until it gives up or the capture ends. A path that loses single
packets also costs retransmission timeouts, but it is a different fault with a different remedy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.findings.path_mtu import MIN_SENT

if TYPE_CHECKING:
    from collections.abc import Collection


def silent_ns(resent: pl.DataFrame, directions: Collection[tuple[int, bool]]) -> dict[tuple[int, bool], int]:
    """Return the time (ns) from the receiver's last segment to the last retransmit, for directions whose receiver stopped answering.

    Args:
        resent: the retransmits of these directions (`path_mtu.retransmits`).
        directions: (connection, from_client) of the directions that lost time to timeouts.
    """
    col = pl.col
    is_unanswered = col("frame") > col("peer_frame")
    silent = (
        resent.group_by("conn", "from_client", "seq")
        .agg(sent=col("transmission").max(), unanswered=is_unanswered.sum(), silent_ns=(col("ts_ns") - col("peer_ts_ns")).max())
        .filter(col("unanswered") > 0)
        .group_by("conn", "from_client")
        .agg(col("sent").max(), col("unanswered").max(), col("silent_ns").max())
        .filter((col("sent") >= MIN_SENT) & (col("unanswered") >= MIN_SENT - 1))
    )
    return {
        (conn, from_client): ns
        for conn, from_client, ns in silent.select("conn", "from_client", "silent_ns").iter_rows()
        if (conn, from_client) in directions
    }


def fin_frames(segments: pl.LazyFrame, directions: Collection[tuple[int, bool]]) -> dict[tuple[int, bool], int]:
    """Return the frame in which the sender ACKs a FIN of its peer that the capture does not show.

    A FIN takes one sequence number. If the sender's ACK number grew by 1 at its last change, the peer sent a FIN or, less likely, one last
    byte.

    Args:
        segments: rows of `schema.SEGMENTS`.
        directions: (connection, from_client) of directions whose peer has no segment in the capture.
    """
    if not directions:
        return {}
    col = pl.col
    acks = (
        segments.filter(col("conn").is_in(sorted({conn for conn, _ in directions})) & col("acked_bytes").is_not_null() & (col("ack") > 0))
        .group_by("conn", "from_client", "ack")
        .agg(col("frame").min())
        .sort("conn", "from_client", "ack")
        .group_by("conn", "from_client", maintain_order=True)
        .agg(col("ack").tail(2), col("frame").last())
        .collect()
    )
    return {
        (conn, from_client): frame
        for conn, from_client, last, frame in acks.iter_rows()
        if (conn, from_client) in directions and len(last) > 1 and last[1] - last[0] == 1
    }
