"""Reduces the points of long series for drawing. This module is independent of TCP.

A line keeps the first, last, lowest and highest point of each pixel column. It also keeps both ends of the longest gaps, so that stalls
keep their position. Marks are thinned evenly. When several series share a limit of points, small series keep all their points before large
series are reduced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.engine import figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl


def share(needs: Sequence[int], budget: int) -> list[int]:
    """Divide `budget` among consumers with the given needs.

    Each consumer gets an equal share, but at most what it needs. The remaining budget goes to consumers that need more. The sum is at most
    `budget`.
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
    """Return the indices of at most `keep` of `count` items, evenly spaced, including the first and the last."""
    if count <= keep:
        return list(range(count))
    return [place * (count - 1) // max(keep - 1, 1) for place in range(keep)]


def line(rows: pl.DataFrame, x: str, y: str, keep: int) -> pl.DataFrame:
    """Reduce rows to about `keep` rows that draw the same line (`rust/src/figures/points.rs`). Ends, extremes and long gaps remain.

    The result is in order. If `x` is not sorted, because timestamps run backwards, pixel columns are split by index instead of by time.

    Args:
        rows: the points.
        x: the column of times, in whole ns.
        y: the column of values, in whole numbers.
        keep: number of points.
    """
    if rows.height <= keep:
        return rows
    return rows[figures.line_places(rows[x], rows[y], keep)]
