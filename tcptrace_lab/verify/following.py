"""State per connection, for so many at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_FOLLOWED = 1 << 17
"""Entries kept; past it the one that was begun first is forgotten, as if its segments had never been seen."""

Key = TypeVar("Key")
State = TypeVar("State")


class Following(Generic[Key, State]):
    """A dict of states that are made where there is none, and never more than `MAX_FOLLOWED`."""

    def __init__(self, make: Callable[[], State]) -> None:
        """`make` gives the state of one of which nothing is known."""
        self._make = make
        self._states: dict[Key, State] = {}

    def __getitem__(self, key: Key) -> State:
        """The state of `key`."""
        state = self._states.get(key)
        if state is None:
            if len(self._states) >= MAX_FOLLOWED:
                del self._states[next(iter(self._states))]
            state = self._states[key] = self._make()
        return state
