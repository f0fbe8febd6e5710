"""One packet: its decoded fields, its kind, and why it was sent when it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.ledger import stalls
from tcptrace_lab.report.figures import plots
from tcptrace_lab.report.parts import statistics
from tcptrace_lab.schema import CAUSES
from tcptrace_lab.text import numbers
from tcptrace_lab.view import tables
from tcptrace_lab.view.problem import NotFound

if TYPE_CHECKING:
    from tcptrace_lab.view.cached.store import Store

_FLAGS = ((2, "SYN"), (1, "FIN"), (4, "RST"), (8, "PSH"), (16, "ACK"), (32, "URG"), (64, "ECE"), (128, "CWR"), (256, "AE"))
_DEPARTS = 1 | 2
"""The flags SYN and FIN. A segment with SYN, FIN or data is a departure."""

_SURE = {"proved": "", "consistent": "most likely ", "possible": "possibly "}

_RELEASED = {
    "ack": "the ACK in frame {frame} allowed it",
    "write": "the application wrote data",
    "timer": "a timer expired",
    "burst": "it belongs to the burst that began with frame {frame}",
}


def packet(store: Store, frame: int, conn: int | None = None) -> dict[str, Any]:
    """Return everything on the segment of a frame. In a frame with several segments, the segment of `conn` or else the first is used.

    Raises:
        NotFound: there is no such frame, or the frame carries no segment (of this connection).
    """
    conn = store.connection_of_frame(frame) if conn is None else conn
    found = store.segments.of(conn).filter(pl.col("frame") == frame).collect()
    if found.is_empty():
        raise NotFound(f"connection {conn} has no segment in frame {frame}")
    segment = found.row(0, named=True)
    connection = store.connection(conn)
    origin_ns = connection["first_ts_ns"] or 0
    wait = _wait(store, segment, origin_ns)
    return {
        "frame": frame,
        "connection": conn,
        "from_client": segment["from_client"],
        "ts_ns": None if segment["ts_ns"] is None else segment["ts_ns"] - origin_ns,
        "sentence": sentence(segment, wait),
        "fields": [_field(segment, column, origin_ns) for column in schema.SEGMENTS if column.name not in {"frame", "conn"}],
        "kind": segment["kind"],
        "kind_means": kind_words(segment),
        "filter": f"frame.number == {frame}",
        "wait": wait,
    }


def _wait(store: Store, segment: dict[str, Any], origin_ns: int) -> dict[str, Any] | None:
    """Return the longest interval of the wait that ended with this segment, with its evidence; None if no wait ended with it."""
    if not segment["payload_bytes"] and not segment["flags"] & _DEPARTS:
        return None
    rows = (
        store.waits.of(segment["conn"])
        .filter(pl.col("frame_after") == segment["frame"], pl.col("from_client") == segment["from_client"])
        .sort(pl.col("end_ns") - pl.col("start_ns"), descending=True, maintain_order=True)
        .head(1)
        .collect()
    )
    if rows.is_empty():
        return None
    row = rows.row(0, named=True)
    first = row["frame_before"] if row["frame_before"] is not None else segment["frame"]
    return {
        "start_ns": row["start_ns"] - origin_ns,
        "end_ns": row["end_ns"] - origin_ns,
        "wait_ns": row["wait_ns"],
        "cause": row["cause"],
        "means": CAUSES[row["cause"]],
        "confidence": row["confidence"],
        "evidence": stalls.proof(row),
        "filter": f"frame.number in {{{first}..{segment['frame']}}}",
    }


def sentence(segment: dict[str, Any], wait: dict[str, Any] | None) -> str:
    """Say in one line why the segment was not sent earlier."""
    who = "client" if segment["from_client"] else "server"
    if not segment["payload_bytes"] and not segment["flags"] & _DEPARTS:
        return f"The {who} sent this segment at once, because it carries no data ({kind_words(segment)})."
    reason = _RELEASED.get(segment["released_by"] or "", "").format(frame=segment["released_by_frame"])
    if wait is None:
        because = f": {reason}" if reason else " that the capture shows"
        return f"The segment was sent without a wait{because}."
    length = numbers.duration(wait["end_ns"] - wait["start_ns"])
    sure = _SURE[wait["confidence"]] if wait["cause"] != "unknown" else ""
    left = f"; then {reason}" if reason else ""
    return f"The {who} sent nothing for {length} before this segment, {sure}because of {wait['cause']}: {wait['means']}{left}."


def kind_words(segment: dict[str, Any]) -> str:
    """Return the kind of a segment in words."""
    kind = segment["kind"]
    if kind in plots.MARKS:
        return plots.MARKS[kind].label
    flags = [name for bit, name in _FLAGS if segment["flags"] & bit and name != "ACK"]
    if kind == "new":
        return "new data" if segment["payload_bytes"] else ", ".join(flags) or "new"
    return "ACK" if kind == "ack" else str(kind).replace("_", " ")


def _field(segment: dict[str, Any], column: schema.Column, origin_ns: int) -> dict[str, Any]:
    value, kind = segment[column.name], tables.kind(column)
    if column.name == "flags":
        value, kind = ", ".join(name for bit, name in _FLAGS if value & bit), "text"
    elif kind == "instant" and value is not None:
        value -= origin_ns
    return {"label": statistics.label(column), "value": value, "kind": kind, "tooltip": tables.meaning(column)}
