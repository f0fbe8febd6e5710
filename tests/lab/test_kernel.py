"""Live transfers over paths that lose, reorder and duplicate packets. Captures agree with the statistics of Linux about the connection.

TCP_INFO is read before the close, when all bytes are acknowledged. So it does not count retransmissions of FINs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
import pytest

import tcptrace_lab
from tcptrace_lab.connections import loss_before_capture
from tcptrace_lab.lab.experiment import Experiment, Outcome, run
from tcptrace_lab.lab.hosts.applications import Bulk, PeriodicWriter
from tcptrace_lab.lab.networks.network import Medium
from tcptrace_lab.lab.networks.path import PathModel
from tcptrace_lab.lab.networks.tcp_headers import tcp_head
from tcptrace_lab.lab.score import Score, score, seeded
from tcptrace_lab.lab.trials import TRIALS
from tcptrace_lab.schema import RESENT
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tcptrace_lab.engine.segments import Tables

pytestmark = pytest.mark.live

RUNS = [(name, 1) for name in TRIALS] + [("loss", 2), ("everything", 2), ("everything-two-way", 2)]
"""Pairs of the name of an experiment and its seed."""

MIN_RTT_SHARE, MIN_RTT_US = 0.03, 50
"""The smallest RTT in the capture is allowed to differ from the kernel's smallest RTT by 3% or 50 µs."""

TIMESTAMP_US = 1_000
"""One tick of the kernel's timestamp clock in microseconds.

If an ACK covers a retransmission, the kernel computes the RTT from the echoed timestamp, in whole ticks. So the RTT can be up to one tick
too short.
"""


class Live(NamedTuple):
    """One transfer: its parameters, its result, and the tables of each capture."""

    outcome: Outcome
    tables: dict[str, Tables]

    def kernel(self, side: str) -> dict[str, Any]:
        """The TCP_INFO of the client or the server."""
        (account,) = self.outcome.accounts
        end: Any = account[side]
        info: dict[str, Any] = end["tcp_info"]
        return info

    def figures(self, vantage: str, side: str) -> dict[str, Any]:
        """Return the figures of the direction in which `side` sends, from the capture at `vantage`.

        The names of the figures have no prefix such as `client_`.
        """
        (row,) = self.tables[vantage].connections.collect().iter_rows(named=True)
        return {name.removeprefix(f"{side}_"): value for name, value in row.items() if name.startswith(f"{side}_")}


def live(experiment: Experiment, folder: Path) -> Live:
    outcome = run(experiment, folder)
    return Live(outcome, {vantage: tcptrace_lab.read(path) for vantage, path in outcome.captures.items()})


@pytest.fixture(scope="module")
def transfers(tmp_path_factory: pytest.TempPathFactory) -> Callable[[tuple[str, int]], Live]:
    """A function that returns the transfer with this name and seed. Its first call performs the transfer."""

    @cache
    def made(asked: tuple[str, int]) -> Live:
        name, seed = asked
        return live(seeded(TRIALS[name], seed), tmp_path_factory.mktemp(f"{name}-{seed}"))

    return made


@pytest.fixture(params=RUNS, ids=lambda asked: f"{asked[0]}-{asked[1]}")
def trial(request: pytest.FixtureRequest, transfers: Callable[[tuple[str, int]], Live]) -> Live:
    """One of the transfers. All tests use this transfer, so it is performed only once."""
    return transfers(request.param)


def near(found_ns: int | None, kernel_us: int) -> bool:
    assert found_ns is not None
    return abs(found_ns / 1000 - kernel_us) <= max(MIN_RTT_SHARE * kernel_us, MIN_RTT_US)


def test_sender_side_counts_what_the_kernel_resent(trial: Live) -> None:
    for side in ("client", "server"):
        seen, kernel = trial.figures(side, side), trial.kernel(side)
        resent_fins = max(seen["fin_segments"] - 1, 0)
        assert seen["retransmitted_segments"] - resent_fins == kernel["tcpi_total_retrans"], side
        assert seen["retransmitted_bytes"] == kernel["tcpi_bytes_retrans"], side
        assert seen["payload_bytes"] == kernel["tcpi_bytes_sent"], side


def test_sender_side_sees_the_kernels_smallest_round_trip(trial: Live) -> None:
    """The test compares only the client, because the client sends the data.

    The server has only one RTT sample, which the SYN-ACK gives. It includes scheduling delays.
    """
    seen, kernel = trial.figures("client", "client"), trial.kernel("client")
    found_us = seen["rtt_min_ns"] / 1000
    if near(seen["rtt_min_ns"], kernel["tcpi_min_rtt"]):
        return
    assert kernel["tcpi_total_retrans"] > 0, "only samples of timestamps may differ by more"
    assert found_us - TIMESTAMP_US <= kernel["tcpi_min_rtt"] <= found_us
    assert kernel["tcpi_min_rtt"] % TIMESTAMP_US == 0


def test_receiver_side_bounds_what_the_kernel_resent(trial: Live) -> None:
    """The kernel's number of retransmissions lies between two bounds from the receiver's capture.

    The lower bound is what the capture shows. The upper bound adds what the missing packets allow. IPv6 packets have no IP ID, so they give
    no upper bound.
    """
    seen, kernel = trial.figures("server", "client"), trial.kernel("client")
    bounds = {
        name: trial.tables["server"].connections.select(least=least, most=most).collect().row(0)
        for name, (least, most) in (
            ("segments", loss_before_capture.resent_segments("client")),
            ("bytes", loss_before_capture.resent_bytes("client")),
        )
    }
    resent_fins = max(seen["fin_segments"] - 1, 0)
    for name, truth in (("segments", kernel["tcpi_total_retrans"]), ("bytes", kernel["tcpi_bytes_retrans"])):
        least, most = bounds[name]
        assert least - resent_fins <= truth, name
        assert most is None or truth <= most, name
    assert (bounds["segments"][1] is None) == (seen["missing_segments"] is None)


def test_receiver_side_counts_what_was_lost_before_it(trial: Live) -> None:
    """The packets missing at the receiver are those that the path's log shows as lost.

    The test leaves out packets that were lost after the last arrival, because the capture cannot show them.
    """
    missing = trial.figures("server", "client")["missing_segments"]
    assert trial.outcome.relay is not None
    log = trial.outcome.relay.forward_log
    last = max(index for index, _ in log.delivered)
    heads = [tcp_head(entry.head, ethernet=True) for entry in log.entries[:last]]
    lost = [head for entry, head in zip(log.entries, heads, strict=False) if entry.due_ns is None and head is not None]
    assert missing is None or missing == len(lost)


def seen_from_behind_us(done: Live) -> float:
    """Return the smallest RTT in microseconds from the capture at the receiver.

    The RTT is the sum of the shortest proven turnarounds to both ends.
    """
    turnarounds = pl.sum_horizontal("rtt_to_client_ns", "rtt_to_server_ns")
    found_ns: int = done.tables["server"].connections.select(turnarounds).collect().item()
    return found_ns / 1000


def test_receiver_side_sees_the_kernels_smallest_round_trip_where_timestamps_are_echoed(
    transfers: Callable[[tuple[str, int]], Live],
) -> None:
    """The RTTs agree in at least two of three transfers.

    Only a few answers prove a turnaround, and a busy machine possibly delays all of them. The two shortest turnarounds possibly belong to
    different round trips. Their sum is then smaller than the kernel's minimum RTT.
    """
    runs = [done for done in map(transfers, RUNS) if done.figures("server", "client")["reaction_min_ns"] is not None]
    close = 0
    for done in runs:
        found_us, kernel_us = seen_from_behind_us(done), done.kernel("client")["tcpi_min_rtt"]
        close += near(round(found_us * 1000), kernel_us) or found_us - TIMESTAMP_US <= kernel_us <= found_us
    assert close * 3 >= len(runs) * 2


def test_verdicts_on_loss_reordering_and_copies_are_those_of_the_log(transfers: Callable[[tuple[str, int]], Live]) -> None:
    """At least 99% of the verdicts on all transfers agree with the log. `python -m tcptrace_lab.lab.score` lists the other verdicts."""
    total = Score()
    for asked in RUNS:
        outcome = transfers(asked).outcome
        for end in outcome.captures:
            total += score(outcome, end)
    assert total.events >= 300
    assert total.share >= 0.99


@pytest.mark.parametrize("delay_s", [0.005, 0.0125, 0.050])
def test_without_resends_the_smallest_round_trip_is_the_kernels(delay_s: float, tmp_path: Path) -> None:
    """The kernel's RTT and the RTT in the capture differ by some 100 µs, which would be too much on a shorter path."""
    path = PathModel(delay_s=delay_s)
    done = live(Experiment(Medium("tap", 1_500, forward=path, backward=path), Bulk(150_000)), tmp_path)
    assert done.kernel("client")["tcpi_total_retrans"] == 0
    assert near(done.figures("client", "client")["rtt_min_ns"], done.kernel("client")["tcpi_min_rtt"])


def test_offload_changes_what_a_capture_shows_but_not_what_it_says(tmp_path: Path) -> None:
    """One transfer is captured at two points: before and after the network card splits super-segments."""
    everything = seeded(TRIALS["everything"], 1)
    experiment = replace(everything, medium=replace(everything.medium, offloads=True), vantages=("client", "client-wire"))
    done = live(experiment, tmp_path)
    whole, cut = done.figures("client", "client"), done.figures("client-wire", "client")
    assert whole["max_segment_bytes"] > cut["max_segment_bytes"] == 1_448
    same = (
        "payload_bytes",
        "unique_bytes",
        "retransmitted_bytes",
        "duplicate_acks",
        "isn",
        "mss_bytes",
        "window_scale",
        "max_window_bytes",
    )
    assert {name: whole[name] for name in same} == {name: cut[name] for name in same}
    assert cut["retransmitted_bytes"] == done.kernel("client")["tcpi_bytes_retrans"] > 0
    assert near(whole["rtt_min_ns"], round(cut["rtt_min_ns"] / 1000))
    assert resent_ranges(done.tables["client"]) == resent_ranges(done.tables["client-wire"])


def resent_ranges(tables: Tables) -> list[tuple[int, int]]:
    """Return the ranges of the client's stream that were retransmitted, in order. Adjacent ranges are joined."""
    segments = tables.segments.collect().filter(from_client=True).iter_rows(named=True)
    joined: list[tuple[int, int]] = []
    for left, right in sorted((row["seq"], row["seq"] + row["payload_bytes"]) for row in segments if row["kind"] in RESENT):
        if joined and left <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(right, joined[-1][1]))
        else:
            joined.append((left, right))
    return joined


def test_an_outage_of_the_path_is_found_at_its_time(tmp_path: Path) -> None:
    """The relay drops every packet of both directions from 1 s to 2.5 s after the first packet."""
    path = PathModel(delay_s=0.01, outages_s=((1.0, 2.5),))
    outcome = run(Experiment(Medium("tap", 1_500, forward=path, backward=path), PeriodicWriter(1_000, 100, 0.02)), tmp_path)
    analysis = tcptrace_lab.analyze(outcome.captures["client"])
    (reported,) = (one for one in analysis.findings if one.id == "path-outage")
    assert reported.from_client
    silent_ns = analysis.segments.filter(~pl.col("from_client")).select(pl.col("since_previous_ns").max()).collect().item()
    assert 1_400_000_000 <= (reported.cost_ns or 0) <= silent_ns <= 3_500_000_000  # the last RTO possibly ends long after the outage
    assert f"to {numbers.duration(silent_ns)}" in reported.title
