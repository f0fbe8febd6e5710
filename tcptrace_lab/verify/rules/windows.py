"""Rules on windows, window probes, and segments that follow a gap in the captured data."""

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
    return (
        f"this segment has no data; its sequence number {case.row['seq']:,} is above {offset_of(case, judged.highest):,}, the highest "
        "captured before"
    )


def _own(case: SegmentCase) -> str | None:
    """We report no gap, because it is filled by frames that only we count as segments."""
    verdict, judged = case.verdict, case.judged
    if verdict is None or judged is None or not case.is_predicted or not case.own or "lost_segment" not in case.theirs:
        return None
    if judged.highest is None or verdict.highest is None or not offset_of(case, judged.highest) < case.row["seq"] <= verdict.highest:
        return None
    return (
        f"tshark saw this direction only up to {offset_of(case, judged.highest):,}; frame {max(case.own)} (and earlier ones) are segments "
        "only for tcptrace-lab"
    )


def _after_reset(case: SegmentCase) -> str | None:
    """The payload of a RST describes the reset, and is not part of the stream (RFC 9293, 3.10.7).

    So we report a gap that tshark does not report.
    """
    judged, verdict = case.judged, case.verdict
    if judged is None or verdict is None or not case.is_predicted or judged.highest_by_reset is None or "lost_segment" in case.theirs:
        return None
    if judged.highest is None or verdict.highest is None or not verdict.highest < case.row["seq"] <= offset_of(case, judged.highest):
        return None
    return (
        f"frame {judged.highest_by_reset} is a RST with a higher sequence number; tshark treats the bytes below it as sent, "
        "tcptrace-lab reports a gap"
    )


def _by_old_ack(case: SegmentCase) -> str | None:
    verdict = case.verdict
    if verdict is None or not case.is_predicted or verdict.other_last_ack == verdict.other_newest_ack or verdict.other_newest_ack is None:
        return None
    old = (
        "is in a RST"
        if verdict.other_last_ack is None or verdict.other_last_ack > verdict.other_newest_ack
        else f"of {verdict.other_last_ack:,} is old"
    )
    return (
        f"the peer's last ACK {old}: tshark computes the window's edge from that ACK, tcptrace-lab from the newest ACK "
        f"{verdict.other_newest_ack:,}"
    )


def _no_edge(case: SegmentCase) -> str | None:
    verdict, judged, row = case.verdict, case.judged, case.row
    if verdict is None or judged is None or not case.is_predicted or "window_full" in case.theirs or not judged.edge_unknown:
        return None
    if verdict.una is None or verdict.end != verdict.una or "window_full" not in verdict.verdicts:
        return None
    edge = f"a zero window ends at its ACK {verdict.una:,} whatever the scale, and frame {row['frame']} ends there too"
    return f"{edge}; tshark computes no edge, because the scale is unknown"


RULES = (
    Rule(
        "tshark-knows-no-edge-without-scale",
        "if the window scale is unknown, tshark computes no window edge, even of a zero window",
        "RFC 7323, 2.2",
        frozenset({"window_full"}),
        _no_edge,
    ),
    Rule(
        "tshark-reckons-edges-from-old-acks",
        "tshark computes the window's edge from the peer's last segment, even if its ACK is old; tcptrace-lab uses the newest ACK",
        "RFC 9293, 3.10.7.4 (SND.WL2)",
        frozenset({"window_full"}),
        _by_old_ack,
    ),
    Rule(
        "tshark-sees-no-hole-behind-resets",
        "tshark treats the bytes below the sequence number of a RST as sent, and therefore sees no gap",
        "RFC 9293, 3.10.7",
        frozenset({"lost_segment"}),
        _after_reset,
    ),
    Rule(
        "tshark-misses-our-frames",
        "tshark reports a gap where it does not count a frame as a segment",
        "follows from the differences frame_only_ours",
        frozenset({"lost_segment"}),
        _own,
    ),
    Rule(
        "tshark-tells-holes-of-empty-segments",
        "tshark reports a gap even at a segment without data; tcptrace-lab reports it at the next segment with data",
        "Wireshark User's Guide, 7.5 TCP Analysis, TCP Previous segment not captured",
        frozenset({"lost_segment"}),
        _empty_beyond,
    ),
)
