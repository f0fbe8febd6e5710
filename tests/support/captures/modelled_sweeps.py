"""Sweeps of message sizes, made by the stack models."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


K = 1024


ATM = [((12 * n + 4) * K + 1, 12 * (n + 1) * K - 1) for n in range(3)]
"""Ranges of message sizes that stall over ATM with buffers of 16 KB (Liu et al.)."""


def joined(ranges: Sequence[tuple[int, int]], sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return the ranges that a sweep of `sizes` can find.

    If no size lies between two ranges, they are joined.
    """
    slow = [any(low <= size <= high for low, high in ranges) for size in sorted(set(sizes))]
    found: list[tuple[int, int]] = []
    for size, is_slow, before in zip(sorted(set(sizes)), slow, [False, *slow], strict=False):
        if is_slow:
            found = [*found[:-1], (found[-1][0], size)] if before else [*found, (size, size)]
    return found
