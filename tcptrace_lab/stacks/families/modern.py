"""Decisions of FreeBSD (13 and later) and of Solaris 2.5.

Followed, not copied: FreeBSD `sys/netinet/tcp_input.c` (`DELAY_ACK`), `tcp_output.c` (`tcp_default_output`), `sys/kern/uipc_socket.c`
(`sosend_generic_locked`). Solaris: the vendor's tunables (`tcp_deferred_ack_interval`, `tcp_deferred_acks_max`), and what Law (1998)
observed of its socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.stacks.events import NS_PER_MS
from tcptrace_lab.stacks.families.bsd import BsdReceiver, BsdSender

if TYPE_CHECKING:
    from tcptrace_lab.stacks.endpoint import Endpoint

FREEBSD_DELAY_NS = 40 * NS_PER_MS
"""`net.inet.tcp.delacktime` (100 ms before 2020)."""

FREEBSD_LOW_WATER_BYTES = 2048
"""A write that does not fit waits for so much room (`so_snd.sb_lowat`)."""

SOLARIS_DELAY_NS = 50 * NS_PER_MS
"""`tcp_deferred_ack_interval`."""

SOLARIS_SEGMENTS = 8
"""`tcp_deferred_acks_max`: on a LAN so many segments are acknowledged at once."""


class FreeBsdSocket:
    """All that fits is copied at once."""

    __slots__ = ("_tcp",)

    def __init__(self, tcp: Endpoint) -> None:
        self._tcp = tcp

    def room(self) -> int:
        """What is not acknowledged counts."""
        return self._tcp.unacked_room()

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:  # noqa: ARG002 - the protocol's
        """The rest does not fit, and there is less room than the low-water mark."""
        return space < remaining and space < min(FREEBSD_LOW_WATER_BYTES, self._tcp.send_buffer)

    def takes(self, space: int, remaining: int) -> tuple[int, int]:
        """`m_uiotombuf` of the room there is."""
        return min(space, remaining), 1

    def full(self) -> None:
        """The program sleeps."""


class FreeBsdSender(BsdSender):
    """The BSD rule; a small segment also waits while the same write brings more, and while corked (`PRUS_MORETOCOME`, `TF_NOPUSH`)."""

    __slots__ = ()

    def length(self, tcp: Endpoint, queued: int, usable: int, idle: bool) -> int:  # noqa: FBT001 - as in the sources
        """As 4.4BSD but for what is to come."""
        waits = tcp.cork or tcp.more_to_come
        if waits and queued <= usable and queued < min(tcp.mss, tcp.max_window // 2) and not (tcp.resending or tcp.ack_now):
            tcp.held = "nagle"
            return 0
        return super().length(tcp, queued, usable, idle)


class FreeBsdReceiver(BsdReceiver):
    """The second segment of any size, one longer than the MSS, or 40 ms."""

    __slots__ = ()

    def __init__(self, _tcp: Endpoint | None = None) -> None:
        super().__init__(percent=50, empty=False)

    def arrived(self, tcp: Endpoint, length: int, pushed: bool) -> None:  # noqa: ARG002, FBT001 - the protocol's
        """`DELAY_ACK`."""
        if tcp.ack_owed or length > tcp.mss or not tcp.window_told:
            tcp.ack_now = True
        else:
            tcp.delay_ack(tcp.clock.now_ns + FREEBSD_DELAY_NS)

    def update_due(self, tcp: Endpoint) -> bool:
        """Two segments, if that is much for this buffer, or half of it."""
        window = tcp.receive_buffer - tcp.unread
        gain = window - (tcp.advertised - tcp.rcv_nxt)
        if window <= 0 or gain <= 0:
            return False
        much = 4 * gain >= tcp.receive_buffer or 8 * window <= tcp.receive_buffer or tcp.receive_buffer <= 8 * tcp.mss
        return (gain >= 2 * tcp.mss and much) or 2 * gain >= tcp.receive_buffer


class SolarisSocket(FreeBsdSocket):
    """STREAMS: a write goes in whole while the queue is below its mark, which is whole segments (8,760 of 8,192: Law)."""

    __slots__ = ()

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:  # noqa: ARG002 - the protocol's
        """The mark is reached."""
        return space <= 0

    def takes(self, space: int, remaining: int) -> tuple[int, int]:  # noqa: ARG002 - the protocol's
        """A segment's worth at a time, whatever room there is."""
        return min(self._tcp.mss, remaining), 1


class SolarisReceiver(FreeBsdReceiver):
    """Eight full segments, or 50 ms."""

    __slots__ = ("_unacked_bytes",)

    def __init__(self, _tcp: Endpoint | None = None) -> None:
        super().__init__()
        self._unacked_bytes = 0

    def arrived(self, tcp: Endpoint, length: int, pushed: bool) -> None:  # noqa: ARG002, FBT001 - the protocol's
        """Count bytes."""
        self._unacked_bytes += length
        if self._unacked_bytes >= SOLARIS_SEGMENTS * tcp.mss:
            tcp.ack_now = True
        elif not tcp.ack_owed:
            tcp.delay_ack(tcp.clock.now_ns + SOLARIS_DELAY_NS)

    def sent(self, tcp: Endpoint, length: int) -> None:  # noqa: ARG002 - the protocol's
        """Count anew."""
        self._unacked_bytes = 0
