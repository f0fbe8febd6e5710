"""Rules on ACKs of bytes that are missing in the capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.verify.differences import Rule
from tcptrace_lab.verify.rules.texts import other_offset_of
from tcptrace_lab.verify.wireshark_model import RST, SEQ_SPACE

if TYPE_CHECKING:
    from tcptrace_lab.verify.segments import SegmentCase

_GUIDE = "Wireshark User's Guide, 7.5 TCP Analysis"
_UNSEEN = frozenset({"ack_lost_segment"})


def _ahead_of_contiguous(case: SegmentCase) -> str | None:
    verdict, judged = case.verdict, case.judged
    if verdict is None or judged is None or not case.is_predicted or "ack_lost_segment" not in case.theirs or judged.contiguous is None:
        return None
    highest = verdict.other_highest
    if highest is None or case.row["ack"] is None or case.row["ack"] > highest:
        return None
    seen = other_offset_of(case, judged.contiguous)
    return (
        f"this segment acknowledges {case.row['ack']:,}; the capture has bytes of the peer up to {highest:,}, but without a gap only up "
        f"to {seen:,}"
    )


def _repeats_reported_gap(case: SegmentCase) -> str | None:
    verdict, judged = case.verdict, case.judged
    if verdict is None or judged is None or not case.is_predicted or "ack_lost_segment" not in case.theirs:
        return None
    highest = verdict.other_highest
    if highest is None or case.row["ack"] <= highest or "ack_lost_segment" in verdict.verdicts:
        return None
    return f"tcptrace-lab reported an earlier ACK {case.row['ack']:,}; the capture has bytes of the peer only up to {highest:,}"


def _beyond_half_space(case: SegmentCase) -> str | None:
    verdict, judged = case.verdict, case.judged
    if (
        verdict is None
        or judged is None
        or not case.is_predicted
        or "ack_lost_segment" not in verdict.verdicts
        or judged.contiguous is None
    ):
        return None
    ack, around = case.row["ack"], other_offset_of(case, judged.contiguous)
    if verdict.other_highest is None or not verdict.other_highest < ack <= around:
        return None
    return (
        f"this segment acknowledges {ack:,}, more than 2^31 bytes beyond {around - SEQ_SPACE:,}, where the first gap in the peer's "
        "bytes begins"
    )


def _gap_reported_once(case: SegmentCase) -> str | None:
    judged = case.judged
    if judged is None or not case.is_predicted or "ack_lost_segment" in case.theirs or not judged.reported_before:
        return None
    return (
        f"this segment acknowledges {case.row['ack']:,}, beyond all captured bytes; tshark reported an earlier such ACK, and the peer's "
        "ACK has not advanced since"
    )


def _by_reset(case: SegmentCase) -> str | None:
    if not case.is_predicted or "ack_lost_segment" not in case.theirs or not case.row["flags"] & RST:
        return None
    return "the segment is a RST, which may be forged (RFC 5961)"


def _answers_first_keepalive(case: SegmentCase) -> str | None:
    verdict, row = case.verdict, case.row
    if verdict is None or not case.is_predicted or "ack_lost_segment" not in case.theirs or row["acked_unseen_bytes"]:
        return None
    if verdict.other_highest is None or row["ack"] != verdict.other_highest + 1:
        return None
    return (
        f"the peer sent only one segment, without data, and this ACK {row['ack']:,} is one above its number: if the segment is a "
        "keepalive, no byte is missing"
    )


RULES = (
    Rule(
        "tshark-misses-first-keepalives",
        "if the first segment of a direction is a keepalive, tshark reports that its answer acknowledges unseen bytes",
        f"{_GUIDE}, TCP ACKed unseen segment; RFC 9293, 3.8.4",
        _UNSEEN,
        _answers_first_keepalive,
    ),
    Rule(
        "tshark-loses-count-behind-a-hole",
        "tshark reports an ACK beyond the first gap in the captured bytes; tcptrace-lab reports an ACK beyond all captured bytes",
        _GUIDE,
        _UNSEEN,
        _ahead_of_contiguous,
    ),
    Rule(
        "tshark-tells-unseen-again",
        "tshark reports an ACK of the same unseen bytes again after the peer's ACK has advanced; tcptrace-lab reports these bytes once",
        _GUIDE,
        _UNSEEN,
        _repeats_reported_gap,
    ),
    Rule(
        "tshark-tells-unseen-once",
        "tshark reports ACKs of unseen bytes once, and again only after the peer's ACK has advanced",
        _GUIDE,
        _UNSEEN,
        _gap_reported_once,
    ),
    Rule(
        "tshark-sees-no-more-than-half",
        "tshark treats an ACK as old if it is more than 2^31 bytes beyond the first gap",
        "RFC 9293, 3.4",
        _UNSEEN,
        _beyond_half_space,
    ),
    Rule(
        "tshark-believes-resets", "tshark uses the ACK field of a RST like that of any segment", f"{_GUIDE}; RFC 5961", _UNSEEN, _by_reset
    ),
)
