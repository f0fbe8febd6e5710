"""Finds the smallest schedule that still shows a stall, by delta debugging.

The method is described in Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE TSE 28(2), 2002. A part of the
schedule is removed if the model still shows the stall without this part (`stall_oracle.Oracle`). The steps are:

1. Remove the end of the transfer.
2. Replace the path by loopback.
3. Remove smaller and smaller parts, down to single steps.
4. Remove socket options, halve sizes and pauses, remove rates and losses of the path.

Steps 3 and 4 are repeated until the schedule does not change. Then the result is minimal: without any one of its steps or options, or with
any one step halved, the schedule does not show the stall. If `MAX_RUNS` or the time limit ends the search early, the result can be larger.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tcptrace_lab.replay.reproducers.edits import edited, places, step_at
from tcptrace_lab.replay.schedule import Between
from tcptrace_lab.stacks.setting import Read, Think, Write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tcptrace_lab.replay.reproducers.edits import Place
    from tcptrace_lab.replay.reproducers.stall_oracle import Oracle, Shown
    from tcptrace_lab.replay.schedule import Action, Schedule

MAX_RUNS: Final = 4_000
"""Maximum number of simulations. A transfer of a dozen exchanges needs about 200 simulations."""

MAX_S: Final = 60.0
"""Time limit of the search in seconds, for transfers with very many segments."""

MIN_THINK_NS: Final = 1_000_000
"""A pause is not halved below this time, because a sleeping process wakes with about this precision."""

LOOPBACK_MTU_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a schedule: numbers of writes, reads and pauses, written bytes, and total time of the pauses."""

    writes: int
    written_bytes: int
    reads: int
    pauses: int
    pauses_ns: int

    @classmethod
    def of(cls, schedule: Schedule) -> Size:
        """Return the total size of all tasks of both ends."""
        steps = [step for end in schedule.ends() for task in end.tasks for step in task]
        writes = [step for step in steps if isinstance(step, Write)]
        thinks = [step for step in steps if isinstance(step, Think)]
        reads = sum(isinstance(step, Read) and step.size_bytes > 0 for step in steps)
        return cls(len(writes), sum(step.size_bytes for step in writes), reads, len(thinks), sum(step.for_ns for step in thinks))


@dataclass(frozen=True, slots=True)
class Shrunk:
    """Result of shrinking.

    Attributes:
        schedule: the smallest schedule found.
        shown: the model's result for this schedule.
        before, after: size of the complete and of the smallest schedule.
        runs: number of simulations.
        is_minimal: True: nothing more can be removed or halved. False: the search ended early.
    """

    schedule: Schedule
    shown: Shown
    before: Size
    after: Size
    runs: int
    is_minimal: bool


class _Enough(Exception):
    """Raised when the limit of simulations or of time is reached."""


def shrink(schedule: Schedule, oracle: Oracle, *, max_runs: int = MAX_RUNS, max_s: float = MAX_S) -> Shrunk:
    """Shrink a schedule that shows the stall.

    Args:
        schedule: a schedule whose ends take turns, and which shows the stall according to the oracle.
        oracle: decides whether a schedule shows the stall.
        max_runs: limit of simulations. At the limit, the best result so far is returned.
        max_s: time limit in seconds. At the limit, the best result so far is returned.
    """
    search = _Search(schedule, oracle, oracle.runs + max_runs, time.monotonic() + max_s)
    finished = True
    try:
        search.to_the_end()
    except _Enough:
        finished = False
    shown = search.shown or oracle.shows(schedule)
    assert shown is not None  # noqa: S101  (the caller guarantees it)
    return Shrunk(search.best, shown, Size.of(schedule), Size.of(search.best), oracle.runs, finished)


class _Search:
    def __init__(self, schedule: Schedule, oracle: Oracle, last_run: int, deadline_s: float) -> None:
        self.best = schedule
        self.shown: Shown | None = None
        self._oracle, self._last_run, self._deadline_s = oracle, last_run, deadline_s

    def to_the_end(self) -> None:
        """Search until no further part can be removed."""
        self._shortest_beginning()
        self._path()
        before = None
        while before != self.best:
            before = self.best
            self._fewest_steps()
            self._each(_without_options)
            self._each(halved)
            self._each(_shorter_path)

    def _take(self, candidate: Schedule) -> bool:
        """Keep a candidate as the best schedule if it still shows the stall. Return whether it was kept."""
        if self._oracle.runs >= self._last_run or time.monotonic() > self._deadline_s:
            raise _Enough
        shown = None if candidate == self.best else self._oracle.shows(candidate)
        if shown is None:
            return False
        self.best, self.shown = candidate, shown
        return True

    def _without(self, removed: Sequence[Place]) -> bool:
        return self._take(edited(self.best, dict.fromkeys(removed)))

    def _shortest_beginning(self) -> None:
        """Try the first 1, 2, 4, … steps. The first of these schedules that shows the stall is kept.

        Short schedules come first, because they are simulated fast.
        """
        everything = places(self.best)
        count = 1
        while count < len(everything):
            if self._without(everything[count:]):
                return
            count *= 2

    def _path(self) -> None:
        """Replace the path by loopback, or by a path without delay, if the schedule then still shows the stall."""
        path = self.best.path
        near = Between(mtu_bytes=path.mtu_bytes, timestamps=path.timestamps, sack=path.sack)
        for candidate in (replace(near, mtu_bytes=LOOPBACK_MTU_BYTES, loopback=True), near):
            if candidate == path or self._take(replace(self.best, path=candidate)):
                return

    def _fewest_steps(self) -> None:
        """Remove smaller and smaller parts, until no single step can be removed."""
        parts = 2
        while parts:
            everything = places(self.best)
            parts = min(parts, len(everything))
            pieces = [everything[len(everything) * part // parts : len(everything) * (part + 1) // parts] for part in range(parts)]
            if any(self._without(piece) for piece in reversed(pieces)):
                parts = max(parts - 1, 2)
            elif parts < len(everything):
                parts *= 2
            else:
                return

    def _each(self, candidates: Callable[[Schedule], Iterator[Schedule]]) -> None:
        """Replace the schedule by a smaller candidate that shows the stall, as long as there is one."""
        while any(self._take(candidate) for candidate in candidates(self.best)):
            pass


def halved(schedule: Schedule) -> Iterator[Schedule]:
    """Yield variants of a schedule in which one write or pause is halved, or one write uses a single call."""
    for place in places(schedule):
        step = step_at(schedule, place)
        smaller: list[Action] = []
        if isinstance(step, Write):
            if step.call_bytes:
                smaller.append(Write(step.size_bytes))
            if step.size_bytes > 1:
                half = step.size_bytes // 2
                smaller.append(Write(half, step.call_bytes if step.call_bytes < half else 0))
        elif isinstance(step, Think) and step.for_ns >= 2 * MIN_THINK_NS:
            smaller.append(Think(step.for_ns // 2))
        for one in smaller:
            yield edited(schedule, {place: one})


_DEFAULTS: Final = {
    "nodelay": False,
    "cork": False,
    "quickack": False,
    "send_buffer_bytes": None,
    "max_unacked_bytes": None,
    "window_clamp_bytes": None,
    "receive_buffer_bytes": None,
}

USUAL_CONGESTION: Final = "cubic"
"""Default congestion control of Linux.

An end with another algorithm keeps it, because the model does not distinguish algorithms.
"""


def _without_options(schedule: Schedule) -> Iterator[Schedule]:
    """Yield variants of a schedule in which one socket option of one end has the kernel's default."""
    for is_client, end in ((True, schedule.client), (False, schedule.server)):
        less: list[dict[str, Any]] = [{name: default} for name, default in _DEFAULTS.items() if getattr(end, name) != default]
        less += [{"congestion_control": None}] if end.congestion_control == USUAL_CONGESTION else []
        for one in less:
            other = replace(end, **one)
            yield replace(schedule, client=other) if is_client else replace(schedule, server=other)


def _shorter_path(schedule: Schedule) -> Iterator[Schedule]:
    for name in ("forward", "backward"):
        direction = getattr(schedule.path, name)
        smaller = [replace(direction, rate_bps=None)] if direction.rate_bps else []
        smaller += [replace(direction, lost=tuple(index for index in direction.lost if index != removed)) for removed in direction.lost]
        for one in smaller:
            yield replace(schedule, path=replace(schedule.path, **{name: one}))
