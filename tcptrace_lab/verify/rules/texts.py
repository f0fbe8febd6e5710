"""Functions that format parts of a rule's sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.verify.wireshark_model import SEQ_SPACE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcptrace_lab.verify.segments import SegmentCase

_HALF_SPACE = SEQ_SPACE // 2
_US, _MS, _S = 10**3, 10**6, 10**9


def span(ns: int | None) -> str:
    """Return a time as text with up to four digits, such as `3.2 ms`."""
    if ns is None:
        return "an unknown time"
    for unit_ns, unit in ((_S, "s"), (_MS, "ms"), (_US, "µs")):
        if abs(ns) >= unit_ns:
            return f"{ns / unit_ns:.4g} {unit}"
    return f"{ns} ns"


def kind(row: Mapping[str, Any]) -> str:
    """Return our kind of a segment in words: `out of order`, `rto retransmit`."""
    return str(row["kind"]).replace("_", " ")


def proof(row: Mapping[str, Any]) -> str:
    """Return how sure the engine is of the segment's kind, and why: ` (proved by sack, frame 12)`.

    Return an empty text without evidence.
    """
    evidence = row.get("evidence")
    if evidence in {None, "none"}:
        return ""
    other = f", frame {row['evidence_frame']}" if row.get("evidence_frame") else ""
    return f" ({row['confidence']} by {str(evidence).replace('_', ' ')}{other})"


def offset_of(case: SegmentCase, raw: int) -> int:
    """Convert a header sequence number of the segment's direction to a stream offset."""
    return int(case.row["seq"] + (raw - case.row["their_raw_seq"] + _HALF_SPACE) % SEQ_SPACE - _HALF_SPACE)


def other_offset_of(case: SegmentCase, raw: int) -> int:
    """Convert a header sequence number of the other direction to a stream offset, with the help of the segment's ACK number."""
    return int(case.row["ack"] + (raw - case.row["their_raw_ack"] + _HALF_SPACE) % SEQ_SPACE - _HALF_SPACE)
