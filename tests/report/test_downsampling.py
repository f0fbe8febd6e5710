"""Which points of a long series are drawn: always extremes, ends and silences, and never more points than the limit."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from tcptrace_lab.report.figures import downsampling


def chosen_of(x: np.ndarray, y: np.ndarray, keep: int) -> list[int]:
    """Positions of the points that are drawn."""
    return downsampling.line(pl.DataFrame({"x": x, "y": y}).with_row_index(), "x", "y", keep)["index"].to_list()


@given(st.lists(st.integers(0, 10_000), max_size=40), st.integers(0, 20_000))
def test_shares_never_exceed_need_or_budget(needs: list[int], budget: int) -> None:
    granted = downsampling.share(needs, budget)
    assert all(0 <= have <= need for have, need in zip(granted, needs, strict=True))
    assert sum(granted) <= budget
    if sum(needs) <= budget:
        assert granted == needs


def test_small_consumers_are_served_before_large_ones_are_cut() -> None:
    assert downsampling.share([10_000, 5, 10_000, 100], 1_105) == [500, 5, 500, 100]


def test_even_choice_keeps_both_ends() -> None:
    chosen = downsampling.even(1_000_000, 5_000)
    assert (len(chosen), chosen[0], chosen[-1]) == (5_000, 0, 999_999)
    assert downsampling.even(3, 10) == [0, 1, 2]
    assert downsampling.even(3, 0) == []


def test_one_spike_in_a_million_points_is_drawn() -> None:
    x = np.arange(1_000_000, dtype=np.float64)
    y = np.zeros_like(x)
    y[123_457] = 9.0
    y[700_001] = -4.0
    chosen = chosen_of(x, y, 2_000)
    assert {0, 123_457, 700_001, 999_999} <= set(chosen)
    assert len(chosen) <= 2_000 + 2 * downsampling.LONGEST_GAPS


def test_both_ends_of_the_longest_silences_are_drawn() -> None:
    """A line that climbs evenly in position; the points of its columns alone have no reason to keep the two sides of a pause."""
    steps = np.full(500_000, 1e-4)
    pauses = (77_777, 250_003, 499_998)
    steps[list(pauses)] = 0.2
    x = np.concatenate([[0.0], np.cumsum(steps)])
    chosen = set(chosen_of(x, np.arange(len(x), dtype=np.float64), 1_000))
    assert all({pause, pause + 1} <= chosen for pause in pauses)


def test_a_clock_that_steps_back_is_thinned_by_position() -> None:
    x = np.concatenate([np.arange(50_000.0), np.arange(20_000.0, 70_000.0)])
    y = np.zeros_like(x)
    y[60_000] = 1.0
    chosen = chosen_of(x, y, 500)
    assert 60_000 in chosen
    assert chosen == sorted(set(chosen))


def test_a_short_line_is_drawn_whole() -> None:
    assert chosen_of(np.arange(90.0), np.zeros(90), 4) == list(range(90))
