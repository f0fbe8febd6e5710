"""The kinds of transfer in the original papers: what both applications do in one run, and what they measure.

The applications measure times on one clock, from the first write to the last read.
"""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tcptrace_lab.lab.hosts.applications import pieces, together
from tcptrace_lab.lab.hosts.files import fetch_by_ftp, fetch_by_http
from tcptrace_lab.lab.hosts.sockets import receive_exactly
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tcptrace_lab.lab.hosts.endpoints import Ends
    from tcptrace_lab.lab.studies.experiment_file import Point

UDP_SILENCE_S = 0.25
"""A UDP receiver stops if nothing arrives for this time, in seconds, after the last datagram was sent."""
ECHO_PATIENCE_S = 1.0
SPIN_NS = 200_000
"""Time for which a paced sender polls the clock before a datagram is due. Before that, the sender sleeps."""


@dataclass(slots=True)
class Measured:
    """Measurements of one transfer by its applications.

    Attributes:
        elapsed_ns: time from the first write to the last read.
        payload_bytes: payload that arrived.
        latencies_ns: duration of each operation (a transfer, a round trip or a file).
        port: client port of the connection or flow that carries the data.
        cpu_ns: CPU time of the writing thread.
        more: figures of some kinds only: `connect_ns`, `request_ns`, `transfer_ns` (means over the files), `lost_share`.
    """

    elapsed_ns: int
    payload_bytes: int
    latencies_ns: list[int]
    port: int
    cpu_ns: int | None = None
    more: dict[str, float] = field(default_factory=dict)


def perform(point: Point, ends: Ends) -> Measured:
    """Perform one transfer with the settings of a point. Raise OSError or EOFError if it fails."""
    return _KINDS[str(point["transfer.kind"])](point, ends)


def _amounts(point: Point) -> list[int]:
    write, writes = int(point["transfer.write"]), point["transfer.writes"]
    return [write] * int(writes) if writes is not None else list(pieces(int(point["transfer.total"]), write))


def _write_all(end: socket.socket, sizes: Sequence[int], *, cork: bool = False) -> None:
    """Write one message in writes of these sizes. With `cork` (TCP_CORK), TCP sends no partial segment before the last write."""
    data = memoryview(bytes(max(sizes)))
    if cork:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    for size in sizes:
        end.sendall(data[:size])
    if cork:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)


def _bulk(point: Point, ends: Ends) -> Measured:
    sizes = _amounts(point)
    total, cpu_ns, begun_ns = sum(sizes), 0, 0
    cork, quickack = bool(point["sockets.cork"]), bool(point["sockets.quickack"])

    def write() -> None:
        nonlocal cpu_ns, begun_ns
        before_ns, begun_ns = time.thread_time_ns(), time.monotonic_ns()
        _write_all(pair.client, sizes, cork=cork)
        cpu_ns = time.thread_time_ns() - before_ns

    with ends.connection() as pair:
        together(pair, write, lambda: receive_exactly(pair.server, total, quickack=quickack))
        elapsed_ns = time.monotonic_ns() - begun_ns
        return Measured(elapsed_ns, total, [elapsed_ns], ends.port, cpu_ns)


def _round_trips(point: Point, ends: Ends, request: Sequence[int], answer: Sequence[int], think_ns: int = 0) -> Measured:
    """Exchange requests and responses, each in writes of the given sizes."""
    count, latencies_ns, cpu_ns = int(point["transfer.count"]), list[int](), 0
    cork, quickack = bool(point["sockets.cork"]), bool(point["sockets.quickack"])
    asked, answered = sum(request), sum(answer)

    def ask() -> None:
        nonlocal cpu_ns
        before_ns = time.thread_time_ns()
        for _ in range(count):
            begun_ns = time.monotonic_ns()
            _write_all(pair.client, request, cork=cork)
            receive_exactly(pair.client, answered, quickack=quickack)
            latencies_ns.append(time.monotonic_ns() - begun_ns)
        cpu_ns = time.thread_time_ns() - before_ns

    def reply() -> None:
        for _ in range(count):
            receive_exactly(pair.server, asked, quickack=quickack)
            if think_ns:
                time.sleep(think_ns / NS_PER_S)
            _write_all(pair.server, answer, cork=cork)

    with ends.connection() as pair:
        together(pair, ask, reply)
        return Measured(sum(latencies_ns), count * (asked + answered), latencies_ns, ends.port, cpu_ns)


def _exchange(point: Point, ends: Ends) -> Measured:
    return _round_trips(point, ends, point["transfer.request"], [int(point["transfer.answer"])], int(point["transfer.think"]))


def _echo(point: Point, ends: Ends) -> Measured:
    sizes = list(pieces(int(point["transfer.message"]), int(point["transfer.write"])))
    return _round_trips(point, ends, sizes, sizes)


def _udp(point: Point, ends: Ends) -> Measured:
    """Send datagrams in one direction. The receiver stops `UDP_SILENCE_S` after the last datagram."""
    sizes, pace_ns = _amounts(point), int(point["transfer.pace"])
    arrived: list[tuple[int, int]] = []
    sent = threading.Event()

    def receive(server: socket.socket) -> None:
        server.settimeout(UDP_SILENCE_S)
        while len(arrived) < len(sizes):
            try:
                size = len(server.recv(max(sizes)))
            except TimeoutError:
                if sent.is_set():
                    return
                continue
            arrived.append((time.monotonic_ns(), size))

    with ends.datagram_pair() as (client, server):
        receiver = threading.Thread(target=receive, args=(server,), name="udp", daemon=True)
        receiver.start()
        before_ns, begun_ns = time.thread_time_ns(), time.monotonic_ns()
        _send_paced(client, sizes, pace_ns)
        sent.set()
        cpu_ns = time.thread_time_ns() - before_ns
        receiver.join()
    last_ns = arrived[-1][0] if arrived else time.monotonic_ns()
    lost = 1 - len(arrived) / len(sizes)
    elapsed_ns = last_ns - begun_ns
    return Measured(elapsed_ns, sum(size for _, size in arrived), [elapsed_ns], ends.port, cpu_ns, {"lost_share": lost})


def _send_paced(client: socket.socket, sizes: Sequence[int], pace_ns: int) -> None:
    data, start_ns = memoryview(bytes(max(sizes))), time.monotonic_ns()
    for index, size in enumerate(sizes):
        due_ns = start_ns + index * pace_ns
        while pace_ns and (left_ns := due_ns - time.monotonic_ns()) > 0:
            if left_ns > SPIN_NS:
                time.sleep((left_ns - SPIN_NS) / NS_PER_S)
        client.send(data[:size])


def _udp_echo(point: Point, ends: Ends) -> Measured:
    """Send datagrams that the server echoes.

    A datagram counts as lost if its echo does not arrive within one second. Then the next datagram is sent.
    """
    size, count = int(point["transfer.message"]), int(point["transfer.count"])
    latencies_ns: list[int] = []
    done = threading.Event()

    def echo(server: socket.socket) -> None:
        server.settimeout(UDP_SILENCE_S)
        while not done.is_set():
            try:
                server.send(server.recv(size))
            except TimeoutError:
                continue

    with ends.datagram_pair() as (client, server):
        client.settimeout(ECHO_PATIENCE_S)
        echoing = threading.Thread(target=echo, args=(server,), name="udp-echo", daemon=True)
        echoing.start()
        start_ns, before_ns = time.monotonic_ns(), time.thread_time_ns()
        for index in range(count):
            message = index.to_bytes(4, "big")[-size:].rjust(size, b"\0")
            begun_ns = time.monotonic_ns()
            client.send(message)
            try:
                while client.recv(size) != message:
                    pass  # skip an echo that arrives too late
            except TimeoutError:
                continue
            latencies_ns.append(time.monotonic_ns() - begun_ns)
        elapsed_ns, cpu_ns = time.monotonic_ns() - start_ns, time.thread_time_ns() - before_ns
        done.set()
        echoing.join()
    return Measured(
        elapsed_ns, 2 * size * len(latencies_ns), latencies_ns, ends.port, cpu_ns, {"lost_share": 1 - len(latencies_ns) / count}
    )


def _http(point: Point, ends: Ends) -> Measured:
    return _files(fetch_by_http(point, ends), int(point["transfer.file"]), ends)


def _ftp(point: Point, ends: Ends) -> Measured:
    return _files(fetch_by_ftp(point, ends), int(point["transfer.file"]), ends)


def _files(fetched: Mapping[str, list[int]], size: int, ends: Ends) -> Measured:
    """Return the measurements of a file transfer. `fetched` has the phases of Law's breakdown, with one duration per file for each."""
    latencies_ns = [sum(parts) for parts in zip(*fetched.values(), strict=True)]
    more = {name: sum(times) / len(times) for name, times in fetched.items()}
    return Measured(sum(latencies_ns), size * len(latencies_ns), latencies_ns, ends.port, None, more)


_KINDS: Mapping[str, Callable[[Point, Ends], Measured]] = {
    "bulk": _bulk,
    "exchange": _exchange,
    "echo": _echo,
    "udp": _udp,
    "udp-echo": _udp_echo,
    "http": _http,
    "ftp": _ftp,
}
