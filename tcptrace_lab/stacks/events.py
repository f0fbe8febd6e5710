"""Simulated time: an event heap, and one processor per host.

All times are integer nanoseconds from the start of the run. Events with equal times run in the order in which they were scheduled, so a
run is reproducible.
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
"""Maximum number of events of one run. So many events take minutes. The limit stops a run that would never end."""


class TooManyEvents(RuntimeError):
    """A run exceeded its limit of events or packets."""


class Clock:
    """The current time and the scheduled events."""

    __slots__ = ("_heap", "_order", "now_ns")

    def __init__(self) -> None:
        self.now_ns = 0
        self._heap: list[tuple[int, int, Callable[..., object], tuple[object, ...]]] = []
        self._order = 0

    def at(self, when_ns: int, happen: Callable[..., object], *values: object) -> None:
        """Schedule `happen(*values)` for `when_ns`, which is not in the past."""
        self._order += 1
        heappush(self._heap, (when_ns, self._order, happen, values))

    def run(self, until_ns: int, done: Callable[[], bool]) -> None:
        """Run the events in order until `done()` is true, no event remains, or the next event is later than `until_ns`.

        Raises:
            TooManyEvents: the run has more than `MAX_EVENTS` events, or `done` found too many packets.
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
    """One processor. It runs interrupts one after another. Each interrupt preempts the only process.

    Attributes:
        busy_ns: time spent on interrupts and on the process.
    """

    __slots__ = ("_clock", "_end_ns", "_free_ns", "_resume", "_stolen_ns", "busy_ns")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._free_ns = 0  # time at which all accepted interrupts are done
        self._end_ns = 0
        self._stolen_ns = 0  # time of interrupts that came after `_end_ns` was computed
        self._resume: Callable[[], object] | None = None
        self.busy_ns = 0

    def interrupt(self, cost_ns: int) -> int:
        """Run `cost_ns` of interrupt work, which cannot be preempted. Return the time at which the work is done."""
        start_ns = max(self._clock.now_ns, self._free_ns)
        self._free_ns = start_ns + cost_ns
        self.busy_ns += cost_ns
        if self._resume is not None:
            self._stolen_ns += cost_ns
        return self._free_ns

    def process(self, cost_ns: int, resume: Callable[[], object]) -> bool:
        """Run `cost_ns` of process work, then call `resume`.

        Returns:
            True if the work takes no time and is already done. In this case, `resume` is not called.
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
