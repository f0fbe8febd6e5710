"""The smallest schedule that still shows a stall.

Delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE TSE 28(2), 2002): parts are left out as
long as the model still shows the stall (`showing.Oracle`), first the end of the transfer; the path becomes loopback if that is enough; then
ever smaller parts go, until no single step can, options go that do not matter, and sizes and pauses are halved as long as it shows. In the
end no step can be left out, nothing halved, no option dropped (unless `MOST_RUNS` of the model or the time were over before).
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
    from tcptrace_lab.replay.reproducers.showing import Oracle, Shown
    from tcptrace_lab.replay.schedule import Action, Schedule

MOST_RUNS: Final = 4_000
"""Questions to the model; a transfer of a dozen exchanges takes some two hundred."""

MOST_S: Final = 60.0
"""Time for them; it ends a search through a model of very many segments."""

LEAST_THINK_NS: Final = 1_000_000
"""A pause is not halved below this: a sleeping program wakes up so exactly, and no better."""

LOOPBACK_MTU_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Size:
    """What a schedule amounts to, to say what was cut."""

    writes: int
    written_bytes: int
    reads: int
    pauses: int
    pauses_ns: int

    @classmethod
    def of(cls, schedule: Schedule) -> Size:
        """Of all tasks of both ends."""
        steps = [step for end in schedule.ends() for task in end.tasks for step in task]
        writes = [step for step in steps if isinstance(step, Write)]
        thinks = [step for step in steps if isinstance(step, Think)]
        reads = sum(isinstance(step, Read) and step.size_bytes > 0 for step in steps)
        return cls(len(writes), sum(step.size_bytes for step in writes), reads, len(thinks), sum(step.for_ns for step in thinks))


@dataclass(frozen=True, slots=True)
class Shrunk:
    """What is left.

    Attributes:
        schedule: the smallest that was found.
        shown: what the model says of it.
        before, after: how much there was and is.
        runs: of the model.
        is_minimal: no step can be left out, nothing halved, no option dropped; False: the time was over before that was known.
    """

    schedule: Schedule
    shown: Shown
    before: Size
    after: Size
    runs: int
    is_minimal: bool


class _Enough(Exception):
    """No more questions."""


def shrink(schedule: Schedule, oracle: Oracle, *, most_runs: int = MOST_RUNS, most_s: float = MOST_S) -> Shrunk:
    """Shrink a schedule that shows the stall.

    Args:
        schedule: of ends that take turns; the oracle says that it shows the stall.
        oracle: what is asked.
        most_runs: of the model; the search ends then with what it has.
        most_s: likewise for the time.
    """
    search = _Search(schedule, oracle, oracle.runs + most_runs, time.monotonic() + most_s)
    finished = True
    try:
        search.to_the_end()
    except _Enough:
        finished = False
    shown = search.shown or oracle.shows(schedule)
    assert shown is not None  # noqa: S101  (the caller says so)
    return Shrunk(search.best, shown, Size.of(schedule), Size.of(search.best), oracle.runs, finished)


class _Search:
    def __init__(self, schedule: Schedule, oracle: Oracle, last_run: int, deadline_s: float) -> None:
        self.best = schedule
        self.shown: Shown | None = None
        self._oracle, self._last_run, self._deadline_s = oracle, last_run, deadline_s

    def to_the_end(self) -> None:
        """Until no cut is left."""
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
        """Whether it still shows; then it is the best."""
        if self._oracle.runs >= self._last_run or time.monotonic() > self._deadline_s:
            raise _Enough
        shown = None if candidate == self.best else self._oracle.shows(candidate)
        if shown is None:
            return False
        self.best, self.shown = candidate, shown
        return True

    def _without(self, gone: Sequence[Place]) -> bool:
        return self._take(edited(self.best, dict.fromkeys(gone)))

    def _shortest_beginning(self) -> None:
        """The first 1, 2, 4, … steps that show it: small questions first, so that a long transfer costs little."""
        everything = places(self.best)
        count = 1
        while count < len(everything):
            if self._without(everything[count:]):
                return
            count *= 2

    def _path(self) -> None:
        """Loopback, or no delay, if that shows it as well."""
        path = self.best.path
        near = Between(mtu_bytes=path.mtu_bytes, timestamps=path.timestamps, sack=path.sack)
        for candidate in (replace(near, mtu_bytes=LOOPBACK_MTU_BYTES, loopback=True), near):
            if candidate == path or self._take(replace(self.best, path=candidate)):
                return

    def _fewest_steps(self) -> None:
        """Leave out ever smaller parts, until no single step can go."""
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
        """Take each of the smaller schedules, as long as there is one that shows it."""
        while any(self._take(candidate) for candidate in candidates(self.best)):
            pass


def halved(schedule: Schedule) -> Iterator[Schedule]:
    """With one write or pause half as large, or a write in one call."""
    for place in places(schedule):
        step = step_at(schedule, place)
        smaller: list[Action] = []
        if isinstance(step, Write):
            if step.call_bytes:
                smaller.append(Write(step.size_bytes))
            if step.size_bytes > 1:
                half = step.size_bytes // 2
                smaller.append(Write(half, step.call_bytes if step.call_bytes < half else 0))
        elif isinstance(step, Think) and step.for_ns >= 2 * LEAST_THINK_NS:
            smaller.append(Think(step.for_ns // 2))
        for one in smaller:
            yield edited(schedule, {place: one})


_DEFAULTS: Final = {
    "nodelay": False,
    "cork": False,
    "quickack": False,
    "send_buffer_bytes": None,
    "bound_bytes": None,
    "window_bytes": None,
    "receive_buffer_bytes": None,
}

USUAL_CONGESTION: Final = "cubic"
"""Linux' own. Another one stays: the model knows no difference."""


def _without_options(schedule: Schedule) -> Iterator[Schedule]:
    """With one option of one end left to the kernel."""
    for is_client, end in ((True, schedule.client), (False, schedule.server)):
        less: list[dict[str, Any]] = [{name: default} for name, default in _DEFAULTS.items() if getattr(end, name) != default]
        less += [{"congestion": None}] if end.congestion == USUAL_CONGESTION else []
        for one in less:
            other = replace(end, **one)
            yield replace(schedule, client=other) if is_client else replace(schedule, server=other)


def _shorter_path(schedule: Schedule) -> Iterator[Schedule]:
    """With a rate or a loss less."""
    for name in ("forward", "backward"):
        way = getattr(schedule.path, name)
        smaller = [replace(way, rate_bps=None)] if way.rate_bps else []
        smaller += [replace(way, lost=tuple(index for index in way.lost if index != gone)) for gone in way.lost]
        for one in smaller:
            yield replace(schedule, path=replace(schedule.path, **{name: one}))
