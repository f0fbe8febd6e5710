"""Findings on small packets, with their cost in segments and bytes.

The findings cover streams of tinygrams, messages that are cut where a buffer ends, and segments that are cut to silly windows. Columns of
`schema.CONNECTIONS` show which connections have such packets. To confirm silly windows, the segments of a few connections are read as well.
The findings have no time cost of their own, because the ledger already counts the waits that small packets cause.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.causes import Confidence
from tcptrace_lab.engine import memory
from tcptrace_lab.findings.finding import Finding, Severity
from tcptrace_lab.schema import SIDES
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MOST = 20
"""Maximum number of connections that are reported. The connections with the most segments are chosen."""

MIN_SEGMENTS = 20
"""Minimum number of data segments for a finding (a heuristic)."""

TINY_PART = 8
"""The mean size must be at most an eighth of a full segment. Then most segments are below a quarter of a full segment: if half of them were
larger, the mean would be larger."""

BEHIND_SHARE = 0.5
"""If this share of the segments is sent while an earlier small segment is in flight, most segments could have been combined (a heuristic).
If each message has two pieces and is answered, the share is a half."""

MIN_HEADER_BYTES = 40
"""Bytes of IPv4 and TCP headers without options (RFC 791, RFC 9293), used if the link's headers are unknown."""

LOW_SHARE = 0.2
"""If headers are at least this share of the bytes, tinygrams have the severity low, else info."""

CUT_TIMES = 3
"""Minimum number of segments that fill a silly window exactly, or of messages cut at one offset. Three are no coincidence
(docs/how-it-decides.md, 2.4)."""

CUT_SHARE = 0.1
"""If at least this share of the data segments is cut, the severity is low, else info (a heuristic)."""

EVIDENCE_FRAMES = 20

_SUSPECT_PART = 0.75
"""If the mean size is above this part of a full segment, silly windows do not matter (a heuristic)."""

_CUTS = ("cut_messages", "cut_pieces", "cut_at_bytes", "cut_waited_ns", "cut_frame")
_FIGURES = (
    *_CUTS,
    "data_segments",
    "wire_data_segments",
    "payload_bytes",
    "full_segment_bytes",
    "header_bytes",
    "small_behind_small",
    "small_in_flight_frame",
)

_OF_PEER = {"pure_acks": "acks", "max_window_bytes": "window_bytes", "min_window_bytes": "min_window_bytes"}
"""Column of the peer → its name in the rows of a direction."""


def findings(segments: pl.LazyFrame, connections: pl.LazyFrame) -> tuple[Finding, ...]:
    """Return the findings on tinygrams, cut messages and silly windows.

    Args:
        segments: rows of `schema.SEGMENTS`; read once, for suspects of silly windows, if there are any.
        connections: rows of `schema.CONNECTIONS`; read once.

    Returns:
        Findings without a time cost, on at most `MOST` connections.
    """
    directions = _directions(connections)
    tiny = (_tinygram(row) for row in directions if row["tiny"])
    cut = (_cut_message(row) for row in directions if row["cut"] and not row["tiny"])
    return (*tiny, *cut, *_silly_windows(segments, [row for row in directions if row["suspect"]]))


def _is_tiny(row: Mapping[str, Any]) -> bool:
    count, full, behind = row["wire_data_segments"], row["full_segment_bytes"], row["small_behind_small"]
    if full is None or count < MIN_SEGMENTS:
        return False
    return bool(TINY_PART * row["payload_bytes"] <= count * full and behind > BEHIND_SHARE * count)


def _is_cut(row: Mapping[str, Any]) -> bool:
    messages, pieces = row["cut_messages"], row["cut_pieces"]
    if messages is None or row["cut_at_bytes"] is None or row["full_segment_bytes"] is None:
        return False
    return bool(messages >= CUT_TIMES and pieces >= CUT_SHARE * row["wire_data_segments"])


def _is_suspect(row: Mapping[str, Any]) -> bool:
    count, full, least, most = (row[name] for name in ("wire_data_segments", "full_segment_bytes", "min_window_bytes", "window_bytes"))
    if full is None or least is None or most is None or count < MIN_SEGMENTS:
        return False
    return bool(row["payload_bytes"] <= _SUSPECT_PART * count * full and least < min(full, most // 2))


@cache
def _asked() -> tuple[pl.Expr, list[str]]:
    """Return a cheap first test that a connection must pass, and the columns that all further tests and the figures need."""
    many = (pl.col(f"{side}_wire_data_segments") >= MIN_SEGMENTS for side in SIDES)
    cut = (pl.col(f"{side}_cut_messages") >= CUT_TIMES for side in SIDES)
    return pl.any_horizontal(*many, *cut), ["conn", *(f"{side}_{name}" for side in SIDES for name in (*_FIGURES, *_OF_PEER))]


def _directions(connections: pl.LazyFrame) -> list[dict[str, Any]]:
    """Return both directions of all connections in which one direction is `tiny`, `cut` or `suspect`, most segments first."""
    enough, columns = _asked()
    best: list[tuple[int, int, list[dict[str, Any]]]] = []
    for batch in memory.batches(connections.filter(enough).select(columns)):
        for row in batch.iter_rows(named=True):
            sides = _sides(row)
            if any(side["tiny"] or side["cut"] or side["suspect"] for side in sides):
                best.append((-max(side["data_segments"] for side in sides), row["conn"], sides))
        best = sorted(best, key=lambda found: found[:2])[:MOST]
    found = (side for _, _, sides in best for side in sides)
    return sorted(found, key=lambda row: (-row["data_segments"], row["conn"], not row["from_client"]))


def _sides(connection: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return both directions of a connection, each with its figures, figures of the peer, and whether it is `tiny`, `cut` or `suspect`."""
    found = []
    for side, from_client in SIDES.items():
        (other,) = SIDES.keys() - {side}
        row = {"conn": connection["conn"], "from_client": from_client}
        row |= {name: connection[f"{side}_{name}"] for name in _FIGURES}
        row |= {name: connection[f"{other}_{column}"] for column, name in _OF_PEER.items()}
        found.append(row | {"tiny": _is_tiny(row), "cut": _is_cut(row), "suspect": _is_suspect(row)})
    return found


def _tinygram(row: Mapping[str, Any]) -> Finding:
    count, payload, full = row["wire_data_segments"], row["payload_bytes"], row["full_segment_bytes"]
    header = row["header_bytes"] or MIN_HEADER_BYTES
    share = count * header / (count * header + payload)
    known = "" if row["header_bytes"] else "at least "
    return Finding(
        id="tinygrams",
        severity=Severity.LOW if share >= LOW_SHARE else Severity.INFO,
        confidence=Confidence.PROVED,
        conn=row["conn"],
        from_client=row["from_client"],
        cost_ns=None,
        cost_share=None,
        title=f"{count:,} small segments ({payload / count:.0f} B on average) would fit in "
        f"{numbers.counted(_full(payload, full), 'full one')}",
        mechanism=(
            "Small segments are sent while earlier small ones are in flight, so Nagle's algorithm is off and each small write is sent "
            f"at once. Headers ({header} bytes each) are {known}{numbers.share(share)} of the bytes; "
            f"{row['acks']:,} ACKs without data came back."
        ),
        evidence_frames=() if row["small_in_flight_frame"] is None else (row["small_in_flight_frame"],),
        limits="An application that must not wait, such as a terminal or a game, may need small segments. Would be "
        "disproved by: a capture at the receiver in which the same data arrives in larger segments.",
        remedy=(
            "write larger pieces (a buffer, writev, TCP_CORK)",
            "keep Nagle's algorithm on where the application does not wait for answers",
        ),
        predicted_gain=None,
        source="Mosher (small packets); RFC 896; RFC 1122, 4.2.3.4",
    )


def _cut_message(row: Mapping[str, Any]) -> Finding:
    messages, pieces, header = row["cut_messages"], row["cut_pieces"], row["header_bytes"] or MIN_HEADER_BYTES
    waited = numbers.duration(row["cut_waited_ns"])
    at_bytes, full = row["cut_at_bytes"], row["full_segment_bytes"]
    is_full = at_bytes % full == 0
    where = "so that the rest is at most an eighth of a segment" if is_full else "at the end of a buffer, not of a full segment"
    first = f"Full segments of {full:,} bytes" if is_full else f"A segment of less than {full:,} bytes"
    return Finding(
        id="tinygrams",
        severity=Severity.LOW if row["cut_waited_ns"] else Severity.INFO,
        confidence=Confidence.CONSISTENT,
        conn=row["conn"],
        from_client=row["from_client"],
        cost_ns=None,
        cost_share=None,
        title=f"{messages:,} messages are cut at {at_bytes:,} bytes, {where}",
        mechanism=(
            f"{first} end{'' if is_full else 's'} there, and the rest of the message follows in another segment. This costs "
            f"at most {pieces:,} of {row['data_segments']:,} segments, {pieces * header:,} bytes of headers ({header} each), "
            "and the work of both hosts for each segment."
            + (
                f" The rest of the messages waited for the ACK of the earlier data, {waited} in total; the ledger counts that time."
                if row["cut_waited_ns"]
                else ""
            )
        ),
        evidence_frames=() if row["cut_frame"] is None else (row["cut_frame"],),
        limits=(
            "A socket that passes on 1,024 or 4,096 bytes at a time looks the same as an application that writes such pieces. "
            f"Would be disproved by: longer messages that are not cut at {at_bytes:,} bytes; a cut that moves when the MSS changes."
        ),
        remedy=(
            "write messages that fit the buffer: at most its size, or a multiple of it",
            "raise the send buffer (SO_SNDBUF) above the message size",
            "write each message with one call (a buffer, writev, TCP_CORK)",
        ),
        predicted_gain=None,
        source="Mosher 1985 (1,025 bytes over a buffer of 2,048); SunOS 4.1.3 os/uipc_socket.c (sosend: four clusters of 1,024 bytes)",
    )


def _full(payload_bytes: int, full_bytes: int) -> int:
    return -(-payload_bytes // full_bytes)


def _silly_windows(segments: pl.LazyFrame, suspects: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    if not suspects:
        return
    limits = pl.LazyFrame(
        {
            "conn": [row["conn"] for row in suspects],
            "from_client": [row["from_client"] for row in suspects],
            "silly_bytes": [min(row["full_segment_bytes"], row["window_bytes"] // 2) for row in suspects],
        },
        schema={"conn": pl.UInt32, "from_client": pl.Boolean, "silly_bytes": pl.Int64},
    )
    col = pl.col
    filled = (col("payload_bytes") == col("usable_window_bytes")) & (col("payload_bytes") > 0) & (col("kind") == "new")
    cut = (
        segments.filter(col("conn").is_in(sorted({row["conn"] for row in suspects})) & filled)
        .join(limits, on=["conn", "from_client"])
        .filter(col("payload_bytes") < col("silly_bytes"))
        .group_by("conn", "from_client")
        .agg(
            cut=pl.len(),
            cut_bytes=col("payload_bytes").sum(),
            least=col("payload_bytes").min(),
            frames=col("frame").bottom_k(EVIDENCE_FRAMES),
        )
        .filter(col("cut") >= CUT_TIMES)
        .collect()
    )
    counted = {(row["conn"], row["from_client"]): row for row in cut.iter_rows(named=True)}
    for row in suspects:
        direction = row["conn"], row["from_client"]
        if direction in counted:
            yield _silly_window(row, counted[direction])


def _silly_window(row: Mapping[str, Any], cut: Mapping[str, Any]) -> Finding:
    full, window = row["full_segment_bytes"], row["window_bytes"]
    header = row["header_bytes"] or MIN_HEADER_BYTES
    needed = _full(cut["cut_bytes"], full)
    return Finding(
        id="silly-window",
        severity=Severity.LOW if cut["cut"] >= CUT_SHARE * row["data_segments"] else Severity.INFO,
        confidence=Confidence.PROVED,
        conn=row["conn"],
        from_client=row["from_client"],
        cost_ns=None,
        cost_share=None,
        title=f"{cut['cut']:,} of {row['data_segments']:,} segments are cut to silly windows, down to {cut['least']:,} bytes",
        mechanism=(
            f"The window had room for less than a full segment ({full:,} bytes) and less than half of the largest window ({window:,}); the "
            f"sender filled it to the byte. These {cut['cut_bytes']:,} bytes would fit in {numbers.counted(needed, 'full segment')}; "
            f"the headers of the additional segments ({header} bytes each) add {(cut['cut'] - needed) * header:,} bytes."
        ),
        evidence_frames=tuple(sorted(cut["frames"])),
        limits="A capture away from the sender may miss some of these segments. Would be disproved by: segments of "
        "the evidence frames that leave room in the receive window.",
        remedy=(
            "let the receiver open its window by at least a full segment or half of its buffer (RFC 9293, 3.8.6.2.2)",
            "let the receiving application read more per call, and raise the receive buffer",
            "let the sender wait for a full segment or half of the largest window (RFC 9293, 3.8.6.2.1)",
        ),
        predicted_gain=None,
        source="RFC 813; RFC 1122, 4.2.3.3 and 4.2.3.4; RFC 9293, 3.8.6.2",
    )
