"""Bytes of a stream that were jumped over: lost before the capture point, or on their way behind later ones.

A resent segment that fills a hole brings bytes that the capture had not seen, although the sender had sent them before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

MOST_HOLES = 10_000
"""Beyond this many at once the oldest are forgotten; a connection of the worst real captures at hand has 3."""


class Holes:
    """Disjoint ranges of offsets, ascending, none of them empty."""

    def __init__(self) -> None:
        """No holes."""
        self._left: list[int] = []
        self._right: list[int] = []

    def __len__(self) -> int:
        """How many there are."""
        return len(self._left)

    def open(self, left: int, right: int) -> None:
        """Data went on at `right` where `left` was to come; `left` is at or behind all that was seen."""
        self._left.append(left)
        self._right.append(right)
        if len(self._left) > MOST_HOLES:
            del self._left[0], self._right[0]

    def fill(self, left: int, right: int) -> int:
        """Bytes from `left` to `right` (exclusive) arrived: how many of them were missing."""
        first, last = bisect_right(self._right, left), bisect_left(self._left, right)
        if first >= last or left >= right:
            return 0
        whole = [(self._left[place], self._right[place]) for place in range(first, last)]
        rest = [(low, high) for low, high in ((whole[0][0], left), (right, whole[-1][1])) if low < high]
        self._left[first:last] = [low for low, _ in rest]
        self._right[first:last] = [high for _, high in rest]
        return sum(min(high, right) - max(low, left) for low, high in whole)
