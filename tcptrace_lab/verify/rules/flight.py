"""Rules on bytes in flight. tshark counts from the lowest to the highest sequence number of its unacknowledged segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.text.numbers import counted
from tcptrace_lab.verify.differences import Rule
from tcptrace_lab.verify.rules.texts import offset_of
from tcptrace_lab.verify.wireshark_model import FIN, MAX_UNACKED, SEQ_SPACE, SYN

if TYPE_CHECKING:
    from tcptrace_lab.verify.segments import SegmentCase

_ITEM = frozenset({"bytes_in_flight"})
_SOURCE = "Wireshark's preference tcp.track_bytes_in_flight, the display filter reference, and experiments with tshark"


def _edges(case: SegmentCase) -> tuple[int, int, int] | None:
    """Return how far tshark's range extends below our range and above it, and how many bytes tshark subtracts for SACK blocks.

    Return None if one of these numbers is unknown.
    """
    judged, verdict = case.judged, case.verdict
    if judged is None or verdict is None or verdict.una is None or judged.lowest_kept is None or judged.highest_kept is None:
        return None
    if verdict.bytes_in_flight is None or not case.is_predicted or judged.bytes_in_flight is None:
        return None
    highest = verdict.end if verdict.highest is None else max(verdict.highest, verdict.end)
    return verdict.una - offset_of(case, judged.lowest_kept), offset_of(case, judged.highest_kept) - highest, judged.sacked_bytes


def _sacked(case: SegmentCase) -> str | None:
    edges = _edges(case)
    if edges is None or not edges[2]:
        return None
    lower, higher, sacked = edges
    if not _adds_up(case, lower + higher - sacked):
        return None
    return (
        f"SACK blocks cover {counted(sacked, 'byte')} of the {case.verdict.bytes_in_flight if case.verdict else 0:,} in flight; tshark "
        "subtracts them" + _rest(lower, higher)
    )


def _from_kept(case: SegmentCase) -> str | None:
    edges = _edges(case)
    if edges is None or edges[2] or not edges[0]:
        return None
    lower, higher, _ = edges
    if not _adds_up(case, lower + higher):
        return None
    what = "above" if lower < 0 else "below"
    return f"tshark counts from the lowest segment that it keeps, {counted(abs(lower), 'byte')} {what} the last ACK" + _rest(0, higher)


def _to_kept(case: SegmentCase) -> str | None:
    edges = _edges(case)
    if edges is None or edges[2] or edges[0] or not edges[1] or not _adds_up(case, edges[1]):
        return None
    return (
        f"tshark counts up to a sequence number {counted(abs(edges[1]), 'byte')} {'above' if edges[1] > 0 else 'below'} the highest byte "
        "sent"
    )


def _rest(lower: int, higher: int) -> str:
    parts = []
    if lower:
        parts.append(f"tshark counts from {counted(abs(lower), 'byte')} {'below' if lower > 0 else 'above'} the last ACK")
    if higher:
        parts.append(f"tshark counts up to {counted(abs(higher), 'byte')} {'above' if higher > 0 else 'below'} the highest byte sent")
    return "; " + ", ".join(parts) if parts else ""


def _adds_up(case: SegmentCase, difference: int) -> bool:
    return bool(case.row["their_bytes_in_flight"] - (case.verdict.bytes_in_flight if case.verdict else 0) == difference - _control(case))


def _control(case: SegmentCase) -> int:
    """Return 1 if only tshark subtracts the SYN or FIN of the segment, else 0. We subtract a SYN or FIN only if it is new."""
    verdict = case.verdict
    grown = verdict is not None and (verdict.highest is None or verdict.end > verdict.highest)
    return int(bool(case.row["flags"] & (SYN | FIN)) and not grown)


def _fin(case: SegmentCase) -> str | None:
    edges = _edges(case)
    if edges is None or any(edges) or not _control(case) or not _adds_up(case, 0):
        return None
    return "tshark subtracts 1 for the FIN of this segment, although the FIN is retransmitted and in flight"


def _all_sacked(case: SegmentCase) -> str | None:
    judged = case.judged
    if (
        judged is None
        or not case.is_predicted
        or judged.bytes_in_flight is not None
        or judged.lowest_kept is None
        or judged.highest_kept is None
    ):
        return None
    stretch = (judged.highest_kept - judged.lowest_kept) % SEQ_SPACE
    if judged.sacked_bytes < stretch:
        return None
    blocks = counted(judged.sacked_bytes, "byte")
    return (
        f"tshark subtracts the {blocks} of the last SACK blocks from the {stretch:,} unacknowledged bytes; the result is not positive, "
        "so tshark shows nothing"
    )


def _below_zero(case: SegmentCase) -> str | None:
    judged = case.judged
    if judged is None or not case.is_predicted or not judged.below_zero:
        return None
    zero = offset_of(case, (case.row["their_raw_seq"] - case.row["their_seq"]) % SEQ_SPACE)
    return (
        f"tshark numbers this direction from {zero:,}; lower bytes are in flight, and tshark shows their sequence numbers as values "
        "near 2^32"
    )


def _full(case: SegmentCase) -> str | None:
    if case.judged is None or not case.is_predicted or not case.judged.is_full:
        return None
    return f"tshark keeps at most {MAX_UNACKED:,} unacknowledged segments, and as many are unacknowledged here"


def _stopped(case: SegmentCase) -> str | None:
    if case.judged is None or not case.is_predicted or not case.judged.not_counting:
        return None
    return "bytes of this direction are missing from the capture, and the peer has sent no segment since"


def _unanswered(case: SegmentCase) -> str | None:
    if case.verdict is None or case.row["in_flight_bytes"] is not None or not case.is_predicted:
        return None
    return (
        f"the capture has no ACK of the peer so far; tshark counts all {counted(case.row['their_bytes_in_flight'], 'byte')} captured so far"
    )


RULES = (
    Rule(
        "tshark-keeps-10000-segments",
        "tshark keeps at most 10,000 unacknowledged segments of a direction, and does not count further ones",
        _SOURCE,
        _ITEM | {"ack_rtt_ns"},
        _full,
    ),
    Rule(
        "tshark-counts-from-the-first",
        "tshark treats sequence numbers below that of a direction's first segment (or of a later SYN-ACK) as very high ones",
        _SOURCE,
        _ITEM,
        _below_zero,
    ),
    Rule(
        "tshark-hides-what-is-all-sacked",
        "tshark shows no bytes in flight if SACK blocks cover all unacknowledged bytes",
        _SOURCE,
        _ITEM,
        _all_sacked,
    ),
    Rule("tshark-takes-off-fin", "tshark subtracts even a retransmitted FIN from the bytes in flight", _SOURCE, _ITEM, _fin),
    Rule(
        "tshark-takes-off-sacked-bytes",
        "tshark subtracts the SACK blocks of the last ACK; tcptrace-lab counts all unacknowledged bytes",
        _SOURCE,
        _ITEM,
        _sacked,
    ),
    Rule(
        "tshark-counts-from-captured",
        "tshark counts from the lowest captured segment that no ACK covers; tcptrace-lab counts from the last ACK",
        _SOURCE,
        _ITEM,
        _from_kept,
    ),
    Rule(
        "tshark-counts-to-kept",
        "tshark counts to the highest segment that no ACK covers; tcptrace-lab counts to the highest byte sent",
        _SOURCE,
        _ITEM,
        _to_kept,
    ),
    Rule(
        "tshark-stops-counting-after-a-hole",
        "after a gap in the captured bytes, tshark shows no bytes in flight until the peer sends a segment",
        _SOURCE,
        _ITEM,
        _stopped,
    ),
    Rule(
        "tshark-counts-without-ack",
        "before the first ACK of the peer, tshark counts all captured bytes; tcptrace-lab reports no value",
        _SOURCE,
        _ITEM,
        _unanswered,
    ),
)
