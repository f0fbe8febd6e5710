"""Compares predicted gains with the bottleneck's free time.

A remedy cannot save time in which the bottleneck was busy. The busy time follows from the relay's rate, and from the frames that left the
relay while the finding's direction was sending. Frames of all connections count.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from tcptrace_lab import verdict
from tcptrace_lab.analysis import analyze
from tcptrace_lab.engine.segments import read
from tcptrace_lab.findings.finding import Severity
from tcptrace_lab.lab.corpus.judging import points
from tcptrace_lab.lab.kernel_ledger.agreement import MIDDLE, POINTS, RECEIVER, SENDER, capture_of
from tcptrace_lab.lab.networks.path import BITS_PER_BYTE
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

HEADER_BYTES = 66
"""Bytes of headers that the relay sends with each payload: Ethernet, IPv4, and TCP with timestamps."""
NOTICED = 0.05
"""A predicted gain is too large if its excess is at least this share of the direction's active time (a choice)."""


class Gain(NamedTuple):
    """A finding with a predicted gain.

    Attributes:
        transfer, at, finding, conn: where the finding was made. `conn` counts from 0.
        active_ns: active time of the finding's direction.
        cost_ns: time that was lost according to the finding.
        gain_ns: the predicted gain.
        free_ns: part of the active time in which the bottleneck carried nothing.
        is_headline: True if the verdict is based on this finding.
    """

    transfer: str
    at: str
    finding: str
    conn: int
    active_ns: int
    cost_ns: int
    gain_ns: int
    free_ns: int
    is_headline: bool

    @property
    def excess_ns(self) -> int:
        """Return the predicted gain minus the free time of the bottleneck, at least 0."""
        return max(self.gain_ns - self.free_ns, 0)

    @property
    def missing_ns(self) -> int:
        """Return the possible gain minus the predicted gain, at least 0.

        The possible gain is the smaller of the finding's cost and the bottleneck's free time.
        """
        return max(min(self.cost_ns, self.free_ns) - self.gain_ns, 0)

    @property
    def is_too_large(self) -> bool:
        """Return whether the excess is at least the share `NOTICED` of the active time."""
        return self.excess_ns >= NOTICED * self.active_ns


def gains(folder: Path, entries: Sequence[dict[str, Any]], processes: int) -> list[Gain]:
    """Return the gains that the findings predict, in all captures of these transfers."""
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        return [gain for some in pool.map(partial(_of_transfer, folder), entries) for gain in some]


def report(every: Sequence[Gain], transfers: int, largest: int) -> Iterator[str]:
    """Yield a table of the gains by capture point, then the gains that differ most from the possible gains."""
    yield f"{len(every)} findings with a gain, in the captures of {transfers} transfers"
    yield ""
    yield "| at | findings | promised (s) | promised but not free (s) | possible but not promised (s) | too large by 5% | in headlines |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for at in POINTS:
        mine = [one for one in every if one.at == at]
        large = [one for one in mine if one.is_too_large]
        sums = (sum(one.gain_ns for one in mine), sum(one.excess_ns for one in mine), sum(one.missing_ns for one in mine))
        seconds = " | ".join(f"{ns / NS_PER_S:.1f}" for ns in sums)
        yield f"| {at} | {len(mine)} | {seconds} | {len(large)} | {sum(one.is_headline for one in large)} |"
    yield ""
    yield "| transfer | at | connection | finding | active (s) | promised (s) | free (s) |"
    yield "|---|---|---:|---|---:|---:|---:|"
    for one in sorted(every, key=lambda one: -max(one.excess_ns, one.missing_ns))[:largest]:
        times = " | ".join(f"{ns / NS_PER_S:.2f}" for ns in (one.active_ns, one.gain_ns, one.free_ns))
        yield f"| {one.transfer} | {one.at} | {one.conn + 1} | {one.finding} | {times} |"


def _of_transfer(folder: Path, entry: dict[str, Any]) -> list[Gain]:
    transfer = folder / entry["name"]
    rates = {from_client: entry["forward" if from_client else "backward"].get("rate_bps") for from_client in (True, False)}
    arrived = {from_client: _arrived(transfer, from_client=from_client) for from_client in (True, False)}
    found = []
    for name, _ in points(entry):
        analysis = analyze(capture_of(transfer, name))
        in_headline = set(map(id, verdict.of(analysis).findings))
        for one in analysis.findings:
            if one.conn is None or one.severity is Severity.INFO or not one.cost_ns or not one.cost_share or one.gain_ns is None:
                continue
            from_client = bool(one.from_client)
            if not (rate_bps := rates[from_client]):
                continue
            active_ns = round(one.cost_ns / one.cost_share)
            busy_ns = _busy_ns(analysis.connections, arrived[from_client], one.conn, rate_bps, from_client=from_client)
            at = MIDDLE if name == MIDDLE else SENDER if from_client == (name == "client") else RECEIVER
            free_ns = max(active_ns - busy_ns, 0)
            found.append(Gain(entry["name"], at, one.id, one.conn, active_ns, one.cost_ns, one.gain_ns, free_ns, id(one) in in_headline))
    return found


def _arrived(transfer: Path, *, from_client: bool) -> pl.DataFrame:
    """Return the arrival time and the wire length in bytes of each frame in one direction."""
    segments = read(capture_of(transfer, "server" if from_client else "client"), worth=()).segments
    mine = segments.filter(pl.col("from_client") == from_client)
    return mine.select("ts_ns", line_bytes=pl.col("payload_bytes").cast(pl.Int64) + HEADER_BYTES).collect()


def _busy_ns(connections: pl.LazyFrame, arrived: pl.DataFrame, conn: int, rate_bps: int, *, from_client: bool) -> int:
    """Return how long frames of all connections kept the line busy while one direction of connection `conn` was sending."""
    side = "client" if from_client else "server"
    ends = connections.filter(pl.col("conn") == conn).select(f"{side}_first_data_ts_ns", f"{side}_last_data_ts_ns").collect().row(0)
    if None in ends:
        return 0
    line_bytes = arrived.filter(pl.col("ts_ns").is_between(*ends))["line_bytes"].sum()
    return round(line_bytes * BITS_PER_BYTE * NS_PER_S / rate_bps)
