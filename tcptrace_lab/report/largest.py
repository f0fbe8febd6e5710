"""Finds the largest rows of a table that can be larger than memory, in one pass over bounded batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tcptrace_lab.engine import memory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Ranking(NamedTuple):
    """An order of rows: descending by the first figure, then by the second, and so on.

    Attributes:
        by: names of figures.
        most: number of rows to keep.
        among: name of a Boolean figure that is true for the rows to rank; empty: all rows.
    """

    by: tuple[str, ...]
    most: int
    among: str = ""


def largest(table: pl.LazyFrame, number: str, figures: Mapping[str, pl.Expr], rankings: Sequence[Ranking]) -> tuple[int, list[list[int]]]:
    """Find the first rows of a table by several rankings, in one pass over the table.

    Args:
        table: the rows.
        number: a column of distinct integers, which breaks ties: the smaller number is first.
        figures: name → expression that rankings use. Null figures sort last. A row whose `among` figure is null is not ranked.
        rankings: the rankings to compute.

    Returns:
        The number of rows in the table, and for each ranking the `number` of its first rows.
    """
    query = table.select(number, **figures)
    best: list[pl.DataFrame | None] = [None] * len(rankings)
    count = 0
    for batch in memory.batches(query):
        count += batch.height
        for place, ranking in enumerate(rankings):
            rows = batch.filter(batch[ranking.among]) if ranking.among else batch
            before = best[place]
            best[place] = _first(rows if before is None else pl.concat([before, rows]), number, ranking)
    return count, [[] if rows is None else rows[number].to_list() for rows in best]


def _first(rows: pl.DataFrame, number: str, ranking: Ranking) -> pl.DataFrame:
    if rows.height <= 1:
        return rows
    descending = [*(True for _ in ranking.by), False]
    return rows.sort([*ranking.by, number], descending=descending, nulls_last=True).head(ranking.most)
