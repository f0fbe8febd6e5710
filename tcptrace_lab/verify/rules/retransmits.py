"""Rules on repeated bytes: retransmits, out-of-order segments, duplicates and probes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.schema import RESENT
from tcptrace_lab.text.numbers import counted
from tcptrace_lab.verify.differences import Rule
from tcptrace_lab.verify.rules.texts import kind, offset_of, proof, span
from tcptrace_lab.verify.tshark import ANALYSIS
from tcptrace_lab.verify.wireshark_model import FAST_DUPLICATE_ACKS, FAST_NS, SEQ_SPACE

if TYPE_CHECKING:
    from tcptrace_lab.verify.segments import SegmentCase

_GUIDE = "Wireshark User's Guide, 7.5 TCP Analysis"
_RESEND = frozenset({"retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order"})
_ONE_BYTE = frozenset(
    {"retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order", "keep_alive", "zero_window_probe"}
)

_COPIES = {"capture_duplicate": "the capture has the packet twice", "network_duplicate": "the network delivered the packet twice"}
_NO_COUNT = SEQ_SPACE - 1
_LATER_REPAIRS = {
    "recovery_retransmit": "the segment belongs to a recovery that an earlier retransmit began",
    "rto_retransmit": "the retransmission timer of its first byte had expired, whatever ACKs arrived meanwhile",
}


def _by_time(case: SegmentCase) -> str | None:
    judged, row = case.judged, case.row
    if judged is None or not case.is_predicted or "out_of_order" not in case.theirs or row["kind"] not in RESENT:
        return None
    near = (
        f"tshark calls this segment out of order, because it arrived {span(judged.since_highest_ns)} after the highest sequence number, "
        f"less than {_reordering_limit(case)}"
    )
    return f"{near}; tcptrace-lab calls it a {kind(row)}{proof(row)}"


def _reordering_limit(case: SegmentCase) -> str:
    assert case.judged is not None  # noqa: S101  (asked before)
    what = "the handshake's round trip of" if case.row["their_initial_rtt_ns"] else "its bound of"
    return f"{what} {span(case.judged.patience_ns)}"


def _late_after_all(case: SegmentCase) -> str | None:
    """We classify the segment as out of order, and tshark classifies it as a retransmission."""
    judged, row = case.judged, case.row
    if judged is None or not case.is_predicted or "retransmission" not in case.theirs or row["kind"] != "out_of_order":
        return None
    if "spurious_retransmission" in case.theirs:
        reason = "it ends below the last ACK"
    elif "fast_retransmission" in case.theirs:
        reason = f"it follows {counted(judged.repeated_acks, 'repeated ACK')} within {span(judged.since_ack_ns)}"
    elif judged.ends_at_highest:
        reason = "it ends at the highest sequence number"
    else:
        reason = f"it came {span(judged.since_highest_ns)} after the highest sequence number, more than {_reordering_limit(case)}"
    return (
        f"tshark calls this segment retransmitted, because {reason}; "
        f"the capture has these bytes only once, and this segment was sent before the segments that overtook it{proof(row)}"
    )


def _copies(case: SegmentCase) -> str | None:
    if not case.is_predicted or case.row["kind"] not in _COPIES:
        return None
    return f"{_COPIES[case.row['kind']]}{proof(case.row)}"


def _acked_already(case: SegmentCase) -> str | None:
    judged, row = case.judged, case.row
    if (
        judged is None
        or not case.is_predicted
        or "spurious_retransmission" not in case.theirs
        or row["kind"] not in RESENT
        or row["kind"] == "spurious"
    ):
        return None
    when = span(judged.since_ack_ns)
    return (
        f"an ACK of these bytes was captured {when} earlier, but may not have reached the sender; "
        f"tcptrace-lab calls it a {kind(row)}{proof(row)}"
    )


def _proved_spurious(case: SegmentCase) -> str | None:
    row = case.row
    if case.judged is None or not case.is_predicted or row["kind"] != "spurious" or "spurious_retransmission" in case.theirs:
        return None
    reason = ", ".join(sorted(case.theirs & _RESEND)).replace("_", " ") or "nothing"
    return (
        f"no ACK of these bytes was captured before the retransmit, so tshark calls it {reason}; "
        f"later evidence shows that the first copy had arrived{proof(row)}"
    )


def _count_of_minus_one(case: SegmentCase) -> str | None:
    judged, row = case.judged, case.row
    if judged is None or not case.is_predicted or "fast_retransmission" not in case.theirs or judged.repeated_acks < _NO_COUNT:
        return None
    return (
        f"an ACK of unseen bytes set tshark's count of repeated ACKs to -1, and tshark reads -1 as a very large number; "
        f"tcptrace-lab calls it a {kind(row)}{proof(row)}"
    )


def _not_fast_enough(case: SegmentCase) -> str | None:
    judged, row = case.judged, case.row
    if judged is None or not case.is_predicted or row["kind"] != "fast_retransmit" or "fast_retransmission" in case.theirs:
        return None
    if "retransmission" not in case.theirs or case.item != "fast_retransmission":
        return None
    if judged.repeated_acks < FAST_DUPLICATE_ACKS:
        asked = f"and requires {FAST_DUPLICATE_ACKS}; it ignores SACK blocks"
        reason = f"tshark counts {counted(judged.repeated_acks, 'repeated ACK')} {asked}"
    elif judged.since_ack_ns is not None and judged.since_ack_ns >= FAST_NS:
        limit = f"tshark calls a retransmission fast only less than {span(FAST_NS)} after that segment"
        reason = f"the peer's last segment came {span(judged.since_ack_ns)} before, and {limit}"
    elif judged.acked is not None and judged.acked != row["their_raw_seq"]:
        reason = f"it begins at {row['seq']:,}, not at the last ACK {offset_of(case, judged.acked):,}"
    else:
        reason = "tshark first tests whether an earlier ACK covers the whole segment"
    return f"{reason}; tcptrace-lab calls it a {kind(row)}{proof(row)}"


def _fast_for_another_reason(case: SegmentCase) -> str | None:
    judged, row = case.judged, case.row
    if judged is None or not case.is_predicted or row["kind"] not in _LATER_REPAIRS or "fast_retransmission" not in case.theirs:
        return None
    reason = (
        f"the retransmit follows {counted(judged.repeated_acks, 'repeated ACK')} within {span(judged.since_ack_ns)}, so tshark calls "
        "it fast"
    )
    return f"{reason}; tcptrace-lab calls it a {kind(row)}: {_LATER_REPAIRS[row['kind']]}{proof(row)}"


def _repeats_of_its_own(case: SegmentCase) -> str | None:
    """Tshark counts repeated ACKs that are no duplicate ACKs to us.

    Either these ACKs are capture duplicates, or no data was in flight.
    """
    judged, row = case.judged, case.row
    if judged is None or not case.is_predicted or "fast_retransmission" not in case.theirs or row["kind"] not in RESENT:
        return None
    ours = judged.repeated_acks + case.other_excess_duplicates
    if row["kind"] == "fast_retransmit" or ours >= FAST_DUPLICATE_ACKS:
        return None
    reason = f"tshark counts {counted(judged.repeated_acks, 'repeated ACK')}, of which tcptrace-lab counts {max(ours, 0)} as duplicates"
    return f"{reason}; tcptrace-lab calls it a {kind(row)}{proof(row)}"


def _keepalive_or_not(case: SegmentCase) -> str | None:
    """Tshark classifies a short segment as a keepalive, even with data in flight.

    The segment starts one below the next sequence number.
    """
    row = case.row
    if not case.is_predicted or "keep_alive" not in case.theirs or row["kind"] == "keepalive":
        return None
    size = f"{counted(row['payload_bytes'], 'byte')} one below the highest sequence number"
    if row["kind"] == "zero_window_probe":
        return f"{size}; the window is closed, so it is a window probe"
    if row["kind"] in RESENT:
        return f"{size}; this byte is in flight, so the segment is a retransmit{proof(row)}"
    if row["in_flight_bytes"]:
        return f"{size}; {counted(row['in_flight_bytes'], 'byte')} in flight, so the connection is not idle"
    return _no_keepalive(case, size)


def _no_keepalive(case: SegmentCase, size: str) -> str | None:
    """Return why we do not classify a segment as a keepalive, although it looks like one and no data is in flight."""
    if case.row["kind"] == "duplicate_ack":
        return f"{size}; it repeats ACK {case.row['ack']:,} because of what the peer sent{proof(case.row)}"
    if case.row["acked_bytes"] or case.row["kind"] == "window_update":
        return f"{size}; the segment has a new ACK number or window, so it is not only a keepalive"
    if case.verdict is not None and case.verdict.newest_ack is not None and (case.row["ack"] or 0) < case.verdict.newest_ack:
        return f"{size}; its ACK {case.row['ack']:,} is older than {case.verdict.newest_ack:,}: it was sent earlier and arrived late"
    if case.verdict is not None and case.verdict.una is None:
        return f"{size}; the peer was not captured: it is unknown whether it answers a keepalive or a probe"
    if case.verdict is not None and case.verdict.una is not None and case.verdict.una <= 1:
        return f"{size}; the peer had not acknowledged any data of this direction, and a keepalive repeats an acknowledged byte"
    return None


def _after_probe(case: SegmentCase) -> str | None:
    judged, row = case.judged, case.row
    if judged is None or not case.is_predicted or not judged.after_probe or row["kind"] not in RESENT or case.theirs & _RESEND:
        return None
    return "the segment begins one below the highest sequence number, where tshark assumes an earlier window probe"


def _copied_elsewhere(case: SegmentCase) -> str | None:
    row = case.row
    if not case.foreign or not case.is_predicted or not case.theirs & _RESEND or row["kind"] in RESENT:
        return None
    return f"these bytes were in frame {max(case.foreign)} or before, in frames that only tshark counts as segments"


def _reset(case: SegmentCase) -> str | None:
    if not case.is_predicted or row_kind(case) != "reset" or not case.theirs & _RESEND:
        return None
    return "the segment is a RST; data of a RST describes the reset, and is not part of the stream (RFC 9293, 3.10.7)"


def row_kind(case: SegmentCase) -> str:
    """Return our kind of the segment."""
    return str(case.row["kind"])


def _late_probe(case: SegmentCase) -> str | None:
    """Tshark does not report this retransmit, because it does not count the byte of the preceding window probe."""
    row = case.row
    if not case.is_predicted or row["kind"] not in RESENT or case.theirs & _RESEND or case.judged is None or case.judged.highest is None:
        return None
    if offset_of(case, case.judged.highest) > row["seq"]:
        return None
    return f"a window probe sent the byte {row['seq']:,} before; tshark does not count the bytes of window probes"


def _jumped_by_reset(case: SegmentCase) -> str | None:
    verdict, row, judged = case.verdict, case.row, case.judged
    if verdict is None or judged is None or not case.is_predicted or judged.highest_by_reset is None or row["kind"] in RESENT:
        return None
    if not case.theirs & _RESEND or (verdict.highest is not None and verdict.end <= verdict.highest):
        return None
    return (
        f"frame {judged.highest_by_reset} is a RST with a higher sequence number; tshark treats the bytes below it as sent before, "
        "tcptrace-lab as new"
    )


def _acked_unseen(case: SegmentCase) -> str | None:
    verdict, row = case.verdict, case.row
    if verdict is None or not case.is_predicted or "spurious_retransmission" not in case.theirs or row["kind"] in RESENT:
        return None
    if verdict.highest is not None and row["seq"] < verdict.highest:
        return None
    return f"the capture has an ACK of these bytes {span(case.judged.since_ack_ns) if case.judged else ''} before they first appear"


RULES = (
    Rule(
        "tshark-spurious-needs-no-first",
        "tshark reports bytes as spurious if an earlier ACK covers them, even if the capture has them only once",
        f"{_GUIDE}, TCP Spurious Retransmission",
        _RESEND,
        _acked_unseen,
    ),
    Rule(
        "tshark-knows-no-copies",
        "tshark does not recognize packets duplicated by the network or the capture",
        _GUIDE,
        frozenset(ANALYSIS),
        _copies,
    ),
    Rule(
        "tshark-keepalive-is-a-place",
        "tshark reports any segment of at most one byte, one below the highest sequence number, as a keepalive",
        f"{_GUIDE}, TCP Keep-Alive; RFC 9293, 3.8.4",
        _ONE_BYTE,
        _keepalive_or_not,
    ),
    Rule(
        "tshark-reorders-by-time",
        "tshark reports a segment as out of order within the handshake's RTT (else 3 ms) after the highest sequence number",
        f"{_GUIDE}, TCP Out-Of-Order",
        _RESEND,
        _by_time,
    ),
    Rule(
        "tshark-resends-by-time",
        "tshark reports a segment as retransmitted if it arrives after the handshake's RTT (else 3 ms), ends at the highest number, or has "
        "been acknowledged",
        f"{_GUIDE}, TCP Retransmission",
        _RESEND,
        _late_after_all,
    ),
    Rule(
        "tshark-spurious-is-acked",
        "tshark reports bytes as spurious if an earlier ACK covers them, whatever the capture point",
        f"{_GUIDE}, TCP Spurious Retransmission; RFC 3522",
        _RESEND,
        _acked_already,
    ),
    Rule(
        "tshark-knows-no-later-proof",
        "tshark considers only earlier segments, and ignores later D-SACKs, timestamps or ACKs that prove a retransmit spurious",
        "RFC 2883; RFC 3522; RFC 3708",
        _RESEND,
        _proved_spurious,
    ),
    Rule(
        "tshark-counts-minus-one",
        "an ACK of unseen bytes turns tshark's count of repeated ACKs into a very large number",
        "seen here; Wireshark's count is unsigned",
        _RESEND,
        _count_of_minus_one,
    ),
    Rule(
        "tshark-counts-all-repeats",
        "tshark reports a retransmit as fast after any repeated ACKs, even those that RFC 5681, 2 does not count as duplicates",
        f"{_GUIDE}, TCP Fast Retransmission; RFC 5681, 2",
        frozenset({"fast_retransmission"}),
        _repeats_of_its_own,
    ),
    Rule(
        "tshark-fast-needs-haste",
        "tshark reports a retransmit as fast only if it begins at the repeated ACK and follows within 20 ms",
        f"{_GUIDE}, TCP Fast Retransmission; RFC 6675, 4",
        _RESEND,
        _not_fast_enough,
    ),
    Rule(
        "ours-tells-repairs-apart",
        "tcptrace-lab reports only the first retransmit of a recovery as fast; tshark reports each one that follows repeated ACKs",
        f"{_GUIDE}, TCP Fast Retransmission; RFC 6582, 3.2",
        _RESEND,
        _fast_for_another_reason,
    ),
    Rule(
        "tshark-passes-over-probes",
        "tshark treats a segment that begins one below the highest sequence number after a window probe as new data",
        _GUIDE,
        _RESEND,
        _after_probe,
    ),
    Rule("tshark-counts-no-probes", "tshark does not count the bytes of window probes as sent", _GUIDE, _RESEND, _late_probe),
    Rule(
        "tshark-sees-other-frames",
        "only tshark counts some frames as segments",
        "follows from the differences frame_only_theirs",
        _RESEND,
        _copied_elsewhere,
    ),
    Rule(
        "tshark-counts-numbers-of-resets",
        "tshark treats the sequence number of a RST as sent data",
        "RFC 5961, 3",
        _RESEND,
        _jumped_by_reset,
    ),
    Rule("tshark-resends-resets", "tshark treats a RST with data as a retransmit", "RFC 9293, 3.10.7", _RESEND, _reset),
)
