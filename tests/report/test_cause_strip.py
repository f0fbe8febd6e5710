"""The strip of causes has the dominant one of every pixel, and each cause has as many pixels as its share of the ledger."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tcptrace_lab import analyze, schema
from tcptrace_lab.report import selection
from tcptrace_lab.report.figures import cause_strip, series
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.report.data_types import Band

PIXEL_NS = 1_000
TOLERANCE = 0.02


def waits(*runs: tuple[int, str]) -> pl.DataFrame:
    """Adjacent intervals of these lengths (ns), the first at 500."""
    ends = list(itertools.accumulate((length for length, _ in runs), initial=500))
    return pl.DataFrame({"start_ns": ends[:-1], "end_ns": ends[1:], "cause": [cause for _, cause in runs]})


def strip_of(*parts: pl.DataFrame) -> list[Band]:
    made = cause_strip.CauseStrip(500, PIXEL_NS)
    for part in parts:
        made.add(part)
    return made.finish()


def lengths(bands: Sequence[Band]) -> Counter[str]:
    """Cause → total length."""
    found: Counter[str] = Counter()
    for band in bands:
        found[band["cause"]] += band["end_ns"] - band["start_ns"]
    return found


def test_waits_of_a_pixel_or_more_keep_their_edges() -> None:
    assert strip_of(waits((1_000, "timeout"), (2_500, "network"), (1_234, "timeout"))) == [
        {"start_ns": 0, "end_ns": 1_000, "cause": "timeout"},
        {"start_ns": 1_000, "end_ns": 3_500, "cause": "network"},
        {"start_ns": 3_500, "end_ns": 4_734, "cause": "timeout"},
    ]


def test_short_waits_share_a_pixel_which_has_the_cause_with_most_time() -> None:
    """600 of 1,000 ns are network; the 400 of peer are owed, and so the next pixel, half and half, is peer's."""
    shown = strip_of(waits((300, "network"), (400, "peer"), (300, "network"), (500, "network"), (500, "peer")))
    assert shown == [{"start_ns": 0, "end_ns": 1_000, "cause": "network"}, {"start_ns": 1_000, "end_ns": 2_000, "cause": "peer"}]


@pytest.mark.parametrize("many", [False, True])
def test_pixels_add_up_to_the_time_of_each_cause_however_short_its_waits(many: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    """Each microsecond has 700 ns of network, 250 of pacing and 50 of peer: pacing and peer are never the largest part of a pixel."""
    if many:
        monkeypatch.setattr(cause_strip, "MANY_WAITS", 1)
    pattern = [(350, "network"), (50, "peer"), (350, "network"), (250, "pacing")] * 200
    whole = waits(*pattern, (40_000, "timeout"), *pattern)
    shown = strip_of(whole.slice(0, 321), whole.slice(321))
    assert all(before["end_ns"] == after["start_ns"] for before, after in itertools.pairwise(shown)), "adjacent"
    assert (shown[0]["start_ns"], shown[-1]["end_ns"]) == (0, 440_000)
    found = lengths(shown)
    for cause, ns in {"network": 280_000, "pacing": 100_000, "peer": 20_000, "timeout": 40_000}.items():
        assert abs(found[cause] - ns) <= TOLERANCE * 440_000


@pytest.mark.parametrize("name", ["ethernet-loss.pcapng", "ethernet-nagle-on.pcapng", "ethernet-two-way.pcapng", "loopback-bulk.pcapng"])
def test_the_strip_of_a_capture_adds_up_to_its_ledger(name: str) -> None:
    analysis = analyze(CAPTURES / name)
    rows = selection.chosen(analysis.connections).drawn
    account = analysis.accounts.filter(pl.col("conn") == rows.item(0, "conn")).collect().row(0, named=True)
    for from_client, direction in series.read(analysis, selection.requests(rows, selection.ALONE))[rows.item(0, "conn")].items():
        side = "client" if from_client else "server"
        ledger = {cause: account[f"{side}_{cause.replace('-', '_')}_ns"] for cause in schema.CAUSES}
        found = lengths(direction.causes)
        assert found.total() == sum(ledger.values())
        assert all(abs(found[cause] - ns) <= TOLERANCE * found.total() for cause, ns in ledger.items())
