"""Runs one end of a schedule over a real socket: listens or connects, runs the end's tasks, and closes.

`namespace_replay` runs both ends on one machine in network namespaces. With `--serve` and `--connect`, the ends run on separate machines.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tcptrace_lab.errors import LabFailed, UsageError
from tcptrace_lab.replay.schedule import AwaitRead
from tcptrace_lab.stacks.setting import Close, Flush, Read, Think, Write
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcptrace_lab.replay.schedule import Action, End, Task

SIOCOUTQ, SIOCOUTQNSD = 0x5411, 0x894B  # linux/sockios.h: unacknowledged bytes; unsent bytes
POLL_S: Final = 0.000_2
"""Interval at which the kernel is asked for unsent and unacknowledged bytes, because the kernel has no event for these numbers.

The interval is short compared with an RTT.
"""

READ_BYTES: Final = 1 << 18
WRITE_BYTES: Final = 1 << 20
"""Maximum number of bytes per socket call. A larger write takes several calls."""

_ZEROS: Final = memoryview(bytes(WRITE_BYTES))


class EndFailed(LabFailed):
    """A connection could not be established, or broke."""


class TimeLimitExceeded(EndFailed):
    """The deadline of the replay passed."""


@dataclass(slots=True)
class Done:
    """Result of one end: bytes written, bytes read, and the duration of the connection in ns."""

    written_bytes: int = 0
    read_bytes: int = 0
    took_ns: int = 0


@dataclass(slots=True)
class Playing:
    """One end during a replay.

    Attributes:
        end: the end's tasks and options.
        connection: its connected socket.
        deadline_s: time of the monotonic clock at which the replay fails.
        done: bytes written and read so far.
    """

    end: End
    connection: socket.socket
    deadline_s: float
    done: Done = field(default_factory=Done)
    _news: threading.Condition = field(default_factory=threading.Condition)
    _ended: bool = False
    _failed: list[BaseException] = field(default_factory=list)

    def play(self) -> Done:
        """Run all tasks, then shut down writing, and read until the other end closes.

        Raises:
            EndFailed: the connection broke, or the deadline passed.
        """
        start_ns = time.monotonic_ns()
        threads = [threading.Thread(target=self._guarded, args=(task,), daemon=True) for task in self.end.tasks[1:]]
        for thread in threads:
            thread.start()
        self._guarded(self.end.tasks[0])
        for thread in threads:
            thread.join()
        if not self._failed:
            self._guarded((Close(), Read()))
        self.done.took_ns = time.monotonic_ns() - start_ns
        if self._failed:
            raise _as_failure(self._failed[0])
        return self.done

    def _guarded(self, task: Task) -> None:
        try:
            for number, step in enumerate(task):
                self._do(step, task[number + 1] if number + 1 < len(task) else None)
        except BaseException as error:  # noqa: BLE001  (Ctrl-C must end the other task and the other end as well)
            self._failed.append(error)
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            with self._news:
                self._ended = True
                self._news.notify_all()

    def _do(self, step: Action, following: Action | None) -> None:
        match step:
            case Write():
                self._write(step, last=not isinstance(following, Write))
            case Read():
                self._read(step.size_bytes)
            case Think():
                self._sleep(step.for_ns)
            case Flush():
                self._flush(SIOCOUTQ if step.acknowledged else SIOCOUTQNSD)
            case AwaitRead():
                self._await(step.total_bytes)
            case Close():
                with suppress(OSError):  # the peer has already closed the connection
                    self.connection.shutdown(socket.SHUT_WR)

    def _sleep(self, for_ns: int) -> None:
        if time.monotonic() + for_ns / NS_PER_S > self.deadline_s:
            raise TimeoutError
        time.sleep(for_ns / NS_PER_S)

    def _write(self, step: Write, *, last: bool) -> None:
        if self.end.cork:
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        left = step.size_bytes
        while left:
            call = min(left, step.call_bytes or left)
            left -= call
            self._await_room(call)
            while call:
                piece = min(call, WRITE_BYTES)
                self.connection.sendall(_ZEROS[:piece])
                self.done.written_bytes += piece
                call -= piece
        if self.end.cork and last:
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)

    def _await_room(self, call_bytes: int) -> None:
        bound = self.end.max_unacked_bytes
        if bound is None:
            return
        while (waiting := _queued(self.connection, SIOCOUTQ)) and waiting + call_bytes > bound:
            self._poll()

    def _flush(self, request: int) -> None:
        while _queued(self.connection, request):
            self._poll()

    def _poll(self) -> None:
        if time.monotonic() > self.deadline_s:
            raise TimeoutError
        time.sleep(POLL_S)

    def _read(self, size_bytes: int) -> None:
        left = size_bytes or -1
        while left:
            data = self.connection.recv(READ_BYTES if left < 0 else min(left, READ_BYTES))
            if self.end.quickack:
                with suppress(OSError):  # the kernel resets TCP_QUICKACK, so it is set again after each read (tcp(7))
                    self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            with self._news:
                self.done.read_bytes += len(data)
                self._ended = self._ended or not data
                self._news.notify_all()
            if not data:
                if left > 0:
                    raise EOFError(f"the other end closed {left:,} bytes earlier than this end's schedule says")
                return
            left -= len(data) if left > 0 else 0

    def _await(self, total_bytes: int) -> None:
        with self._news:
            there = self._news.wait_for(
                lambda: self.done.read_bytes >= total_bytes or self._ended, max(0.0, self.deadline_s - time.monotonic())
            )
            if not there:
                raise TimeoutError
            if self.done.read_bytes < total_bytes:
                raise EOFError(f"the other end closed {total_bytes - self.done.read_bytes:,} bytes earlier than this end's schedule says")


def _queued(connection: socket.socket, request: int) -> int:
    (value,) = struct.unpack("i", fcntl.ioctl(connection, request, bytes(4)))
    return int(value)


def _as_failure(error: BaseException) -> BaseException:
    if isinstance(error, TimeoutError):
        return TimeLimitExceeded("the transfer exceeded its time limit", remedy="raise --timeout, or check the other end")
    if isinstance(error, (OSError, EOFError)):
        return EndFailed(f"the connection failed: {error}")
    return error


def prepared(end: End, *, ipv6: bool, timeout_s: float) -> socket.socket:
    """Create a socket with the options of an end; it is neither bound nor connected.

    Raises:
        UsageError: the kernel lacks the congestion control, or refuses an option.
    """
    made = socket.socket(socket.AF_INET6 if ipv6 else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.settimeout(timeout_s)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for what, level, name, value in _options(end):
            if name in _FORCED and _forced(made, _FORCED[name], value):
                continue
            try:
                made.setsockopt(level, name, value)
            except OSError as error:
                raise UsageError(f"the kernel rejects {what}: {error.strerror}", remedy="choose another value") from error
    except BaseException:
        made.close()
        raise
    return made


def _options(end: End) -> list[tuple[str, int, int, int | bytes]]:
    tcp, plain = socket.IPPROTO_TCP, socket.SOL_SOCKET
    found: list[tuple[str, int, int, int | bytes]] = []
    if end.congestion_control:
        found.append((f"the congestion control {end.congestion_control}", tcp, socket.TCP_CONGESTION, end.congestion_control.encode()))
    if end.nodelay:
        found.append(("TCP_NODELAY", tcp, socket.TCP_NODELAY, 1))
    for words, level, name, size in (
        ("send buffer", plain, socket.SO_SNDBUF, end.send_buffer_bytes),
        ("receive buffer", plain, socket.SO_RCVBUF, end.receive_buffer_bytes),
        ("window", tcp, socket.TCP_WINDOW_CLAMP, end.window_clamp_bytes),
    ):
        if size is not None:
            found.append((f"a {words} of {size:,} bytes", level, name, min(size, _MAX_INT)))
    return found


_FORCED: Final = {socket.SO_SNDBUF: 32, socket.SO_RCVBUF: 33}
"""SO_SNDBUF → SO_SNDBUFFORCE, SO_RCVBUF → SO_RCVBUFFORCE (asm-generic/socket.h).

The forced options ignore net.core.wmem_max and rmem_max, but need CAP_NET_ADMIN.
"""


def _forced(made: socket.socket, name: int, value: int | bytes) -> bool:
    try:
        made.setsockopt(socket.SOL_SOCKET, name, value)
    except OSError:
        return False
    return True


_MAX_INT: Final = (1 << 30) - 1
"""Largest buffer size that can be requested, because the kernel stores twice this size in an int."""


def serve(
    end: End,
    address: tuple[str, int],
    timeout_s: float,
    ready: Callable[[tuple[str, int]], None] | None = None,
    patience_s: float | None = None,
) -> Done:
    """Listen, accept one connection, and run the server's tasks on it.

    Args:
        end: the server's end of the schedule.
        address: address and port to listen on; port 0: any free port.
        timeout_s: time limit of the replay. Waiting for the client does not count.
        ready: called with the address and port once the socket listens.
        patience_s: time limit of waiting for the client; None: no limit.

    Raises:
        EndFailed: the address cannot be used, no client connected in time, or the connection broke.
        UsageError: the kernel refuses an option, as in `prepared`.
    """
    with prepared(end, ipv6=":" in address[0], timeout_s=timeout_s) as listener:
        try:
            listener.bind(address)
            listener.listen(1)
            if ready is not None:
                ready(listener.getsockname()[:2])
            listener.settimeout(patience_s)
            connection, _ = listener.accept()
        except TimeoutError as error:
            raise EndFailed(f"nobody connected within {patience_s:g} s", where=_place(address)) from error
        except OSError as error:
            raise EndFailed(f"cannot listen: {error.strerror}", where=_place(address), remedy="name an address of this machine") from error
    return _play(end, connection, timeout_s)


def connect(end: End, address: tuple[str, int], timeout_s: float, source: tuple[str, int] | None = None) -> Done:
    """Connect to the server, and run the client's tasks.

    Args:
        end: the client's end of the schedule.
        address: address and port of the server.
        timeout_s: limit for connecting, and for the replay.
        source: local address and port; None: chosen by the kernel.

    Raises:
        EndFailed: the server does not accept the connection, or the connection broke.
        UsageError: the kernel refuses an option, as in `prepared`.
    """
    made = prepared(end, ipv6=":" in address[0], timeout_s=timeout_s)
    try:
        if source is not None:
            made.bind(source)
        made.connect(address)
    except OSError as error:
        made.close()
        words = error.strerror or "no answer"
        raise EndFailed(f"cannot connect: {words}", where=_place(address), remedy="start the other end with --serve first") from error
    return _play(end, made, timeout_s)


def _play(end: End, connection: socket.socket, timeout_s: float) -> Done:
    with connection:
        connection.settimeout(timeout_s)
        return Playing(end, connection, time.monotonic() + timeout_s).play()


def _place(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
