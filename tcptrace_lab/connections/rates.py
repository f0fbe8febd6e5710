"""Texts on the rates of a direction: the rate of each host, the bound that follows, and the share of the bound that the transfer reached.

The engine determines the rates (`rust/src/hosts/rates.rs`), which are columns of `schema.CONNECTIONS`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.schema import SIDES
from tcptrace_lab.text import numbers
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)

MIN_SAMPLES = 10
"""Minimum number of samples for a rate (a heuristic)."""

MIN_TOLD_NS, MIN_TOLD_BYTES = 1_000_000, 2048
"""Buffers are mentioned only if the RTT is at least 1 ms, and the buffer has at least 2,048 bytes. With a shorter RTT any buffer suffices,
and no stack has smaller buffers than 4.2BSD by default."""

NEARLY_ALL_SHARE = 0.995
"""Minimum share that would be rounded to 100%."""

NOISE_SHARE = 0.05
"""A measured bound can be up to 5% below the delivered rate (a heuristic). A bound that is still lower is wrong, and is dropped."""

BITS_PER_BYTE = 8
_BPS = float(BITS_PER_BYTE * NS_PER_S)

PLATEAU_ROUNDS = 5
"""If the flights did not grow for this many RTTs, they are on a plateau (docs/how-it-decides.md, 4.12)."""


def table(connections: Frame) -> Frame:
    """Return rows of `schema.RATES` for the directions with data, sorted by `conn`.

    Args:
        connections: rows of `schema.CONNECTIONS`, sorted by `conn`.
    """
    to_server, to_client = (connections.filter(pl.col(f"{side}_data_segments") > 0).select(_bounds(side)) for side in SIDES)
    return to_server.merge_sorted(to_client, "conn")


@cache
def _bounds(side: str) -> list[pl.Expr]:
    own = (pl.col(f"{side}_{column.name}").alias(column.name) for column in schema.BOUNDS)
    return [pl.col("conn"), pl.lit(SIDES[side]).alias("from_client"), *own]


def on_path_ns(row: Mapping[str, Any], sent_bytes: int) -> int | None:
    """Return the time in ns that `sent_bytes` take on the path; None if no rate of the path is known.

    The rate is the lower of the drain rate and the link rate in `row`, which has the columns of `schema.RATES`.
    """
    known = [row[name] for name in ("drain_bps", "link_bound_bps") if row[name] is not None]
    return round(sent_bytes * _BPS / min(known)) if known else None


def reached(row: Mapping[str, Any]) -> str:
    """Return the reached share of the bound: `94% of the bound of 19.1 Mb/s`; empty if the bound is unknown or is set by the sender."""
    if row["reached_share"] is None or row["bound_by"] == "send":
        return ""
    return f"{numbers.share(row['reached_share'])} of the bound of {numbers.rate(row['bound_bps'])}"


def sentence(row: Mapping[str, Any]) -> str:
    """Describe the rates of one direction (a row of `schema.RATES`); empty if no rate is known."""
    phrases = [*_rates(row)]
    if reached(row):
        phrases.append(f"{reached(row)} was reached")
    if row["idle_share"] is not None and row["send_bps"] is not None:
        share = "nearly all" if row["idle_share"] >= NEARLY_ALL_SHARE else numbers.share(row["idle_share"])
        phrases.append(f"the sender sent nothing for {share} of the transfer")
    needed = row["receive_buffer_needed_bytes"]
    if reached(row) and needed is not None and needed >= MIN_TOLD_BYTES and row["base_rtt_ns"] >= MIN_TOLD_NS:
        phrases.append(f"this bound needs buffers of {numbers.size(needed)} at an RTT of {numbers.duration(row['base_rtt_ns'])}")
    if row["send_buffer_estimate_bytes"] is not None:
        phrases.append(f"send buffer or clamped window: about {numbers.size(row['send_buffer_estimate_bytes'])}")
    return "; ".join(phrases)


def _rates(row: Mapping[str, Any]) -> list[str]:
    phrases = []
    if row["send_bps"] is not None:
        phrases.append(f"the sender reached {numbers.rate(row['send_bps'])} in bursts ({row['send_samples']:,} segments)")
    if row["drain_bps"] is not None:
        phrases.append(f"a queue drained at {numbers.rate(row['drain_bps'])} ({row['drain_samples']:,} ACKs)")
    if row["read_bps"] is not None:
        phrases.append(
            f"the receiving application read at {numbers.rate(row['read_bps'])} from a full buffer ({row['read_samples']:,} windows)"
        )
    if row["ratio"] is not None:
        full = row["window_full_share"]
        often = "" if full is None else f" (M/M/1/K: {numbers.share(full)} of the segments find the window full)"
        phrases.append(f"λ/μ = {row['ratio']:.3g}{often}")
    if row["link_bps"] is not None:
        phrases.append(f"a {numbers.rate(row['link_bps'])} link leaves {numbers.rate(row['link_bound_bps'])} for data")
    return phrases
