"""The engine's ledger of a modelled capture equals the ledger that the model itself wrote.

`benchmarks/roundtrip/run.py` checks all 300 captures.
"""

from __future__ import annotations

import sys

import pytest

from tests.support.places import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

from roundtrip.compare import WITHIN, compare
from roundtrip.settings import drawn
from roundtrip.sweeps import sweep

SEEDS = range(1000, 1060)
"""Random seeds of the test. The benchmark uses other seeds."""

MIN_RIGHT = 0.8
"""Minimum share of directions whose verdict is right.

The table of the benchmark explains the wrong verdicts.
"""


def test_nearly_all_settings_drawn_at_random_are_reported_as_the_model_has_them() -> None:
    ways = [way for seed in SEEDS for way in compare(drawn(seed))]
    assert len(ways) > len(SEEDS)
    assert sum(way.right for way in ways) / len(ways) >= MIN_RIGHT
    assert sorted(way.off_seen_share for way in ways)[len(ways) // 2] <= WITHIN / 4


@pytest.mark.parametrize(
    ("seed", "what"),
    [
        (2, "bulk behind a small window, every burst spaced by the line"),
        (8, "echo in two segments"),
        (10, "think time at both ends"),
        (35, "an answer in several segments"),
        (48, "an answer behind a delayed ACK"),
        (218, "the tail of an answer for which the window had just room, and had opened long before it left"),
    ],
)
def test_what_once_was_reported_otherwise_is_right(seed: int, what: str) -> None:
    for way in compare(drawn(seed)):
        assert way.right, (what, way)


@pytest.mark.parametrize("seed", [0, 4, 7, 16])
def test_a_sweep_of_sizes_shows_every_predicted_range_and_no_other(seed: int) -> None:
    found = sweep(seed)
    assert found.ranges >= 4
    assert (found.missed, found.wrong) == ((), ())


@pytest.mark.parametrize(
    ("seed", "pauses", "what"),
    [
        (20, False, "all sizes above one piece stall, so that five are normal"),
        (37, True, "the same with a smaller MSS"),
        (32, False, "the timers of both hosts are 12 ms apart, less the time of the messages between two stalls"),
        (88, False, "they are 5 ms apart: no wait is a stall by itself"),
        (12, True, "a timer that comes at any time lets one in twenty go before its wait is a stall"),
    ],
)
def test_ranges_that_once_were_missed_are_found(seed: int, what: str, *, pauses: bool) -> None:
    found = sweep(seed, pauses=pauses)
    assert found.ranges
    assert len(found.missed) <= found.ranges // 8, what
    assert found.wrong == (), what


def test_sweeps_with_random_pauses_show_nearly_every_predicted_range_and_hardly_another_size() -> None:
    """Random pauses make one wait in fifty too short to count as a stall."""
    found = [sweep(seed, pauses=True) for seed in range(7005, 7020)]
    ranges = sum(one.ranges for one in found)
    assert ranges >= 30
    assert sum(len(one.missed) for one in found) <= 0.15 * ranges
    assert sum(len(one.wrong) for one in found) <= len(found)
