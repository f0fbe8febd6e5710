"""Rules on the time before a retransmit, and on the completeness of a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.verify.differences import Rule
from tcptrace_lab.verify.rules.texts import kind, proof, span
from tcptrace_lab.verify.wireshark_model import Complete

if TYPE_CHECKING:
    from tcptrace_lab.verify.segments import SegmentCase

_GUIDE = "Wireshark User's Guide, 7.5 TCP Analysis"
_RTO = frozenset({"rto_ns", "rto_frame"})
_COMPLETENESS = frozenset({"completeness"})


def _not_by_timeout(case: SegmentCase) -> str | None:
    row, verdict = case.row, case.verdict
    if (
        verdict is None
        or not case.is_predicted
        or verdict.rto_frame is not None
        or row["their_rto_frame"] is None
        or row["retransmit_trigger"] == "timeout"
    ):
        return None
    by = f", retransmitted by {row['retransmit_trigger'].replace('_', ' ')}" if row["retransmit_trigger"] else ""
    counted = f"tshark counts {span(row['their_rto_ns'])} from frame {row['their_rto_frame']}"
    return f"{counted}; tcptrace-lab calls it {kind(row)}{by}{proof(row)}, and no timer expired"


def _first_copy_unseen(case: SegmentCase) -> str | None:
    row, verdict = case.row, case.verdict
    if (
        verdict is None
        or not case.is_predicted
        or verdict.rto_frame is not None
        or row["their_rto_frame"] is None
        or row["retransmit_trigger"] != "timeout"
    ):
        return None
    counted = f"tshark counts {span(row['their_rto_ns'])} from frame {row['their_rto_frame']}"
    return f"{counted}; the lost transmission of byte {row['seq']:,} is not in the capture{proof(row)}"


def _another_name(case: SegmentCase) -> str | None:
    row, verdict = case.row, case.verdict
    if verdict is None or not case.is_predicted or verdict.rto_frame is None or row["their_rto_frame"] is not None:
        return None
    names = sorted(case.theirs & {"keep_alive", "spurious_retransmission", "fast_retransmission", "out_of_order", "zero_window_probe"})
    name = " and ".join(names).replace("_", " ") or "no resend"
    return f"the sender waited {span(verdict.rto_ns)} from frame {verdict.rto_frame}{proof(row)}; tshark calls it {name}"


def _oldest(case: SegmentCase) -> str | None:
    row, verdict = case.row, case.verdict
    if verdict is None or not case.is_predicted or verdict.rto_frame is None or row["their_rto_frame"] is None:
        return None
    counted = f"tshark counts {span(row['their_rto_ns'])} from frame {row['their_rto_frame']}, its oldest unacknowledged segment"
    return f"{counted}; the last transmission of byte {row['seq']:,} was {span(verdict.rto_ns)} earlier, in frame {verdict.rto_frame}"


def _names(complete: Complete) -> str:
    return " and ".join(part.name.replace("_", "-") for part in complete if part.name) or "nothing"


def _left_out(case: SegmentCase) -> str | None:
    verdict, judged = case.verdict, case.judged
    if verdict is None or judged is None or not case.is_predicted:
        return None
    lacking, more = verdict.complete & ~judged.completeness, judged.completeness & ~verdict.complete
    if not lacking or lacking & ~judged.left_out or more & ~_ack_of_reset(case):
        return None
    return f"tshark does not count {_names(lacking)} in a stream's first segment, in a segment without ACK flag, or in a SYN"


def _reset(case: SegmentCase) -> str | None:
    verdict, judged = case.verdict, case.judged
    if verdict is None or judged is None or not case.is_predicted or verdict.complete & ~judged.completeness:
        return None
    more = judged.completeness & ~verdict.complete
    return f"tshark counts the {_names(more)} of a RST" if more and not more & ~_ack_of_reset(case) else None


def _announced(case: SegmentCase) -> str | None:
    """Tshark expected this stream, because another protocol announced its ports.

    So tshark treats the first segment like any other segment.
    """
    judged, theirs = case.judged, case.row["their_completeness"]
    if judged is None or theirs is None or not case.announced:
        return None
    if theirs not in {judged.completeness & ~Complete.SYN, (judged.completeness | judged.left_out) & ~Complete.SYN}:
        return None
    return "another connection of the two hosts announced this stream, so tshark knew it before its SYN"


def _begins_again(case: SegmentCase) -> str | None:
    verdict, judged = case.verdict, case.judged
    if verdict is None or judged is None or not case.is_predicted or "reused_ports" not in case.theirs:
        return None
    return (
        "this SYN begins a stream on reused ports, and tshark already counts it in this frame"
        if judged.completeness == verdict.complete | Complete.SYN
        else None
    )


def _foreign(case: SegmentCase) -> str | None:
    verdict, judged = case.verdict, case.judged
    if verdict is None or judged is None or not case.is_predicted or not case.foreign or verdict.complete & ~judged.completeness:
        return None
    more = _names(judged.completeness & ~verdict.complete)
    return f"only tshark counts frame {max(case.foreign)} or an earlier frame as a segment, and that frame contains the {more}"


def _own(case: SegmentCase) -> str | None:
    verdict, judged = case.verdict, case.judged
    if verdict is None or judged is None or not case.is_predicted or not case.own or judged.completeness & ~verdict.complete:
        return None
    less = _names(verdict.complete & ~judged.completeness)
    return (
        f"tshark does not count the {less} of frame {max(case.own)} or an earlier one, because only tcptrace-lab counts that frame as a "
        "segment"
    )


def _ack_of_reset(case: SegmentCase) -> Complete:
    """Return the completeness that tshark, but not we, derives from a RST."""
    has_reset = case.judged is not None and Complete.RST in case.judged.completeness
    return Complete.ACK | Complete.DATA if has_reset else Complete.NOTHING


RULES = (
    Rule(
        "tshark-times-all-resends",
        "tshark shows a timeout for every retransmit that it calls neither fast nor spurious; tcptrace-lab shows one only if the timer "
        "expired",
        f"{_GUIDE}; RFC 6298, 5; RFC 8985",
        _RTO,
        _not_by_timeout,
    ),
    Rule(
        "tshark-times-lost-transmissions",
        "the original was lost before the capture point, and tshark measures from another frame instead",
        _GUIDE,
        _RTO,
        _first_copy_unseen,
    ),
    Rule(
        "tshark-times-plain-resends-only",
        "tshark shows no timeout if it classifies the retransmit differently",
        _GUIDE,
        _RTO,
        _another_name,
    ),
    Rule(
        "tshark-times-from-the-oldest",
        "tshark measures a timeout from the oldest unacknowledged segment; tcptrace-lab measures from the last transmission of these bytes",
        f"{_GUIDE}; RFC 6298, 5",
        _RTO,
        _oldest,
    ),
    Rule(
        "tshark-counts-other-frames",
        "only tshark counts some frames as segments",
        "follows from the differences frame_only_theirs",
        _COMPLETENESS,
        _foreign,
    ),
    Rule(
        "tshark-counts-no-frames-of-ours",
        "tshark does not count frames that only tcptrace-lab counts as segments",
        "follows from the differences frame_only_ours",
        _COMPLETENESS,
        _own,
    ),
    Rule(
        "tshark-counts-what-it-expects",
        "in a stream's first segment, tshark counts only a SYN; in later segments, FIN and data count only with the ACK flag (1 SYN, 2 "
        "SYN-ACK, 4 ACK, 8 data, 16 FIN, 32 RST)",
        f"{_GUIDE}, TCP Conversation Completeness",
        _COMPLETENESS,
        _left_out,
    ),
    Rule(
        "tshark-counts-acks-of-resets",
        "tshark counts the ACK in a RST as the ACK that completes the handshake",
        f"{_GUIDE}, TCP Conversation Completeness",
        _COMPLETENESS,
        _reset,
    ),
    Rule(
        "tshark-knows-announced-streams",
        "tshark does not count the SYN of a stream that FTP or a similar protocol announced",
        "seen here",
        _COMPLETENESS,
        _announced,
    ),
    Rule(
        "tshark-counts-syns-of-reused-ports-at-once",
        "tshark shows completeness as it was before the segment, except for a SYN on reused ports, which counts at once",
        "seen here",
        _COMPLETENESS,
        _begins_again,
    ),
)
