"""Numbers by key, for keys that are numbered from 0 without gaps: arrays that grow with the keys, and nothing else."""

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
        """The numbers of some keys, which come sorted."""
        self._reach(keys)
        return self._values[keys]

    def set(self, keys: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Put the numbers of some keys, which come sorted and each once."""
        self._reach(keys)
        self._values[keys] = values

    def values(self, keys: slice) -> NDArray[Any]:
        """The numbers of a range of keys."""
        self._grow(keys.stop)
        return self._values[keys]

    def _reach(self, keys: NDArray[np.int64]) -> None:
        if keys.size and keys[-1] >= self._values.size:
            self._grow(int((keys[-1] + 1) * GROWTH))

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
        """Add to the sums of some keys, which come sorted and each once."""
        self._reach(keys)
        self._total += int(values.sum(dtype=np.int64))
        if self._total > np.iinfo(self._values.dtype).max:
            self._values = self._values.astype(np.int64)
        self._values[keys] += values.astype(self._values.dtype)

    def values(self, keys: slice) -> NDArray[np.int64]:
        """The sums of a range of keys."""
        return super().values(keys).astype(np.int64)
