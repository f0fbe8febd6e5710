"""The applications of the experiments.

Each application is a schedule of writes, reads and pauses, which is stored as plain data next to the capture.
"""

from __future__ import annotations

import ctypes
import socket
import struct
import time
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Protocol

from tcptrace_lab.lab.hosts.sockets import Meeting, Pair, await_acknowledged, receive_exactly, unacknowledged_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Interval at which a bounded writer asks for the number of its unacknowledged bytes, because the kernel has no event for a change of this
# number. The interval is short compared with an RTT of 20 ms.
BOUND_POLL_S = 0.000_2
SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27  # asm-generic/socket.h
SO_MEMINFO, SK_MEMINFO_DROPS, MEMINFO_BYTES = 55, 8, 36  # asm-generic/socket.h, linux/sock_diag.h: nine u32


class Program(Protocol):
    """The schedule of the applications on both hosts."""

    def run(self, meeting: Meeting) -> dict[str, object]:
        """Create the connections, and exchange data. Return facts for the JSON that are known only after the run."""

    def describe(self) -> dict[str, object]:
        """Return the schedule as JSON values."""


class Described:
    """An application whose class name and fields describe its schedule."""

    def describe(self) -> dict[str, object]:
        """Return the schedule as JSON values."""
        return {"program": type(self).__name__} | asdict(self)  # type: ignore[call-overload,no-any-return]  # (every subclass is a dataclass)


class OneConnection(Described):
    """An application with one connection, which can be a part of a `Mixture`."""

    def run(self, meeting: Meeting) -> dict[str, object]:
        """See `Program.run`."""
        with meeting.connection() as pair:
            self.talk(pair)
        return {}

    def talk(self, pair: Pair) -> None:
        """Run client and server on a connection. Return when both are done."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Bulk(OneConnection):
    """The client writes `total_bytes` in writes of `write_bytes`, as fast as the socket accepts them. The server reads all bytes."""

    total_bytes: int
    write_bytes: int = 32_768

    def talk(self, pair: Pair) -> None:
        """See `OneConnection.talk`."""
        together(pair, lambda: self._write(pair.client), lambda: receive_exactly(pair.server, self.total_bytes))

    def _write(self, writer: socket.socket) -> None:
        for size in pieces(self.total_bytes, self.write_bytes):
            writer.sendall(bytes(size))


@dataclass(frozen=True, slots=True)
class TwoWay(OneConnection):
    """Client and server write `total_bytes`, and read the peer's data at the same time."""

    total_bytes: int
    write_bytes: int = 32_768

    def talk(self, pair: Pair) -> None:
        """See `OneConnection.talk`."""
        together(pair, lambda: self._talk(pair, pair.client), lambda: self._talk(pair, pair.server))

    def _talk(self, pair: Pair, end: socket.socket) -> None:
        together(pair, lambda: self._write(end), lambda: receive_exactly(end, self.total_bytes))

    def _write(self, writer: socket.socket) -> None:
        for size in pieces(self.total_bytes, self.write_bytes):
            writer.sendall(bytes(size))


@dataclass(frozen=True, slots=True)
class BoundedBulk(OneConnection):
    """A bulk transfer with at most `max_unacked_bytes` unacknowledged bytes, as with a send buffer of this size.

    The writer asks for the number of unacknowledged bytes with SIOCOUTQ.
    """

    total_bytes: int
    max_unacked_bytes: int
    write_bytes: int

    def talk(self, pair: Pair) -> None:
        """See `OneConnection.talk`."""
        together(pair, lambda: self._write(pair), lambda: receive_exactly(pair.server, self.total_bytes))

    def _write(self, pair: Pair) -> None:
        for size in pieces(self.total_bytes, self.write_bytes):
            if unacknowledged_bytes(pair.client) + size > self.max_unacked_bytes:
                with pair.spending("blocked"):
                    while unacknowledged_bytes(pair.client) + size > self.max_unacked_bytes:
                        time.sleep(BOUND_POLL_S)
            pair.client.sendall(bytes(size))


@dataclass(frozen=True, slots=True)
class Exchanges(OneConnection):
    """The client sends each request in several small writes, and then reads the response: write-write-read."""

    writes_bytes: tuple[int, ...]
    answer_bytes: int
    count: int
    server_think_s: float = 0.0
    client_think_s: float = 0.0

    def talk(self, pair: Pair) -> None:
        """See `OneConnection.talk`."""
        together(pair, lambda: self._ask(pair), lambda: self._answer(pair))

    def _ask(self, pair: Pair) -> None:
        for _ in range(self.count):
            for size in self.writes_bytes:
                pair.client.sendall(bytes(size))
            receive_exactly(pair.client, self.answer_bytes)
            pair.pause("application", self.client_think_s)

    def _answer(self, pair: Pair) -> None:
        for _ in range(self.count):
            receive_exactly(pair.server, sum(self.writes_bytes))
            pair.pause("peer", self.server_think_s)
            pair.server.sendall(bytes(self.answer_bytes))


@dataclass(frozen=True, slots=True)
class EchoSweep(Described):
    """The client sends messages of the given sizes, one after another, and the server echoes every message.

    Both hosts write in pieces of `write_bytes`.
    """

    sizes_bytes: tuple[int, ...]
    write_bytes: int = 4096

    def run(self, meeting: Meeting) -> dict[str, object]:
        """See `Program.run`."""
        with meeting.connection() as pair:
            together(pair, lambda: self._ask(pair.client), lambda: self._echo(pair.server))
        return {}

    def _ask(self, client: socket.socket) -> None:
        for size in self.sizes_bytes:
            self._write(client, size)
            receive_exactly(client, size)

    def _echo(self, server: socket.socket) -> None:
        for size in self.sizes_bytes:
            receive_exactly(server, size)
            self._write(server, size)

    def _write(self, end: socket.socket, size: int) -> None:
        for piece in pieces(size, self.write_bytes):
            end.sendall(bytes(piece))


@dataclass(frozen=True, slots=True)
class SlowReader(OneConnection):
    """The client writes as fast as it can. The server sleeps `pause_s` before each read of `read_bytes`."""

    total_bytes: int
    read_bytes: int
    pause_s: float
    write_bytes: int = 32_768

    def talk(self, pair: Pair) -> None:
        """See `OneConnection.talk`."""
        together(pair, lambda: pair.client.sendall(bytes(self.total_bytes)), lambda: self._read(pair.server))

    def _read(self, server: socket.socket) -> None:
        for size in pieces(self.total_bytes, self.read_bytes):
            time.sleep(self.pause_s)
            receive_exactly(server, size)


@dataclass(frozen=True, slots=True)
class PeriodicWriter(OneConnection):
    """The client writes `write_bytes` every `pause_s`. The application, not the network, limits the rate."""

    write_bytes: int
    count: int
    pause_s: float

    def talk(self, pair: Pair) -> None:
        """See `OneConnection.talk`."""
        together(pair, lambda: self._write(pair), lambda: receive_exactly(pair.server, self.write_bytes * self.count))

    def _write(self, pair: Pair) -> None:
        for _ in range(self.count):
            pair.client.sendall(bytes(self.write_bytes))
            pair.pause("application", self.pause_s)


@dataclass(frozen=True, slots=True)
class Setting(OneConnection):
    """A change of socket options on an open connection, between two parts of a mixture. An option that is None stays unchanged.

    `window_bytes` becomes the maximum window that the server advertises (TCP_WINDOW_CLAMP). Windows that the server has already advertised
    stay valid.
    """

    nodelay: bool | None = None
    window_bytes: int | None = None

    def talk(self, pair: Pair) -> None:
        """See `OneConnection.talk`."""
        if self.nodelay is not None:
            pair.client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(self.nodelay))
        if self.window_bytes is not None:
            pair.server.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, self.window_bytes)


@dataclass(frozen=True, slots=True)
class Mixture(OneConnection):
    """Several applications over one connection. Each starts when client and server of the previous one are done."""

    parts: tuple[OneConnection, ...]

    def talk(self, pair: Pair) -> None:
        """See `OneConnection.talk`."""
        for part in self.parts:
            part.talk(pair)


@dataclass(frozen=True, slots=True)
class Beside:
    """One of several connections.

    Attributes:
        program: application of the connection.
        begins_s: earliest time at which the connection is opened, in seconds after the start of the run.
        receive_buffer_bytes: SO_RCVBUF of the connection's server socket; None: the value of the experiment.
    """

    program: OneConnection
    begins_s: float = 0.0
    receive_buffer_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Several(Described):
    """Concurrent connections, in order of their start."""

    beside: tuple[Beside, ...]

    def run(self, meeting: Meeting) -> dict[str, object]:
        """See `Program.run`."""
        with ExitStack() as stack, ThreadPoolExecutor(len(self.beside)) as executor:
            pairs, talking = list[Pair](), list[Future[None]]()
            try:
                began_s = time.monotonic()
                for one in self.beside:
                    time.sleep(max(0.0, began_s + one.begins_s - time.monotonic()))
                    buffer = one.receive_buffer_bytes
                    options = meeting.options if buffer is None else replace(meeting.options, receive_buffer_bytes=buffer)
                    pairs.append(stack.enter_context(meeting.connection(options=options)))
                    talking.append(executor.submit(one.program.talk, pairs[-1]))
                for each in as_completed(talking):
                    each.result()
            except BaseException:  # Ctrl-C must end the other connections as well
                for pair in pairs:
                    pair.abort()
                raise
        return {}


@dataclass(frozen=True, slots=True)
class LostWrites(Described):
    """Loss without a network.

    While the client makes certain writes, a socket filter at the server drops all arriving segments. On loopback, the system call that
    sends a segment also delivers it. So the segments of these writes are lost, and no others. A capture on the interface still contains the
    lost segments.
    """

    write_bytes: int
    count: int
    lost_writes: tuple[int, ...]

    def run(self, meeting: Meeting) -> dict[str, object]:
        """See `Program.run`."""
        with meeting.connection() as pair:
            together(pair, lambda: self._write(pair), lambda: receive_exactly(pair.server, self.write_bytes * self.count))
            dropped = struct.unpack("9I", pair.server.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, MEMINFO_BYTES))[SK_MEMINFO_DROPS]
        return {"segments_dropped_by_filter": dropped}

    def _write(self, pair: Pair) -> None:
        for index in range(self.count):
            if index in self.lost_writes:
                if index - 1 not in self.lost_writes:
                    await_acknowledged(pair.client)  # TCP then sends only this write, and sends it at once
                drop_everything(pair.server)
                pair.client.sendall(bytes(self.write_bytes))
                pair.server.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
            else:
                pair.client.sendall(bytes(self.write_bytes))


@dataclass(frozen=True, slots=True)
class IdleWithKeepalive(Described):
    """Client and server exchange messages, are idle while the client sends keepalives, and exchange messages again."""

    message_bytes: int
    idle_s: float
    keepalive_s: int

    def run(self, meeting: Meeting) -> dict[str, object]:
        """See `Program.run`."""
        with meeting.connection() as pair:
            pair.client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            pair.client.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, self.keepalive_s)
            pair.client.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, self.keepalive_s)
            for pause_s in (self.idle_s, 0.0):
                pair.client.sendall(bytes(self.message_bytes))
                receive_exactly(pair.server, self.message_bytes)
                pair.server.sendall(bytes(self.message_bytes))
                receive_exactly(pair.client, self.message_bytes)
                time.sleep(pause_s)
        return {}


@dataclass(frozen=True, slots=True)
class ShortLives(Described):
    """Four short connections: one is refused, the client resets one with unread data, and two use the same ports one after the other."""

    message_bytes: int

    def run(self, meeting: Meeting) -> dict[str, object]:
        """See `Program.run`."""
        meeting.refused()
        with meeting.connection(reset=True) as pair:
            pair.server.sendall(bytes(self.message_bytes))
            await_acknowledged(pair.server)
        for _ in range(2):
            with meeting.connection(reuse_ports=True) as pair:
                pair.client.sendall(bytes(self.message_bytes))
                receive_exactly(pair.server, self.message_bytes)
        return {}


def pieces(total: int, piece: int) -> Iterator[int]:
    """Yield sizes with the sum `total`. Each size is `piece`; only the last one can be smaller."""
    while total > 0:
        yield min(piece, total)
        total -= piece


def together(pair: Pair, here: Callable[[], None], there: Callable[[], None]) -> None:
    """Run `here` and `there` at the same time.

    If one of them fails, the sockets are shut down, so that the other one also fails. The first error is raised.
    """

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException:  # Ctrl-C must end the other host's thread as well
            pair.abort()
            raise

    with ThreadPoolExecutor(1) as executor:
        other = executor.submit(guarded, there)
        guarded(here)
        other.result()


class _Instruction(ctypes.Structure):
    """struct sock_filter of linux/filter.h."""

    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Filter(ctypes.Structure):
    """struct sock_fprog of linux/filter.h."""

    _fields_ = (("len", ctypes.c_uint16), ("filter", ctypes.POINTER(_Instruction)))


def drop_everything(connection: socket.socket) -> None:
    """Attach a filter that drops all arriving segments, because it keeps 0 bytes of each (BPF_RET | BPF_K with k = 0)."""
    program = _Filter(1, ctypes.pointer(_Instruction(0x06, 0, 0, 0)))
    connection.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, bytes(program))
