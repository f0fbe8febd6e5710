"""Describes a capture without TCP: what it contains instead, and the rate and pauses of its largest UDP flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.schema import SIDES
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

LONG_GAPS = 10
"""A gap between datagrams is called a pause if it is at least ten times the median gap (a heuristic)."""

SNAPLEN_BYTES = 128
"""The first 128 bytes of a packet contain all its headers (docs/capturing.md)."""

_BYTES = pl.sum_horizontal(*(f"{side}_payload_bytes" for side in SIDES))


def sentence(capture: Mapping[str, Any], flows: pl.LazyFrame) -> str:
    """Return one sentence on what a capture without TCP connections contains.

    Args:
        capture: the object `capture` of the JSON.
        flows: rows of `schema.FLOWS`.
    """
    none, datagrams = "This capture contains no TCP connection", capture["udp_datagrams"]
    if not capture["packets"]:
        return f"{none}: it is empty."
    if not datagrams and not capture["complete"] and (truncated := capture["quality"]["truncated_packets"]):
        cut = numbers.counted(truncated, "packet")
        return f"{none} that can be read: the snaplen truncates the headers of {cut}; capture at least {SNAPLEN_BYTES} bytes of each."
    if not datagrams:
        return f"{none}, and no UDP."
    count, largest = pl.collect_all([flows.select(pl.len()), flows.top_k(1, by=[_BYTES, "flow"], reverse=[False, True])])
    held = f"{none}; it contains {numbers.counted(datagrams, 'UDP datagram')} in {numbers.counted(count.item(), 'flow')}"
    if largest.is_empty():
        return f"{held}."
    return f"{held}{',' if count.item() == 1 else '; the largest is'} {_flow(largest.row(0, named=True))}."


def _flow(flow: Mapping[str, Any]) -> str:
    """Describe a flow: `10.0.0.1:53000 → 10.0.0.2:53: 16 kB at 43 kb/s, longest pause 1.02 s (median gap 20 ms)`."""
    side, other = sorted(SIDES, key=lambda each: -(flow[f"{each}_payload_bytes"] or 0))
    ends = " → ".join(_endpoint(flow, each) for each in (side, other))
    rate, gap_ns, median_ns = (flow[f"{side}_{name}"] for name in ("rate_bps", "gap_max_ns", "gap_p50_ns"))
    words = [f"{numbers.size(flow[f'{side}_payload_bytes'])}" + (f" at {numbers.rate(rate)}" if rate is not None else "")]
    if gap_ns and median_ns is not None:
        pause = "longest pause" if gap_ns >= LONG_GAPS * median_ns else "longest gap"
        words.append(f"{pause} {numbers.duration(gap_ns)} (median gap {numbers.duration(median_ns)})")
    if missing := flow[f"{side}_missing_datagrams"]:
        words.append(f"{numbers.counted(missing, 'datagram')} missing")
    return f"{ends}: {', '.join(words)}"


def _endpoint(flow: Mapping[str, Any], side: str) -> str:
    address, port = flow[f"{side}_addr"], flow[f"{side}_port"]
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
