"""Which points of a long series are drawn.

Nothing here knows TCP: rows in, rows out. A line keeps the first, the last, the lowest and the highest point of each of its columns of
pixels, and both ends of the longest silences, so that a stall never moves. Marks are thinned evenly. Budgets are shared so that small
consumers get all they need before large ones are cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_GAPS = 40
"""Silences of a series whose two ends are always drawn. A heuristic: more than a reader can look at in one figure."""

FEWEST_LINE_POINTS = 16
"""Below this there is nothing to gain from thinning."""

POINTS_PER_COLUMN = (2, 4)
"""Of a line that only climbs, the first is the lowest and the last the highest; of others these are four."""


def share(needs: Sequence[int], budget: int) -> list[int]:
    """Divide `budget` among consumers, none getting more than it needs.

    Equal shares; what the small ones leave over goes to the large ones. The sum is at most `budget`.
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
    """Positions of at most `keep` of `count` items, evenly spread, the first and the last among them."""
    if count <= keep:
        return list(range(count))
    return [place * (count - 1) // max(keep - 1, 1) for place in range(keep)]


def gap_ends(x: pl.Series, gaps: int = LONGEST_GAPS) -> pl.Series:
    """Positions on both sides of the `gaps` longest steps of `x`."""
    steps = x.diff()
    long = (steps >= steps.top_k(gaps).min()).arg_true()
    after = long.gather(steps.gather(long).arg_sort(descending=True)).head(gaps)
    return pl.concat([after - 1, after])


def all_fit(count: int, keep: int) -> bool:
    """Whether `line` keeps all of so many points."""
    return count <= max(keep, FEWEST_LINE_POINTS) + 2 * LONGEST_GAPS


def line(rows: pl.DataFrame, x: str, y: str, keep: int) -> pl.DataFrame:
    """About `keep` of the rows, which draw the same line as all of them; ends, extremes and long silences stay.

    At most `max(keep, FEWEST_LINE_POINTS) + 2 * LONGEST_GAPS` rows, in their order. `x` need not be sorted (clocks step back); then
    columns are cut by position instead of by time.
    """
    if all_fit(rows.height, keep):
        return rows
    most = max(keep, FEWEST_LINE_POINTS)
    across = rows[x] - rows[x][0] if rows[x].is_sorted() else pl.int_range(rows.height, eager=True)
    drawn = next(found for points in POINTS_PER_COLUMN if len(found := _of_columns(across, rows[y], most // points)) <= most)
    return rows[pl.concat([drawn, gap_ends(rows[x]).cast(drawn.dtype)]).unique().sort()]


def _of_columns(across: pl.Series, y: pl.Series, columns: int) -> pl.Series:
    """Positions of the first, last, lowest and highest point of each of so many columns; `across` is sorted and begins with 0."""
    place, width = pl.col("place"), (across[-1] + 1) / columns
    rows = pl.DataFrame({"column": (across / width).floor().set_sorted(), "y": y}).with_row_index("place")
    found = rows.group_by("column").agg(place.first(), last=place.last(), low=pl.col("y").arg_min(), high=pl.col("y").arg_max())
    first = found["place"]
    return pl.concat([first, found["last"], first + found["low"], first + found["high"]]).unique()
