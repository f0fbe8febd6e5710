"""The largest of a table's rows, where the table may be larger than memory: found in one pass, a bounded number of rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Ranking(NamedTuple):
    """An order of rows: those with most of the first figure first, where they are equal of the second, and so on.

    Attributes:
        by: names of figures.
        most: rows that are kept.
        among: which rows take part; None: all.
    """

    by: tuple[str, ...]
    most: int
    among: pl.Expr | None = None


def largest(table: pl.LazyFrame, number: str, figures: Mapping[str, pl.Expr], rankings: Sequence[Ranking]) -> tuple[int, list[list[int]]]:
    """Go through a table once.

    Args:
        table: the rows.
        number: a column of distinct integers; the lesser one is first where all figures are equal.
        figures: what rows are ranked by; unknown ones come last.
        rankings: what is looked for.

    Returns:
        How many rows there are, and for each ranking the numbers of the first rows.
    """
    query = table.select(number, **figures)
    best: list[pl.DataFrame | None] = [None] * len(rankings)
    count = 0
    for batch in query.collect_batches(maintain_order=True):
        count += batch.height
        for place, ranking in enumerate(rankings):
            rows = batch if ranking.among is None else batch.filter(ranking.among)
            before = best[place]
            best[place] = _first(rows if before is None else pl.concat([before, rows]), number, ranking)
    return count, [[] if rows is None else rows[number].to_list() for rows in best]


def _first(rows: pl.DataFrame, number: str, ranking: Ranking) -> pl.DataFrame:
    descending = [*(True for _ in ranking.by), False]
    return rows.sort([*ranking.by, number], descending=descending, nulls_last=True).head(ranking.most)
