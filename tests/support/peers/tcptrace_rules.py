"""Reasons why a figure of tcptrace 6.6.7 differs from ours.

tcptrace computes some figures differently, or from other segments. `printed` computes from our figures what tcptrace must print
(`tcptrace_figures` describes each computation). If tcptrace prints something else, `reason` returns why. `golden/tcptrace-deviations.tsv`
has the number of such differences in each capture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tcptrace_lab.outputs.tcptrace_figures import Direction, Figure, Value

TWO_32 = 1 << 32
TWO_16 = 1 << 16
LARGEST_SHORT = (1 << 15) - 1

AVERAGE_SHARE = 0.0001
"""tcptrace adds this constant to the count when it computes an average."""

SIZE_SHARE = 0.001
"""tcptrace adds this constant to the count when it computes the average segment size."""

HALF_A_STEP = 0.5 + 1e-3
"""Allowed difference, in units of the last printed digit. Both programs round."""


def same(figure: Figure, direction: Direction, theirs: str) -> bool:
    """Return whether tcptrace prints the text that corresponds to our figure."""
    candidates = printed(figure, direction)
    return any(_equal(candidate, theirs, figure) for candidate in candidates)


def _equal(ours: Value, theirs: str, figure: Figure) -> bool:
    if isinstance(ours, str) or theirs == "NA" or ours is None:
        return ours == theirs or (ours is None and theirs == "NA")
    step = {"8.1f": 0.1, "7.3f": 0.001}.get(figure.form, 1.0)
    return abs(float(theirs) - ours) <= (HALF_A_STEP * step if isinstance(ours, float) else 0)


def printed(figure: Figure, direction: Direction) -> list[Any]:
    """Return the values that tcptrace can print for our figure, as numbers or text."""
    ours = figure.value(direction)
    way = _WAYS.get(figure.name)
    if way is not None and ours is not None:
        return way(ours, direction)
    # tcptrace prints 0 for unknown values, but NA for unknown streams and rates
    return [ours] if ours is not None else [None, 0]


def _mean_of(samples: str) -> Callable[[float, Direction], list[Any]]:
    return lambda ours, direction: [ours * direction[samples] / (direction[samples] + AVERAGE_SHARE)]


def _deviation_of(samples: str) -> Callable[[float, Direction], list[Any]]:
    return lambda ours, direction: [0.0 if direction[samples] <= 2 else ours]  # as in tcptrace's function Stdev


def _mss(ours: int, _: Direction) -> list[Any]:
    return [ours if ours <= LARGEST_SHORT else ours - TWO_16 + TWO_32]


def _mean_size(_: int, direction: Direction) -> list[Any]:
    return [int(direction["payload_bytes"] / (direction["data_segments"] + SIZE_SHARE))]


def _resent_bytes(ours: int, direction: Direction) -> list[Any]:
    """Return tcptrace's count, which includes a byte for each retransmitted SYN and FIN."""
    controls = sum(max(direction[column] - 1, 0) for column in ("syn_segments", "fin_segments"))
    return [ours + controls, ours]


def _one_more(ours: int, _: Direction) -> list[Any]:
    """Return tcptrace's value, which is one byte too high.

    If a FIN is in flight, the value is right, because tcptrace omits the FIN.
    """
    return [ours + 1, ours]


def _least_in_flight(ours: int, _: Direction) -> list[Any]:
    """Return tcptrace's value, which is one byte too high, or two bytes before the first ACK."""
    return [1, ours, ours + 1, ours + 2]


def _mean_in_flight(ours: int, _: Direction) -> list[Any]:
    return [ours + 1, ours, ours + 2]  # tcptrace truncates, we round; for FINs see `_one_more`


def _both_scale(direction: Direction) -> bool:
    return direction["window_scale_offered"] is not None and direction.other["window_scale_offered"] is not None


def _least_window(ours: int, direction: Direction) -> list[Any]:
    syn = direction["syn_window_bytes"]
    return [ours] if _both_scale(direction) or not syn else [min(ours, syn)]


def _mean_window(ours: int, direction: Direction) -> list[Any]:
    """Return tcptrace's mean, which is the sum of all windows divided by the number of all segments.

    The number includes segments without a window. The sum includes the windows of SYNs unless both hosts scale.
    """
    bare = direction["segments"] - direction["syn_segments"] - direction["rst_segments"]
    total = ours * bare + (direction["syn_window_bytes"] or 0) * direction["syn_segments"]
    spread = range(-1, 2)
    if _both_scale(direction):
        counted = {bare + direction["rst_segments"], direction["segments"]}  # all segments if the other host sent only its SYN
        return [ours * bare // count + one for count in counted if count for one in spread]
    return [total // direction["segments"] + one for one in spread]


def _handshake_flags(ours: str, direction: Direction) -> list[Any]:
    """Return what tcptrace can print for window scaling and timestamps, such as `N/Y`.

    In tcptrace, timestamps in any segment count. Our figure is about SYNs only.
    """
    return [ours, "N/Y"] if direction["syn_segments"] == 0 else [ours]


_WAYS: Mapping[str, Callable[[Any, Direction], list[Any]]] = {
    "rexmt_data_bytes": _resent_bytes,
    "req_1323_ws/ts": _handshake_flags,
    "mss_requested": _mss,
    "avg_segm_size": _mean_size,
    "min_win_adv": _least_window,
    "avg_win_adv": _mean_window,
    "max_owin": _one_more,
    "min_non-zero_owin": _least_in_flight,
    "avg_owin": _mean_in_flight,
    "RTT_avg": _mean_of("rtt_samples"),
    "RTT_stdev": _deviation_of("rtt_samples"),
    "RTT_full_sz_avg": _mean_of("rtt_full_size_samples"),
    "RTT_full_sz_stdev": _deviation_of("rtt_full_size_samples"),
    "RTT_avg_(last)": _mean_of("rtt_retransmitted_samples"),
    "RTT_sdv_(last)": _deviation_of("rtt_retransmitted_samples"),
    "avg_retr_time": _mean_of("retransmit_interval_samples"),
    "sdv_retr_time": _deviation_of("retransmit_interval_samples"),
}
"""For each figure, the function that computes what tcptrace prints from our figure."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason why tcptrace prints another value.

    Attributes:
        name: the name in the golden file.
        why: the reason.
        figures: the figures it can explain; empty for all.
        shows: whether the reason applies, by our figures of the direction and what tcptrace prints.
    """

    name: str
    why: str
    figures: frozenset[str]
    shows: Callable[[Direction, Figure, str], bool]


def _figures(names: str) -> frozenset[str]:
    return frozenset(names.split())


def _unknown(direction: Direction, figure: Figure, _: str) -> bool:
    return figure.value(direction) is None


def _number(figure: Figure, direction: Direction) -> float:
    """Return the value of our figure, or 0 if it is unknown."""
    value = figure.value(direction)
    return float(value or 0)


def _is_open(direction: Direction, figure: Figure, theirs: str) -> bool:
    """Return whether neither two FINs nor a RST closed the connection."""
    both = (direction, direction.other)
    closed = all(one["fin_segments"] for one in both) or any(one["rst_segments"] for one in both)
    return not closed and float(theirs) >= _number(figure, direction)


def _one_byte_segments(direction: Direction, _: Figure, __: str) -> bool:
    """Return whether the direction has SYNs, FINs or data of one byte. Only tcptrace takes RTT samples from them."""
    return bool(direction["syn_segments"] + direction["fin_segments"] > 0 or direction["min_segment_bytes"] == 1)


def _more(direction: Direction, figure: Figure, theirs: str) -> bool:
    return float(theirs) > _number(figure, direction)


_IN_FLIGHT = _figures("max_owin min_non-zero_owin avg_owin initial_window_bytes initial_window_pkts")
_WINDOWS = _figures("adv_wind_scale max_win_adv min_win_adv avg_win_adv")
_FULL_SIZE = _figures("RTT_full_sz_smpls RTT_full_sz_min RTT_full_sz_max RTT_full_sz_avg RTT_full_sz_stdev")
_RESENT = _FULL_SIZE | _figures(
    "unique_bytes_sent rexmt_data_pkts rexmt_data_bytes outoforder_pkts zwnd_probe_pkts zwnd_probe_bytes missed_data "
    "throughput RTT_samples RTT_min RTT_max RTT_avg RTT_stdev post-loss_acks ambiguous_acks RTT_min_(last) RTT_max_(last) "
    "RTT_avg_(last) RTT_sdv_(last) segs_cum_acked triple_dupacks max_#_retrans min_retr_time max_retr_time avg_retr_time "
    "sdv_retr_time max_owin avg_owin"
)

REASONS = (
    Reason("unknown", "We do not know; tcptrace guesses: a scale of 0, a beginning in mid-stream.", frozenset(), _unknown),
    Reason(
        "held",
        "What is outstanding at one segment lasts for it until the next is sent, whatever is acknowledged in between; ours is over time.",
        _figures("wavg_owin"),
        lambda *_: True,
    ),
    Reason(
        "one-byte", "A segment of one sequence number is one of 2^32 bytes for it, larger than all others.", _FULL_SIZE, _one_byte_segments
    ),
    Reason(
        "open", "Of connections that were not closed it takes the time to the end of the capture, too.", _figures("idletime_max"), _is_open
    ),
    Reason(
        "repeated",
        "Any repeated ACK without data is a duplicate for it, with nothing outstanding, too; RFC 5681 wants outstanding data.",
        _figures("duplicate_acks triple_dupacks"),
        _more,
    ),
    Reason(
        "sack",
        "A duplicate ACK with SACK blocks may move the window (RFC 6675, 2); tcptrace wants it unmoved.",
        _figures("duplicate_acks triple_dupacks"),
        lambda direction, *_: direction.other["sack_segments"] > 0,
    ),
    Reason(
        "mid-stream",
        "Without the SYN, in flight is unknown to us until the first ACK, what lies below the first byte seen counts as seen, and the byte "
        "of a keepalive that comes first is no data.",
        _IN_FLIGHT | _RESENT,
        lambda direction, *_: direction["syn_segments"] == 0,
    ),
    Reason(
        "syn-ack",
        "One SYN was not captured: tcptrace takes windows as they are. A SYN-ACK offers a scale only in answer to one, so ours are scaled.",
        _WINDOWS,
        lambda direction, *_: 0 in {direction["syn_segments"], direction.other["syn_segments"]},
    ),
    Reason(
        "syn-window",
        "Where both sides scale, tcptrace forgets the windows of the SYNs, which were the largest.",
        _figures("max_win_adv"),
        lambda direction, *_: direction["max_window_bytes"] == direction["syn_window_bytes"],
    ),
    Reason(
        "closed-window",
        "tcptrace passes windows of 0 over.",
        _figures("min_win_adv avg_win_adv"),
        lambda direction, *_: direction["min_window_bytes"] == 0,
    ),
    Reason(
        "reset",
        "After a RST tcptrace takes the last number seen for the FIN's.",
        _figures("ttl_stream_length missed_data"),
        lambda direction, *_: direction["rst_segments"] > 0,
    ),
    Reason(
        "partial",
        "An ACK inside a segment (offload joined it) acknowledges it as a whole for tcptrace, and the one of its end gives no sample.",
        _figures("RTT_samples RTT_min RTT_max RTT_avg RTT_stdev segs_cum_acked"),
        lambda direction, *_: direction["super_segments"] > 0,
    ),
    Reason(
        "large-shift",
        "A shift above 14 counts as 14 (RFC 7323, 2.3), but not for tcptrace.",
        _WINDOWS,
        lambda direction, *_: 14 in {direction["window_scale_offered"], direction.other["window_scale_offered"]},
    ),
    Reason(
        "zero-rtt",
        "A smallest sample below its microsecond counts as none.",
        _figures("RTT_min RTT_min_(last) min_retr_time"),
        lambda direction, figure, _: figure.text(direction) == "0.0",
    ),
    Reason(
        "ip-id",
        "Repeated numbers with one IP identification are hardware duplicates for it, though it need not differ (RFC 6864).",
        _figures("hardware_dups"),
        _more,
    ),
    Reason(
        "resent",
        "Below the highest byte seen, what fills a gap is out of order for it, all else resent; what goes into closed windows, neither.",
        _RESENT,
        lambda direction, *_: (
            direction["retransmitted_segments"]
            + direction["out_of_order_segments"]
            + direction["keepalives"]
            + direction["zero_window_probes"]
            > 0
        ),
    ),
)
"""Reasons, in the order in which they are tried.

If none fits, but `Figure.differs` describes how tcptrace differs, the reason is `other`.
"""

SAME = "same"
OTHER = "other"
READ = "read"
"""The two programs count different segments of the connection, so no figure is compared."""
COPIES = "copies"
"""The capture has duplicates (from the network or from capturing). tcptrace counts them twice, so no figure is compared."""
PARTED = "parted"
"""The two programs divide the segments of these endpoints into different connections, so no connection is compared."""


def reason(figure: Figure, direction: Direction, theirs: str) -> str | None:
    """Return the reason why tcptrace's figure differs from ours, or None if no reason fits."""
    for one in REASONS:
        if (not one.figures or figure.name in one.figures) and one.shows(direction, figure, theirs):
            return one.name
    return OTHER if figure.differs else None
