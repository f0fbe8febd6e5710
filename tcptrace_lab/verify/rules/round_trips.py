"""Rules on RTTs: which segment an ACK acknowledges, and how the RTT is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.schema import RESENT
from tcptrace_lab.verify.differences import Rule
from tcptrace_lab.verify.rules.texts import other_offset_of, span

if TYPE_CHECKING:
    from tcptrace_lab.verify.segments import SegmentCase

_GUIDE = "Wireshark User's Guide, 7.5 TCP Analysis"
_RTT = frozenset({"ack_rtt_ns"})


def _irregular_segment(case: SegmentCase, *, resent: bool) -> tuple[int, str] | None:
    """Return frame and kind of the newest retransmitted (or late) segment among the bytes of tshark's RTT sample."""
    verdict, judged = case.verdict, case.judged
    if verdict is None or judged is None or not case.is_predicted or case.row["rtt_ns"] is not None or case.row["their_ack_rtt_ns"] is None:
        return None
    first = case.row["ack"] - max(case.row["acked_bytes"] or 0, 0)
    if judged.acked_from is not None:
        first = min(first, other_offset_of(case, judged.acked_from))
    since = case.row["their_acks_frame"]
    found = (
        (frame, kind)
        for frame, start, end, kind in reversed(verdict.other_irregular)
        # If only the first part of a segment was retransmitted and ACKed, its remaining bytes count as the same segment for us.
        if start < case.row["ack"] and (end > first or (end == first and frame > since))
    )
    return next(((frame, kind) for frame, kind in found if (kind in RESENT) == resent), None)


def _measured(case: SegmentCase) -> str:
    return f"tshark measures {span(case.row['their_ack_rtt_ns'])} from frame {case.row['their_acks_frame']}"


def _karn(case: SegmentCase) -> str | None:
    irregular = _irregular_segment(case, resent=True)
    if irregular is None:
        return None
    frame, what = irregular
    return f"{_measured(case)}, but frame {frame} ({what.replace('_', ' ')}) repeats these bytes: the ACK may answer either copy"


def _late(case: SegmentCase) -> str | None:
    irregular = _irregular_segment(case, resent=False)
    if irregular is None:
        return None
    frame, what = irregular
    return f"{_measured(case)}, but the later frame {frame} ({what.replace('_', ' ')}) triggered the ACK"


def _hidden_by_reset(case: SegmentCase) -> str | None:
    """An earlier RST acknowledged the bytes that this segment acknowledges, and also bytes that were not captured.

    tshark uses the ACK of this RST. We do not, because the RST is possibly forged (RFC 5961).
    """
    verdict, row = case.verdict, case.row
    if verdict is None or not case.is_predicted or row["rtt_ns"] is None or row["their_acks_frame"] is not None or verdict.last_ack is None:
        return None
    if verdict.last_ack == verdict.newest_ack or verdict.last_ack < row["ack"]:
        return None
    return f"an earlier RST acknowledged {verdict.last_ack:,}; tshark treats the RST as the answer"


def _nothing_new(case: SegmentCase) -> str | None:
    if not case.is_predicted or case.row["acked_bytes"] != 0 or case.row["rtt_ns"] is not None:
        return None
    return (
        f"an earlier segment had the ACK number {case.row['ack']:,}; tshark treats this ACK as the answer to frame "
        f"{case.row['their_acks_frame']}, which repeats old bytes"
    )


def _zero_span(case: SegmentCase) -> str | None:
    if case.judged is None or not case.is_predicted or case.row["rtt_ns"] != 0 or case.row["their_acks_frame"] is None:
        return None
    return f"the ACK and frame {case.row['their_acks_frame']} have the same timestamp"


def _seen_later(case: SegmentCase) -> str | None:
    verdict, row = case.verdict, case.row
    if (
        verdict is None
        or not case.is_predicted
        or row["rtt_ns"] is not None
        or row["their_ack_rtt_ns"] is None
        or verdict.other_latest is None
    ):
        return None
    frame, ts_ns = verdict.other_latest
    later_ns = ts_ns - (row["their_ts_ns"] - row["their_ack_rtt_ns"])
    if later_ns <= 0 or frame == row["their_acks_frame"]:
        return None
    return f"{_measured(case)}, but the ACK also covers frame {frame}, whose timestamp is {span(later_ns)} later"


def _without_time(case: SegmentCase) -> str | None:
    if case.row["ts_ns"] is not None or case.row["their_ts_ns"] is not None:
        return None
    return f"frame {case.row['frame']} has no time in this capture; tshark nevertheless shows {span(case.row['their_ack_rtt_ns'])}"


def _other_clock(case: SegmentCase) -> str | None:
    ours, theirs = case.row["ts_ns"], case.row["their_ts_ns"]
    if ours is None or theirs is None or ours == theirs or case.row["rtt_ns"] is None:
        return None
    if case.row["rtt_ns"] - (case.row["their_ack_rtt_ns"] or 0) != ours - theirs:
        return None
    return f"tshark and tcptrace-lab read this frame's timestamp differently, by {span(ours - theirs)}; their RTTs differ by as much"


def _forgotten_segment(case: SegmentCase) -> str | None:
    judged = case.judged
    if judged is None or not case.is_predicted or judged.forgotten_by is None or case.row["rtt_ns"] is None:
        return None
    if case.row["their_ack_rtt_ns"] is not None:
        return None
    return f"tshark uses the ACK field of frame {judged.forgotten_by} although the ACK flag is not set, and measures the RTT there"


def _foreign_round_trip(case: SegmentCase) -> str | None:
    row = case.row
    if not case.foreign or not case.is_predicted or row["rtt_ns"] is None:
        return None
    if row["their_acks_frame"] in case.foreign:
        return f"tshark measures from frame {row['their_acks_frame']}, which only tshark counts as a segment"
    if row["their_acks_frame"] is None:
        return f"tshark saw this ACK earlier, in frame {max(case.foreign)} or before; only tshark counts that frame as a segment"
    return None


def _own_round_trip(case: SegmentCase) -> str | None:
    verdict = case.verdict
    if verdict is None or not case.is_predicted or verdict.other_latest is None or case.row["their_acks_frame"] is not None:
        return None
    frame = verdict.other_latest[0]
    return f"the ACK answers frame {frame}, which only tcptrace-lab counts as a segment" if frame in case.own else None


def _negative(case: SegmentCase) -> str | None:
    row = case.row
    if row["rtt_ns"] is not None or row["their_ack_rtt_ns"] is None or row["their_ack_rtt_ns"] >= 0:
        return None
    return f"by the file's times, frame {row['their_acks_frame']} was captured after its ACK, so there is no RTT"


RULES = (
    Rule("tshark-shows-negative-times", "tshark shows negative RTTs after a backward clock step", "seen here", _RTT, _negative),
    Rule("tshark-measures-without-times", "tshark measures RTTs between frames without a timestamp", "seen here", _RTT, _without_time),
    Rule(
        "times-are-read-otherwise",
        "tshark and tcptrace-lab read a timestamp that is out of range differently",
        "pcap-savefile(5)",
        _RTT,
        _other_clock,
    ),
    Rule(
        "tshark-takes-unflagged-acks",
        "tshark reads the ACK field even if the ACK flag is not set",
        "seen here; RFC 9293, 3.1",
        _RTT,
        _forgotten_segment,
    ),
    Rule(
        "tshark-answers-no-frames-of-ours",
        "tshark measures no RTT of frames that only tcptrace-lab counts as segments",
        "follows from the differences frame_only_ours",
        _RTT,
        _own_round_trip,
    ),
    Rule(
        "tshark-answers-other-frames",
        "only tshark counts some frames as segments",
        "follows from the differences frame_only_theirs",
        _RTT,
        _foreign_round_trip,
    ),
    Rule(
        "tshark-ignores-karn",
        "tshark also measures RTTs of retransmitted segments",
        f"{_GUIDE}; Karn & Partridge 1987; RFC 6298, 3",
        _RTT,
        _karn,
    ),
    Rule(
        "tshark-ignores-late-segments",
        "tshark measures the RTT of a segment even if an out-of-order segment triggered the ACK",
        _GUIDE,
        _RTT,
        _late,
    ),
    Rule(
        "tshark-takes-times-in-order",
        "tshark measures the RTT of the last segment that the ACK covers, even if the timestamps show that another segment triggered the "
        "ACK",
        f"{_GUIDE}; RFC 6298, 3",
        _RTT,
        _seen_later,
    ),
    Rule(
        "tshark-takes-answers-of-resets",
        "tshark measures RTTs up to the ACK in a RST",
        f"{_GUIDE}; RFC 5961",
        _RTT,
        _hidden_by_reset,
    ),
    Rule(
        "tshark-answers-copies",
        "tshark measures the RTT of retransmitted bytes up to an ACK that repeats an old ACK number",
        _GUIDE,
        _RTT,
        _nothing_new,
    ),
    Rule(
        "tshark-hides-zero-times",
        "tshark does not show an RTT of 0",
        "display filter reference, tcp.analysis.ack_rtt; seen here",
        _RTT,
        _zero_span,
    ),
)
