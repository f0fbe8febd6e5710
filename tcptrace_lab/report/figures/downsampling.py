"""Reduces the points of long series for drawing. This module is independent of TCP.

A line keeps the first, last, lowest and highest point of each pixel column, and both ends of the longest gaps, so that stalls keep their
position. Marks are thinned evenly. When several series share a limit of points, small series get all they need before large ones are
reduced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_GAPS = 40
"""Number of the longest gaps whose two ends are always drawn (a heuristic: more than a reader can inspect in one figure)."""

FEWEST_LINE_POINTS = 16
"""Minimum number of points: a smaller limit would not save anything."""

POINTS_PER_COLUMN = (2, 4)
"""Points per pixel column: two for an increasing line, whose first point is the lowest and whose last is the highest; four for others."""


def share(needs: Sequence[int], budget: int) -> list[int]:
    """Divide `budget` among consumers with the given needs.

    Each gets an equal share, but not more than it needs. The rest goes to those that need more. The sum is at most `budget`.
    """
    granted = [0] * len(needs)
    left = max(budget, 0)
    waiting = sorted(range(len(needs)), key=lambda index: needs[index])
    while waiting:
        index = waiting.pop(0)
        granted[index] = min(max(needs[index], 0), left // (len(waiting) + 1))
        left -= granted[index]
    return granted


def even(count: int, keep: int) -> list[int]:
    """Indices of at most `keep` of `count` items, evenly spaced, including the first and the last."""
    if count <= keep:
        return list(range(count))
    return [place * (count - 1) // max(keep - 1, 1) for place in range(keep)]


def gap_ends(x: pl.Series, gaps: int = LONGEST_GAPS) -> pl.Series:
    """Indices on both sides of the `gaps` longest steps of `x`."""
    steps = x.diff()
    long = (steps >= steps.top_k(gaps).min()).arg_true()
    after = long.gather(steps.gather(long).arg_sort(descending=True)).head(gaps)
    return pl.concat([after - 1, after])


def all_fit(count: int, keep: int) -> bool:
    """Whether `line` keeps all of `count` points."""
    return count <= max(keep, FEWEST_LINE_POINTS) + 2 * LONGEST_GAPS


def line(rows: pl.DataFrame, x: str, y: str, keep: int) -> pl.DataFrame:
    """Reduce rows to about `keep` that draw the same line. Ends, extremes and long gaps remain.

    The result has at most `max(keep, FEWEST_LINE_POINTS) + 2 * LONGEST_GAPS` rows, in order. `x` need not be sorted (timestamps may run
    backwards); pixel columns are then split by index instead of by time.
    """
    if all_fit(rows.height, keep):
        return rows
    most = max(keep, FEWEST_LINE_POINTS)
    across = rows[x] - rows[x][0] if rows[x].is_sorted() else pl.int_range(rows.height, eager=True)
    drawn = next(found for points in POINTS_PER_COLUMN if len(found := _of_columns(across, rows[y], most // points)) <= most)
    return rows[pl.concat([drawn, gap_ends(rows[x]).cast(drawn.dtype)]).unique().sort()]


def _of_columns(across: pl.Series, y: pl.Series, columns: int) -> pl.Series:
    """Indices of the first, last, lowest and highest point in each of `columns` columns. `across` is sorted and starts at 0."""
    place, width = pl.col("place"), (across[-1] + 1) / columns
    rows = pl.DataFrame({"column": (across / width).floor().set_sorted(), "y": y}).with_row_index("place")
    found = rows.group_by("column").agg(place.first(), last=place.last(), low=pl.col("y").arg_min(), high=pl.col("y").arg_max())
    first = found["place"]
    return pl.concat([first, found["last"], first + found["low"], first + found["high"]]).unique()
