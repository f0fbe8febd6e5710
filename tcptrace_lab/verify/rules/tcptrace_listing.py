"""Rules on figures of tcptrace's long listing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.outputs.tcptrace_figures import FIGURES
from tcptrace_lab.text.numbers import counted
from tcptrace_lab.verify.differences import Rule
from tcptrace_lab.verify.figures import HALF_A_STEP, STEPS, FigureCase, as_number
from tcptrace_lab.verify.rules.tcptrace_reading import strange
from tcptrace_lab.verify.tcptrace_model import SIZE_SHARE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcptrace_lab.outputs.tcptrace_figures import Direction

SOURCE = "tcptrace's manual, and what version 6.6.7 prints"

_LARGEST_FIELD = (1 << 16) - 1

_DIFFERS = {figure.name: figure.differs for figure in FIGURES}
_STEP = {figure.name: STEPS.get(figure.form, 1.0) for figure in FIGURES}

WINDOWS = frozenset({"max_win_adv", "min_win_adv", "avg_win_adv", "zero_win_adv"})


def named(text: str) -> frozenset[str]:
    """Split names that are separated by blanks."""
    return frozenset(text.split())


_COUNTS = named(
    "total_packets resets_sent ack_pkts_sent pure_acks_sent actual_data_pkts actual_data_bytes pushed_data_pkts max_segm_size "
    "min_segm_size truncated_data truncated_packets data_xmit_time idletime_max SYN/FIN_pkts_sent"
)
RESENDS = named("unique_bytes_sent rexmt_data_pkts rexmt_data_bytes outoforder_pkts throughput")
_PROBES = frozenset({"zwnd_probe_pkts", "zwnd_probe_bytes", "unique_bytes_sent", "throughput", "rexmt_data_pkts", "rexmt_data_bytes"})
RTT = named("RTT_samples RTT_min RTT_max RTT_avg RTT_stdev RTT_from_3WHS segs_cum_acked post-loss_acks")
FULL = named("RTT_full_sz_smpls RTT_full_sz_min RTT_full_sz_max RTT_full_sz_avg RTT_full_sz_stdev")
AMBIGUOUS = named("ambiguous_acks RTT_min_(last) RTT_max_(last) RTT_avg_(last) RTT_sdv_(last)")
WAITS = named("max_#_retrans min_retr_time max_retr_time avg_retr_time sdv_retr_time")


_BY_NUMBERS = named(
    "sacks_sent sack_pkts_sent dsack_pkts_sent max_sack_blks/ack duplicate_acks triple_dupacks initial_window_bytes initial_window_pkts "
    "missed_data max_owin min_non-zero_owin avg_owin wavg_owin"
)
"""Figures of `tcptrace_sequence` that change if packets are duplicated."""


def is_predicted(case: FigureCase) -> bool:
    """Return whether our model of tcptrace computes the value that tcptrace printed."""
    number = as_number(case.theirs)
    return number is not None and case.modelled is not None and abs(number - case.modelled) <= HALF_A_STEP * _STEP[case.item]


def _differs(name: str) -> str:
    return f"tcptrace {_DIFFERS[name]}" if _DIFFERS[name] else "the difference follows from that"


def by_its_rules(evidence: Callable[[FigureCase], str | None]) -> Callable[[FigureCase], str | None]:
    """Return a test for differences that our model of tcptrace explains.

    The test returns the cause that `evidence` finds, as text. It returns None if the model does not compute the printed value, or if
    `evidence` finds no cause in the connection.
    """

    def test(case: FigureCase) -> str | None:
        if not is_predicted(case):
            return None
        evidence_text = evidence(case)
        return None if evidence_text is None else f"{evidence_text}; {_differs(case.item)}"

    return test


def _unscaled(case: FigureCase) -> str | None:
    number = as_number(case.theirs)
    if case.tally is None or case.tally.windows_known or number is None or number > _LARGEST_FIELD:
        return None
    return "a SYN was not captured, so the window scale is unknown; tcptrace prints the unscaled window fields"


def _late_syn(case: FigureCase) -> str | None:
    """A segment without SYN precedes a SYN.

    Such a segment makes tcptrace reset both window scales. A later SYN restores only the scale of its own sender.
    """
    number, model, tally = as_number(case.theirs), case.model, case.tally
    if number is None or model is None or tally is None or number > _LARGEST_FIELD or tally.numbers.scale:
        return None
    if any(not side.numbers.syns or side.numbers.scale_offered is None for side in model.sides.values()):
        return None
    return "a segment without SYN precedes one of the SYNs: tcptrace-lab still scales the windows, tcptrace does not"


def _one_syn_scaled(case: FigureCase) -> str | None:
    direction, number = case.direction, as_number(case.theirs)
    if direction is None or number is None or number > _LARGEST_FIELD or (direction["syn_segments"] and direction.other["syn_segments"]):
        return None
    return "only the SYN-ACK was captured; it offers a window scale, so the SYN did too: tcptrace-lab scales the windows, tcptrace does not"


def _is_cut(case: FigureCase, side: Direction) -> bool:
    """Return whether the options of the SYN of `side` are truncated, so that it is unknown whether this SYN offers a window scale."""
    known = case.model is None or case.model.sides[side.side == "client"].windows_known
    return not known or None in {side["sack_permitted"], side["timestamps"]}


def _cut_answered_syn(case: FigureCase) -> str | None:
    """A SYN/ACK can offer a window scale only if the SYN offered one (RFC 7323, 2.2)."""
    direction, number = case.direction, as_number(case.theirs)
    if direction is None or number is None or number > _LARGEST_FIELD or direction["window_scale_offered"] is None:
        return None
    other = direction.other
    if not other["syn_segments"] or other["window_scale_offered"] is not None or not _is_cut(case, other):
        return None
    return "the capture truncated the window scale option of the peer's SYN; tcptrace concludes that the peer offers none"


def _window_evidence(case: FigureCase) -> str | None:
    tally = case.tally
    if tally is None:
        return None
    if tally.scaled:
        return f"both sides scale; tcptrace counts {counted(tally.window_packets, 'window')}, all but those of SYNs"
    return f"{counted(tally.window_packets, 'window')} in {counted(tally.packets, 'segment')}; {tally.window_shut} zero windows"


def _size_evidence(case: FigureCase) -> str | None:
    tally = case.tally
    return None if tally is None else f"{counted(tally.data_bytes, 'byte')} in {counted(tally.data_packets, 'segment')}"


def _mean_size(case: FigureCase) -> str | None:
    """Compare tcptrace's mean with the mean of all segments, then with the mean without duplicates.

    If tcptrace does not read the layers that contain the duplicates, it prints the mean without duplicates.
    """
    evidence_text, direction = by_its_rules(_size_evidence)(case), case.direction
    if (
        evidence_text is not None
        or direction is None
        or as_number(case.theirs) != int(direction["payload_bytes"] / (direction["data_segments"] + SIZE_SHARE))
    ):
        return evidence_text
    return f"{counted(direction['payload_bytes'], 'byte')} in {counted(direction['data_segments'], 'segment')}; {_differs(case.item)}"


def _resend_evidence(case: FigureCase) -> str | None:
    tally, direction = case.tally, case.direction
    if tally is None or direction is None:
        return None
    resent, late = direction["retransmitted_segments"], direction["out_of_order_segments"]
    if not (tally.resent_packets or tally.late_packets or tally.probes or resent or late):
        return None
    return (
        f"tcptrace counts {counted(tally.resent_packets, 'retransmitted segment')}, {tally.late_packets} out of order and "
        f"{counted(tally.probes, 'zero-window probe')}; tcptrace-lab counts {resent} retransmitted and {late} out of order"
    )


def _probe_evidence(case: FigureCase) -> str | None:
    direction, tally = case.direction, case.tally
    if tally is None or direction is None or not (tally.probes or direction["zero_window_probes"]):
        return None
    sent = counted(tally.probes, "segment")
    return f"{sent} with data or FIN were sent into a zero window; tcptrace-lab counts {counted(direction['zero_window_probes'], 'probe')}"


def _copies_evidence(case: FigureCase) -> str | None:
    direction, model = case.direction, case.model
    if direction is None or model is None:
        return None
    sides = {"client": model.sides[True], "server": model.sides[False]}
    copies = sum(sides[one.side].packets - one["segments"] for one in (direction, direction.other))
    return f"this connection has {counted(copies, 'duplicate packet')}: tcptrace counts them, tcptrace-lab does not" if copies > 0 else None


def _rtt_evidence(case: FigureCase) -> str | None:
    direction, tally = case.direction, case.tally
    if tally is None or direction is None:
        return None
    left = f"tcptrace takes no sample of {counted(tally.unsampled, 'segment')}, nor of {tally.cumulative} acknowledged together with others"
    return f"tcptrace takes {counted(tally.rtt.count, 'sample')}, tcptrace-lab {direction['rtt_samples']}; {left}"


def _full_evidence(case: FigureCase) -> str | None:
    tally = case.tally
    return (
        None
        if tally is None
        else f"{counted(tally.rtt_full.count, 'sample')} of segments of {tally.full_size:,} bytes, which tcptrace takes for the full size"
    )


def _ambiguous_evidence(case: FigureCase) -> str | None:
    tally, direction = case.tally, case.direction
    if tally is None or direction is None:
        return None
    ours = direction["rtt_retransmitted_samples"]
    return f"tcptrace counts {counted(tally.rtt_retransmitted.count, 'ACK')} of retransmitted segments, tcptrace-lab {ours}"


def _wait_evidence(case: FigureCase) -> str | None:
    tally, direction = case.tally, case.direction
    if tally is None or direction is None:
        return None
    return (
        f"tcptrace counts {counted(tally.waits.count, 'wait')} before a retransmit, tcptrace-lab {direction['retransmit_interval_samples']}"
    )


def _throughput(case: FigureCase) -> str | None:
    model, tally = case.model, case.tally
    if model is None or tally is None or model.first_us is None or not is_predicted(case):
        return None
    return f"{counted(tally.unique_bytes, 'byte')} in {model.duration_us:,} µs"


def _control_copies(case: FigureCase) -> str | None:
    tally = case.tally
    if tally is None or case.theirs != f"{tally.syns}/{tally.fins}":
        return None
    return _copies_evidence(case)


def _constant_ids(case: FigureCase) -> str | None:
    tally, direction = case.tally, case.direction
    if tally is None or direction is None or not is_predicted(case):
        return None
    ours = counted(direction["capture_duplicates"], "duplicate")
    return (
        f"{counted(tally.doubles, 'packet')} with the sequence number and IP ID of one of the last eight; TTL, TCP timestamp and capture "
        f"time show {ours}"
    )


def _first_keepalive(case: FigureCase) -> str | None:
    """The first captured segment is a keepalive, whose byte was sent before the capture started."""
    direction, number = case.direction, as_number(case.theirs)
    if direction is None or direction["syn_segments"] or not direction["keepalives"]:
        return None
    if case.item == "unique_bytes_sent" and number != direction["unique_bytes"] + 1:
        return None
    return (
        "the first captured segment of this side is a keepalive: its byte was sent before the capture began, but tcptrace counts it as new"
    )


def _reset_data(case: FigureCase) -> str | None:
    direction = case.direction
    if direction is None or not direction["rst_segments"] or not direction["data_segments"]:
        return None
    return f"{counted(direction['rst_segments'], 'RST')} with data, which tcptrace counts as stream data"


RULES: tuple[Rule[FigureCase], ...] = (
    Rule(
        "tcptrace-throughput",
        "tcptrace divides its unique bytes by the duration in microseconds",
        SOURCE,
        frozenset({"throughput"}),
        _throughput,
    ),
    Rule(
        "tcptrace-control-copies",
        "tcptrace counts repeated SYNs and FINs",
        SOURCE,
        frozenset({"SYN/FIN_pkts_sent"}),
        _control_copies,
    ),
    Rule(
        "tcptrace-takes-windows-as-they-are",
        "if a SYN is missing, tcptrace prints unscaled windows; tcptrace-lab prints none",
        SOURCE,
        WINDOWS,
        _unscaled,
    ),
    Rule(
        "tcptrace-wants-syns-first",
        "if a segment without SYN precedes the peer's SYN, tcptrace does not scale the windows of its sender",
        SOURCE,
        WINDOWS,
        _late_syn,
    ),
    Rule(
        "tcptrace-needs-both-syns",
        "tcptrace scales windows only if both SYNs were captured",
        f"{SOURCE}; RFC 7323, 2.2",
        WINDOWS,
        _one_syn_scaled,
    ),
    Rule(
        "tcptrace-needs-whole-syns",
        "tcptrace treats a truncated window scale option as absent",
        f"{SOURCE}; RFC 7323, 2.2",
        WINDOWS,
        _cut_answered_syn,
    ),
    Rule(
        "tcptrace-counts-copies",
        "tcptrace also counts duplicate packets, which the capture recorded twice",
        SOURCE,
        _COUNTS | RESENDS | _PROBES | RTT | FULL | AMBIGUOUS | WAITS | WINDOWS | _BY_NUMBERS,
        by_its_rules(_copies_evidence),
    ),
    Rule(
        "tcptrace-windows",
        "if both sides scale, tcptrace ignores the windows of SYNs; it also ignores zero windows, but divides by all segments",
        SOURCE,
        WINDOWS,
        by_its_rules(_window_evidence),
    ),
    Rule(
        "tcptrace-mean-size",
        "tcptrace divides sizes by the count plus 0.001, and truncates",
        SOURCE,
        frozenset({"avg_segm_size"}),
        _mean_size,
    ),
    Rule(
        "tcptrace-probes",
        "tcptrace counts every segment with data or FIN after a zero window as a probe",
        SOURCE,
        _PROBES,
        by_its_rules(_probe_evidence),
    ),
    Rule(
        "tcptrace-resends",
        "tcptrace counts all repeated bytes as retransmitted, and every segment that fills a gap as out of order",
        SOURCE,
        RESENDS,
        by_its_rules(_resend_evidence),
    ),
    Rule(
        "tcptrace-round-trips",
        "tcptrace takes an RTT sample of the segment whose last byte an ACK acknowledges, unless an earlier byte was sent later",
        SOURCE,
        RTT,
        by_its_rules(_rtt_evidence),
    ),
    Rule(
        "tcptrace-full-size",
        "tcptrace computes 2^32 bytes for a segment with one sequence number (such as a SYN), and takes that for the full size",
        SOURCE,
        FULL,
        by_its_rules(_full_evidence),
    ),
    Rule(
        "tcptrace-ambiguous",
        "tcptrace treats every overlap with earlier bytes as a retransmit of their segment",
        SOURCE,
        AMBIGUOUS,
        by_its_rules(_ambiguous_evidence),
    ),
    Rule(
        "tcptrace-constant-ids",
        "tcptrace reports a packet with a known sequence number and IP ID as a hardware duplicate; with DF, IP IDs may repeat",
        "RFC 6864, 4",
        frozenset({"hardware_dups"}),
        _constant_ids,
    ),
    Rule(
        "tcptrace-reads-part",
        "tcptrace does not read segments in tunnels or fragments",
        SOURCE,
        RTT | FULL | RESENDS | frozenset({"hardware_dups", "idletime_max", "data_xmit_time"}),
        by_its_rules(strange),
    ),
    Rule(
        "tcptrace-takes-the-byte-of-a-first-keepalive",
        "tcptrace counts the byte of a keepalive as new if no earlier segment shows that it was sent",
        "RFC 9293, 3.8.4",
        frozenset({"unique_bytes_sent", "throughput"}),
        by_its_rules(_first_keepalive),
    ),
    Rule(
        "tcptrace-takes-data-of-resets",
        "tcptrace counts data of a RST as data of the stream",
        "RFC 9293, 3.10.7",
        frozenset({"unique_bytes_sent", "throughput"}),
        by_its_rules(_reset_data),
    ),
    Rule(
        "tcptrace-waits",
        "tcptrace measures the wait before every segment that repeats earlier bytes",
        SOURCE,
        WAITS,
        by_its_rules(_wait_evidence),
    ),
)
