"""Conversations written by hand. They say which host sends which bytes, and when."""

from __future__ import annotations

from typing import Any

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

BASE_S = 1_700_000_000


class Talk:
    """Builds a capture of one connection with Scapy. Each call adds the data that a host sends at `at_ms`."""

    def __init__(self, server_port: int = 80, client_port: int = 40_000, client: str = "192.0.2.1", server: str = "192.0.2.2") -> None:
        self.frames: list[Any] = []
        self._ports = client_port, server_port
        self._hosts = client, server
        self._next = {True: 1_000, False: 5_000}

    def opened(self, at_ms: float = 0) -> Talk:
        """Add the three segments of the handshake."""
        self._add(at_ms, "S", b"", from_client=True)
        self._add(at_ms + 1, "SA", b"", from_client=False)
        return self._add(at_ms + 2, "A", b"", from_client=True)

    def asks(self, at_ms: float, data: bytes, **options: Any) -> Talk:
        """Add data of the client."""
        return self._add(at_ms, "PA", data, from_client=True, **options)

    def says(self, at_ms: float, data: bytes, **options: Any) -> Talk:
        """Add data of the server."""
        return self._add(at_ms, "PA", data, from_client=False, **options)

    def closed(self, at_ms: float) -> Talk:
        """Add the FINs of both hosts. The server's FIN is first."""
        self._add(at_ms, "FA", b"", from_client=False)
        self._add(at_ms + 1, "FA", b"", from_client=True)
        return self._add(at_ms + 2, "A", b"", from_client=False)

    def _add(self, at_ms: float, flags: str, data: bytes, *, from_client: bool, captured: bool = True) -> Talk:
        (source, target), (sport, dport) = (pair if from_client else pair[::-1] for pair in (self._hosts, self._ports))
        seq, ack = self._next[from_client], self._next[not from_client] if "A" in flags else 0
        frame = (
            Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
            / IP(src=source, dst=target)
            / TCP(sport=sport, dport=dport, seq=seq, ack=ack, flags=flags, window=60_000)
            / data
        )
        frame.time = BASE_S + at_ms / 1_000
        self._next[from_client] = seq + len(data) + ("S" in flags) + ("F" in flags)
        if captured:
            self.frames.append(frame)
        return self
