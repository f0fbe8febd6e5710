"""The schedule: a file that describes what both applications of a connection did. Users can edit it; sockets and models can execute it.

Each end has one or two *tasks*. If the ends take turns, each has one task. If both ends send at the same time, each has a task that writes
and a task that reads, which run concurrently. A task is a list of steps:

    {"write_bytes": 8192, "call_bytes": 4096}    write this many bytes, in calls of `call_bytes` (0 or absent: one call)
    {"read_bytes": 100}                          read this many bytes (0: until the other end closes)
    {"think_s": 0.02}                            pause for this many seconds
    {"await": "sent"}                            wait until all written bytes were sent ("acknowledged": were acknowledged)
    {"await_read_bytes": 300}                    wait until the other task of this end has read this many bytes in total
    {"close": true}                              shut down writing

`tcptrace_lab/outputs/schemas/schedule.schema.json` is the JSON Schema of the file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tcptrace_lab.errors import UsageError
from tcptrace_lab.stacks.setting import Close, Flush, Read, Think, Write
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SCHEMA_VERSION: Final = 2
MAX_STEPS: Final = 200_000
"""Maximum number of steps of a schedule. A schedule of this size takes about 20 MB of JSON."""

MAX_BYTES: Final = 1 << 40
MAX_SECONDS: Final = 86_400.0
MIN_MTU, MAX_MTU = 68, 65_536
"""Bounds of the MTU: the minimum of RFC 791, and the MTU of Linux's loopback interface."""


@dataclass(frozen=True, slots=True)
class AwaitRead:
    """Wait until the other task of this end has read this many bytes in total."""

    total_bytes: int


Action: TypeAlias = "Write | Read | Think | Flush | Close | AwaitRead"
Task: TypeAlias = "tuple[Action, ...]"


@dataclass(frozen=True, slots=True)
class End:
    """One end: its socket options and what its application does. None keeps the kernel's default.

    Attributes:
        tasks: lists of steps that run concurrently.
        nodelay, cork, quickack: TCP_NODELAY, TCP_CORK around the writes of a message, TCP_QUICKACK after every read.
        send_buffer_bytes, receive_buffer_bytes: requested SO_SNDBUF, SO_RCVBUF.
        max_unacked_bytes: the application writes only while at most this many bytes are unacknowledged. On Linux, SO_SNDBUF is not an exact
            limit, so this limit stands for the send buffer.
        window_clamp_bytes: largest window to advertise (TCP_WINDOW_CLAMP).
        congestion_control: congestion control algorithm (TCP_CONGESTION).
    """

    tasks: tuple[Task, ...]
    nodelay: bool = False
    cork: bool = False
    quickack: bool = False
    send_buffer_bytes: int | None = None
    max_unacked_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    window_clamp_bytes: int | None = None
    congestion_control: str | None = None

    @property
    def written_bytes(self) -> int:
        """Number of bytes that all tasks of this end write."""
        return sum(step.size_bytes for task in self.tasks for step in task if isinstance(step, Write))

    @property
    def thinking_ns(self) -> int:
        """Total pauses (ns) of the task that pauses longest."""
        return max((sum(step.for_ns for step in task if isinstance(step, Think)) for task in self.tasks), default=0)


@dataclass(frozen=True, slots=True)
class PathDirection:
    """One direction of the path.

    Attributes:
        delay_ns: one-way delay.
        rate_bps: rate of its bottleneck, in bits per second; None: unlimited.
        lost: indices of the packets that are lost; 0 is the SYN or the SYN/ACK.
        loss_share: probability that any other packet is lost.
    """

    delay_ns: int = 0
    rate_bps: int | None = None
    lost: tuple[int, ...] = ()
    loss_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Between:
    """The path between the ends.

    Attributes:
        forward, backward: from the client to the server, and from the server to the client.
        mtu_bytes: largest IP packet.
        loopback: both ends are on one host.
        ipv6, timestamps, sack: whether the connection uses IPv6, TCP timestamps, SACK.
    """

    forward: PathDirection = field(default_factory=PathDirection)
    backward: PathDirection = field(default_factory=PathDirection)
    mtu_bytes: int = 1500
    loopback: bool = False
    ipv6: bool = False
    timestamps: bool = True
    sack: bool = True

    @property
    def directions(self) -> tuple[PathDirection, PathDirection]:
        """Both directions: forward, backward."""
        return self.forward, self.backward

    @property
    def loses(self) -> bool:
        """True if the path loses packets."""
        return any(direction.lost or direction.loss_share for direction in self.directions)

    @property
    def base_rtt_ns(self) -> int:
        """Round-trip delay without queueing."""
        return self.forward.delay_ns + self.backward.delay_ns


@dataclass(frozen=True, slots=True)
class Schedule:
    """The actions of both ends of a connection, and the path between them.

    Attributes:
        client, server: the ends; the client connects.
        path: the path between them.
        source: origin of the schedule. A schedule from a capture has `capture`, `connection` and `duration_s`. Users can add other keys.
        unknowns: sentences about what the capture does not show.
    """

    client: End
    server: End
    path: Between
    source: Mapping[str, Any] = field(default_factory=dict)
    unknowns: tuple[str, ...] = ()

    @property
    def takes_turns(self) -> bool:
        """True if the ends take turns: each end has a single task."""
        return len(self.client.tasks) == 1 and len(self.server.tasks) == 1

    def ends(self) -> tuple[End, End]:
        """Both ends: client, server."""
        return self.client, self.server

    def to_dict(self) -> dict[str, Any]:
        """Return the schedule as JSON values."""
        return {
            "schema_version": SCHEMA_VERSION,
            "source": dict(self.source),
            "unknowns": list(self.unknowns),
            "path": _path_dict(self.path),
            "client": _end_dict(self.client),
            "server": _end_dict(self.server),
        }

    def to_json(self) -> bytes:
        """The content of the schedule file, with one step per line."""
        return (_lines(self.to_dict()) + "\n").encode()


def schema() -> dict[str, Any]:
    """The JSON Schema of the schedule file."""
    found: dict[str, Any] = json.loads(
        resources.files("tcptrace_lab").joinpath("outputs/schemas/schedule.schema.json").read_text(encoding="utf-8")
    )
    return found


def read_schedule(path: str) -> Schedule:
    """Read a schedule file.

    Raises:
        UsageError: the file cannot be read, or is not a valid schedule. The message names the place of the error.
    """
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123  (opens the path exactly as the user gave it)
            data = json.load(file)
    except OSError as error:
        raise UsageError(f"the schedule cannot be read: {error.strerror}", where=path) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the schedule is not JSON: {error}", where=path) from error
    try:
        return from_dict(data)
    except UsageError as error:
        raise UsageError(error.what, where=path, remedy=error.remedy or "schedule.schema.json describes it") from None


def from_dict(data: object) -> Schedule:
    """Convert a mapping to a schedule. Raises UsageError, whose message names the place of the error."""
    table = _Reader("", data)
    version = table.whole("schema_version", 0, 1 << 31)
    if version != SCHEMA_VERSION:
        raise UsageError(
            f"schema_version is {version}, and only {SCHEMA_VERSION} can be read",
            remedy="write it again with replay transfer CAPTURE --schedule, or rename its keys as docs/json.md lists",
        )
    source = table.take("source", {})
    unknowns = table.take("unknowns", [])
    made = Schedule(
        client=_end(table.table("client")),
        server=_end(table.table("server")),
        path=_path(table.table("path")),
        source=source if isinstance(source, dict) else {},
        unknowns=tuple(map(str, unknowns)) if isinstance(unknowns, list) else (),
    )
    table.end()
    steps = sum(len(task) for end in made.ends() for task in end.tasks)
    if steps > MAX_STEPS:
        raise UsageError(f"{steps:,} steps", remedy=f"a schedule has {MAX_STEPS:,} at most")
    return made


_FLAGS: Final = ("nodelay", "cork", "quickack")
_SIZES: Final = ("send_buffer_bytes", "max_unacked_bytes", "receive_buffer_bytes", "window_clamp_bytes")


def _end_dict(end: End) -> dict[str, Any]:
    fields: dict[str, Any] = {name: getattr(end, name) for name in (*_FLAGS, *_SIZES, "congestion_control")}
    return fields | {"tasks": [[_step_dict(step) for step in task] for task in end.tasks]}


def _step_dict(step: Action) -> dict[str, Any]:
    match step:
        case Write():
            return {"write_bytes": step.size_bytes} | ({"call_bytes": step.call_bytes} if step.call_bytes else {})
        case Read():
            return {"read_bytes": step.size_bytes}
        case Think():
            return {"think_s": step.for_ns / NS_PER_S}
        case Flush():
            return {"await": "acknowledged" if step.acknowledged else "sent"}
        case AwaitRead():
            return {"await_read_bytes": step.total_bytes}
        case _:
            return {"close": True}


def _path_dict(path: Between) -> dict[str, Any]:
    return {
        "mtu_bytes": path.mtu_bytes,
        "loopback": path.loopback,
        "ipv6": path.ipv6,
        "timestamps": path.timestamps,
        "sack": path.sack,
        "forward": _direction_dict(path.forward),
        "backward": _direction_dict(path.backward),
    }


def _direction_dict(direction: PathDirection) -> dict[str, Any]:
    return {
        "delay_s": direction.delay_ns / NS_PER_S,
        "rate_bps": direction.rate_bps,
        "lost_indexes": list(direction.lost),
        "loss_share": direction.loss_share,
    }


def _lines(data: Mapping[str, Any]) -> str:
    """Return JSON text in which each innermost object or list is on one line, so that each step of a task has its own line."""

    def text(value: object, depth: int) -> str:
        inner, outer = " " * (depth + 1), " " * depth
        if isinstance(value, dict) and any(isinstance(item, (dict, list)) for item in value.values()):
            items = (f"{inner}{json.dumps(key)}: {text(item, depth + 1)}" for key, item in value.items())
            return "{\n" + ",\n".join(items) + f"\n{outer}}}"
        if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
            return "[\n" + ",\n".join(inner + text(item, depth + 1) for item in value) + f"\n{outer}]"
        return json.dumps(value, ensure_ascii=False)

    return text(dict(data), 0)


def _end(table: _Reader) -> End:
    flags = {name: table.flag(name) for name in _FLAGS}
    sizes = {name: table.whole(name, 1, MAX_BYTES) if table.has(name) else None for name in _SIZES}
    fields: dict[str, Any] = {**flags, **sizes}
    congestion = table.take("congestion_control", None)
    if congestion is not None and (not isinstance(congestion, str) or not congestion.isascii() or not congestion.isidentifier()):
        raise UsageError(f"{table.place}congestion_control must be the name of a congestion control, not {congestion!r}")
    tasks = table.take("tasks", None)
    if not isinstance(tasks, list) or not 1 <= len(tasks) <= 2 or not all(isinstance(task, list) for task in tasks):  # noqa: PLR2004
        raise UsageError(f"{table.place}tasks must be a list of one or two lists of steps")
    made = tuple(
        tuple(_step(_Reader(f"{table.place}tasks[{number}][{at}].", step)) for at, step in enumerate(task))
        for number, task in enumerate(tasks)
    )
    table.end()
    return End(made, congestion_control=congestion, **fields)


def _step(table: _Reader) -> Action:
    match next(iter(table.keys()), None):
        case "write_bytes" | "call_bytes":
            step: Action = Write(table.whole("write_bytes", 1, MAX_BYTES), table.whole("call_bytes", 0, MAX_BYTES, 0))
        case "read_bytes":
            step = Read(table.whole("read_bytes", 0, MAX_BYTES))
        case "think_s":
            step = Think(table.time("think_s"))
        case "await":
            awaited = table.take("await", None)
            if awaited not in {"sent", "acknowledged"}:
                raise UsageError(f"{table.place}await must be sent or acknowledged, not {awaited!r}")
            step = Flush(acknowledged=awaited == "acknowledged")
        case "await_read_bytes":
            step = AwaitRead(table.whole("await_read_bytes", 0, MAX_BYTES))
        case "close":
            table.take("close", None)
            step = Close()
        case other:
            raise UsageError(f"{table.place.rstrip('.')}: {other!r} is not a step")
    table.end()
    return step


def _path(table: _Reader) -> Between:
    made = Between(
        forward=_path_direction(table.table("forward")),
        backward=_path_direction(table.table("backward")),
        mtu_bytes=table.whole("mtu_bytes", MIN_MTU, MAX_MTU),
        loopback=table.flag("loopback"),
        ipv6=table.flag("ipv6"),
        timestamps=table.flag("timestamps", default=True),
        sack=table.flag("sack", default=True),
    )
    table.end()
    return made


def _path_direction(table: _Reader) -> PathDirection:
    lost = table.take("lost_indexes", [])
    if not isinstance(lost, list) or not all(isinstance(index, int) and index >= 0 for index in lost):
        raise UsageError(f"{table.place}lost_indexes must be a list of whole numbers from 0")
    share = table.take("loss_share", 0.0)
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
        raise UsageError(f"{table.place}loss_share must be at least 0 and below 1")
    rate = table.whole("rate_bps", 1, MAX_BYTES) if table.has("rate_bps") else None
    made = PathDirection(table.time("delay_s"), rate, tuple(sorted(set(lost))), float(share))
    table.end()
    return made


class _Reader:
    """Reads a JSON object key by key. `end` rejects the keys that were not read."""

    def __init__(self, place: str, data: object) -> None:
        if not isinstance(data, dict):
            raise UsageError(f"{place.rstrip('.') or 'the schedule'} must be an object, not {type(data).__name__}")
        self.place = place
        self._left = dict(data)

    def keys(self) -> Iterator[str]:
        return iter(self._left)

    def has(self, key: str) -> bool:
        """Return whether the key has a value other than null."""
        if self._left.get(key) is None:
            self._left.pop(key, None)
            return False
        return True

    def take(self, key: str, default: object) -> object:
        return self._left.pop(key, default)

    def flag(self, key: str, *, default: bool = False) -> bool:
        value = self.take(key, default)
        if not isinstance(value, bool):
            raise UsageError(f"{self.place}{key} must be true or false, not {value!r}")
        return value

    def whole(self, key: str, least: int, most: int, default: int | None = None) -> int:
        value = self.take(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise UsageError(f"{self.place}{key} must be a whole number from {least:,} to {most:,}, not {value!r}")
        return value

    def time(self, key: str) -> int:
        value = self.take(key, 0.0)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MAX_SECONDS:
            raise UsageError(f"{self.place}{key} must be a number of seconds from 0 to {MAX_SECONDS:,.0f}, not {value!r}")
        return round(value * NS_PER_S)

    def table(self, key: str) -> _Reader:
        return _Reader(f"{self.place}{key}.", self.take(key, {}))

    def end(self) -> None:
        for key in self._left:
            raise UsageError(f"{self.place}{key} is not a key of a schedule")
