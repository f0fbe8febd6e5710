"""Which points of a long series are drawn.

Nothing here knows TCP: arrays in, positions out. Line series go through `tsdownsample` (MinMaxLTTB keeps the extremes of
every slice of time), and both ends of the longest silences are kept on top of that, so that a stall never moves. Marks are
thinned evenly. Budgets are shared so that small consumers get all they need before large ones are cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

LONGEST_GAPS = 40
"""Silences of a series whose two ends are always drawn. A heuristic: more than a reader can look at in one figure."""

FEWEST_LINE_POINTS = 16
"""Below this there is nothing to gain, and MinMaxLTTB needs a few points per slice."""


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


def even(count: int, keep: int) -> NDArray[np.intp]:
    """Positions of at most `keep` of `count` items, evenly spread, the first and the last among them."""
    if count <= keep:
        return np.arange(count)
    if keep <= 0:
        return np.arange(0)
    return np.unique(np.linspace(0, count - 1, keep).astype(np.intp))


def gap_ends(x: NDArray[np.float64], gaps: int = LONGEST_GAPS) -> NDArray[np.intp]:
    """Positions on both sides of the `gaps` longest steps of `x`."""
    steps = np.diff(x)
    before = np.argpartition(steps, len(steps) - gaps)[-gaps:] if len(steps) > gaps else np.arange(len(steps))
    return np.union1d(before, before + 1)


def all_fit(count: int, keep: int) -> bool:
    """Whether `line` keeps all of so many points."""
    return count <= max(keep, FEWEST_LINE_POINTS) + 2 * LONGEST_GAPS


def line(x: NDArray[np.float64], y: NDArray[np.float64], keep: int) -> NDArray[np.intp]:
    """Positions of about `keep` points that draw the same line as all of them; ends, extremes and long silences stay.

    At most `max(keep, FEWEST_LINE_POINTS) + 2 * LONGEST_GAPS` positions, ascending. `x` need not be sorted (clocks step
    back); then slices are cut by position instead of by time.
    """
    if all_fit(len(x), keep):
        return np.arange(len(x))
    keep = max(keep, FEWEST_LINE_POINTS)
    from tsdownsample import MinMaxLTTBDownsampler  # noqa: PLC0415  (a tenth of a second to import; short captures never need it)

    series = (x, y) if bool(np.all(np.diff(x) >= 0)) else (y,)
    sampler = MinMaxLTTBDownsampler()  # type: ignore[no-untyped-call]
    chosen = sampler.downsample(*map(np.ascontiguousarray, series), n_out=keep)
    return np.union1d(chosen.astype(np.intp), gap_ends(x))
