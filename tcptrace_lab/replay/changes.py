"""Changes to a schedule, their command options, and the remedies for each family of causes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tcptrace_lab.errors import UsageError
from tcptrace_lab.replay.schedule import MAX_MTU, Between, End, PathDirection, Schedule, Task
from tcptrace_lab.stacks.setting import Read, Think, Write

if TYPE_CHECKING:
    from collections.abc import Iterator

MIN_IPV4_MTU = 576
"""Minimum MTU that can be set. Linux sends no TCP segments over a smaller MTU (RFC 791)."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes to a schedule. A field that is None or False changes nothing.

    Attributes:
        nodelay, cork, quickack: socket options to set at both ends.
        send_buffer_bytes, receive_buffer_bytes: buffer sizes of both ends.
        congestion: congestion control of both ends.
        eager_reader: remove the pauses before reads.
        no_thinking: remove all pauses.
        lossless: remove all packet loss.
        delay_ns: one-way delay of the path, in both directions.
        rate_bps: rate of the path in bits per second, in both directions.
        loss_share: loss probability from client to server.
        mtu_bytes: MTU of the path.
    """

    nodelay: bool = False
    cork: bool = False
    quickack: bool = False
    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    congestion: str | None = None
    eager_reader: bool = False
    no_thinking: bool = False
    lossless: bool = False
    delay_ns: int | None = None
    rate_bps: int | None = None
    loss_share: float | None = None
    mtu_bytes: int | None = None

    def __post_init__(self) -> None:
        """Reject impossible values (UsageError)."""
        if self.mtu_bytes is not None and not MIN_IPV4_MTU <= self.mtu_bytes <= MAX_MTU:
            raise UsageError(f"--mtu: {self.mtu_bytes:,} is not between {MIN_IPV4_MTU} and {MAX_MTU:,}")
        if self.loss_share is not None and not 0 <= self.loss_share < 1:
            raise UsageError(f"--loss: {self.loss_share} is not a share from 0 to less than 1")
        for name in ("send_buffer_bytes", "receive_buffer_bytes"):
            if getattr(self, name) == 0:
                raise UsageError(f"--{name.removesuffix('_bytes').replace('_', '-')}: a buffer must have at least 1 byte")

    def one_by_one(self) -> Iterator[Changes]:
        """Yield each change as a separate `Changes`."""
        for name, value in self._differences():
            yield replace(Changes(), **{name: value})

    def _differences(self) -> Iterator[tuple[str, Any]]:
        for field in fields(Changes):
            value = getattr(self, field.name)
            if value != field.default:
                yield field.name, value

    def __bool__(self) -> bool:
        """Return whether any field changes the schedule."""
        return next(self._differences(), None) is not None

    def words(self) -> str:
        """Return the changes as command options."""
        return " ".join(_option(name, value) for name, value in self._differences())

    def applied(self, schedule: Schedule) -> Schedule:
        """Return the schedule with these changes applied."""
        client, server = (self._end(end) for end in schedule.ends())
        return replace(schedule, client=client, server=server, path=self._path(schedule.path))

    def _end(self, end: End) -> End:
        end = replace(end, nodelay=end.nodelay or self.nodelay, cork=end.cork or self.cork, quickack=end.quickack or self.quickack)
        if self.send_buffer_bytes is not None:
            bound = self.send_buffer_bytes if end.max_unacked_bytes is not None else None
            end = replace(end, send_buffer_bytes=self.send_buffer_bytes, max_unacked_bytes=bound)
        if self.receive_buffer_bytes is not None:
            end = replace(end, receive_buffer_bytes=self.receive_buffer_bytes, window_clamp_bytes=None)
        if self.congestion is not None:
            end = replace(end, congestion_control=self.congestion)
        if self.eager_reader or self.no_thinking:
            end = replace(end, tasks=tuple(_without_thoughts(task, everywhere=self.no_thinking) for task in end.tasks))
        return end

    def _path(self, path: Between) -> Between:
        forward, backward = (self._changed_link(link) for link in path.directions)
        if self.loss_share is not None:
            forward = replace(forward, lost=(), loss_share=self.loss_share)
        mtu = path.mtu_bytes if self.mtu_bytes is None else self.mtu_bytes
        loopback = path.loopback and self.delay_ns is None and self.rate_bps is None
        return replace(path, forward=forward, backward=backward, mtu_bytes=mtu, loopback=loopback)

    def _changed_link(self, link: PathDirection) -> PathDirection:
        if self.lossless:
            link = replace(link, lost=(), loss_share=0.0)
        if self.delay_ns is not None:
            link = replace(link, delay_ns=self.delay_ns)
        return link if self.rate_bps is None else replace(link, rate_bps=self.rate_bps)


def _without_thoughts(task: Task, *, everywhere: bool) -> Task:
    """Return a task without the pauses before its reads. With `everywhere`, remove all pauses."""
    return tuple(
        step
        for number, step in enumerate(task)
        if not (isinstance(step, Think) and (everywhere or isinstance(next(iter(task[number + 1 :]), None), Read)))
    )


_UNITS = {
    "send_buffer_bytes": ("--send-buffer", 1, ""),
    "receive_buffer_bytes": ("--receive-buffer", 1, ""),
    "delay_ns": ("--delay", 1_000_000, "ms"),
    "rate_bps": ("--rate", 1, ""),
    "loss_share": ("--loss", 1, ""),
    "mtu_bytes": ("--mtu", 1, ""),
}


def _option(name: str, value: Any) -> str:  # noqa: ANN401  (the field's type)
    if value is True:
        return f"--{name.replace('_', '-')}"
    option, scale, unit = _UNITS.get(name, (f"--{name}", 0, ""))
    return f"{option} {value / scale:g}{unit}" if scale > 1 else f"{option} {value}{unit}"


AMPLE_BYTES = 4 << 20
"""Buffer size that limits no common path. It suffices for 100 Mb/s with an RTT of 300 ms."""


def remedy(schedule: Schedule, family: str) -> Changes:
    """Return the changes that fix a family of causes (`side_by_side.FAMILIES`), as the findings recommend.

    Raises:
        UsageError: no remedy is known for this family.
    """
    slow = any(end.window_clamp_bytes is not None and _pauses(end) for end in schedule.ends())
    found = {
        "nagle": Changes(nodelay=True),
        "window": Changes(eager_reader=True) if slow else Changes(receive_buffer_bytes=AMPLE_BYTES),
        "send-buffer": Changes(send_buffer_bytes=AMPLE_BYTES),
        "loss": Changes(lossless=True),
        "application": Changes(no_thinking=True),
    }.get(family)
    if found is None:
        raise UsageError("no remedy is known for the cause in this transfer", remedy="give the changes to try, such as --nodelay")
    return found


def _pauses(end: End) -> bool:
    """Return whether a task of this end only reads, and pauses before a read."""
    tasks = [task for task in end.tasks if not any(isinstance(step, Write) for step in task)]
    return any(isinstance(one, Think) and isinstance(two, Read) for task in tasks for one, two in pairwise(task))
