"""Time in the model: a heap of events, and one processor per host.

All times are integer nanoseconds from the start of the run. Events of one instant happen in the order in which they were asked for, so that
a run is the same every time.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
NS_PER_US = 1_000

MAX_EVENTS = 50_000_000
"""Events of one run: a model that waits for itself without end is stopped (ours: minutes of work)."""


class TooManyEvents(RuntimeError):
    """A run did not come to its end within the events, or packets, that one may have."""


class Clock:
    """The time, and what is still to happen."""

    __slots__ = ("_heap", "_order", "now_ns")

    def __init__(self) -> None:
        self.now_ns = 0
        self._heap: list[tuple[int, int, Callable[..., object], tuple[object, ...]]] = []
        self._order = 0

    def at(self, when_ns: int, happen: Callable[..., object], *values: object) -> None:
        """Let something happen at a time, not before now."""
        self._order += 1
        heappush(self._heap, (when_ns, self._order, happen, values))

    def run(self, until_ns: int, done: Callable[[], bool]) -> None:
        """Let everything happen in order, until `done`, until nothing is left or until a time.

        Raises:
            TooManyEvents: the run has no end.
        """
        heap = self._heap
        for _ in range(MAX_EVENTS):
            if not heap or heap[0][0] > until_ns or done():
                return
            when_ns, _, happen, values = heappop(heap)
            self.now_ns = when_ns
            happen(*values)
        raise TooManyEvents(f"more than {MAX_EVENTS:,} events, and the run is at {self.now_ns / NS_PER_S:.3f} s")


class Cpu:
    """One processor: interrupts one after another, and one process that they interrupt.

    Attributes:
        busy_ns: time that was spent, of both kinds.
    """

    __slots__ = ("_clock", "_end_ns", "_free_ns", "_resume", "_stolen_ns", "busy_ns")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._free_ns = 0  # interrupts are done
        self._end_ns = 0
        self._stolen_ns = 0  # from the process's work, since its end was reckoned
        self._resume: Callable[[], object] | None = None
        self.busy_ns = 0

    def interrupt(self, cost_ns: int) -> int:
        """Work that nothing interrupts: when it is done."""
        start_ns = max(self._clock.now_ns, self._free_ns)
        self._free_ns = start_ns + cost_ns
        self.busy_ns += cost_ns
        if self._resume is not None:
            self._stolen_ns += cost_ns
        return self._free_ns

    def process(self, cost_ns: int, resume: Callable[[], object]) -> bool:
        """Work of the process, which `resume` follows.

        Returns:
            Whether it is done already, without any time; `resume` is not called then.
        """
        now_ns = self._clock.now_ns
        if not cost_ns and self._free_ns <= now_ns:
            return True
        self.busy_ns += cost_ns
        self._resume, self._stolen_ns = resume, 0
        self._end_ns = max(now_ns, self._free_ns) + cost_ns
        self._clock.at(self._end_ns, self._finish)
        return False

    def _finish(self) -> None:
        if self._stolen_ns:
            self._end_ns += self._stolen_ns
            self._stolen_ns = 0
            self._clock.at(self._end_ns, self._finish)
            return
        resume, self._resume = self._resume, None
        if resume is not None:
            resume()
