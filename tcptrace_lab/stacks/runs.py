"""Evaluates a rule for every message size in few runs. Each run also finds the range of sizes with the same result.

A stack model only compares amounts of bytes. Each amount is linear in the message size, `constant + slope × size`, as long as every
comparison has the same result. `Amount` records the range of sizes for which every comparison has the same result. The next run starts with
the first size after this range. So 65,536 sizes take a few hundred runs, and the result is exact for each size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Outcome = TypeVar("Outcome")


@dataclass(slots=True)
class _Sizes:
    """The range of message sizes for which every comparison has the same result as for the size `at`."""

    at: int
    low: int
    high: int


class Amount:
    """A number of bytes that depends linearly on the message size.

    Comparing two amounts narrows the range of sizes to those for which the comparison has the same result.
    """

    __slots__ = ("_sizes", "_slope", "value")

    def __init__(self, value: int, slope: int, sizes: _Sizes) -> None:
        self.value = value
        self._slope = slope
        self._sizes = sizes

    def __add__(self, other: int | Amount) -> Amount:
        """The sum."""
        if isinstance(other, int):
            return Amount(self.value + other, self._slope, self._sizes)
        return Amount(self.value + other.value, self._slope + other._slope, self._sizes)

    __radd__ = __add__

    def __neg__(self) -> Amount:
        """The negative amount."""
        return Amount(-self.value, -self._slope, self._sizes)

    def __sub__(self, other: int | Amount) -> Amount:
        """The difference."""
        return self + (-other)

    def __rsub__(self, other: int) -> Amount:
        """The difference."""
        return -self + other

    def __ge__(self, other: int | Amount) -> bool:
        """Return whether this amount is at least `other`."""
        return (self - other)._not_negative()

    def __gt__(self, other: int | Amount) -> bool:
        """Return whether this amount is greater than `other`."""
        return (self - other - 1)._not_negative()

    def __lt__(self, other: int | Amount) -> bool:
        """Return whether this amount is less than `other`."""
        return not self >= other

    def __le__(self, other: int | Amount) -> bool:
        """Return whether this amount is at most `other`."""
        return not self > other

    def __eq__(self, other: object) -> bool:
        """Return whether both amounts are equal."""
        if not isinstance(other, (int, Amount)):
            return NotImplemented
        return (self - other)._zero()

    __hash__ = None  # type: ignore[assignment]  # (amounts that are equal for one size differ for others)

    def _not_negative(self) -> bool:
        found, slope, sizes = self.value >= 0, self._slope, self._sizes
        if slope > 0:  # the amount is at least 0 for all sizes from `edge` on
            edge = sizes.at - self.value // slope
            if found:
                sizes.low = max(sizes.low, edge)
            else:
                sizes.high = min(sizes.high, edge - 1)
        elif slope < 0:  # the amount is at least 0 for all sizes up to `edge`
            edge = sizes.at + self.value // -slope
            if found:
                sizes.high = min(sizes.high, edge)
            else:
                sizes.low = max(sizes.low, edge + 1)
        return found

    def _zero(self) -> bool:
        slope, sizes = self._slope, self._sizes
        if slope == 0 or self.value % slope:
            return self.value == 0
        zero_at = sizes.at - self.value // slope
        if self.value == 0:
            sizes.low = sizes.high = zero_at
        elif zero_at > sizes.at:
            sizes.high = min(sizes.high, zero_at - 1)
        else:
            sizes.low = max(sizes.low, zero_at + 1)
        return self.value == 0


def runs(outcome: Callable[[Amount], Outcome], first: int, last: int) -> Iterator[tuple[int, int, Outcome]]:
    """Yield the outcome of each size from `first` to `last`: ascending `(from, to, outcome)`.

    Adjacent ranges with equal outcomes are joined.

    Args:
        outcome: function of the size, which it may only add, subtract and compare.
        first: smallest size, in bytes.
        last: largest size, in bytes; if it is less than `first`, the result is empty.
    """
    begun: tuple[int, Outcome] | None = None
    at = first
    while at <= last:
        sizes = _Sizes(at, at, last)
        found = outcome(Amount(at, 1, sizes))
        if begun is None:
            begun = at, found
        elif begun[1] != found:
            yield begun[0], at - 1, begun[1]
            begun = at, found
        at = max(sizes.high, at) + 1
    if begun is not None:
        yield begun[0], last, begun[1]
