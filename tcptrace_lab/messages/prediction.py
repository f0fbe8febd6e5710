"""Predicts, from the rules of a TCP stack, which message sizes stall and whether a stream can deadlock, also for a grid of buffer sizes.

A parameter that the caller omits is taken from a capture, if there is one. A parameter that is still unknown gets the default of the stack,
and the result lists it as assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.engine.segments import read
from tcptrace_lab.errors import UsageError
from tcptrace_lab.messages import size_groups
from tcptrace_lab.messages.size_choice import MAX_CONNECTIONS, MAX_SEGMENTS, MIN_MESSAGES, PAIR
from tcptrace_lab.schema import SIDES
from tcptrace_lab.stacks.ranges import (
    STACKS,
    Settings,
    Stack,
    Stalls,
    deadlock,
    predicted_ranges,
    stalled_share,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tcptrace_lab.engine.reread import Progress
    from tcptrace_lab.engine.segments import Tables
    from tcptrace_lab.messages.size_groups import Parameters
    from tcptrace_lab.messages.sizes import SlowRange

SCHEMA_VERSION = 2

MAX_BUFFERS = 32
"""Maximum number of buffer sizes along one axis of the grid. The largest grid has 32 × 32 cells; each takes 10 to 30 ms to compute."""

LINUX_BUFFER_BYTES = 4 << 20
"""Assumed buffer for Linux if none is given. The windows of Linux grow to megabytes (tcp_rmem, 6 MiB). Such large windows do not affect the
rules."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Parameters that the caller gave. None and "" mean not given."""

    stack: str = ""
    mss_bytes: int | None = None
    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    copy_bytes: int | None = None
    nodelay: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """What captures show about one direction between a client and a server: its parameters and its slow message sizes.

    Attributes:
        parameters: parameters of the direction.
        name: name of the two hosts and the direction.
        messages: number of messages analyzed. Incompletely captured messages are not analyzed.
        measured: the slow ranges of message sizes.
    """

    parameters: Parameters
    name: str
    messages: int
    measured: tuple[SlowRange, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the object `measured` of the document. Its ranges are null if there are too few messages."""
        ranges = [size_groups.measured_object(one) for one in self.measured] if self.messages >= MIN_MESSAGES else None
        return {"name": self.name, "messages": self.messages, "ranges": ranges}


def from_captures(
    captures: Sequence[Sequence[str]],
    connection: int | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> Known:
    """Return the parameters that captures show for one pair of hosts, in the direction with more data.

    The hosts are those of the largest connection in the first capture.

    Args:
        captures: the files of each capture, as for `read`. Each capture is read separately, so connections of different captures are never
            mixed up, whatever their addresses and times. The messages of all captures are analyzed together.
        connection: use only the connection with this number. This argument is allowed for one capture only.
        progress: see `read`.
        say: see `read`; also called for a capture without traffic between these hosts.

    Raises:
        UsageError: there is no such connection. Other errors are those of `read`.
    """
    pair: pl.DataFrame | None = None
    connections: list[pl.DataFrame] = []
    messages: list[pl.DataFrame] = []
    count = 0
    for paths in captures:
        tables = read(paths, worth=(), progress=progress, say=say)
        if pair is None:
            pair = _pair(tables, connection, paths)
        own = _of_pair(tables, pair, connection)
        if own.is_empty():
            if say is not None:
                say(f"{', '.join(paths)}: nothing between these hosts")
            continue
        here = pl.col("conn").is_in(own["conn"].to_list())
        apart = pl.col("conn") + count
        messages.append(size_groups.whole_messages(tables.segments.filter(here), tables.notes.filter(here), own).with_columns(apart))
        connections.append(own.with_columns(apart))
        count += tables.info["connections"]
    return _known(pl.concat(connections), pl.concat(messages))


_CARRIED = pl.col("client_payload_bytes") + pl.col("server_payload_bytes")


def _pair(tables: Tables, connection: int | None, paths: Sequence[str]) -> pl.DataFrame:
    """Return the hosts and the server port of the connection `connection`, or of the connection with most data."""
    rows = tables.connections if connection is None else tables.connections.filter(pl.col("conn") == connection)
    found = rows.select(*PAIR, "conn", bytes=_CARRIED).sort("bytes", "conn", descending=[True, False]).head(1).collect()
    if found.is_empty():
        raise UsageError("no such connection", where=", ".join(paths), remedy="tcptrace-lab analyze lists them")
    return found.select(PAIR)


def _of_pair(tables: Tables, pair: pl.DataFrame, connection: int | None) -> pl.DataFrame:
    """Return the connections of a pair of hosts, or only the given connection. If there are too many, those with most data are returned."""
    rows = tables.connections.join(pair.lazy(), on=list(PAIR), how="semi")
    if connection is not None:
        rows = rows.filter(pl.col("conn") == connection)
    found = rows.sort(_CARRIED, "conn", descending=[True, False]).head(MAX_CONNECTIONS).collect()
    size = (pl.col("client_segments") + pl.col("server_segments")).cum_sum()
    within = (size <= MAX_SEGMENTS) | (pl.int_range(pl.len()) == 0)
    return found.filter(within).sort("conn")


def _known(connections: pl.DataFrame, messages: pl.DataFrame) -> Known:
    side = max(SIDES, key=lambda name: int(connections[f"{name}_payload_bytes"].sum()))
    sent = messages.filter(pl.col("from_client") == SIDES[side])
    row = connections.row(0, named=True)
    server = f"{row['server_addr']}:{row['server_port']}"
    name = f"{row['client_addr']} → {server}" if side == "client" else f"{server} → {row['client_addr']}"
    measured = size_groups.slow_sizes(sent)[0]
    return Known(size_groups.inferred(connections, sent, side), name, sent.height, measured)


def completed(asked: Asked, known: Parameters | None = None) -> tuple[Stack, Settings, list[str]]:
    """Return all parameters of a prediction, and a description of each assumed parameter.

    Raises:
        UsageError: a parameter is missing or impossible.
    """
    assumed_values = {} if known is None else known.assumed
    assumed = [words for name, words in assumed_values.items() if not getattr(asked, name) and name != "send_buffer_bytes"]
    key = asked.stack or (known.stack if known is not None else None)
    if not key and known is not None:
        raise UsageError(f"the capture does not show the stack: {known.seen}", remedy=f"give one with --stack: {', '.join(STACKS)}")
    if not key:
        raise UsageError("the stack is unknown", remedy=f"give one with --stack: {', '.join(STACKS)}")
    if key not in STACKS:
        raise UsageError(f"no rules for the stack {key!r}", remedy=f"--stack takes {', '.join(STACKS)}")
    stack = STACKS[key]

    def value(name: str) -> int | None:
        given: int | None = getattr(asked, name)
        return given if given is not None or known is None else getattr(known, name)

    mss, receive, send, copy = (value(name) for name in ("mss_bytes", "receive_buffer_bytes", "send_buffer_bytes", "copy_bytes"))
    if mss is None:
        raise UsageError("the MSS is unknown", remedy="give it with --mss, such as 1460")
    if receive is None:
        receive = _assumed_buffer(stack, "receive", assumed)
    if send is None:
        send = receive
        assumed.append(f"the send buffer is as large as the receive buffer, {receive:,} bytes")
    if copy is None:
        copy = stack.copy_bytes
        assumed.append(f"{copy:,} bytes are copied to TCP at a time ({stack.title}, if the application writes more at once)")
    try:
        return stack, Settings(mss, send, receive, copy, asked.nodelay or (known is not None and known.nodelay)), assumed
    except ValueError as error:
        raise UsageError(str(error), remedy="give sizes of one byte or more") from error


def _assumed_buffer(stack: Stack, which: str, assumed: list[str]) -> int:
    if stack.ack_percent is not None:
        raise UsageError(f"the {which} buffer is unknown", remedy=f"give it with --{which}-buffer, such as 16K")
    assumed.append(f"the {which} buffer is {LINUX_BUFFER_BYTES:,} bytes")
    return LINUX_BUFFER_BYTES


def document(
    stack: Stack,
    settings: Settings,
    assumed: Sequence[str],
    sizes: tuple[int, int],
    grid: Sequence[int] = (),
    known: Known | None = None,
) -> dict[str, Any]:
    """Return the prediction as a JSON document.

    Args:
        stack: the stack.
        settings: its parameters.
        assumed: descriptions of the assumed parameters.
        sizes: smallest and largest message size.
        grid: buffer sizes; every pair of send and receive buffer is tried.
        known: what captures show.

    Raises:
        UsageError: messages would have too many pieces, or the grid is too large.
    """
    if len(grid) > MAX_BUFFERS:
        raise UsageError(f"a grid of {len(grid)} × {len(grid)} buffers", remedy=f"take steps that make {MAX_BUFFERS} or fewer")
    first, last = sizes
    used = stack.in_force(settings)
    try:
        ranges = predicted_ranges(stack, settings, first, last)
        cells = list(_cells(stack, settings, sizes, grid))
    except ValueError as error:
        raise UsageError(str(error), remedy="ask for smaller messages (--sizes) or larger pieces") from error
    return {
        "schema_version": SCHEMA_VERSION,
        "stack": {"name": stack.key, "title": stack.title, "source": stack.source},
        "parameters": {
            "mss_bytes": used.mss_bytes,
            "send_buffer_bytes": used.send_buffer_bytes,
            "receive_buffer_bytes": used.receive_buffer_bytes,
            "copy_bytes": used.copy_bytes,
            "nodelay": used.nodelay,
        },
        "rounded": _rounded(settings, used),
        "assumptions": list(assumed),
        "sizes": {"from_bytes": first, "to_bytes": last},
        "ranges": [{"from_bytes": one.from_bytes, "to_bytes": one.to_bytes, "stalls": str(one.stalls)} for one in ranges],
        "stalled_share": stalled_share(ranges, first, last),
        "measured": None if known is None else known.to_dict(),
        "deadlock": _lock(stack, settings),
        "grid": cells,
    }


def _rounded(asked: Settings, used: Settings) -> list[str]:
    """Describe the sizes that the stack rounds up or down."""
    names = {"mss_bytes": "the MSS", "send_buffer_bytes": "the send buffer", "receive_buffer_bytes": "the receive buffer"}
    sizes = ((words, getattr(asked, name), getattr(used, name)) for name, words in names.items())
    return [f"the stack rounds {words} from {before:,} to {after:,} bytes" for words, before, after in sizes if before != after]


def _cells(stack: Stack, settings: Settings, sizes: tuple[int, int], grid: Sequence[int]) -> Iterator[dict[str, Any]]:
    first, last = sizes
    for send in grid:
        for receive in grid:
            own = Settings(settings.mss_bytes, send, receive, settings.copy_bytes, settings.nodelay)
            ranges = predicted_ranges(stack, own, first, last)
            some = sum(one.to_bytes - one.from_bytes + 1 for one in ranges if one.stalls is Stalls.BY_TIMING)
            lock = deadlock(stack, own)
            yield {
                "send_buffer_bytes": send,
                "receive_buffer_bytes": receive,
                "stalled_share": stalled_share(ranges, first, last),
                "timing_dependent_share": some / (last - first + 1),
                "deadlock_possible": None if lock is None else lock.possible,
                "deadlock_possible_if_unused": None if lock is None else lock.possible_if_unused,
            }


def _lock(stack: Stack, settings: Settings) -> dict[str, Any] | None:
    lock = deadlock(stack, settings)
    if lock is None:
        return None
    return {
        "possible": lock.possible,
        "possible_if_unused": lock.possible_if_unused,
        "send_threshold_bytes": lock.hold_bytes,
        "ack_threshold_bytes": lock.ack_bytes,
        "safe_send_buffer_bytes": lock.needed_bytes,
        "send_buffer_bytes": lock.send_buffer_bytes,
        "max_unused_bytes": lock.unused_bytes,
    }


def lock_words(found: Mapping[str, Any] | None) -> str:
    """Describe whether a stream can deadlock, and why."""
    if found is None:
        return "streams do not deadlock: a blocked sender pushes queued data"
    send, needed, unused = found["send_buffer_bytes"], found["safe_send_buffer_bytes"], found["max_unused_bytes"]
    sender, receiver = found["send_threshold_bytes"], found["ack_threshold_bytes"]
    waits = f"{sender:,} bytes that the sender waits for + {receiver:,} bytes that the receiver waits for"
    if send < needed:
        return f"a stream can deadlock: send buffer of {send:,} bytes < {waits}"
    enough = f"send buffer of {send:,} bytes ≥ {waits}"
    if found["possible"]:
        return f"a stream can deadlock: {enough}, but these writes leave part of the buffer unused"
    if found["possible_if_unused"]:
        spare = send - needed
        most = f"at most {unused:,} bytes can be unused"
        return f"a stream can deadlock if its writes leave more than {spare:,} bytes of the send buffer unused ({most}): {enough}"
    return f"no stream can deadlock: {enough}" + (f" + {unused:,} bytes that writes may leave unused" if unused else "")


def grid_sign(cell: Mapping[str, Any]) -> str:
    """Return the mark after the share in a cell of the grid: `!` if a deadlock is possible, `?` if that depends on the writes."""
    return "!" if cell["deadlock_possible"] else "?" if cell["deadlock_possible_if_unused"] else ""
