"""Reduces a schedule: removes or shrinks steps, and adapts the reads of the other end to the remaining writes.

A place identifies a step: the end, and the step's index in the only task of this end. Reads of a given size cannot be edited. Such reads
follow from the peer's writes, so reads and writes of an edited schedule always match.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from tcptrace_lab.stacks.setting import Read, Write

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcptrace_lab.replay.schedule import Action, Schedule, Task

Place: TypeAlias = "tuple[bool, int]"
"""Place of a step: True for the client or False for the server, and the step's index in the task of this end."""


def edited(schedule: Schedule, changed: Mapping[Place, Action | None]) -> Schedule:
    """Return the schedule with some steps replaced or removed.

    Args:
        schedule: a schedule whose ends take turns.
        changed: place → new step; None removes the step. A write can only become smaller; it then lacks its last bytes.
    """
    tasks = {True: schedule.client.tasks[0], False: schedule.server.tasks[0]}
    kept = {side: _Kept(task, side, changed) for side, task in tasks.items()}
    client, server = (
        replace(end, tasks=(_edited(tasks[side], side, changed, kept[not side]),))
        for side, end in ((True, schedule.client), (False, schedule.server))
    )
    return replace(schedule, client=client, server=server)


def places(schedule: Schedule) -> list[Place]:
    """Return the places of all editable steps, in order of execution.

    A read of a given size is executed when the peer has written the bytes for it.
    """
    tasks = {True: schedule.client.tasks[0], False: schedule.server.tasks[0]}
    at, wrote, has_read = {True: 0, False: 0}, {True: 0, False: 0}, {True: 0, False: 0}
    found: list[Place] = []
    side, stuck = True, 0
    while stuck < len(tasks):
        task, begin = tasks[side], at[side]
        while at[side] < len(task):
            step = task[at[side]]
            if isinstance(step, Read) and step.size_bytes:
                if has_read[side] + step.size_bytes > wrote[not side]:
                    break
                has_read[side] += step.size_bytes
            else:
                wrote[side] += step.size_bytes if isinstance(step, Write) else 0
                found.append((side, at[side]))
            at[side] += 1
        stuck = 0 if at[side] > begin else stuck + 1
        side = not side
    return found


def step_at(schedule: Schedule, place: Place) -> Action:
    """Return the step at a place."""
    is_client, number = place
    return (schedule.client if is_client else schedule.server).tasks[0][number]


class _Kept:
    """Converts byte offsets in one direction of the original schedule to offsets in the edited schedule."""

    def __init__(self, task: Task, side: bool, changed: Mapping[Place, Action | None]) -> None:  # noqa: FBT001  (part of a Place)
        self._starts: list[int] = []
        self._before: list[int] = []
        self._sizes: list[int] = []
        start = before = 0
        for number, step in enumerate(task):
            if not isinstance(step, Write):
                continue
            now = changed.get((side, number), step)
            size = now.size_bytes if isinstance(now, Write) else 0
            self._starts.append(start)
            self._before.append(before)
            self._sizes.append(size)
            start, before = start + step.size_bytes, before + size

    def below(self, offset: int) -> int:
        """Convert an offset of the original schedule: return how many of the bytes before this offset the edited schedule still writes."""
        at = bisect_right(self._starts, offset) - 1
        return self._before[at] + min(self._sizes[at], offset - self._starts[at]) if at >= 0 else 0


def _edited(task: Task, side: bool, changed: Mapping[Place, Action | None], theirs: _Kept) -> Task:  # noqa: FBT001  (part of a Place)
    steps: list[Action] = []
    offset = 0
    for number, step in enumerate(task):
        now = changed.get((side, number), step)
        if isinstance(step, Read) and step.size_bytes:
            size = theirs.below(offset + step.size_bytes) - theirs.below(offset)
            offset += step.size_bytes
            now = Read(size) if size else None
        if now is None:
            continue
        last = steps[-1] if steps else None
        if isinstance(now, Read) and now.size_bytes and isinstance(last, Read) and last.size_bytes:
            steps[-1] = Read(last.size_bytes + now.size_bytes)
        else:
            steps.append(now)
    return tuple(steps)
