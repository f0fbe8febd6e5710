"""The tests read back the figures of pairs, predictions and experiments.

They compare the values with tshark, with a published rule, and with a calculation by hand.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import pytest

from tcptrace_lab import analyze, report
from tcptrace_lab.lab.hosts.transfer_kinds import Measured
from tcptrace_lab.lab.studies import experiment_file
from tcptrace_lab.lab.studies.results import document, rows_of
from tcptrace_lab.lab.studies.study import Run
from tcptrace_lab.messages import prediction
from tcptrace_lab.pair import pair_captures
from tcptrace_lab.report import experiment_page, prediction_page
from tcptrace_lab.text.numbers import NS_PER_S
from tests.support.pages import experiment
from tests.support.peers import tshark
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SENDER, RECEIVER = CAPTURES / "ethernet-loss.pcapng", CAPTURES / "ethernet-loss-at-server.pcapng"
FIELDS = ("frame.number", "frame.time_epoch", "ip.src", "ip.id", "tcp.len", "tcp.seq", "tcp.ack", "tcp.options.timestamp.tsval")
T_OF_2 = 4.303
"""The critical value of Student's t for a two-sided 95% interval with two degrees of freedom, from a table."""


def by_tshark(path: Path) -> dict[tuple[str, ...], tuple[int, int]]:
    """Map each packet to its frame number and time. A tuple of header fields identifies the packet."""
    return {
        tuple(row[name] for name in FIELDS[2:]): (int(row["frame.number"]), tshark.time_ns(row["frame.time_epoch"]) or 0)
        for row in tshark.frames(path, FIELDS)
    }


@pytest.fixture(scope="module")
def pair() -> Mapping[str, Any]:
    first, second = analyze(SENDER), analyze(RECEIVER)
    section = report.data(first, pair_captures(first, second))["pair"]
    assert section is not None
    found: Mapping[str, Any] = section["drawn"][0]
    return found


def test_delays_and_losses_of_a_pair_are_the_differences_that_tshark_sees(pair: Mapping[str, Any]) -> None:
    """A packet is lost if tshark sees it only in the sender's capture.

    One machine made both captures, so the estimated clock offset is nearly 0. The offset has opposite signs in the two directions.
    """
    offsets = []
    at_client, at_server = by_tshark(SENDER), by_tshark(RECEIVER)
    start_ns = min(time_ns for _, time_ns in at_client.values())
    traces = {trace["name"]: trace for trace in pair["figures"][1]["figure"]["data"]}
    for line, sent, received in (("client → server", at_client, at_server), ("server → client", at_server, at_client)):
        address = "192.0.2.1" if sent is at_client else "192.0.2.2"
        own = {packet: seen for packet, seen in sent.items() if packet[0] == address}
        both = sorted((time_ns, frame, received[packet][1]) for packet, (frame, time_ns) in own.items() if packet in received)
        drawn = traces[line]
        assert len(drawn["x"]) == len(both) > 200
        assert drawn["customdata"] == [frame for _, frame, _ in both]
        assert drawn["x"] == pytest.approx([(time_ns - start_ns) / NS_PER_S for time_ns, _, _ in both], abs=10e-6)
        off = [y - (arrived_ns - time_ns) / NS_PER_S for y, (time_ns, _, arrived_ns) in zip(drawn["y"], both, strict=True)]
        assert off == pytest.approx([off[0]] * len(off), abs=1e-9)
        offsets.append(off[0])
        lost = [frame for packet, (frame, _) in own.items() if packet not in received]
        names = [name for name in traces if name.startswith(f"{line}: lost")]
        assert [traces[name]["customdata"] for name in names] == ([lost] if lost else [])
    assert offsets == [pytest.approx(-offsets[1], abs=1e-9), pytest.approx(0, abs=10e-6)]


def test_the_sizes_that_a_prediction_draws_as_stalling_are_those_of_the_paper() -> None:
    """Messages of certain sizes stall over ATM with buffers of 16 KB (Liu et al.).

    These are the sizes from (12n+4)K+1 to 12(n+1)K-1 bytes, for n = 0, 1, 2 and so on. So 8K-1 of every 12K sizes stall.
    """
    k = 1024
    asked = prediction.Asked(stack="sunos4", mss_bytes=9148, send_buffer_bytes=16 * k, receive_buffer_bytes=16 * k)
    found = prediction.document(*prediction.completed(asked), (1, 48 * k), (16 * k,), None)
    (trace,) = prediction_page.ranges(found)["data"]
    steps = list(zip(trace["x"], trace["y"], strict=True))

    def height(size: int) -> float:
        return next(float(y) for x, y in reversed(steps) if x <= size)

    for n in range(4):
        first, last = (12 * n + 4) * k + 1, 12 * (n + 1) * k - 1
        assert [height(size) > 0 for size in (first - 1, first, last, last + 1)] == [False, True, True, False]
    ((cell,),) = [row["cells"] for row in prediction_page.grid(found["grid"])["rows"]]
    assert cell["share"] == pytest.approx(4 * (8 * k - 1) / (48 * k), abs=1e-4)


def measured(elapsed_ms: tuple[float, ...]) -> Mapping[str, Any]:
    """Return the results of an experiment with four points.

    At the first point, the transfers of 40,960 bytes take these times. At the following points, they take 2, 3 and 4 times as long.
    """
    declared = experiment_file.parse("writes.toml", experiment.TEXT, short=False)
    count = len(elapsed_ms)
    runs = []
    for place in range(len(declared.points)):
        for repetition, ms in enumerate(elapsed_ms):
            ns = round(ms * (1 + place) * 1e6)
            runs.append(Run(count * place + repetition, place, repetition, 0, Measured(ns, 40_960, [ns], 40_000), ""))
    return document(declared, declared.points, rows_of(runs, declared.points, {0: {}}), experiment.ENVIRONMENT, {})


def test_the_lines_of_an_experiment_are_means_and_their_intervals() -> None:
    """Each drawn point is the mean of three rates.

    Its interval is Student's t times the standard deviation, divided by √3.
    """
    elapsed_ms = (8.0, 10.0, 12.8)
    lines, *_ = experiment_page.data(measured(elapsed_ms))["drawn"]
    drawn = [point for trace in lines["figure"]["data"] for point in zip(trace["x"], trace["y"], trace["error_y"]["array"], strict=True)]
    expected = []
    for place in range(4):
        rates = [40_960 * 8 / (ms * (1 + place) / 1e3) for ms in elapsed_ms]
        expected.append((statistics.mean(rates), T_OF_2 * statistics.stdev(rates) / 3**0.5))
    assert sorted({x for x, _, _ in drawn}) == [10, 1024]
    assert sorted((y, half) for _, y, half in drawn) == [pytest.approx(pair, rel=1e-3) for pair in sorted(expected)]


def test_the_grid_of_an_experiment_is_shaded_from_its_best_to_its_worst_cell() -> None:
    """The first grid has latencies of 10, 20, 30 and 40 ms. In the second grid, all latencies are equal, so no cell is shaded."""
    (grid,) = (one["grid"] for one in experiment_page.data(measured((10.0,)))["drawn"] if one.get("grid"))
    cells = [(cell["text"], cell["share"]) for row in grid["rows"] for cell in row["cells"]]
    assert sorted(cells) == [("10 ms", 0.0), ("20 ms", pytest.approx(1 / 3)), ("30 ms", pytest.approx(2 / 3)), ("40 ms", 1.0)]
    (grid,) = (one["grid"] for one in experiment_page.data(experiment.results())["drawn"] if one.get("grid"))
    assert {cell["share"] for row in grid["rows"] for cell in row["cells"]} == {0.0}
