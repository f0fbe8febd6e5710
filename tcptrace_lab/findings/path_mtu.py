"""Finds segments that are too large for the path: they are lost each time that they are sent, and smaller segments get through.

If a router cannot forward a packet, it reports this by ICMP (fragmentation needed, packet too big). If the ICMP message is dropped, the
sender does not learn the limit. It retransmits the segment until it gives up or tries a smaller segment (RFC 4821). ICMP is not analyzed,
because the segments alone are sufficient evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tcptrace_lab.causes import Confidence

if TYPE_CHECKING:
    from collections.abc import Collection

MIN_SENT = 3
"""Number of times that a segment must be lost in a row while smaller segments get through. Chance does not explain three losses
(docs/how-it-decides.md, 2.4)."""

ANY_PATH_BYTES = 536
"""Payload of segments that pass every path, by assumption: the default MSS (RFC 9293, 3.7.1)."""

_DIRECTION = ("conn", "from_client")


class TooLarge(NamedTuple):
    """Evidence in one direction.

    Attributes:
        lost_bytes: payload of the segments that never got through.
        passed_bytes: largest payload that got through.
        sent: number of times that the first of the lost segments was sent at that size.
        smaller_arrived: whether the lost bytes arrived in smaller segments.
    """

    lost_bytes: int
    passed_bytes: int
    sent: int
    smaller_arrived: bool

    @property
    def confidence(self) -> Confidence:
        """Consistent if smaller segments delivered the bytes; else possible, because a path failure at that time looks the same."""
        return Confidence.CONSISTENT if self.smaller_arrived else Confidence.POSSIBLE


def retransmits(segments: pl.LazyFrame, directions: Collection[tuple[int, bool]]) -> pl.DataFrame:
    """Return the retransmits of data in the connections of these directions.

    The segments are read once, and only the retransmits are kept in memory.

    Args:
        segments: rows of `schema.SEGMENTS`.
        directions: (connection, from_client) of the directions that lost time to packet loss; at least one.

    Returns:
        One row per retransmit, in capture order. `conn from_client frame ts_ns seq transmission` are as in `schema.SEGMENTS`. `size_bytes`
        is the payload, at most a full segment. `peer_frame` and `peer_ts_ns` are frame and time of the peer's last segment. If the capture
            has no segment of the peer, `peer_frame` and `peer_ts_ns` belong to the sender's last new data: a sender of new data has
            possibly just received an answer.
    """
    col = pl.col
    size = pl.min_horizontal("payload_bytes", "smss_bytes").alias("size_bytes")
    again = col("retransmit_trigger").is_not_null() & (col("payload_bytes") > 0)
    listed = ("frame", "ts_ns", "seq", "transmission")
    of_directions = (
        segments.filter(col("conn").is_in(sorted({conn for conn, _ in directions})))
        .group_by(*_DIRECTION)
        .agg(
            *(each.filter(again) for each in (*map(col, listed), size)),
            last_frame=col("frame").max(),
            last_ts_ns=col("ts_ns").max(),
            new_frame=col("frame").filter(~again).max(),
            new_ts_ns=col("ts_ns").filter(~again).max(),
        )
        .collect()
    )
    peers = of_directions.select("conn", ~col("from_client"), peer_frame="last_frame", peer_ts_ns="last_ts_ns")
    rows = of_directions.drop("last_frame", "last_ts_ns").explode(*listed, "size_bytes").filter(col("frame").is_not_null())
    latest = {f"peer_{name}": pl.coalesce(f"peer_{name}", f"new_{name}") for name in ("frame", "ts_ns")}
    return rows.join(peers, on=_DIRECTION, how="left").with_columns(**latest).drop("new_frame", "new_ts_ns").sort("frame")


def found(segments: pl.LazyFrame, directions: Collection[tuple[int, bool]], resent: pl.DataFrame) -> dict[tuple[int, bool], TooLarge]:
    """Return the evidence for each of `directions` whose large segments do not get through.

    Args:
        segments: rows of `schema.SEGMENTS`. Read twice for each direction that sent one large segment three times, and once for each
            direction that retransmitted three segments of its largest size. Not read for other directions.
        directions: (connection, from_client) of the directions that lost time to packet loss.
        resent: the `retransmits` of these directions.
    """
    col = pl.col
    size = col("size_bytes")
    again = (
        resent.group_by(*_DIRECTION, "seq")
        .agg(
            lost_bytes=size.max(),
            large=(size == size.max()).sum(),
            last_frame=col("frame").max(),
        )
        .filter((col("large") >= MIN_SENT - 1) & (col("lost_bytes") > ANY_PATH_BYTES))
        .sort(*_DIRECTION, "seq")
    )
    found_by_direction = {}
    for conn, from_client in directions:
        stuck = again.filter((col("conn") == conn) & (col("from_client") == from_client)).head(1)
        own = resent.filter((col("conn") == conn) & (col("from_client") == from_client))
        one = None if stuck.is_empty() else _of(segments, conn, stuck.row(0, named=True), from_client=from_client)
        if (one := one or _shrunk(segments, conn, own, from_client=from_client)) is not None:
            found_by_direction[conn, from_client] = one
    return found_by_direction


def _shrunk(segments: pl.LazyFrame, conn: int, resent: pl.DataFrame, *, from_client: bool) -> TooLarge | None:
    """Return the evidence if the sender learned the path MTU: it split the first lost segment, and sent no larger segment afterwards.

    A sender that receives the ICMP message, or that probes for the path MTU, can react to a single loss.
    """
    col = pl.col
    passed = resent["size_bytes"].max() if resent.height else None
    if not isinstance(passed, int) or passed <= ANY_PATH_BYTES or (resent["size_bytes"] == passed).sum() < MIN_SENT:
        return None
    first_frame, first_seq = resent.row(0, named=True)["frame"], resent.row(0, named=True)["seq"]
    own, earlier = col("from_client") == from_client, col("frame") < first_frame
    size = pl.min_horizontal("payload_bytes", "smss_bytes")
    here = segments.filter(col("conn") == conn).select(
        lost_bytes=size.filter(own & earlier & (col("seq") == first_seq)).max(),
        large_seq=col("seq").filter(own & (size > passed)).min(),
        large_frame=col("frame").filter(own & (size > passed)).max(),
        acked=col("ack").filter(~own).max(),
    )
    lost_bytes, large_seq, large_frame, acked = here.collect().row(0)
    if None in (lost_bytes, large_seq, acked) or lost_bytes <= passed:
        return None
    got_through = large_seq < first_seq or acked <= first_seq
    return None if got_through or large_frame > first_frame else TooLarge(lost_bytes, passed, 1, smaller_arrived=True)


def _of(segments: pl.LazyFrame, conn: int, stuck: dict[str, int], *, from_client: bool) -> TooLarge | None:
    """Return the evidence if smaller segments got through: before the lost segment, after it, or in its place."""
    col = pl.col
    own, other = col("from_client") == from_client, col("from_client") != from_client
    size, end = pl.min_horizontal("payload_bytes", "smss_bytes"), col("seq") + col("payload_bytes")
    data = own & (col("payload_bytes") > 0)
    here = segments.filter(col("conn") == conn)
    acked, first_frame, acks = (
        here.select(
            col("ack").filter(other).max(),
            first=col("frame").filter(data & (col("seq") == stuck["seq"]) & col("retransmit_trigger").is_not_null()).min(),
            acks=col("frame").filter(other).max(),
        )
        .collect()
        .row(0)
    )
    if acked is None or first_frame is None:
        return None
    before = data & (end <= stuck["seq"])
    behind = data & (col("frame") >= stuck["last_frame"]) & (end <= acked)
    at_stuck = data & (col("seq") == stuck["seq"]) & (size == stuck["lost_bytes"])
    passed, sent = here.select(size.filter(before | behind).max().alias("passed"), at_stuck.sum().alias("sent")).collect().row(0)
    smaller_arrived = acked > stuck["seq"]
    alive = acks > first_frame
    if not passed or passed >= stuck["lost_bytes"] or sent < MIN_SENT or not alive:
        return None
    return TooLarge(stuck["lost_bytes"], passed, sent, smaller_arrived)
