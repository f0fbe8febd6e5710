"""Rules on ACKs: duplicate ACKs, ACKs of unseen data, and RTTs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.schema import RESENT
from tcptrace_lab.text.numbers import counted
from tcptrace_lab.verify.differences import Rule
from tcptrace_lab.verify.rules.texts import kind, offset_of, other_offset_of, proof, span
from tcptrace_lab.verify.wireshark_model import PSH, RST, SEQ_SPACE

if TYPE_CHECKING:
    from tcptrace_lab.verify.segments import SegmentCase

_GUIDE = "Wireshark User's Guide, 7.5 TCP Analysis"
_DUPLICATE = frozenset({"duplicate_ack"})
_UPDATE = frozenset({"window_update"})
_UNSEEN = frozenset({"ack_lost_segment"})
_RTT = frozenset({"ack_rtt_ns"})
_NUMBER = frozenset({"duplicate_ack_num"})

_ANSWERED = {"zero_window_probe_ack": "zero_window_probe", "keepalive_ack": "keep_alive"}
"""Our kind of a response → tshark's name for the segment that it answers."""

_PROBES = frozenset({"zero_window_probe", "keepalive"})


def _nothing_outstanding(case: SegmentCase) -> str | None:
    verdict = case.verdict
    if verdict is None or not case.is_predicted or "duplicate_ack" not in case.theirs or case.row["kind"] != "ack":
        return None
    if verdict.other_highest is not None and verdict.other_highest > case.row["ack"]:
        return None
    return f"this segment repeats ACK {case.row['ack']:,}, but no data is in flight, so it is no duplicate ACK by RFC 5681, 2 (a)"


def _sack_moves_window(case: SegmentCase) -> str | None:
    if not case.is_predicted or case.row["kind"] != "duplicate_ack" or not case.row["sack_blocks"]:
        return None
    if "window_update" not in case.theirs:
        return None
    blocks = case.row["sack_blocks"]
    return f"this ACK has another window, but its SACK block {blocks[0]:,} to {blocks[1]:,} shows that an out-of-order segment triggered it"


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


def _irregular_segment(case: SegmentCase, *, resent: bool) -> tuple[int, str] | None:
    """The newest retransmitted (or late) segment among the bytes of tshark's RTT sample, and its kind."""
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
        # if only the first part of a segment was retransmitted and ACKed, we still count the rest as that segment
        if start < case.row["ack"] and (end > first or (end == first and frame > since))
    )
    return next(((frame, kind) for frame, kind in found if (kind in RESENT) == resent), None)


def _karn(case: SegmentCase) -> str | None:
    irregular = _irregular_segment(case, resent=True)
    if irregular is None:
        return None
    frame, what = irregular
    measured = f"tshark measures {span(case.row['their_ack_rtt_ns'])} from frame {case.row['their_acks_frame']}"
    return f"{measured}, but frame {frame} ({what.replace('_', ' ')}) repeats these bytes: the ACK may answer either copy"


def _late(case: SegmentCase) -> str | None:
    irregular = _irregular_segment(case, resent=False)
    if irregular is None:
        return None
    frame, what = irregular
    measured = f"tshark measures {span(case.row['their_ack_rtt_ns'])} from frame {case.row['their_acks_frame']}"
    return f"{measured}, but the later frame {frame} ({what.replace('_', ' ')}) triggered the ACK"


def _hidden_by_reset(case: SegmentCase) -> str | None:
    """A RST ACKed these bytes before, and further bytes that were not captured.

    tshark uses this ACK; we do not, because it may be forged (RFC 5961).
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
    measured = f"tshark measures {span(row['their_ack_rtt_ns'])} from frame {row['their_acks_frame']}"
    return f"{measured}, but the ACK also covers frame {frame}, whose timestamp is {span(later_ns)} later"


def _closed_window(case: SegmentCase) -> str | None:
    if not case.is_predicted or case.row["kind"] != "duplicate_ack" or "duplicate_ack" in case.theirs or case.row["their_window_field"]:
        return None
    return f"this segment repeats ACK {case.row['ack']:,} and the zero window while data is in flight"


def _not_at_highest(case: SegmentCase) -> str | None:
    judged, row = case.judged, case.row
    if judged is None or not case.is_predicted or row["kind"] not in {"duplicate_ack", "window_update", "keepalive_ack"}:
        return None
    if case.item in case.theirs or judged.highest is None or row["their_raw_seq"] == judged.highest:
        return None
    return f"the sequence number is {row['seq']:,}; tshark expects {offset_of(case, judged.highest):,}, the highest of this direction"


def _behind_old_ack(case: SegmentCase) -> str | None:
    """The segment or the one before it in its direction has an old ACK number, or the one before it is a RST."""
    verdict, ack = case.verdict, case.row["ack"]
    if verdict is None or not case.is_predicted or ack is None or verdict.newest_ack is None:
        return None
    if ack < verdict.newest_ack:
        return (
            f"an earlier segment acknowledged {verdict.newest_ack:,}, more than this one ({ack:,}): tcptrace-lab ignores this window as "
            "outdated"
        )
    if verdict.last_ack == verdict.newest_ack:
        return None
    what = "in a RST" if verdict.last_ack is None or verdict.last_ack > verdict.newest_ack else "older than an earlier one"
    return f"the previous ACK of this direction is {what}: tshark compares with it, tcptrace-lab with ACK {verdict.newest_ack:,}"


def _behind_reset(case: SegmentCase) -> str | None:
    judged = case.judged
    if judged is None or not case.is_predicted or not judged.after_reset:
        return None
    return "the previous segment of this direction is a RST: tshark compares with the window of the RST, which has no meaning"


def _window_to_zero(case: SegmentCase) -> str | None:
    if not case.is_predicted or case.row["kind"] != "window_update" or "window_update" in case.theirs or case.row["their_window_field"]:
        return None
    return f"this segment repeats ACK {case.row['ack']:,} with a zero window; the previous window was not zero"


def _first_zeros(case: SegmentCase) -> str | None:
    judged, row = case.judged, case.row
    if judged is None or not case.is_predicted or judged.highest is not None or row["their_raw_seq"] or row["their_raw_ack"]:
        return None
    return "this is the first segment of its direction, and SEQ and ACK are 0, the values that tshark starts with"


def _number_after_differences(case: SegmentCase) -> str | None:
    verdict, row = case.verdict, case.row
    if verdict is None or not case.is_predicted or verdict.duplicate_ack_num is None or not case.excess_duplicates:
        return None
    if verdict.duplicate_ack_num - row["their_duplicate_ack_num"] != case.excess_duplicates:
        return None
    more = counted(abs(case.excess_duplicates), "earlier onef")
    return (
        f"only {'tcptrace-lab' if case.excess_duplicates > 0 else 'tshark'} counts {more} of this ACK "
        f"{'as a duplicate' if abs(case.excess_duplicates) == 1 else 'as duplicates'}"
    )


def _neutralized_number(case: SegmentCase) -> str | None:
    verdict, judged = case.verdict, case.judged
    if verdict is None or judged is None or not case.is_predicted or verdict.duplicate_ack_num is None:
        return None
    return "tshark restarted its count at an ACK of unseen bytes" if judged.count_began_anew else None


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


def _probes_unseen(case: SegmentCase) -> str | None:
    """A probe without data, whose sequence number is one below the last ACK.

    If earlier bytes are missing, that is the highest captured sequence number.
    """
    verdict, row = case.verdict, case.row
    if verdict is None or not case.is_predicted or row["kind"] not in _PROBES or "duplicate_ack" not in case.theirs:
        return None
    if row["payload_bytes"] or verdict.other_newest_ack is None or row["seq"] != verdict.other_newest_ack - 1:
        return None
    return (
        f"the peer had acknowledged {verdict.other_newest_ack:,}, so this segment is a {kind(row)}{proof(row)}; tshark sees no byte of "
        f"this direction beyond {row['seq']:,}, and treats the segment as a repeated ACK"
    )


def _is_first_keepalive(case: SegmentCase) -> str | None:
    """A keepalive that is the first captured segment of its direction, with one byte and without PSH, is not a keepalive to tshark."""
    verdict, row = case.verdict, case.row
    if verdict is None or not case.is_predicted or row["kind"] != "keepalive" or verdict.highest is not None or "keep_alive" in case.theirs:
        return None
    if row["payload_bytes"] != 1 or row["flags"] & PSH:
        return None
    return "this is the first segment of its direction; its one byte has no PSH flag, so it is probably a keepalive, not the end of a write"


def _probes_elsewhere(case: SegmentCase) -> str | None:
    """A probe repeats acknowledged bytes (RFC 9293, 3.8.4), even if later bytes were sent or injected."""
    verdict, judged, row = case.verdict, case.judged, case.row
    if verdict is None or judged is None or not case.is_predicted or row["kind"] not in _PROBES or judged.highest is None:
        return None
    if verdict.other_newest_ack is None or row["seq"] != verdict.other_newest_ack - 1 or offset_of(case, judged.highest) <= row["seq"] + 1:
        return None
    return (
        f"the peer had acknowledged {verdict.other_newest_ack:,}, so this segment is a {kind(row)}{proof(row)}; tshark expects a probe one "
        f"below {offset_of(case, judged.highest):,}, the highest sequence number of this direction"
    )


def _answers_probe(case: SegmentCase) -> str | None:
    """Tshark names the answer by its own classification of the probe."""
    judged, row = case.judged, case.row
    if judged is None or not case.is_predicted or row["kind"] not in _ANSWERED or _ANSWERED[row["kind"]] in judged.answers:
        return None
    probe = " and ".join(sorted(judged.answers & {"keep_alive", "retransmission"})).replace("_", " ") or "plain segment"
    return f"tshark calls the probe that this segment answers a {probe}{proof(row)}"


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
        "tshark-sees-no-keepalive-that-is-first",
        "tshark treats the byte of a keepalive as data if no earlier segment shows that it was sent",
        f"{_GUIDE}, TCP Keep-Alive; RFC 9293, 3.8.4 and 3.9.1.2",
        frozenset({"keep_alive"}),
        _is_first_keepalive,
    ),
    Rule(
        "tshark-misses-first-keepalives",
        "if the first segment of a direction is a keepalive, tshark reports that its answer acknowledges unseen bytes",
        f"{_GUIDE}, TCP ACKed unseen segment; RFC 9293, 3.8.4",
        _UNSEEN,
        _answers_first_keepalive,
    ),
    Rule(
        "tshark-answers-what-it-saw",
        "tshark names the answer to a probe by its own classification of the probe",
        _GUIDE,
        _DUPLICATE | {"zero_window_probe_ack", "keep_alive_ack"},
        _answers_probe,
    ),
    Rule(
        "tshark-sees-no-probe-of-unseen-bytes",
        "tshark treats a probe as a repeated ACK if its sequence number is the highest captured",
        f"{_GUIDE}; RFC 9293, 3.8.4 and 3.8.6.1",
        _DUPLICATE | {"zero_window_probe", "keep_alive"},
        _probes_unseen,
    ),
    Rule(
        "tshark-probes-at-the-highest-number",
        "tshark expects probes one below the highest sequence number; tcptrace-lab expects them one below the last ACK",
        f"{_GUIDE}, TCP Keep-Alive; RFC 9293, 3.8.4",
        frozenset({"zero_window_probe", "keep_alive"}),
        _probes_elsewhere,
    ),
    Rule("tshark-shows-negative-times", "tshark shows negative RTTs after a backward clock step", "seen here", _RTT, _negative),
    Rule(
        "tshark-counts-no-duplicates-of-closed-windows",
        "tshark never counts an ACK with a zero window as a duplicate",
        f"{_GUIDE}, TCP Dup ACK",
        _DUPLICATE,
        _closed_window,
    ),
    Rule(
        "tshark-wants-the-highest-number",
        "tshark reports repeated ACKs only if their sequence number is the highest of their sender",
        _GUIDE,
        _DUPLICATE | _UPDATE | {"keep_alive_ack"},
        _not_at_highest,
    ),
    Rule(
        "tshark-compares-with-old-acks",
        "tshark compares an ACK with the previous ACK of its direction, even an old one or a RST's; tcptrace-lab compares with the newest "
        "ACK",
        f"{_GUIDE}; RFC 9293, 3.10.7.4 (SND.WL2)",
        _DUPLICATE | _UPDATE | {"keep_alive_ack"},
        _behind_old_ack,
    ),
    Rule(
        "tshark-compares-with-resets",
        "tshark compares an ACK with the previous segment even if that is a RST",
        f"{_GUIDE}; RFC 9293, 3.10.7.4 (SND.WL2)",
        _DUPLICATE | _UPDATE | {"keep_alive_ack"},
        _behind_reset,
    ),
    Rule(
        "tshark-tells-no-update-to-0",
        "tshark never reports an ACK with a zero window as a window update",
        f"{_GUIDE}, TCP Window Update",
        _UPDATE,
        _window_to_zero,
    ),
    Rule(
        "tshark-begins-with-zeros",
        "tshark compares the first segment of a direction with a window, SEQ and ACK of 0",
        "seen here",
        _UPDATE,
        _first_zeros,
    ),
    Rule(
        "tshark-counts-other-duplicates",
        "tshark and tcptrace-lab number duplicate ACKs differently if they count different earlier ACKs as duplicates",
        _GUIDE,
        _NUMBER,
        _number_after_differences,
    ),
    Rule(
        "tshark-begins-duplicates-anew",
        "after an ACK of unseen bytes, tshark restarts its count of duplicate ACKs",
        "seen here",
        _NUMBER,
        _neutralized_number,
    ),
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
        "tshark-repeats-count-without-data",
        "tshark counts every repeated ACK as a duplicate, even if no data is outstanding",
        f"{_GUIDE}, TCP Dup ACK; RFC 5681, 2",
        _DUPLICATE,
        _nothing_outstanding,
    ),
    Rule(
        "tshark-ignores-sack",
        "tshark ignores SACK blocks, and reports a repeated ACK with another window as a window update",
        f"{_GUIDE}, TCP Window Update; RFC 6675, 2",
        _DUPLICATE | _UPDATE,
        _sack_moves_window,
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
