"""Decisions of MD-DOS/IP, IBM's TCP for PC and PS/2 (Abrams & Chen 1991; Chen 1992), as far as their traces show them.

What they do not show and had to be assumed: how long the segment's flush timer is (it must be longer than the time between two writes), and
the delay of an ACK that waits for a second segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.stacks.events import NS_PER_MS

if TYPE_CHECKING:
    from tcptrace_lab.stacks.endpoint import Endpoint

FLUSH_NS = 100 * NS_PER_MS
"""The segment flush timer (assumed)."""

DELAYED_ACK_NS = 200 * NS_PER_MS
"""An ACK waits so long for a second segment (assumed)."""

SEGMENTS_PER_ACK = 2
"""Section 3.3: one ACK for every two datagrams."""


class Socket:
    """The buffer between program and TCP holds what was not sent yet; a write waits until all of it has room."""

    __slots__ = ("_tcp",)

    def __init__(self, tcp: Endpoint) -> None:
        self._tcp = tcp

    def room(self) -> int:
        """What was sent does not count."""
        return self._tcp.send_buffer - self._tcp.queued

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:
        """There is less room than the write needs, and something in the buffer."""
        return space < remaining and buffered > 0

    def takes(self, space: int, remaining: int) -> tuple[int, int]:
        """All that there is room for."""
        return min(space, remaining), 1

    def full(self) -> None:
        """The program sleeps."""


class Sender:
    """A segment waits to be filled, or for its flush timer; if more is queued than the window takes, what it takes goes."""

    __slots__ = ("_due_ns",)

    def __init__(self, _tcp: Endpoint) -> None:
        self._due_ns: int | None = None

    def length(self, tcp: Endpoint, queued: int, usable: int, idle: bool) -> int:  # noqa: ARG002, FBT001 - the protocol's
        """A full segment, or the rest of the window if more than that waits; all there is after the timer."""
        length = min(queued, usable, tcp.mss)
        if length <= 0:
            tcp.held = tcp.window_cause()
            return 0
        now_ns = tcp.clock.now_ns
        if length == tcp.mss or length < queued or tcp.no_delay or tcp.resending or (self._due_ns is not None and self._due_ns <= now_ns):
            return length
        if self._due_ns is None:
            self._due_ns = now_ns + FLUSH_NS
            tcp.clock.at(self._due_ns, self._flush, tcp, self._due_ns)
        tcp.held = "nagle"
        return 0

    def sent(self, tcp: Endpoint, length: int) -> None:  # noqa: ARG002 - the protocol's
        """What waits behind it waits anew."""
        self._due_ns = None

    def _flush(self, tcp: Endpoint, due_ns: int) -> None:
        if self._due_ns == due_ns:
            tcp.output()


class Receiver:
    """An ACK for every second segment, or when the window is used up, once the program has taken the data."""

    __slots__ = ("_segments",)

    def __init__(self, _tcp: Endpoint) -> None:
        self._segments = 0

    def arrived(self, tcp: Endpoint, length: int, pushed: bool) -> None:  # noqa: ARG002, FBT001 - the protocol's
        """Count."""
        self._segments += 1
        tcp.delay_ack(tcp.clock.now_ns + DELAYED_ACK_NS)

    def read(self, tcp: Endpoint) -> None:
        """The program has taken data."""
        closed = tcp.advertised <= tcp.rcv_nxt
        if not tcp.unread and (closed or (tcp.ack_owed and self._segments >= SEGMENTS_PER_ACK)):
            tcp.ack_now = True
            tcp.output()

    def update_due(self, tcp: Endpoint) -> bool:  # noqa: ARG002 - the protocol's
        """Windows travel with ACKs alone."""
        return False

    def window(self, tcp: Endpoint) -> int:
        """The room there is (section 2.2.1)."""
        return max(tcp.receive_buffer - tcp.unread, tcp.advertised - tcp.rcv_nxt)

    def sent(self, tcp: Endpoint, length: int) -> None:  # noqa: ARG002 - the protocol's
        """Count anew."""
        self._segments = 0

    def timer(self, tcp: Endpoint) -> None:
        """No second segment came."""
        tcp.ack_now = True
        tcp.output()
