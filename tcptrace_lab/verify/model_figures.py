"""Computes figures of tcptrace's listing from the counts of `tcptrace_model`. The figures are not yet formatted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.verify.tcptrace_model import SIZE_SHARE
from tcptrace_lab.verify.tcptrace_sequence_model import US_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tcptrace_lab.verify.tcptrace_model import Tally, TcptraceModel

PER_TIME = frozenset({"throughput", "wavg_owin"})
"""Figures that tcptrace divides by the time from the first packet of a connection to its last. If this time is 0, they are `NA`."""


def figure(model: TcptraceModel, name: str, *, from_client: bool) -> float | None:
    """Return a figure of the listing for one direction; None if it is not modelled, or if it needs windows of unknown scale."""
    one, other = model.sides[from_client], model.sides[not from_client]
    if name in _WINDOWS and not one.windows_known:
        return None
    if name == "avg_win_adv":
        both_scaled = one.scaled and other.scaled
        return float(one.window_total // ((one.window_packets if both_scaled else one.packets) or 1))
    if name in PER_TIME and model.duration_us <= 0:
        return None
    if name == "throughput":
        return one.unique_bytes * US_PER_S / model.duration_us
    if name == "wavg_owin":
        return int(one.numbers.outstanding_seconds / (model.duration_us / US_PER_S))
    make = _FIGURES.get(name)
    return None if make is None else make(one)


def _span(part: str, index: int) -> Callable[[Tally], float]:
    return lambda tally: getattr(tally, part).shown()[index]


def _spans(part: str, names: tuple[str, str, str, str]) -> dict[str, Callable[[Tally], float]]:
    return {name: _span(part, index) for index, name in enumerate(names)}


def _number(attribute: str) -> Callable[[Tally], float]:
    return lambda tally: getattr(tally, attribute)


def _numbers(attribute: str) -> Callable[[Tally], float]:
    return lambda tally: getattr(tally.numbers, attribute)


_WINDOWS = frozenset({"max_win_adv", "min_win_adv", "avg_win_adv", "zero_win_adv"})

_FIGURES: Mapping[str, Callable[[Tally], float | None]] = {
    "total_packets": _number("packets"),
    "resets_sent": _number("resets"),
    "ack_pkts_sent": _number("acks"),
    "pure_acks_sent": _number("pure_acks"),
    "unique_bytes_sent": _number("unique_bytes"),
    "actual_data_pkts": _number("data_packets"),
    "actual_data_bytes": _number("data_bytes"),
    "rexmt_data_pkts": _number("resent_packets"),
    "rexmt_data_bytes": _number("resent_bytes"),
    "zwnd_probe_pkts": _number("probes"),
    "zwnd_probe_bytes": _number("probe_bytes"),
    "outoforder_pkts": _number("late_packets"),
    "pushed_data_pkts": _number("pushed"),
    "max_segm_size": _number("largest"),
    "min_segm_size": _number("smallest"),
    "avg_segm_size": lambda tally: int(tally.data_bytes / (tally.data_packets + SIZE_SHARE)),
    "max_win_adv": _number("max_window"),
    "min_win_adv": _number("min_window"),
    "zero_win_adv": _number("window_shut"),
    "truncated_data": _number("cut_bytes"),
    "truncated_packets": _number("cut_packets"),
    "data_xmit_time": lambda tally: ((tally.last_data_us or 0) - (tally.first_data_us or 0)) / 1e6,
    "idletime_max": lambda tally: tally.idle_us / 1e3,
    "hardware_dups": _number("doubles"),
    "RTT_samples": lambda tally: tally.rtt.count,
    **_spans("rtt", ("RTT_min", "RTT_max", "RTT_avg", "RTT_stdev")),
    "RTT_from_3WHS": lambda tally: tally.handshake_us / 1e3,
    "RTT_full_sz_smpls": lambda tally: tally.rtt_full.count,
    **_spans("rtt_full", ("RTT_full_sz_min", "RTT_full_sz_max", "RTT_full_sz_avg", "RTT_full_sz_stdev")),
    "post-loss_acks": _number("unsampled"),
    "ambiguous_acks": lambda tally: tally.rtt_retransmitted.count,
    **_spans("rtt_retransmitted", ("RTT_min_(last)", "RTT_max_(last)", "RTT_avg_(last)", "RTT_sdv_(last)")),
    "segs_cum_acked": _number("cumulative"),
    "max_#_retrans": _number("max_resends"),
    "duplicate_acks": _number("duplicates"),
    "triple_dupacks": _number("triples"),
    "adv_wind_scale": _numbers("scale"),
    "sacks_sent": _numbers("sack_segments"),
    "sack_pkts_sent": _numbers("sack_acks"),
    "dsack_pkts_sent": _numbers("dsack_acks"),
    "max_sack_blks/ack": _numbers("max_blocks"),
    "initial_window_bytes": _numbers("first_bytes"),
    "initial_window_pkts": _numbers("first_segments"),
    "ttl_stream_length": lambda tally: tally.numbers.stream_bytes(),
    "missed_data": lambda tally: tally.numbers.missed_bytes(),
    "max_owin": _numbers("max_outstanding"),
    "min_non-zero_owin": _numbers("min_outstanding"),
    "avg_owin": lambda tally: tally.numbers.outstanding_total // max(tally.numbers.outstanding_count, 1),
    **_spans("waits", ("min_retr_time", "max_retr_time", "avg_retr_time", "sdv_retr_time")),
}
"""Figure of the listing → function that computes it from a tally."""
