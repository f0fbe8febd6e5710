"""Rules on tcptrace's results for unusual numbers, and for clocks that run backwards."""

from __future__ import annotations

from tcptrace_lab.text.numbers import counted
from tcptrace_lab.verify.differences import Rule
from tcptrace_lab.verify.figures import FigureCase, as_number
from tcptrace_lab.verify.model_figures import PER_TIME
from tcptrace_lab.verify.rules.tcptrace_listing import AMBIGUOUS, FULL, RESENDS, RTT, SOURCE, WAITS, WINDOWS, by_its_rules
from tcptrace_lab.verify.rules.tcptrace_reading import LARGEST_OPTIONS
from tcptrace_lab.verify.rules.tcptrace_sequence import OUTSTANDING, SCALE, STREAM
from tcptrace_lab.verify.tcptrace_model import MAX_SHIFT
from tcptrace_lab.verify.tcptrace_sequence_model import MODULUS
from tcptrace_lab.verify.wireshark_model import SEQ_SPACE

_LARGEST_SHORT = (1 << 15) - 1

WRAPPED = MODULUS >> 8
"""A value above this is a negative number that has wrapped, or a mean that includes one. No byte count is so large."""


def _mss(case: FigureCase) -> str | None:
    direction = case.direction
    if direction is None or direction["mss_bytes"] is None or direction["mss_bytes"] <= _LARGEST_SHORT:
        return None
    wrapped = direction["mss_bytes"] - (1 << 16) + (1 << 32)
    if as_number(case.theirs) != wrapped:
        return None
    return f"tcptrace reads {direction['mss_bytes']:,} as a negative 16-bit number, and prints it as {wrapped:,}"


def _options_without_syn(case: FigureCase) -> str | None:
    direction = case.direction
    if direction is None or direction["syn_segments"] or case.theirs != "N/Y":
        return None
    return "no SYN of this side was captured; tcptrace takes the timestamps of other segments for the option of the SYN"


def _no_duration(case: FigureCase) -> str | None:
    if case.theirs != "NA" or case.model is None or case.model.duration_us > 0:
        return None
    before_us = -case.model.duration_us
    last = f"{before_us:,} µs before that of the first" if before_us else "in the same microsecond as that of the first"
    return f"the timestamp of the last packet is {last}, so tcptrace computes no rates"


def _without_ack_flag(case: FigureCase) -> str | None:
    tally = case.tally
    missing = 0 if tally is None else tally.packets - tally.acks
    return f"{counted(missing, 'segment')} without the ACK flag" if missing else None


def _contradiction(case: FigureCase) -> str | None:
    number = as_number(case.theirs)
    if number is None or not case.false_headers:
        return None
    below_0 = number >= MODULUS // 4
    if case.item in {"avg_owin", "wavg_owin"} and case.model is not None:
        below_0 = number > case.model.longest  # a mean with a wrapped number is also larger than the sent bytes
    fewer = case.item == "pure_acks_sent" and case.modelled is not None and 0 < case.modelled - number <= case.false_headers
    if not (number == 0 or below_0 or fewer):
        return None
    return "the length in the TCP header contradicts the packet's length, so the data length is undefined"


def _negative_in_flight(case: FigureCase) -> str | None:
    """A negative number of bytes in flight wraps to a number near 2^64. Multiplied by a time, this number overflows."""
    number, numbers = as_number(case.theirs), None if case.tally is None else case.tally.numbers
    if number is None or numbers is None or numbers.max_outstanding < WRAPPED:
        return None
    if case.item == "wavg_owin" and numbers.outstanding_seconds >= MODULUS:
        return f"{numbers.max_outstanding:,} bytes in flight times their seconds exceed 64 bits: tcptrace prints the remainder"
    if number < WRAPPED:
        return None
    return (
        "a wrapped sequence number, or an ACK beyond the bytes sent, makes the bytes in flight negative; tcptrace stores "
        f"{numbers.max_outstanding:,}"
    )


def _cut_headers(case: FigureCase) -> str | None:
    tally, number = case.tally, as_number(case.theirs)
    if tally is None or number is None or tally.cut_bytes != tally.data_bytes:
        return None
    more = number - tally.cut_bytes
    if not 0 < more <= LARGEST_OPTIONS * tally.cut_packets:
        return None
    return f"no data was captured; tcptrace also counts {more:.0f} truncated bytes of TCP options"


def _cut_options(case: FigureCase) -> str | None:
    direction = case.direction
    if direction is None or not direction["syn_segments"] or None not in {direction["sack_permitted"], direction["timestamps"]}:
        return None
    return "the capture truncated the options of this host's SYN: to tcptrace-lab the missing options are unknown, to tcptrace absent"


def _large_shift(case: FigureCase) -> str | None:
    direction = case.direction
    if direction is None or MAX_SHIFT not in {direction["window_scale_offered"], direction.other["window_scale_offered"]}:
        return None
    return "a window scale of 14 or more was offered; RFC 7323 limits the shift to 14, tcptrace shifts by the offered value"


def _open_at_end(case: FigureCase) -> str | None:
    number, tally = as_number(case.theirs), case.tally
    if number is None or tally is None or tally.last_us is None or case.capture_end_us is None or case.direction is None:
        return None
    to_end_ms = (case.capture_end_us - tally.last_us) / 1e3
    both = (case.direction, case.direction.other)
    if any(one["rst_segments"] for one in both) or all(one["fin_segments"] for one in both):
        return None
    longest_ms = max((case.capture_end_us - (tally.first_us or tally.last_us)) / 1e3, to_end_ms)
    if not tally.idle_us / 1e3 - 0.1 <= number <= longest_ms + 0.1:
        return None
    return (
        f"the connection was not closed, and the capture continues for {to_end_ms:,.1f} ms after its last segment; tcptrace counts that "
        "time as idle"
    )


def _wraps(case: FigureCase) -> str | None:
    if case.model is None or case.model.longest < SEQ_SPACE:
        return None
    return f"the stream has {case.model.longest:,} bytes, so its sequence numbers wrap; tcptrace takes new segments for old ones"


def _several_quarters(case: FigureCase) -> str | None:
    model = case.model
    most = 0 if model is None else max(len(tally.quarters) for tally in model.sides.values())
    if most <= 1:
        return None
    return f"the stream spans {most} quarters of the sequence space; tcptrace compares segments only within one quarter"


RULES: tuple[Rule[FigureCase], ...] = (
    Rule(
        "tcptrace-cut-options",
        "tcptrace treats truncated options of a SYN as absent",
        SOURCE,
        frozenset({"mss_requested", "req_sack", "req_1323_ws/ts"}),
        _cut_options,
    ),
    Rule(
        "tcptrace-options-anywhere",
        "tcptrace takes options of any segment for options of the SYN",
        SOURCE,
        frozenset({"req_1323_ws/ts"}),
        _options_without_syn,
    ),
    Rule(
        "tcptrace-open-connections",
        "if a connection was not closed, tcptrace counts the time to the end of the capture as idle",
        SOURCE,
        frozenset({"idletime_max"}),
        _open_at_end,
    ),
    Rule(
        "tcptrace-shows-no-rate",
        "tcptrace shows no rates if a connection's last packet is not later than its first",
        SOURCE,
        PER_TIME,
        _no_duration,
    ),
    Rule(
        "tcptrace-acks-have-the-flag",
        "tcptrace-lab counts segments without data as pure ACKs even without the ACK flag; tcptrace does not",
        SOURCE,
        frozenset({"pure_acks_sent"}),
        by_its_rules(_without_ack_flag),
    ),
    Rule(
        "tcptrace-believes-headers",
        "tcptrace computes a negative data length from contradictory headers",
        SOURCE,
        OUTSTANDING | {"pure_acks_sent"},
        _contradiction,
    ),
    Rule(
        "tcptrace-counts-below-0",
        "tcptrace stores a negative number of bytes in flight as a number near 2^64, and includes it in averages",
        SOURCE,
        OUTSTANDING,
        _negative_in_flight,
    ),
    Rule(
        "tcptrace-counts-cut-options",
        "tcptrace counts truncated header bytes as data",
        SOURCE,
        frozenset({"truncated_data"}),
        _cut_headers,
    ),
    Rule(
        "tcptrace-wraps",
        "tcptrace confuses old and new segments after sequence numbers wrap",
        SOURCE,
        RESENDS | RTT | FULL | AMBIGUOUS | WAITS | STREAM | OUTSTANDING,
        _wraps,
    ),
    Rule(
        "tcptrace-quarters",
        "tcptrace tracks each quarter of the sequence space separately",
        SOURCE,
        RESENDS | RTT | FULL | AMBIGUOUS | WAITS | OUTSTANDING,
        _several_quarters,
    ),
    Rule(
        "tcptrace-large-shift",
        "tcptrace applies window scales above 14",
        "RFC 7323, 2.3",
        WINDOWS | SCALE | {"req_1323_ws/ts"},
        _large_shift,
    ),
    Rule("tcptrace-wraps-mss", "tcptrace reads an MSS above 32,767 as a negative number", SOURCE, frozenset({"mss_requested"}), _mss),
)
