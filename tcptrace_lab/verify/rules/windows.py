"""Rules on windows, window probes, and segments beyond the data seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.verify.differences import Rule
from tcptrace_lab.verify.rules.texts import offset_of

if TYPE_CHECKING:
    from tcptrace_lab.verify.segments import SegmentCase


def _empty_beyond(case: SegmentCase) -> str | None:
    verdict, judged = case.verdict, case.judged
    if verdict is None or judged is None or not case.is_predicted or "lost_segment" not in case.theirs or verdict.end != case.row["seq"]:
        return None
    if judged.highest is None:
        return None
    return f"it has no data; its number {case.row['seq']:,} is beyond the {offset_of(case, judged.highest):,} that its side had come to"


def _own(case: SegmentCase) -> str | None:
    """We see no gap, because frames that only we count as segments filled it."""
    verdict, judged = case.verdict, case.judged
    if verdict is None or judged is None or not case.is_predicted or not case.own or "lost_segment" not in case.theirs:
        return None
    if judged.highest is None or verdict.highest is None or not offset_of(case, judged.highest) < case.row["seq"] <= verdict.highest:
        return None
    return (
        f"tshark saw its side up to {offset_of(case, judged.highest):,}; frame {max(case.own)} and others are segments only "
        "for tcptrace-lab"
    )


def _after_reset(case: SegmentCase) -> str | None:
    """The payload of a RST describes the reset and is not part of the stream (RFC 9293, 3.10.7), so we see a gap."""
    judged, verdict = case.judged, case.verdict
    if judged is None or verdict is None or not case.is_predicted or judged.highest_by_reset is None or "lost_segment" in case.theirs:
        return None
    if judged.highest is None or verdict.highest is None or not verdict.highest < case.row["seq"] <= offset_of(case, judged.highest):
        return None
    return f"frame {judged.highest_by_reset}, a RST, had a higher number, which tshark treats as sent data; tcptrace-lab sees a gap"


def _by_old_ack(case: SegmentCase) -> str | None:
    verdict = case.verdict
    if verdict is None or not case.is_predicted or verdict.other_last_ack == verdict.other_newest_ack or verdict.other_newest_ack is None:
        return None
    old = (
        "is a RST's"
        if verdict.other_last_ack is None or verdict.other_last_ack > verdict.other_newest_ack
        else f"of {verdict.other_last_ack:,} is old"
    )
    return f"the peer's last ACK {old}: tshark computes the edge of its window from there, tcptrace-lab from {verdict.other_newest_ack:,}"


def _no_edge(case: SegmentCase) -> str | None:
    verdict, judged, row = case.verdict, case.judged, case.row
    if verdict is None or judged is None or not case.is_predicted or "window_full" in case.theirs or not judged.edge_unknown:
        return None
    if verdict.una is None or verdict.end != verdict.una or "window_full" not in verdict.verdicts:
        return None
    edge = f"a window of 0 at {verdict.una:,} ends there with any scale, and so does frame {row['frame']}"
    return f"{edge}; without a scale, tshark computes no edge"


RULES = (
    Rule(
        "tshark-knows-no-edge-without-scale",
        "tshark computes no edge of a window with unknown scale, even of a zero window",
        "RFC 7323, 2.2",
        frozenset({"window_full"}),
        _no_edge,
    ),
    Rule(
        "tshark-reckons-edges-from-old-acks",
        "tshark computes the window's edge from the peer's last segment, even if its ACK is old; tcptrace-lab from its newest ACK",
        "RFC 9293, 3.10.7.4 (SND.WL2)",
        frozenset({"window_full"}),
        _by_old_ack,
    ),
    Rule(
        "tshark-sees-no-hole-behind-resets",
        "tshark treats the sequence number of a RST as sent data, and sees no gap there",
        "RFC 9293, 3.10.7",
        frozenset({"lost_segment"}),
        _after_reset,
    ),
    Rule(
        "tshark-misses-our-frames",
        "tshark reports a gap at frames that it does not count as segments",
        "follows from the differences frame_only_ours",
        frozenset({"lost_segment"}),
        _own,
    ),
    Rule(
        "tshark-tells-holes-of-empty-segments",
        "tshark reports a gap even at a segment without data; tcptrace-lab at the next segment with data",
        "Wireshark User's Guide, 7.5 TCP Analysis, TCP Previous segment not captured",
        frozenset({"lost_segment"}),
        _empty_beyond,
    ),
)
