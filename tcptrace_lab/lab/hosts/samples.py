"""Samples TCP_INFO of both sockets of each connection, periodically and once at the end."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcptrace_lab.lab.hosts import tcp_info
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

KEPT = (
    "tcpi_state",
    "tcpi_ca_state",
    "tcpi_snd_cwnd",
    "tcpi_snd_ssthresh",
    "tcpi_snd_wnd",
    "tcpi_snd_mss",
    "tcpi_rtt",
    "tcpi_rttvar",
    "tcpi_min_rtt",
    "tcpi_rto",
    "tcpi_unacked",
    "tcpi_lost",
    "tcpi_total_retrans",
    "tcpi_notsent_bytes",
    "tcpi_bytes_sent",
    "tcpi_bytes_acked",
    "tcpi_bytes_received",
    "tcpi_bytes_retrans",
    "tcpi_delivery_rate",
    "tcpi_busy_time",
    "tcpi_rwnd_limited",
    "tcpi_sndbuf_limited",
)
"""Fields of TCP_INFO in the table. Times are in microseconds, as in the kernel."""


@dataclass(frozen=True, slots=True)
class Reading:
    """TCP_INFO of one socket at one time. `run` is the number of the transfer."""

    run: int
    side: str
    ts_ns: int
    raw: bytes

    def row(self) -> dict[str, Any]:
        """Return the reading as a row of the table."""
        decoded = tcp_info.decode(self.raw)
        return {"run": self.run, "side": self.side, "ts_ns": self.ts_ns} | {name: decoded.get(name) for name in KEPT}


class Samples:
    """Reads TCP_INFO of the added sockets periodically.

    Attributes:
        readings: all readings, in order of time.
        run: number of the current transfer.
    """

    def __init__(self, period_ns: int) -> None:
        self.readings: list[Reading] = []
        self.run = 0
        self._period_s = period_ns / NS_PER_S
        self._lock = threading.Lock()
        self._ends: dict[int, tuple[socket.socket, str, int]] = {}

    def add(self, end: socket.socket, side: str) -> None:
        """Start sampling this socket."""
        with self._lock:
            self._ends[id(end)] = end, side, self.run

    def remove(self, end: socket.socket) -> None:
        """Take the last sample of this socket. Must be called before the socket is closed."""
        with self._lock:
            found = self._ends.pop(id(end), None)
            if found is not None:
                self._read(*found)

    @contextmanager
    def running(self) -> Iterator[Samples]:
        """Sample during the block."""
        stop = threading.Event()
        thread = threading.Thread(target=self._loop, args=(stop,), name="samples", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            stop.set()
            thread.join()

    def _loop(self, stop: threading.Event) -> None:
        while not stop.wait(self._period_s):
            with self._lock:
                for found in self._ends.values():
                    self._read(*found)

    def _read(self, end: socket.socket, side: str, run: int) -> None:
        with suppress(OSError):  # the socket has been closed in the meantime
            self.readings.append(Reading(run, side, time.time_ns(), tcp_info.raw(end)))
