"""All message sizes with few runs: a rule is run for one size, and tells for how many others it would have gone the same way.

A model of a stack compares amounts of bytes. Each amount is a part of the message, so it is `constant + slope × size` with a slope that
stays the same as long as every comparison ends the same way. `Amount` remembers for which sizes that is so. The next run begins where
they end; so 64 Ki sizes take some hundred runs, and the result is exact for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Outcome = TypeVar("Outcome")


@dataclass(slots=True)
class _Sizes:
    """The sizes for which everything went as it did for `at`."""

    at: int
    low: int
    high: int


class Amount:
    """Bytes of a message of unknown size, within the sizes for which all that was asked of it has the same answer."""

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
        """The amount taken away from nothing."""
        return Amount(-self.value, -self._slope, self._sizes)

    def __sub__(self, other: int | Amount) -> Amount:
        """The difference."""
        return self + (-other)

    def __rsub__(self, other: int) -> Amount:
        """The difference."""
        return -self + other

    def __ge__(self, other: int | Amount) -> bool:
        """Whether it is so much; the sizes are narrowed to those with the same answer."""
        return (self - other)._not_negative()

    def __gt__(self, other: int | Amount) -> bool:
        """Whether it is more."""
        return (self - other - 1)._not_negative()

    def __lt__(self, other: int | Amount) -> bool:
        """Whether it is less."""
        return not self >= other

    def __le__(self, other: int | Amount) -> bool:
        """Whether it is so much or less."""
        return not self > other

    def __eq__(self, other: object) -> bool:
        """Whether it is just so much."""
        if not isinstance(other, (int, Amount)):
            return NotImplemented
        return (self - other)._zero()

    __hash__ = None  # type: ignore[assignment]  # (equal amounts differ for other sizes)

    def _not_negative(self) -> bool:
        found, slope, sizes = self.value >= 0, self._slope, self._sizes
        if slope > 0:  # true from here on
            edge = sizes.at - self.value // slope
            if found:
                sizes.low = max(sizes.low, edge)
            else:
                sizes.high = min(sizes.high, edge - 1)
        elif slope < 0:  # true up to here
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
    """The outcome of each size from `first` to `last`: `(from, to, outcome)`, ascending, neighbours with the same outcome joined.

    Args:
        outcome: is given a size; looks at it only by adding, subtracting and comparing.
        first: bytes.
        last: bytes; nothing if it is less.
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
