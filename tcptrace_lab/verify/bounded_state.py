"""Stores state for a limited number of connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_FOLLOWED = 1 << 17
"""Maximum number of entries. When a further entry is added, the oldest entry is removed."""

Key = TypeVar("Key")
State = TypeVar("State")


class BoundedStates(Generic[Key, State]):
    """A dict that creates missing states and has at most `MAX_FOLLOWED` entries."""

    def __init__(self, make: Callable[[], State]) -> None:
        """`make` creates the initial state of an entry."""
        self._make = make
        self._states: dict[Key, State] = {}

    def __getitem__(self, key: Key) -> State:
        """Return the state of `key`. If it is missing, create it."""
        state = self._states.get(key)
        if state is None:
            if len(self._states) >= MAX_FOLLOWED:
                del self._states[next(iter(self._states))]
            state = self._states[key] = self._make()
        return state
