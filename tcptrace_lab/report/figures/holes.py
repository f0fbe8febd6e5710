"""Holes in a stream: bytes that the capture has not seen, although it has seen later ones (lost before the capture point, or reordered).

A retransmit that fills a hole has bytes that are new to the capture, although the sender sent them before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

MAX_HOLES = 10_000
"""Maximum number of open holes; beyond it, the oldest is dropped. A connection in the worst real captures tested has 3."""


class Holes:
    """Disjoint, non-empty ranges of stream offsets, in ascending order."""

    def __init__(self) -> None:
        """Start without holes."""
        self._left: list[int] = []
        self._right: list[int] = []

    def __len__(self) -> int:
        """Number of open holes."""
        return len(self._left)

    def open(self, left: int, right: int) -> None:
        """Add a hole: data arrived at `right`, but `left` was expected. `left` is not below any offset seen before."""
        self._left.append(left)
        self._right.append(right)
        if len(self._left) > MAX_HOLES:
            del self._left[0], self._right[0]

    def fill(self, left: int, right: int) -> int:
        """Fill holes with the bytes from `left` to `right` (exclusive). Returns how many of them were missing."""
        first, last = bisect_right(self._right, left), bisect_left(self._left, right)
        if first >= last or left >= right:
            return 0
        whole = [(self._left[place], self._right[place]) for place in range(first, last)]
        rest = [(low, high) for low, high in ((whole[0][0], left), (right, whole[-1][1])) if low < high]
        self._left[first:last] = [low for low, _ in rest]
        self._right[first:last] = [high for _, high in rest]
        return sum(min(high, right) - max(low, left) for low, high in whole)
