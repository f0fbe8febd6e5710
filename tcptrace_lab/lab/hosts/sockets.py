"""Sets the options of sockets on both hosts of a private network, connects and closes them, records pauses, and reads TCP_INFO."""

from __future__ import annotations

import fcntl
import socket
import struct
import time
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from tcptrace_lab.lab.hosts import tcp_info
from tcptrace_lab.lab.hosts.sender_limits import witnessing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.lab.hosts.sender_limits import Witness
    from tcptrace_lab.lab.networks.network import Network

SIOCOUTQ = 0x5411  # linux/sockios.h: unacknowledged bytes in the send queue, including unsent bytes
SOCKET_TIMEOUT_S = 10.0
ACKNOWLEDGE_POLL_S = 0.001
FIRST_CLIENT_PORT, SERVER_PORT, CLOSED_PORT = 40_001, 5_001, 5_999
READ_BYTES = 65_536
# struct linger {on, seconds}: with 0 seconds, close() sends a RST
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class SocketOptions:
    """Socket options that are set before connect or listen. None keeps the kernel's default.

    `receive_buffer_bytes` is the SO_RCVBUF that the server requests, and `send_buffer_bytes` the SO_SNDBUF that the client requests. With
    `both_ends`, both hosts request these values. The kernel doubles each value to make room for its bookkeeping.
    """

    congestion_control: str = "cubic"
    nodelay: bool = False
    receive_buffer_bytes: int | None = None
    send_buffer_bytes: int | None = None
    both_ends: bool = False

    def describe(self) -> dict[str, object]:
        """Return the options under their names in the socket API."""
        values = asdict(self)
        both = values.pop("both_ends")
        names = {
            "congestion_control": "TCP_CONGESTION",
            "nodelay": "TCP_NODELAY",
            "receive_buffer_bytes": f"SO_RCVBUF ({'both ends' if both else 'server'}, requested)",
            "send_buffer_bytes": f"SO_SNDBUF ({'both ends' if both else 'client'}, requested)",
        }
        return {names[key]: value for key, value in values.items() if value is not None}

    def apply(self, end: socket.socket, *, is_server: bool) -> None:
        """Set the options on a new socket. On a UDP socket, only the buffer sizes are set."""
        end.settimeout(SOCKET_TIMEOUT_S)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if end.type is socket.SOCK_STREAM:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.congestion_control.encode())
            if self.nodelay:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if (is_server or self.both_ends) and self.receive_buffer_bytes is not None:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer_bytes)
        if (not is_server or self.both_ends) and self.send_buffer_bytes is not None:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_buffer_bytes)


@dataclass(frozen=True, slots=True)
class Pair:
    """Both sockets of one connection.

    Attributes:
        spent: (what, from, to) intervals of the applications, in ns of the monotonic clock. `what` is `application` (the client sleeps),
            `peer` (the server sleeps before it answers) or `blocked` (the client could write, but waits because of its own limit).
    """

    client: socket.socket
    server: socket.socket
    spent: list[tuple[str, int, int]] = field(default_factory=list)

    def pause(self, what: str, seconds: float) -> None:
        """Sleep, and record the interval."""
        if seconds > 0:
            with self.spending(what):
                time.sleep(seconds)

    @contextmanager
    def spending(self, what: str) -> Iterator[None]:
        """Record the duration of the block as an interval named `what`."""
        start_ns = time.monotonic_ns()
        yield
        self.spent.append((what, start_ns, time.monotonic_ns()))

    def abort(self) -> None:
        """Shut both sockets down, so that blocked reads and writes return or fail in every thread."""
        for end in (self.client, self.server):
            with suppress(OSError):  # the socket is already disconnected
                end.shutdown(socket.SHUT_RDWR)


class Meeting:
    """Creates connections over a network, closes them, and records TCP_INFO of each connection.

    Attributes:
        accounts: addresses and TCP_INFO of both sockets of each connection, read after the last ACK and before the close.
        ended: number of connections that have ended, including refused ones.
        witnesses: one for each connection, if requested.
    """

    def __init__(self, network: Network, options: SocketOptions, *, witnessed: bool = False) -> None:
        self.accounts: list[dict[str, object]] = []
        self.witnesses: list[Witness] = []
        self._witnessed = witnessed
        self.ended = 0
        self._network = network
        self._options = options
        self._next_port = FIRST_CLIENT_PORT

    @property
    def options(self) -> SocketOptions:
        """Return the options of the sockets."""
        return self._options

    @property
    def network(self) -> Network:
        """Return the network of the sockets."""
        return self._network

    @contextmanager
    def connection(self, *, reset: bool = False, reuse_ports: bool = False, options: SocketOptions | None = None) -> Iterator[Pair]:
        """Yield a new connection. At the end of the block, the client closes it with a FIN; if `reset` is True, with a RST.

        All connections with `reuse_ports` use the same ports. `options` apply only to this connection.
        """
        port = self._port(reuse_ports=reuse_ports)
        client = self._socket(is_server=False, options=options)
        with client:
            with self._socket(is_server=True, options=options) as listener:
                listener.bind((self._network.server_address, SERVER_PORT))
                listener.listen(1)
                client.bind((self._network.client_address, port))
                client.connect((self._network.server_address, SERVER_PORT))
                server, _ = listener.accept()
            server.settimeout(SOCKET_TIMEOUT_S)
            with server:
                pair = Pair(client, server)
                with ExitStack() as stack:
                    if self._witnessed:
                        self.witnesses.append(stack.enter_context(witnessing(pair)))
                    stack.enter_context(self.watching(pair))
                    yield pair
                    for end in (client, server):
                        await_acknowledged(end)
                self.accounts.append(account(pair))
                self._close(pair, reset=reset)
        self.ended += 1

    def watching(self, pair: Pair) -> AbstractContextManager[object]:
        """Return a context that is active while a connection is used. Here, it does nothing; subclasses override this method."""
        return nullcontext(pair)

    def refused(self) -> None:
        """Connect to a port on which nothing listens."""
        with self._socket(is_server=False) as client:
            client.bind((self._network.client_address, self._port(reuse_ports=False)))
            try:
                client.connect((self._network.server_address, CLOSED_PORT))
            except ConnectionRefusedError:
                self.ended += 1
                return
        raise RuntimeError(f"port {CLOSED_PORT} was expected to be closed")

    def _port(self, *, reuse_ports: bool) -> int:
        if reuse_ports:
            return FIRST_CLIENT_PORT - 1
        self._next_port += 1
        return self._next_port - 1

    def _socket(
        self, *, is_server: bool, kind: socket.SocketKind = socket.SOCK_STREAM, options: SocketOptions | None = None
    ) -> socket.socket:
        space = self._network.server if is_server else self._network.client
        family = socket.AF_INET6 if ":" in self._network.client_address else socket.AF_INET
        with space.entered():
            end = socket.socket(family, kind)
        (options or self._options).apply(end, is_server=is_server)
        return end

    @staticmethod
    def _close(pair: Pair, *, reset: bool) -> None:
        """Close the client's socket first. Close the server's socket when it has read the client's FIN."""
        if reset:
            pair.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            pair.client.close()
            try:
                pair.server.recv(READ_BYTES)
            except ConnectionResetError:
                return
            raise ValueError("data or FIN received where a RST was expected")
        pair.client.shutdown(socket.SHUT_WR)
        expect_end(pair.server)
        pair.server.close()
        expect_end(pair.client)


def account(pair: Pair) -> dict[str, object]:
    """Return addresses and TCP_INFO of both ends."""
    return {
        side: {"addr": end.getsockname()[0], "port": end.getsockname()[1], "tcp_info": tcp_info.read(end)}
        for side, end in (("client", pair.client), ("server", pair.server))
    }


def unacknowledged_bytes(end: socket.socket) -> int:
    """Return the number of written bytes that the peer has not acknowledged."""
    (value,) = struct.unpack("i", fcntl.ioctl(end, SIOCOUTQ, bytes(4)))
    return int(value)


def await_acknowledged(end: socket.socket) -> None:
    """Wait until the peer has acknowledged all written bytes."""
    deadline_s = time.monotonic() + SOCKET_TIMEOUT_S
    while unacknowledged_bytes(end):
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{unacknowledged_bytes(end)} bytes are still not acknowledged after {SOCKET_TIMEOUT_S:.0f} s")
        time.sleep(ACKNOWLEDGE_POLL_S)


def receive_exactly(end: socket.socket, count: int, *, quickack: bool = False) -> None:
    """Read and discard `count` bytes. With `quickack`, the kernel acknowledges each arriving segment at once."""
    if quickack:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    while count > 0:
        data = end.recv(min(count, READ_BYTES))
        if quickack:  # the kernel resets TCP_QUICKACK (tcp(7)), so each read sets it again
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        if not data:
            raise EOFError(f"the peer closed before it sent the last {count} bytes")
        count -= len(data)


def expect_end(end: socket.socket) -> None:
    """Read the peer's FIN."""
    if data := end.recv(READ_BYTES):
        raise ValueError(f"{len(data)} bytes received where a FIN was expected")
