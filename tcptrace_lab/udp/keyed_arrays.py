"""Arrays of numbers by key, for keys from 0 without gaps. They grow with the keys.

`Places` makes such keys for numbers that come and go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

GROWTH = 1.125
"""Factor by which capacity exceeds the number of keys: adding keys one by one stays cheap, and little memory is unused."""


class Dense:
    """One number per key; `initial` for keys not yet seen."""

    def __init__(self, initial: int, dtype: DTypeLike = np.int64) -> None:
        """Start without keys."""
        self._initial = initial
        self._values: NDArray[Any] = np.empty(0, dtype)

    def at(self, keys: NDArray[np.int64]) -> NDArray[Any]:
        """Return the numbers of some keys."""
        self._reach(keys)
        return self._values[keys]

    def set(self, keys: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Set the numbers of some keys. Each key occurs once."""
        self._reach(keys)
        self._values[keys] = values

    def keep(self, kept: NDArray[np.int64]) -> None:
        """Keep only the numbers of some keys, which are sorted and unique. They become keys 0, 1, and so on."""
        self._values = self.at(kept).copy()

    def _reach(self, keys: NDArray[np.int64]) -> None:
        if keys.size and (highest := int(keys.max())) >= self._values.size:
            self._grow(int((highest + 1) * GROWTH))

    def _grow(self, size: int) -> None:
        if size > self._values.size:
            more = np.full(size - self._values.size, self._initial, self._values.dtype)
            self._values = np.concatenate([self._values, more])


class Sums(Dense):
    """Sums of non-negative integers. They take 32 bits each, and 64 as soon as the total of all could exceed that."""

    def __init__(self) -> None:
        """Start without keys."""
        super().__init__(0, np.uint32)
        self._total = 0

    def add(self, keys: NDArray[np.int64], values: NDArray[np.int64]) -> None:
        """Add to the sums of some keys. Each key occurs once."""
        self._reach(keys)
        self._total += int(values.sum(dtype=np.int64))
        if self._total > np.iinfo(self._values.dtype).max:
            self._values = self._values.astype(np.int64)
        self._values[keys] += values.astype(self._values.dtype)


class Places:
    """Dense indexes (from 0, without gaps) for numbers that come in any order and may be dropped."""

    def __init__(self) -> None:
        """Start without numbers."""
        self.numbers: NDArray[np.int64] = np.empty(0, np.int64)
        """The current numbers, sorted."""
        self._places: NDArray[np.int64] = np.empty(0, np.int64)

    def of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the indexes of some numbers. New numbers get the next free indexes."""
        new = np.setdiff1d(numbers, self.numbers)
        if new.size:
            at = np.searchsorted(self.numbers, new)
            self._places = np.insert(self._places, at, np.arange(self.numbers.size, self.numbers.size + new.size))
            self.numbers = np.insert(self.numbers, at, new)
        return self._places[np.searchsorted(self.numbers, numbers)]

    def drop(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Drop some numbers. Return the old indexes of the rest, sorted; in this order the rest now has indexes 0, 1, and so on."""
        stay = ~np.isin(self.numbers, numbers)
        kept = np.sort(self._places[stay])
        self._places = np.searchsorted(kept, self._places[stay])
        self.numbers = self.numbers[stay]
        return kept
