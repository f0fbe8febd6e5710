"""Rules of FreeBSD 13 and later, and of Solaris 2.5.

The rules follow these sources; no code is copied: FreeBSD `sys/netinet/tcp_input.c` (`DELAY_ACK`), `tcp_output.c` (`tcp_default_output`),
`sys/kern/uipc_socket.c` (`sosend_generic_locked`). Solaris: the vendor's tunables (`tcp_deferred_ack_interval`, `tcp_deferred_acks_max`),
and Law's (1998) observations of its socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.stacks.events import NS_PER_MS
from tcptrace_lab.stacks.families.bsd import BsdReceiver, BsdSender

if TYPE_CHECKING:
    from tcptrace_lab.stacks.endpoint import Endpoint

FREEBSD_DELAY_NS = 40 * NS_PER_MS
"""Delayed-ACK timeout: `net.inet.tcp.delacktime` (100 ms before 2020)."""

FREEBSD_LOW_WATER_BYTES = 2048
"""A write that does not fit waits until this many bytes are free (`so_snd.sb_lowat`)."""

SOLARIS_DELAY_NS = 50 * NS_PER_MS
"""Delayed-ACK timeout: `tcp_deferred_ack_interval`."""

SOLARIS_SEGMENTS = 8
"""Number of full segments that one ACK covers on a LAN: `tcp_deferred_acks_max`."""


class FreeBsdSocket:
    """Each pass copies all bytes that fit."""

    __slots__ = ("_tcp",)

    def __init__(self, tcp: Endpoint) -> None:
        self._tcp = tcp

    def room(self) -> int:
        """Return the free bytes of the send buffer. Bytes leave the buffer when they are acknowledged."""
        return self._tcp.unacked_room()

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:  # noqa: ARG002 - required by the Protocol
        """True if the remaining bytes do not fit, and less than the low-water mark is free."""
        return space < remaining and space < min(FREEBSD_LOW_WATER_BYTES, self._tcp.send_buffer)

    def takes(self, space: int, remaining: int) -> tuple[int, int]:
        """Return all bytes that fit the send buffer (`m_uiotombuf`)."""
        return min(space, remaining), 1

    def full(self) -> None:
        """Do nothing before the application sleeps."""


class FreeBsdSender(BsdSender):
    """BSD's rule, with an addition: a small segment waits while its write call has more data, or while the socket is corked.

    Sources: `PRUS_MORETOCOME`, `TF_NOPUSH`.
    """

    __slots__ = ()

    def length(self, tcp: Endpoint, queued: int, usable: int, idle: bool) -> int:  # noqa: FBT001 - as in the TCP sources
        """Apply 4.4BSD's rule, but wait while more data will follow."""
        waits = tcp.cork or tcp.more_to_come
        if waits and queued <= usable and queued < min(tcp.mss, tcp.max_window // 2) and not (tcp.resending or tcp.ack_now):
            tcp.blocked_by = "nagle"
            return 0
        return super().length(tcp, queued, usable, idle)


class FreeBsdReceiver(BsdReceiver):
    """Sends an ACK when a second segment of any size arrives, or when a segment is longer than the MSS, or after 40 ms."""

    __slots__ = ()

    def __init__(self, _tcp: Endpoint | None = None) -> None:
        super().__init__(percent=50, empty=False)

    def arrived(self, tcp: Endpoint, length: int, pushed: bool) -> None:  # noqa: ARG002, FBT001 - required by the Protocol
        """Send an ACK at once, or start the 40 ms timer (`DELAY_ACK`)."""
        if tcp.ack_owed or length > tcp.mss or not tcp.window_advertised:
            tcp.ack_now = True
        else:
            tcp.delay_ack(tcp.clock.now_ns + FREEBSD_DELAY_NS)

    def update_due(self, tcp: Endpoint) -> bool:
        """True if the window opens by half of the buffer, or by two segments that are a large part of the buffer."""
        window = tcp.receive_buffer - tcp.unread
        gain = window - (tcp.advertised - tcp.rcv_nxt)
        if window <= 0 or gain <= 0:
            return False
        much = 4 * gain >= tcp.receive_buffer or 8 * window <= tcp.receive_buffer or tcp.receive_buffer <= 8 * tcp.mss
        return (gain >= 2 * tcp.mss and much) or 2 * gain >= tcp.receive_buffer


class SolarisSocket(FreeBsdSocket):
    """A STREAMS socket, which accepts data while the queue is below its high-water mark.

    The mark is a whole number of segments. For example, 8,192 bytes become 8,760 (Law).
    """

    __slots__ = ()

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:  # noqa: ARG002 - required by the Protocol
        """True if the queue has reached the high-water mark."""
        return space <= 0

    def takes(self, space: int, remaining: int) -> tuple[int, int]:  # noqa: ARG002 - required by the Protocol
        """Return one segment at a time, independent of the free space."""
        return min(self._tcp.mss, remaining), 1


class SolarisReceiver(FreeBsdReceiver):
    """Sends an ACK after eight full segments, or after 50 ms."""

    __slots__ = ("_unacked_bytes",)

    def __init__(self, _tcp: Endpoint | None = None) -> None:
        super().__init__()
        self._unacked_bytes = 0

    def arrived(self, tcp: Endpoint, length: int, pushed: bool) -> None:  # noqa: ARG002, FBT001 - required by the Protocol
        """Count unacknowledged bytes. Send an ACK at once after eight full segments."""
        self._unacked_bytes += length
        if self._unacked_bytes >= SOLARIS_SEGMENTS * tcp.mss:
            tcp.ack_now = True
        elif not tcp.ack_owed:
            tcp.delay_ack(tcp.clock.now_ns + SOLARIS_DELAY_NS)

    def sent(self, tcp: Endpoint, length: int) -> None:  # noqa: ARG002 - required by the Protocol
        """Reset the count of bytes, because the sent segment carried an ACK."""
        self._unacked_bytes = 0
