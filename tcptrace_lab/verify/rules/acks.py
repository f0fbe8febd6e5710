"""Rules on repeated ACKs: duplicate ACKs and their numbers, window updates, and probes with their responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.text.numbers import counted
from tcptrace_lab.verify.differences import Rule
from tcptrace_lab.verify.rules.texts import kind, offset_of, proof
from tcptrace_lab.verify.wireshark_model import PSH

if TYPE_CHECKING:
    from tcptrace_lab.verify.segments import SegmentCase

_GUIDE = "Wireshark User's Guide, 7.5 TCP Analysis"
_DUPLICATE = frozenset({"duplicate_ack"})
_UPDATE = frozenset({"window_update"})
_NUMBER = frozenset({"duplicate_ack_num"})
_ANSWERED = {"zero_window_probe_ack": "zero_window_probe", "keepalive_ack": "keep_alive"}
"""Kind of a response in our terms → tshark's name of the segment that it answers."""

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
    """This segment, or the previous segment of its direction, has an old ACK number, or the previous segment is a RST."""
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


def _probes_unseen(case: SegmentCase) -> str | None:
    """The segment is a probe without data. Its sequence number is one below the last ACK.

    If earlier bytes are missing in the capture, the probe has the highest captured sequence number.
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
    """Tshark does not recognize a keepalive of one byte without PSH if it is the first captured segment of its direction."""
    verdict, row = case.verdict, case.row
    if verdict is None or not case.is_predicted or row["kind"] != "keepalive" or verdict.highest is not None or "keep_alive" in case.theirs:
        return None
    if row["payload_bytes"] != 1 or row["flags"] & PSH:
        return None
    return "this is the first segment of its direction; its one byte has no PSH flag, so it is probably a keepalive, not the end of a write"


def _probes_elsewhere(case: SegmentCase) -> str | None:
    """We recognize a probe because its bytes are already acknowledged (RFC 9293, 3.8.4), even if later bytes were sent or injected."""
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
    """How tshark classifies the answer depends on how it has classified the probe."""
    judged, row = case.judged, case.row
    if judged is None or not case.is_predicted or row["kind"] not in _ANSWERED or _ANSWERED[row["kind"]] in judged.answers:
        return None
    probe = " and ".join(sorted(judged.answers & {"keep_alive", "retransmission"})).replace("_", " ") or "plain segment"
    return f"tshark calls the probe that this segment answers a {probe}{proof(row)}"


RULES = (
    Rule(
        "tshark-sees-no-keepalive-that-is-first",
        "tshark treats the byte of a keepalive as data if no earlier segment shows that it was sent",
        f"{_GUIDE}, TCP Keep-Alive; RFC 9293, 3.8.4 and 3.9.1.2",
        frozenset({"keep_alive"}),
        _is_first_keepalive,
    ),
    Rule(
        "tshark-answers-what-it-saw",
        "tshark classifies the response to a probe according to its own classification of the probe",
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
)
