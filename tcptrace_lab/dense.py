"""Numbers by key, for keys that are numbered from 0 without gaps: arrays that grow with the keys, and nothing else.

`Places` makes such keys for whatever comes and goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

GROWTH = 1.125
"""Room is made for this many times the keys: adding keys one by one costs little, and little is left unused."""


class Dense:
    """One number for each key; `initial` for keys not yet seen."""

    def __init__(self, initial: int, dtype: DTypeLike = np.int64) -> None:
        """No keys yet."""
        self._initial = initial
        self._values: NDArray[Any] = np.empty(0, dtype)

    def at(self, keys: NDArray[np.int64]) -> NDArray[Any]:
        """The numbers of some keys."""
        self._reach(keys)
        return self._values[keys]

    def set(self, keys: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Put the numbers of some keys, each once."""
        self._reach(keys)
        self._values[keys] = values

    def keep(self, kept: NDArray[np.int64]) -> None:
        """Forget all but the numbers of some keys, sorted and each once; their keys are from now on 0, 1, and so on."""
        self._values = self.at(kept).copy()

    def _reach(self, keys: NDArray[np.int64]) -> None:
        if keys.size and (highest := int(keys.max())) >= self._values.size:
            self._grow(int((highest + 1) * GROWTH))

    def _grow(self, size: int) -> None:
        if size > self._values.size:
            more = np.full(size - self._values.size, self._initial, self._values.dtype)
            self._values = np.concatenate([self._values, more])


class Sums(Dense):
    """Sums of integers that are not negative. They take 32 bits each, and 64 from when one of them could be larger."""

    def __init__(self) -> None:
        """No keys yet."""
        super().__init__(0, np.uint32)
        self._total = 0

    def add(self, keys: NDArray[np.int64], values: NDArray[np.int64]) -> None:
        """Add to the sums of some keys, each once."""
        self._reach(keys)
        self._total += int(values.sum(dtype=np.int64))
        if self._total > np.iinfo(self._values.dtype).max:
            self._values = self._values.astype(np.int64)
        self._values[keys] += values.astype(self._values.dtype)


class Places:
    """Places, numbered from 0 without gaps, for numbers that come in any order and go again."""

    def __init__(self) -> None:
        """No numbers yet."""
        self.numbers: NDArray[np.int64] = np.empty(0, np.int64)
        """Those that are there, sorted."""
        self._places: NDArray[np.int64] = np.empty(0, np.int64)

    def of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places of some numbers; those that are new get one each, behind all others."""
        new = np.setdiff1d(numbers, self.numbers)
        if new.size:
            at = np.searchsorted(self.numbers, new)
            self._places = np.insert(self._places, at, np.arange(self.numbers.size, self.numbers.size + new.size))
            self.numbers = np.insert(self.numbers, at, new)
        return self._places[np.searchsorted(self.numbers, numbers)]

    def drop(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Forget some numbers. Gives the places that stay, sorted; in this order their numbers now have the places 0, 1, and so on."""
        stay = ~np.isin(self.numbers, numbers)
        kept = np.sort(self._places[stay])
        self._places = np.searchsorted(kept, self._places[stay])
        self.numbers = self.numbers[stay]
        return kept
