"""Numbers by key, for keys that are numbered from 0 without gaps: an array that grows, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

_GROWTH = 1.25
"""Room is made for this many times the keys, so that adding keys one by one costs little, and little is left unused."""


class Dense:
    """One number for each key; `initial` for keys not yet seen."""

    def __init__(self, initial: float, dtype: DTypeLike = np.int64) -> None:
        """No keys yet."""
        self._initial = initial
        self._values: NDArray[Any] = np.empty(0, dtype)

    def at(self, keys: NDArray[np.int64]) -> NDArray[Any]:
        """The numbers of some keys."""
        self._reach(keys)
        return self._values[keys]

    def set(self, keys: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Put the numbers of some keys, each of which stands once in `keys`."""
        self._reach(keys)
        self._values[keys] = values

    def add(self, keys: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Add to the numbers of some keys, each of which stands once in `keys`."""
        self._reach(keys)
        self._values[keys] += values

    def values(self, size: int) -> NDArray[Any]:
        """The numbers of the keys below `size`."""
        self._grow(size)
        return self._values[:size]

    def _reach(self, keys: NDArray[np.int64]) -> None:
        if keys.size and keys[-1] >= self._values.size:  # keys come sorted
            self._grow(int((keys[-1] + 1) * _GROWTH))

    def _grow(self, size: int) -> None:
        if size > self._values.size:
            more = np.full(size - self._values.size, self._initial, self._values.dtype)
            self._values = np.concatenate([self._values, more])
