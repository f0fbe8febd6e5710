"""A reduced series keeps the extremes, the ends and the gaps of the full series. The number of its points is at most the limit."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from tcptrace_lab.report.figures import downsampling


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


def test_a_reduced_line_keeps_all_columns_of_its_points() -> None:
    """`rust/src/figures/points.rs` tests the limits and the extremes."""
    x = pl.int_range(10_000, eager=True)
    rows = pl.DataFrame({"t_ns": x * 1_000, "y": (x == 1_234).cast(pl.Int64), "name": x.cast(pl.String)})
    drawn = downsampling.line(rows, "t_ns", "y", 100)
    assert drawn.height < 200
    assert {"0", "1234", "9999"} <= set(drawn["name"])
    assert (drawn["name"].cast(pl.Int64) * 1_000 == drawn["t_ns"]).all()
    assert downsampling.line(rows, "t_ns", "y", 10_000).equals(rows)
