"""Rows are sorted by number, whatever the order in which they were added and wherever they are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from tcptrace_lab.engine.sorting import Ordered, beside

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = {"number": pl.UInt32(), "name": pl.String(), "bytes": pl.Int64()}

QUERIES: dict[str, Callable[[pl.LazyFrame], pl.LazyFrame]] = {
    "all": lambda rows: rows,
    "some columns": lambda rows: rows.select("bytes"),
    "one number": lambda rows: rows.filter(pl.col("number") == 5),
    "several numbers, and more to pass": lambda rows: rows.filter(pl.col("number").is_in([0, 7, 30]) & (pl.col("bytes") > 10)),
    "no number": lambda rows: rows.filter(pl.col("number") > 10**6),
    "another column": lambda rows: rows.filter(pl.col("name") == "n3").select("number"),
    "the first": lambda rows: rows.head(3),
    "the last": lambda rows: rows.tail(2),
    "how many": lambda rows: rows.select(pl.len()),
    "a sum": lambda rows: rows.select(pl.col("bytes").sum()),
}


def table(numbers: list[int]) -> pl.DataFrame:
    return pl.DataFrame([(number, f"n{number}", number * 7 % 31) for number in numbers], schema=SCHEMA, orient="row")


def kept(parts: list[pl.DataFrame], part_rows: int) -> pl.LazyFrame:
    ordered = Ordered(SCHEMA, "number", part_rows)
    for part in parts:
        ordered.add(part)
    return ordered.finish()


@settings(max_examples=50)
@given(data=st.data(), part_rows=st.sampled_from([0, 1, 5, 1_000]), range_rows=st.sampled_from([1, 4, 1_000]))
def test_rows_come_by_number_whatever_was_over_first(data: st.DataObject, part_rows: int, range_rows: int) -> None:
    numbers = data.draw(st.permutations(range(data.draw(st.integers(0, 40)))))
    step = data.draw(st.integers(1, 12))
    parts = [table(numbers[start : start + step]) for start in range(0, len(numbers), step)]
    expected = table(sorted(numbers))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tcptrace_lab.engine.sorting.RANGE_ROWS", range_rows)
        rows = kept(parts, part_rows)
        assert dict(rows.collect_schema()) == SCHEMA
        query = QUERIES[data.draw(st.sampled_from(sorted(QUERIES)))]
        for engine in ("in-memory", "streaming"):
            assert_frame_equal(query(rows).collect(engine=engine), query(expected.lazy()).collect())


def test_a_query_for_one_number_reads_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcptrace_lab.engine.sorting.RANGE_ROWS", 10)
    asked: list[tuple[int, int]] = []
    within = pl.Expr.is_between

    def noted(column: pl.Expr, low: int, high: int) -> pl.Expr:
        asked.append((low, high))
        return within(column, low, high)

    rows = kept([table(list(range(start, start + 10))) for start in range(0, 100, 10)], 0)
    monkeypatch.setattr(pl.Expr, "is_between", noted)
    assert rows.filter(pl.col("number") == 42).collect()["name"].to_list() == ["n42"]
    assert asked == [(42, 42)]


@pytest.mark.parametrize("part_rows", [0, 1_000])
def test_two_tables_are_joined_number_by_number(monkeypatch: pytest.MonkeyPatch, part_rows: int) -> None:
    monkeypatch.setattr("tcptrace_lab.engine.sorting.RANGE_ROWS", 4)
    left = kept([table([3, 9, 1]), table([0, 2, 14])], part_rows)
    right = kept([table([9, 5]), table([0, 14, 3])], part_rows).select("number", twice=pl.col("bytes") * 2)
    joined = pl.concat(beside(left, right, "number"))
    assert joined.select("number", "twice").rows() == [(0, 0), (1, None), (2, None), (3, 42), (9, 2), (14, 10)]
    assert list(beside(left.filter(number=99), right, "number")) == []


def test_rows_outlive_whoever_collected_them() -> None:
    derived = kept([table([3, 1]), table([0, 2])], 0).filter(pl.col("number") > 0)
    assert derived.collect()["number"].to_list() == derived.collect()["number"].to_list() == [1, 2, 3]
