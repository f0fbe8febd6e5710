"""What the applications of one connection did, as data: a file that people read and edit, and that sockets and models perform.

Each end has *tasks* that it does at the same time: one where the ends take turns, two (one writes, one reads) where both send at once. A
task is a list of steps:

    {"write_bytes": 8192, "call_bytes": 4096}    give the socket so much, in calls of so much (0 or absent: in one)
    {"read_bytes": 100}                          take bytes until there were so many (0: until the other end closes)
    {"think_s": 0.02}                            do something else
    {"await": "sent"}                            until all that was written has left ("acknowledged": has been acknowledged)
    {"await_read_bytes": 300}                    until the other task of this end has read so many in all
    {"close": true}                              write no more

`tcptrace_lab/outputs/schemas/schedule.schema.json` is the JSON Schema of the whole.
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

SCHEMA_VERSION: Final = 1
MOST_STEPS: Final = 200_000
"""Steps of one connection: some 20 MB of JSON; beyond it nobody edits, and a part of the capture tells the same."""

MOST_BYTES: Final = 1 << 40
MOST_SECONDS: Final = 86_400.0
LEAST_MTU, MOST_MTU = 68, 65_536
"""RFC 791; what the kernel's loopback has."""


@dataclass(frozen=True, slots=True)
class Heard:
    """Do nothing before the other task of this end has read so many bytes in all."""

    total_bytes: int


Action: TypeAlias = "Write | Read | Think | Flush | Close | Heard"
Task: TypeAlias = "tuple[Action, ...]"


@dataclass(frozen=True, slots=True)
class End:
    """One end: its socket and what its program does. None leaves what the kernel does by itself.

    Attributes:
        tasks: what it does, at the same time.
        nodelay, cork, quickack: TCP_NODELAY, TCP_CORK around the writes of a message, TCP_QUICKACK after every read.
        send_buffer_bytes, receive_buffer_bytes: asked for SO_SNDBUF, SO_RCVBUF.
        bound_bytes: the program writes only while no more than this is unacknowledged: the send buffer of a kernel whose SO_SNDBUF bounds
            nothing (Linux).
        window_bytes: most that is offered to the other end (TCP_WINDOW_CLAMP).
        congestion: TCP_CONGESTION.
    """

    tasks: tuple[Task, ...]
    nodelay: bool = False
    cork: bool = False
    quickack: bool = False
    send_buffer_bytes: int | None = None
    bound_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    window_bytes: int | None = None
    congestion: str | None = None

    @property
    def written_bytes(self) -> int:
        """All that it writes."""
        return sum(step.size_bytes for task in self.tasks for step in task if isinstance(step, Write))

    @property
    def thinking_ns(self) -> int:
        """All that it thinks, in the task that thinks most."""
        return max((sum(step.for_ns for step in task if isinstance(step, Think)) for task in self.tasks), default=0)


@dataclass(frozen=True, slots=True)
class Way:
    """One direction of the path.

    Attributes:
        delay_ns: from end to end.
        rate_bps: of its bottleneck; None: it has none.
        lost: indexes of the packets that are lost, counted from 0 (the SYN, or its answer).
        loss_share: of the others, drawn at random.
    """

    delay_ns: int = 0
    rate_bps: int | None = None
    lost: tuple[int, ...] = ()
    loss_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Between:
    """What lies between the ends.

    Attributes:
        forward, backward: from the client to the server, and back.
        mtu_bytes: the largest IP packet.
        loopback: both ends are one host.
        ipv6, timestamps, sack: what the connection used.
    """

    forward: Way = field(default_factory=Way)
    backward: Way = field(default_factory=Way)
    mtu_bytes: int = 1500
    loopback: bool = False
    ipv6: bool = False
    timestamps: bool = True
    sack: bool = True

    @property
    def ways(self) -> tuple[Way, Way]:
        """There, and back."""
        return self.forward, self.backward

    @property
    def loses(self) -> bool:
        """Whether packets are lost."""
        return any(way.lost or way.loss_share for way in self.ways)

    @property
    def round_trip_ns(self) -> int:
        """Without queues."""
        return self.forward.delay_ns + self.backward.delay_ns


@dataclass(frozen=True, slots=True)
class Schedule:
    """What both ends of one connection do, and over what.

    Attributes:
        client, server: the ends; the client connects.
        path: between them.
        source: where it comes from: `capture`, `connection`, `duration_s`, or what people write there.
        doubts: what the capture did not tell, in words.
    """

    client: End
    server: End
    path: Between
    source: Mapping[str, Any] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()

    @property
    def takes_turns(self) -> bool:
        """Each end has one task."""
        return len(self.client.tasks) == 1 and len(self.server.tasks) == 1

    def ends(self) -> tuple[End, End]:
        """Client, server."""
        return self.client, self.server

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "source": dict(self.source),
            "doubts": list(self.doubts),
            "path": _path_dict(self.path),
            "client": _end_dict(self.client),
            "server": _end_dict(self.server),
        }

    def to_json(self) -> bytes:
        """The file: one step a line."""
        return (_lines(self.to_dict()) + "\n").encode()


def schema() -> dict[str, Any]:
    """The JSON Schema of the file."""
    found: dict[str, Any] = json.loads(
        resources.files("tcptrace_lab").joinpath("outputs/schemas/schedule.schema.json").read_text(encoding="utf-8")
    )
    return found


def read_schedule(path: str) -> Schedule:
    """The schedule in a file.

    Raises:
        UsageError: it cannot be read, or says what no schedule can; the place is named.
    """
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123  (a path as the user gave it)
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
    """The schedule that a mapping says. Raises UsageError with the place of what is wrong."""
    table = _Reader("", data)
    if table.whole("schema_version", 0, 1 << 31) != SCHEMA_VERSION:
        raise UsageError(f"schema_version is not {SCHEMA_VERSION}")
    source = table.take("source", {})
    doubts = table.take("doubts", [])
    made = Schedule(
        client=_end(table.table("client")),
        server=_end(table.table("server")),
        path=_path(table.table("path")),
        source=source if isinstance(source, dict) else {},
        doubts=tuple(map(str, doubts)) if isinstance(doubts, list) else (),
    )
    table.end()
    steps = sum(len(task) for end in made.ends() for task in end.tasks)
    if steps > MOST_STEPS:
        raise UsageError(f"{steps:,} steps", remedy=f"a schedule has {MOST_STEPS:,} at most")
    return made


_FLAGS: Final = ("nodelay", "cork", "quickack")
_SIZES: Final = ("send_buffer_bytes", "bound_bytes", "receive_buffer_bytes", "window_bytes")


def _end_dict(end: End) -> dict[str, Any]:
    said: dict[str, Any] = {name: getattr(end, name) for name in (*_FLAGS, *_SIZES, "congestion")}
    return said | {"tasks": [[_step_dict(step) for step in task] for task in end.tasks]}


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
        case Heard():
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
        "forward": _way_dict(path.forward),
        "backward": _way_dict(path.backward),
    }


def _way_dict(way: Way) -> dict[str, Any]:
    return {"delay_s": way.delay_ns / NS_PER_S, "rate_bps": way.rate_bps, "lost": list(way.lost), "loss_share": way.loss_share}


def _lines(data: Mapping[str, Any]) -> str:
    """JSON with what is deep on one line, so that each step has its own."""

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
    sizes = {name: table.whole(name, 1, MOST_BYTES) if table.has(name) else None for name in _SIZES}
    said: dict[str, Any] = {**flags, **sizes}
    congestion = table.take("congestion", None)
    if congestion is not None and (not isinstance(congestion, str) or not congestion.isascii() or not congestion.isidentifier()):
        raise UsageError(f"{table.place}congestion is the name of a congestion control, not {congestion!r}")
    tasks = table.take("tasks", None)
    if not isinstance(tasks, list) or not 1 <= len(tasks) <= 2 or not all(isinstance(task, list) for task in tasks):  # noqa: PLR2004
        raise UsageError(f"{table.place}tasks is a list of one or two lists of steps")
    made = tuple(
        tuple(_step(_Reader(f"{table.place}tasks[{number}][{at}].", step)) for at, step in enumerate(task))
        for number, task in enumerate(tasks)
    )
    table.end()
    return End(made, congestion=congestion, **said)


def _step(table: _Reader) -> Action:
    match next(iter(table.keys()), None):
        case "write_bytes" | "call_bytes":
            step: Action = Write(table.whole("write_bytes", 1, MOST_BYTES), table.whole("call_bytes", 0, MOST_BYTES, 0))
        case "read_bytes":
            step = Read(table.whole("read_bytes", 0, MOST_BYTES))
        case "think_s":
            step = Think(table.time("think_s"))
        case "await":
            awaited = table.take("await", None)
            if awaited not in {"sent", "acknowledged"}:
                raise UsageError(f"{table.place}await is sent or acknowledged, not {awaited!r}")
            step = Flush(acknowledged=awaited == "acknowledged")
        case "await_read_bytes":
            step = Heard(table.whole("await_read_bytes", 0, MOST_BYTES))
        case "close":
            table.take("close", None)
            step = Close()
        case other:
            raise UsageError(f"{table.place.rstrip('.')}: {other!r} is no step")
    table.end()
    return step


def _path(table: _Reader) -> Between:
    made = Between(
        forward=_way(table.table("forward")),
        backward=_way(table.table("backward")),
        mtu_bytes=table.whole("mtu_bytes", LEAST_MTU, MOST_MTU),
        loopback=table.flag("loopback"),
        ipv6=table.flag("ipv6"),
        timestamps=table.flag("timestamps", default=True),
        sack=table.flag("sack", default=True),
    )
    table.end()
    return made


def _way(table: _Reader) -> Way:
    lost = table.take("lost", [])
    if not isinstance(lost, list) or not all(isinstance(index, int) and index >= 0 for index in lost):
        raise UsageError(f"{table.place}lost is a list of whole numbers from 0 on")
    share = table.take("loss_share", 0.0)
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
        raise UsageError(f"{table.place}loss_share is a number from 0 to less than 1")
    rate = table.whole("rate_bps", 1, MOST_BYTES) if table.has("rate_bps") else None
    made = Way(table.time("delay_s"), rate, tuple(sorted(set(lost))), float(share))
    table.end()
    return made


class _Reader:
    """A mapping whose keys are taken one by one, so that what remains is what nobody knows."""

    def __init__(self, place: str, data: object) -> None:
        if not isinstance(data, dict):
            raise UsageError(f"{place.rstrip('.') or 'the schedule'} is an object, not {type(data).__name__}")
        self.place = place
        self._left = dict(data)

    def keys(self) -> Iterator[str]:
        return iter(self._left)

    def has(self, key: str) -> bool:
        """Whether it says something there; null says nothing."""
        if self._left.get(key) is None:
            self._left.pop(key, None)
            return False
        return True

    def take(self, key: str, default: object) -> object:
        return self._left.pop(key, default)

    def flag(self, key: str, *, default: bool = False) -> bool:
        value = self.take(key, default)
        if not isinstance(value, bool):
            raise UsageError(f"{self.place}{key} is true or false, not {value!r}")
        return value

    def whole(self, key: str, least: int, most: int, default: int | None = None) -> int:
        value = self.take(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise UsageError(f"{self.place}{key} is a whole number from {least:,} to {most:,}, not {value!r}")
        return value

    def time(self, key: str) -> int:
        value = self.take(key, 0.0)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MOST_SECONDS:
            raise UsageError(f"{self.place}{key} is a number of seconds from 0 to {MOST_SECONDS:,.0f}, not {value!r}")
        return round(value * NS_PER_S)

    def table(self, key: str) -> _Reader:
        return _Reader(f"{self.place}{key}.", self.take(key, {}))

    def end(self) -> None:
        for key in self._left:
            raise UsageError(f"{self.place}{key} is not something that a schedule says")
