"""Evaluates a rule for every message size in a few runs. Each run also finds for which other sizes its result is valid.

A stack model only compares amounts of bytes. As long as every comparison has the same result, each amount depends linearly on the message
size: `constant + slope × size`. `Amount` records for which sizes this holds. The next run starts with the first size after this range. So a
few hundred runs give the exact result of each of 65,536 sizes.
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

    Each comparison of two amounts narrows the range to the sizes for which the comparison has the same result as for the current size.
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
    """Yield ranges of sizes between `first` and `last` with their outcome: `(from, to, outcome)`, in ascending order.

    Adjacent ranges with equal outcomes are joined.

    Args:
        outcome: function of the size. The function only adds, subtracts and compares the size.
        first: smallest size, in bytes.
        last: largest size, in bytes. If it is less than `first`, the result is empty.
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
