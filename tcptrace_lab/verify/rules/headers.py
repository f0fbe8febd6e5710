"""Rules on header fields, and on segments that tshark does not dissect completely."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.schema import SIDES
from tcptrace_lab.text.numbers import counted
from tcptrace_lab.verify.differences import Rule
from tcptrace_lab.verify.rules.texts import span
from tcptrace_lab.verify.tshark import ANALYSIS, SCALE_UNKNOWN
from tcptrace_lab.verify.wireshark_model import Complete

if TYPE_CHECKING:
    from tcptrace_lab.verify.segments import SegmentCase

_REPORTED = frozenset({*ANALYSIS, "bytes_in_flight", "ack_rtt_ns", "rto_ns", "rto_frame"})

_CARRIES_NS = frozenset({1 << 31, 1 << 32, (1 << 31) * 1_000, (1 << 32) * 1_000})
"""Possible errors, in ns, of a tool's time if the fraction of a second in a timestamp is 2^31 or more.

The tool omits the top bit of the fraction, or reads the fraction as a signed number. The fraction is in ns or µs.
"""

_CARRIED = "carried into its seconds"
"""Part of the engine's message about a timestamp whose fraction exceeds one second."""


def _one_syn(case: SegmentCase) -> str | None:
    row, verdict = case.row, case.verdict
    if verdict is None or row["window_bytes"] is not None or row["their_scale"] in {None, SCALE_UNKNOWN} or verdict.syns > 1:
        return None
    were = "was" if verdict.syns == 1 else "were"
    return f"{verdict.syns} of the two SYNs {were} captured before this segment; tshark multiplies the window by {row['their_scale']}"


def _scaled_anew(case: SegmentCase) -> str | None:
    """Only one host offered a window scale, so windows are not scaled."""
    row, judged = case.row, case.judged
    if judged is None or judged.syn_again is None or row["window_bytes"] != row["their_window_field"] or not row["their_scale"]:
        return None
    if case.connection["client_window_scale_offered"] is not None and case.connection["server_window_scale_offered"] is not None:
        return None
    again = f"the SYN was repeated in frame {judged.syn_again}, after a SYN-ACK"
    return f"{again}; tshark applies its window scale, and multiplies by {row['their_scale']}"


def _carried(case: SegmentCase) -> str | None:
    ours, theirs = case.row["ts_ns"], case.row["their_ts_ns"]
    if ours is None or theirs is None:
        return None
    if abs(ours - theirs) not in _CARRIES_NS and ours != -theirs:
        return None
    if not any(_CARRIED in problem for problem in case.problems):
        return None
    shown = "shows the whole time as negative" if ours == -theirs else f"does not, and is {span(ours - theirs)} off"
    return f"the timestamp's fraction of a second is 1 s or more: tcptrace-lab carries it into the seconds, tshark {shown}"


def _no_length(case: SegmentCase) -> str | None:
    row = case.row
    if row["their_payload_bytes"] is not None:
        return None
    room = f"its packet ({row['their_protocols']})"
    return f"the TCP header claims to be longer than {room}: tshark shows no length, scale or analysis"


def _options_beyond(case: SegmentCase) -> str | None:
    return _no_length(case) if case.row[case.item] is None else None


def _cut_option(case: SegmentCase) -> str | None:
    row = case.row
    if row["their_captured_bytes"] >= row["their_wire_bytes"] or row["captured_payload_bytes"] or row[case.item] is not None:
        return None
    return f"{row['their_captured_bytes']} of {row['their_wire_bytes']} bytes were captured, and the option extends beyond them"


def _parts_of_blocks(case: SegmentCase) -> str | None:
    """The option ends within a SACK block. Its length should be 2 bytes plus 8 bytes per block (RFC 2018, 3)."""
    edges = len(case.row["their_sack_blocks"] or ())
    if edges % 2 == 0 or case.row["their_captured_bytes"] < case.row["their_wire_bytes"]:
        return None
    return f"the SACK option ends in the middle of a block, after {counted(edges, 'edge')}: tshark stops there, without analysis"


def _cut_offer(case: SegmentCase) -> str | None:
    """Both SYNs were captured, but the options of one of them are truncated."""
    row, verdict = case.row, case.verdict
    if verdict is None or row["window_bytes"] is not None or row["their_scale"] in {None, SCALE_UNKNOWN} or verdict.syns < len(SIDES):
        return None
    unknown = [side for side in SIDES if case.connection[f"{side}_sack_permitted"] is None or case.connection[f"{side}_timestamps"] is None]
    if not unknown:
        return None
    whose = " and the ".join(unknown)
    return f"the capture cut options of the {whose}'s SYN, perhaps including a window scale; tshark multiplies by {row['their_scale']}"


def _cut_reuse(case: SegmentCase) -> str | None:
    """The segment is a truncated SYN on reused ports. tshark counts it in a new connection, but stops before it reports the reuse."""
    row, verdict = case.row, case.verdict
    if verdict is None or "reused_ports" not in verdict.verdicts or row["their_captured_bytes"] >= row["their_wire_bytes"] or case.theirs:
        return None
    if row["their_completeness"] != Complete.SYN:
        return None
    return (
        f"{row['their_captured_bytes']} of {row['their_wire_bytes']} bytes were captured, options cut: tshark counts the SYN in a new "
        "connection, but stops before it reports the port reuse"
    )


def _moved_zero(case: SegmentCase) -> str | None:
    judged, row = case.judged, case.row
    if judged is None:
        return None
    moved_by = judged.zero_moved_by if case.item == "seq" else judged.other_zero_moved_by
    if moved_by is None:
        return None
    raw, shown = row[f"their_raw_{case.item}"], row[f"their_{case.item}"]
    return (
        f"frame {moved_by} is a SYN-ACK after other segments of its side, and they do not follow from its sequence number: "
        f"tshark numbers its side from this SYN-ACK, and shows {raw:,} as {shown:,}; tcptrace-lab keeps the earlier numbering"
    )


def _cut_header(case: SegmentCase) -> str | None:
    row = case.row
    if row["their_captured_bytes"] >= row["their_wire_bytes"] or row["captured_payload_bytes"] or case.theirs:
        return None
    if row["their_bytes_in_flight"] is not None or row["their_acks_frame"] is not None or case.judged is None:
        return None
    numbers = case.judged.bytes_in_flight, case.judged.acks_frame, case.judged.rto_frame
    if not case.judged.flags and all(number is None for number in numbers):
        return None
    return f"{row['their_captured_bytes']} of {row['their_wire_bytes']} bytes were captured, options cut: tshark stops before its analysis"


RULES = (
    Rule(
        "tshark-scales-by-one-syn",
        "tshark scales windows as soon as one SYN was captured; tcptrace-lab needs both SYNs",
        "RFC 7323, 2.2",
        frozenset({"window_known"}),
        _one_syn,
    ),
    Rule(
        "tshark-scales-by-cut-syns",
        "tshark treats a window scale option that the capture truncated as not offered",
        "RFC 7323, 2.2",
        frozenset({"window_known"}),
        _cut_offer,
    ),
    Rule(
        "tshark-scales-anew",
        "tshark applies the window scale of a repeated SYN even if the earlier SYN-ACK offered none",
        "RFC 7323, 2.2; seen here",
        frozenset({"window_bytes"}),
        _scaled_anew,
    ),
    Rule(
        "tshark-counts-from-late-syn-acks",
        "tshark numbers a direction from its latest SYN-ACK, even one in the middle of the connection",
        "seen here",
        frozenset({"seq", "ack"}),
        _moved_zero,
    ),
    Rule(
        "tshark-reads-cut-options",
        "tshark shows the captured part of a truncated option",
        "seen here",
        frozenset({"tsval", "sack_blocks"}),
        _cut_option,
    ),
    Rule(
        "tshark-stops-in-odd-options",
        "tshark stops at a SACK option with an invalid length; tcptrace-lab reads its complete blocks",
        "RFC 2018, 3; seen here",
        frozenset({"sack_blocks"}) | _REPORTED,
        _parts_of_blocks,
    ),
    Rule(
        "times-out-of-range",
        "if the fraction of a second in a timestamp is 2^31 or more, tshark reads it as a signed number",
        "pcap-savefile(5)",
        frozenset({"ts_ns"}),
        _carried,
    ),
    Rule(
        "tshark-has-no-length",
        "tshark stops at a TCP header that is longer than its packet",
        "RFC 9293, 3.1; seen here",
        frozenset({"seq", "ack", "payload_bytes", "window_bytes", "completeness"}) | _REPORTED,
        _no_length,
    ),
    Rule(
        "ours-reads-no-options-of-false-headers",
        "tcptrace-lab reads no options of a TCP header that is longer than its packet; tshark reads those that are present",
        "RFC 9293, 3.1",
        frozenset({"tsval", "tsecr", "sack_blocks"}),
        _options_beyond,
    ),
    Rule(
        "tshark-tells-no-reuse-of-cut-headers",
        "tshark reports no port reuse if the capture truncated the header's options",
        "seen here",
        frozenset({"reused_ports", "completeness"}),
        _cut_reuse,
    ),
    Rule(
        "tshark-tells-no-cut-headers", "tshark analyzes no header whose options the capture truncated", "seen here", _REPORTED, _cut_header
    ),
)
