"""Rules of MD-DOS/IP, IBM's TCP for PC and PS/2, as far as published traces show them (Abrams & Chen 1991; Chen 1992).

The traces do not show two times, so these are assumed: first, the flush timer of segments, which is longer than the time between two
writes; second, the delay of an ACK that waits for a second segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.stacks.events import NS_PER_MS

if TYPE_CHECKING:
    from tcptrace_lab.stacks.endpoint import Endpoint

FLUSH_NS = 100 * NS_PER_MS
"""Flush timer of segments: how long a small segment waits for more bytes (assumed)."""

DELAYED_ACK_NS = 200 * NS_PER_MS
"""Delayed-ACK timer: how long an ACK waits for a second segment (assumed)."""

SEGMENTS_PER_ACK = 2
"""One ACK for every two datagrams (Abrams & Chen, section 3.3)."""


class Socket:
    """The buffer between application and TCP contains only unsent data. A write waits until all of its bytes fit."""

    __slots__ = ("_tcp",)

    def __init__(self, tcp: Endpoint) -> None:
        self._tcp = tcp

    def room(self) -> int:
        """Return the free bytes. Sent data has left the buffer."""
        return self._tcp.send_buffer - self._tcp.queued

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:
        """True if the write does not fit, and the buffer is not empty."""
        return space < remaining and buffered > 0

    def takes(self, space: int, remaining: int) -> tuple[int, int]:
        """Return all bytes that fit the send buffer."""
        return min(space, remaining), 1

    def full(self) -> None:
        """Do nothing before the application sleeps."""


class Sender:
    """Delays a segment until it is full, or until its flush timer expires. If the window allows only some queued bytes, these are sent."""

    __slots__ = ("_due_ns",)

    def __init__(self, _tcp: Endpoint) -> None:
        self._due_ns: int | None = None

    def length(self, tcp: Endpoint, queued: int, usable: int, idle: bool) -> int:  # noqa: ARG002, FBT001 - required by the Protocol
        """Allow a full segment, or the rest of the window if more is queued.

        After the flush timer, allow all bytes that the window allows.
        """
        length = min(queued, usable, tcp.mss)
        if length <= 0:
            tcp.blocked_by = tcp.window_cause()
            return 0
        now_ns = tcp.clock.now_ns
        if length == tcp.mss or length < queued or tcp.no_delay or tcp.resending or (self._due_ns is not None and self._due_ns <= now_ns):
            return length
        if self._due_ns is None:
            self._due_ns = now_ns + FLUSH_NS
            tcp.clock.at(self._due_ns, self._flush, tcp, self._due_ns)
        tcp.blocked_by = "nagle"
        return 0

    def sent(self, tcp: Endpoint, length: int) -> None:  # noqa: ARG002 - required by the Protocol
        """Stop the flush timer. Remaining data in the queue starts a new timer."""
        self._due_ns = None

    def _flush(self, tcp: Endpoint, due_ns: int) -> None:
        if self._due_ns == due_ns:
            tcp.output()


class Receiver:
    """Sends an ACK for every second segment, or when the window is used up, but only when the application has read all data."""

    __slots__ = ("_segments",)

    def __init__(self, _tcp: Endpoint) -> None:
        self._segments = 0

    def arrived(self, tcp: Endpoint, length: int, pushed: bool) -> None:  # noqa: ARG002, FBT001 - required by the Protocol
        """Count the segment, and start the delayed-ACK timer."""
        self._segments += 1
        tcp.delay_ack(tcp.clock.now_ns + DELAYED_ACK_NS)

    def read(self, tcp: Endpoint) -> None:
        """If the application has read all data, send an ACK when two segments have arrived or the window is closed."""
        closed = tcp.advertised <= tcp.rcv_nxt
        if not tcp.unread and (closed or (tcp.ack_owed and self._segments >= SEGMENTS_PER_ACK)):
            tcp.ack_now = True
            tcp.output()

    def update_due(self, tcp: Endpoint) -> bool:  # noqa: ARG002 - required by the Protocol
        """Always False, because the window changes only with ACKs."""
        return False

    def window(self, tcp: Endpoint) -> int:
        """Return the free space, without shrinking the window (section 2.2.1)."""
        return max(tcp.receive_buffer - tcp.unread, tcp.advertised - tcp.rcv_nxt)

    def sent(self, tcp: Endpoint, length: int) -> None:  # noqa: ARG002 - required by the Protocol
        """Reset the count of segments, because the sent segment carried an ACK."""
        self._segments = 0

    def timer(self, tcp: Endpoint) -> None:
        """Send the ACK, because no second segment arrived."""
        tcp.ack_now = True
        tcp.output()
