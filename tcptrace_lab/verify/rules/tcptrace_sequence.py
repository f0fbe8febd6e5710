"""Rules on tcptrace's figures from sequence numbers and windows: streams, flights, repeated ACKs, SACK blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.text.numbers import counted
from tcptrace_lab.verify.differences import Rule
from tcptrace_lab.verify.figures import FigureCase, as_number
from tcptrace_lab.verify.rules.tcptrace_listing import SOURCE, by_its_rules, named

if TYPE_CHECKING:
    from tcptrace_lab.verify.tcptrace_sequence_model import Numbers

SCALE = named("adv_wind_scale")
SACKS = named("sacks_sent sack_pkts_sent dsack_pkts_sent max_sack_blks/ack")
DUPLICATES = named("duplicate_acks triple_dupacks")
FIRST = named("initial_window_bytes initial_window_pkts")
STREAM = named("ttl_stream_length missed_data")
OUTSTANDING = named("max_owin min_non-zero_owin avg_owin wavg_owin")

_LARGEST_POINTER = (1 << 16) - 1


def _numbers(case: FigureCase) -> Numbers | None:
    return None if case.tally is None else case.tally.numbers


def _scale(case: FigureCase) -> str | None:
    numbers, direction = _numbers(case), case.direction
    if numbers is None or direction is None:
        return None
    if numbers.scale_offered is None:
        return "this host's SYN offers no scale"
    other = direction.other["window_scale_offered"]
    evidence_text = f"this host's SYN offers a scale of {numbers.scale_offered}, the peer's {'none' if other is None else other}"
    behind = "a segment without SYN followed" if case.theirs == "0" else "no segment without SYN followed"
    return f"{evidence_text}; {behind}"


def _sacks(case: FigureCase) -> str | None:
    numbers = _numbers(case)
    if numbers is None or not numbers.sack_segments:
        return None
    return (
        f"{counted(numbers.sack_segments, 'segment')} with SACK blocks; {numbers.sack_acks} of them have the ACK flag and no RST, and "
        f"tcptrace reads {numbers.dsack_acks} as D-SACK"
    )


def _repeated(case: FigureCase) -> str | None:
    tally, direction = case.tally, case.direction
    if tally is None or direction is None or not (tally.duplicates or direction.other["duplicate_acks"]):
        return None
    ours = counted(direction.other["duplicate_acks"], "duplicate ACK")
    return f"tcptrace counts {counted(tally.duplicates, 'repeated ACK')}, tcptrace-lab {ours}"


def _repeated_without_windows(case: FigureCase) -> str | None:
    """The window scales are unknown. So it is also unknown which repeated ACKs have equal windows."""
    model, number, direction = case.model, as_number(case.theirs), case.direction
    if model is None or direction is None or number is None or case.modelled is None:
        return None
    if model.sides[direction.side != "client"].windows_known or number > case.modelled:
        return None
    return (
        f"tcptrace counts only the repeated ACKs with an equal window, out of {case.modelled:.0f} without data; a SYN is missing, so "
        "tcptrace-lab does not know the windows"
    )


def _first_flight(case: FigureCase) -> str | None:
    numbers = _numbers(case)
    if numbers is None:
        return None
    sent, segments = counted(numbers.first_bytes, "byte"), counted(numbers.first_segments, "segment")
    evidence_text = f"{sent} in {segments} before the first ACK of data"
    return evidence_text if numbers.syns else f"{evidence_text}; no SYN of this side was captured"


def _stream(case: FigureCase) -> str | None:
    numbers = _numbers(case)
    if numbers is None or numbers.fin is None:
        return None
    end = f"at the last segment, because of {counted(numbers.resets, 'RST')}" if numbers.resets else "at the FIN"
    unique = f"tcptrace counts {counted(numbers.unique_bytes, 'unique byte')} in it"
    return f"tcptrace measures the stream from the last SYN; it ends {end}; {unique}"


def _outstanding(case: FigureCase) -> str | None:
    numbers = _numbers(case)
    if numbers is None:
        return None
    return f"{counted(numbers.outstanding_count, 'sample')}: one per segment, without SYNs, retransmitted and out-of-order segments"


def _pointer_beyond(case: FigureCase) -> str | None:
    direction, number = case.direction, as_number(case.theirs)
    if direction is None or number is None or not direction["urgent_segments"]:
        return None
    if not direction["urgent_bytes"] < number <= direction["urgent_segments"] * _LARGEST_POINTER:
        return None
    more = counted(int(number) - direction["urgent_bytes"], "byte")
    return f"{counted(direction['urgent_segments'], 'urgent pointer')}, which together point {more} past the end of their segments"


def _no_time(case: FigureCase) -> str | None:
    """Tcptrace prints NA if all packets of a host have the same timestamp."""
    if case.theirs != "NA" or case.tally is None or case.tally.idle_us:
        return None
    return f"all of {counted(case.tally.packets, 'segment')} have the same timestamp"


RULES: tuple[Rule[FigureCase], ...] = (
    Rule(
        "tcptrace-scale",
        "tcptrace shows the window scale of one SYN until a segment without SYN shows that the other SYN had none",
        SOURCE,
        SCALE,
        by_its_rules(_scale),
    ),
    Rule(
        "tcptrace-sacks",
        "tcptrace compares SACK blocks as plain 32-bit numbers to recognize D-SACK, and ignores the blocks of RSTs",
        SOURCE,
        SACKS,
        by_its_rules(_sacks),
    ),
    Rule(
        "tcptrace-repeated-acks",
        "tcptrace counts every repeated ACK without data and with an equal window as a duplicate, even if no data is in flight",
        f"{SOURCE}; RFC 5681, 2",
        DUPLICATES,
        by_its_rules(_repeated),
    ),
    Rule(
        "tcptrace-repeated-acks-as-they-are",
        "if the scale is unknown, tcptrace compares unscaled windows",
        SOURCE,
        DUPLICATES,
        _repeated_without_windows,
    ),
    Rule(
        "tcptrace-first-flight",
        "tcptrace counts the bytes sent before the first ACK of data, even if the capture begins in mid-stream",
        SOURCE,
        FIRST,
        by_its_rules(_first_flight),
    ),
    Rule(
        "tcptrace-stream",
        "if a connection ends with a RST, tcptrace ends the stream at the last sequence number; a negative length wraps",
        SOURCE,
        STREAM,
        by_its_rules(_stream),
    ),
    Rule(
        "tcptrace-outstanding",
        "tcptrace counts one byte in flight too many, also uses old ACKs, and weights each sample by the time to the next segment",
        SOURCE,
        OUTSTANDING,
        by_its_rules(_outstanding),
    ),
    Rule(
        "tcptrace-adds-urgent-pointers",
        "tcptrace adds up urgent pointers, even those that point beyond their segment",
        SOURCE,
        named("urgent_data_bytes"),
        _pointer_beyond,
    ),
    Rule(
        "tcptrace-tells-no-silence",
        "if all packets of a side have the same timestamp, tcptrace shows no maximum idle time",
        SOURCE,
        named("idletime_max"),
        _no_time,
    ),
)
