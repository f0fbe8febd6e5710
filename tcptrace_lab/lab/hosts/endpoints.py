"""Sockets of both hosts in an experiment's network.

The sockets have the options of one point of the experiment. Their TCP_INFO is sampled while they are used.
"""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tcptrace_lab.lab.hosts.sockets import FIRST_CLIENT_PORT, SERVER_PORT, Meeting, SocketOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from itertools import count

    from tcptrace_lab.lab.hosts.samples import Samples
    from tcptrace_lab.lab.hosts.sockets import Pair
    from tcptrace_lab.lab.networks.network import Network

MARK_PORT = 5_998
MARK_BYTES = 16
MARK_TRIES, MARK_PATIENCE_S = 50, 0.2
"""Number of attempts to send a mark over a lossy path, and time to wait after each attempt, in seconds."""

_LAST_PORT = 60_000


class Ends(Meeting):
    """Creates sockets in a network. Each connection has its own client port, so that it can be found in the captures."""

    def __init__(self, network: Network, options: SocketOptions, samples: Samples, ports: count[int]) -> None:
        super().__init__(network, options)
        self.samples = samples
        self._ports = ports
        self.port = FIRST_CLIENT_PORT

    @contextmanager
    def watching(self, pair: Pair) -> Iterator[Pair]:
        """Sample both sockets of a connection during the block."""
        with self.sampled(pair.client, "client"), self.sampled(pair.server, "server"):
            yield pair

    @contextmanager
    def sampled(self, end: socket.socket, side: str) -> Iterator[socket.socket]:
        """Sample one socket during the block."""
        self.samples.add(end, side)
        try:
            yield end
        finally:
            self.samples.remove(end)

    def listener(self, port: int = SERVER_PORT) -> socket.socket:
        """Return a listening socket of the server."""
        listener = self._socket(is_server=True)
        listener.bind((self.network.server_address, port))
        listener.listen(16)
        return listener

    def dialled(self, port: int = SERVER_PORT) -> socket.socket:
        """Return a client socket that is connected to the server, and set `self.port` to its local port."""
        client = self._socket(is_server=False)
        try:
            client.bind((self.network.client_address, self._port(reuse_ports=False)))
            client.connect((self.network.server_address, port))
        except OSError:
            client.close()
            raise
        return client

    @contextmanager
    def datagram_pair(self) -> Iterator[tuple[socket.socket, socket.socket]]:
        """Yield two UDP sockets that are connected to each other: (client's, server's)."""
        with (
            self._socket(is_server=False, kind=socket.SOCK_DGRAM) as client,
            self._socket(is_server=True, kind=socket.SOCK_DGRAM) as server,
        ):
            client.bind((self.network.client_address, self._port(reuse_ports=False)))
            server.bind((self.network.server_address, SERVER_PORT))
            client.connect(server.getsockname())
            server.connect(client.getsockname())
            yield client, server

    def mark(self, seen: Callable[[bytes], bool]) -> None:
        """Send unique bytes in both directions until the captures contain them, as `seen` reports.

        Then all earlier packets have also been captured.

        Raises:
            TimeoutError: the captures do not contain the bytes in time.
        """
        token = os.urandom(MARK_BYTES)
        with (
            self._socket(is_server=False, kind=socket.SOCK_DGRAM) as client,
            self._socket(is_server=True, kind=socket.SOCK_DGRAM) as server,
        ):
            client.bind((self.network.client_address, MARK_PORT))
            server.bind((self.network.server_address, MARK_PORT + 1))
            for end in (client, server):
                end.settimeout(MARK_PATIENCE_S)
            for _ in range(MARK_TRIES):
                try:
                    client.sendto(token, server.getsockname())
                    server.recv(MARK_BYTES)
                    server.sendto(token, client.getsockname())
                    client.recv(MARK_BYTES)
                except TimeoutError:
                    continue
                if seen(token):
                    return
        raise TimeoutError("the captures do not contain the bytes that were sent last")

    def _port(self, *, reuse_ports: bool) -> int:
        self.port = (
            super()._port(reuse_ports=True) if reuse_ports else FIRST_CLIENT_PORT + next(self._ports) % (_LAST_PORT - FIRST_CLIENT_PORT)
        )
        return self.port
