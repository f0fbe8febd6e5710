"""Parts of sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.verify.wireshark import SEQ_SPACE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcptrace_lab.verify.segments import SegmentCase

_HALF_SPACE = SEQ_SPACE // 2
_US, _MS, _S = 10**3, 10**6, 10**9


def span(ns: int | None) -> str:
    """`3.2 ms`; to four figures."""
    if ns is None:
        return "an unknown time"
    for unit_ns, unit in ((_S, "s"), (_MS, "ms"), (_US, "µs")):
        if abs(ns) >= unit_ns:
            return f"{ns / unit_ns:.4g} {unit}"
    return f"{ns} ns"


def kind(row: Mapping[str, Any]) -> str:
    """`out of order`, `rto retransmit`: our kind in words."""
    return str(row["kind"]).replace("_", " ")


def proof(row: Mapping[str, Any]) -> str:
    """What our kind is known by, as the engine tells it; empty where it tells nothing."""
    evidence = row.get("evidence")
    if evidence in {None, "none"}:
        return ""
    other = f", frame {row['evidence_frame']}" if row.get("evidence_frame") else ""
    return f" ({row['confidence']} by {str(evidence).replace('_', ' ')}{other})"


def offset_of(case: SegmentCase, raw: int) -> int:
    """A raw sequence number of the segment's side as an offset of our stream."""
    return int(case.row["seq"] + (raw - case.row["their_raw_seq"] + _HALF_SPACE) % SEQ_SPACE - _HALF_SPACE)


def other_offset_of(case: SegmentCase, raw: int) -> int:
    """The same for the other side's, by what the segment acknowledges."""
    return int(case.row["ack"] + (raw - case.row["their_raw_ack"] + _HALF_SPACE) % SEQ_SPACE - _HALF_SPACE)
