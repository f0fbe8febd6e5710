"""Transfers whose cause of waiting is known because they were made so, and how much of their time the ledger gives to it.

    python -m tcptrace_lab.lab.causes [NAME…] [-o DIR]

prints a table: one line for each transfer and capture point. Needs root and dumpcap, like all experiments.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab import ledger
from tcptrace_lab.lab.experiment import Experiment, run
from tcptrace_lab.lab.network import Medium
from tcptrace_lab.lab.path import PathModel
from tcptrace_lab.lab.programs import BoundedBulk, Bulk, Exchanges, PeriodicWriter, SlowReader
from tcptrace_lab.lab.sockets import SocketOptions
from tcptrace_lab.segments import read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tcptrace_lab.lab.programs import Program

ETHERNET, JUMBO = 1_500, 9_180
FIRST_WINDOW = 65_160
"""Linux offers so much at first: a plateau close below it is held by the window until that grows."""

NOT_HELD = {"network", "application", "peer", "handshake", "close"}
"""Causes with which nothing in TCP holds the sender; they stand beside any other."""

SAID = 0.005
"""Shares below this are not printed."""

KNOWN_SHARE, OTHER_SHARE, UNKNOWN_SHARE = 0.90, 0.03, 0.05
"""Of the held time the known cause must have so much; of all time no other so much; and unknown may stay no more."""


@dataclass(frozen=True, slots=True)
class Known:
    """A transfer and the causes that may hold its time: `due` those it was made for, `beside` those that come with them."""

    experiment: Experiment
    due: frozenset[str]
    beside: frozenset[str] = frozenset({"slow-start"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the ledger says of the client's direction from its first data to its last: each cause's share of that time."""

    shares: Mapping[str, float]
    known: Known

    @property
    def held_share(self) -> float:
        """Of the time that something holds, how much the due causes have. 1 where they are not of that sort."""
        held = {cause: share for cause, share in self.shares.items() if cause not in NOT_HELD | self.known.beside}
        due = sum(share for cause, share in self.shares.items() if cause in self.known.due)
        return due / (due + sum(share for cause, share in held.items() if cause not in self.known.due)) if due else 0.0

    @property
    def worst_other(self) -> tuple[str, float]:
        """The largest cause that holds and should not, and its share of all time."""
        wrong = {c: s for c, s in self.shares.items() if c not in NOT_HELD | self.known.beside | self.known.due | {"unknown"}}
        return max(wrong.items(), key=lambda item: item[1], default=("", 0.0))

    @property
    def holds(self) -> bool:
        """Whether the known cause is found, and no other is."""
        unknown = self.shares.get("unknown", 0.0)
        return self.held_share >= KNOWN_SHARE and self.worst_other[1] <= OTHER_SHARE and unknown < UNKNOWN_SHARE


def _path(round_trip_s: float, mtu: int = ETHERNET, **forward: object) -> Medium:
    path = PathModel(delay_s=round_trip_s / 2)
    return Medium("tap", mtu, forward=replace(path, **forward), backward=path)  # type: ignore[arg-type]


def _known(medium: Medium, program: Program, due: set[str], options: SocketOptions | None = None, beside: set[str] | None = None) -> Known:
    experiment = Experiment(medium, program, options or SocketOptions())
    with_it = {"slow-start"} if beside is None else beside
    if not experiment.options.nodelay:
        with_it = with_it | {"nagle"}  # the last small piece of a transfer waits for the small one before it
    return Known(experiment, frozenset(due), frozenset(with_it - due))


def _windows() -> Iterator[tuple[str, Known]]:
    for buffer, round_trip_s, mtu, total in (
        (8_192, 0.020, ETHERNET, 150_000),
        (16_384, 0.010, ETHERNET, 400_000),
        (16_384, 0.050, ETHERNET, 200_000),
        (32_768, 0.020, ETHERNET, 500_000),
        (65_536, 0.040, ETHERNET, 800_000),
        (32_768, 0.020, JUMBO, 500_000),
        (65_536, 0.020, JUMBO, 1_000_000),
        (12_000, 0.005, ETHERNET, 400_000),
        (24_000, 0.080, ETHERNET, 250_000),
        (48_000, 0.030, JUMBO, 700_000),
    ):
        options = SocketOptions(receive_buffer_bytes=buffer)
        name = f"window {buffer:,} B, {round_trip_s * 1000:.0f} ms, MTU {mtu}"
        yield name, _known(_path(round_trip_s, mtu), Bulk(total), {"receiver-window", "zero-window"}, options)


def _send_buffers() -> Iterator[tuple[str, Known]]:
    for bound, piece, round_trip_s, mtu, total in (
        (16_384, 2_048, 0.020, ETHERNET, 250_000),
        (8_192, 1_448, 0.020, ETHERNET, 150_000),
        (32_768, 4_096, 0.020, ETHERNET, 500_000),
        (32_768, 4_096, 0.020, JUMBO, 500_000),
        (61_320, 8_192, 0.030, JUMBO, 1_200_000),
        (16_384, 4_096, 0.010, ETHERNET, 400_000),
        (24_576, 2_048, 0.040, ETHERNET, 250_000),
        (49_152, 4_096, 0.050, ETHERNET, 600_000),
    ):
        name = f"send buffer {bound:,} B, {round_trip_s * 1000:.0f} ms, MTU {mtu}"
        options = SocketOptions(nodelay=True)
        beside = {"slow-start", "receiver-window"} if bound > FIRST_WINDOW - JUMBO else {"slow-start"}
        yield name, _known(_path(round_trip_s, mtu), BoundedBulk(total, bound, piece), {"send-buffer"}, options, beside)


def _nagle() -> Iterator[tuple[str, Known]]:
    for writes, round_trip_s, mtu in (
        ((100, 100), 0.0, ETHERNET),
        ((100, 100), 0.005, ETHERNET),
        ((200, 300), 0.020, ETHERNET),
        ((100, 100), 0.0, JUMBO),
        ((50, 50, 50), 0.002, ETHERNET),
        ((400, 20), 0.010, JUMBO),
    ):
        medium = _path(round_trip_s, mtu) if round_trip_s else Medium("veth", mtu)
        for nodelay in (False, True):
            name = f"writes {'+'.join(map(str, writes))}, {round_trip_s * 1000:.0f} ms, MTU {mtu}{', NODELAY' if nodelay else ''}"
            due = {"network", "peer", "application"} if nodelay else {"nagle-delayed-ack"}
            yield name, _known(medium, Exchanges(writes, 100, 25), due, SocketOptions(nodelay=nodelay), set())


def _programs() -> Iterator[tuple[str, Known]]:
    for buffer, pause_s, round_trip_s in ((16_384, 0.3, 0.010), (32_768, 0.5, 0.010), (65_536, 0.4, 0.002), (24_000, 0.2, 0.030)):
        options = SocketOptions(receive_buffer_bytes=buffer)
        name = f"reader pauses {pause_s * 1000:.0f} ms, buffer {buffer:,} B, {round_trip_s * 1000:.0f} ms"
        due = {"zero-window", "receiver-window"}
        yield name, _known(_path(round_trip_s), SlowReader(6 * buffer, buffer, pause_s), due, options, {"slow-start", "congestion-window"})
    for piece, count, pause_s, round_trip_s in (
        (20_000, 20, 0.05, 0.010),
        (100, 40, 0.03, 0.010),
        (60_000, 10, 0.15, 0.020),
        (5_000, 30, 0.04, 0.005),
        (300, 25, 0.10, 0.040),
    ):
        name = f"writer gives {piece:,} B every {pause_s * 1000:.0f} ms, {round_trip_s * 1000:.0f} ms"
        yield (
            name,
            _known(_path(round_trip_s), PeriodicWriter(piece, count, pause_s), {"application", "network"}, SocketOptions(nodelay=True)),
        )
    for server_s, client_s, round_trip_s, answer in ((0.06, 0.03, 0.010, 6_000), (0.2, 0.0, 0.005, 2_000), (0.03, 0.1, 0.020, 500)):
        name = f"server thinks {server_s * 1000:.0f} ms, client {client_s * 1000:.0f} ms, {round_trip_s * 1000:.0f} ms"
        program = Exchanges((400,), answer, 12, server_s, client_s)
        yield name, _known(_path(round_trip_s), program, {"peer", "application", "network"})


def _paths() -> Iterator[tuple[str, Known]]:
    repaired = {"loss-recovery", "timeout", "congestion-window"}
    for words, round_trip_s, forward, total, control in (
        ("2 % lost", 0.020, {"loss_rate": 0.02, "seed": 11}, 600_000, "reno"),
        ("1 % lost", 0.020, {"loss_rate": 0.01, "seed": 5}, 800_000, "cubic"),
        ("4 in a row lost", 0.040, {"lost": frozenset({60, 61, 62, 63})}, 500_000, "cubic"),
        ("5 % lost", 0.010, {"loss_rate": 0.05, "seed": 3}, 400_000, "cubic"),
        ("40 in a row lost", 0.020, {"lost": frozenset(range(40, 80))}, 400_000, "reno"),
        ("3 % lost", 0.060, {"loss_rate": 0.03, "seed": 8}, 200_000, "reno"),
    ):
        name = f"{words}, {round_trip_s * 1000:.0f} ms, {control}"
        options = SocketOptions(congestion_control=control)
        yield name, _known(_path(round_trip_s, **forward), Bulk(total), repaired, options)
    for round_trip_s, rate_bps, queue, total, control in (
        (0.020, 4_000_000, 96_000, 1_200_000, "cubic"),
        (0.020, 10_000_000, 200_000, 2_000_000, "cubic"),
        (0.040, 8_000_000, 400_000, 2_000_000, "cubic"),
        (0.020, 4_000_000, 96_000, 1_200_000, "bbr"),
        (0.010, 2_000_000, 90_000, 600_000, "reno"),
    ):
        name = f"{rate_bps // 1_000_000} Mb/s, queue {queue:,} B, {round_trip_s * 1000:.0f} ms, {control}"
        medium = _path(round_trip_s, rate_bps=rate_bps, queue_bytes=queue)
        beside = {"slow-start", "pacing"} | repaired
        yield name, _known(medium, Bulk(total), {"network"}, SocketOptions(congestion_control=control), beside)
    for round_trip_s, total, control in (
        (0.080, 400_000, "reno"),
        (0.040, 300_000, "cubic"),
        (0.150, 600_000, "cubic"),
        (0.030, 200_000, "reno"),
    ):
        name = f"new connection, {total:,} B, {round_trip_s * 1000:.0f} ms, {control}"
        yield name, _known(_path(round_trip_s), Bulk(total), {"slow-start"}, SocketOptions(congestion_control=control), set())


TRANSFERS: Mapping[str, Known] = dict([*_windows(), *_send_buffers(), *_nagle(), *_programs(), *_paths()])
"""All of them, by what they are."""


def judge(known: Known, capture: Path) -> Verdict:
    """The ledger's shares of one capture of a transfer."""
    tables = read(capture)
    mine = (pl.col("conn") == 0) & pl.col("from_client")
    data = tables.segments.filter(mine & (pl.col("payload_bytes") > 0)).select("ts_ns").collect()["ts_ns"]
    spans = ledger.intervals(tables.segments, tables.connections).filter(mine).collect()
    within = spans.filter((pl.col("start_ns") >= data[0]) & (pl.col("end_ns") <= data[-1]))
    sums = within.group_by("cause").agg(ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
    total = sums["ns"].sum() or 1
    return Verdict({cause: ns / total for cause, ns in sums.iter_rows()}, known)


def main(arguments: list[str] | None = None) -> int:
    """Make transfers and print what the ledger says of them; returns how many it gets wrong, at most 1."""
    parser = argparse.ArgumentParser(prog="python -m tcptrace_lab.lab.causes", description="Transfers of known cause against the ledger.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="transfers whose name begins so (default: all)")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="keep the captures here")
    options = parser.parse_args(arguments)
    wrong = 0
    print("| transfer | at | due causes | of held time | largest other | verdict |\n|---|---|---|---|---|---|")  # noqa: T201
    for number, (name, known) in enumerate(TRANSFERS.items()):
        if options.names and not any(name.startswith(begin) for begin in options.names):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) if options.output is None else options.output / f"{number:02}"
            folder.mkdir(parents=True, exist_ok=True)
            outcome = run(known.experiment, folder)
            for vantage, capture in outcome.captures.items():
                verdict = judge(known, capture)
                wrong += not verdict.holds
                print(_line(name, vantage, verdict), flush=True)  # noqa: T201
    return min(wrong, 1)


def _line(name: str, vantage: str, verdict: Verdict) -> str:
    due = ", ".join(
        f"{cause} {share:.0%}" for cause, share in sorted(verdict.shares.items()) if cause in verdict.known.due and share >= SAID
    )
    other, share = verdict.worst_other
    cells = (
        name,
        vantage,
        due,
        f"{verdict.held_share:.0%}",
        f"{other} {share:.1%}" if other else "",
        "holds" if verdict.holds else "FAILS",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
