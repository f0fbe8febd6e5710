"""Rules of the BSD family: 4.2BSD, SunOS 4.1 (4.3BSD-Tahoe), 4.4BSD and its descendants.

The rules follow these sources; no code is copied: SunOS 4.1.3 `sys/os/uipc_socket.c` (`sosend`), `sys/netinet/tcp_output.c` (`tcp_output`),
`tcp_input.c`, `tcp_timer.c` (`tcp_fasttimo`); the corresponding files of 4.2BSD and 4.4BSD-Lite (CSRG archive).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.stacks.ranges import (
    BSD44_MBUF_BYTES,
    BSD44_MIN_CLUSTER_BYTES,
    CLUSTER_BYTES,
    SEND_CHUNK_BYTES,
)
from tcptrace_lab.stacks.rounding import BSD44_CLUSTER_BYTES
from tcptrace_lab.stacks.thresholds import BSD44_PERCENT, SUNOS_PERCENT

if TYPE_CHECKING:
    from tcptrace_lab.stacks.endpoint import Endpoint

SMALL_MBUF_BYTES = 112
"""Bytes of data in an mbuf without a cluster, 4.2BSD and SunOS 4.1 (`MLEN`)."""


class SunOsSocket:
    """SunOS 4.1: each pass copies up to four clusters. A large write waits for a free cluster."""

    __slots__ = ("_chunk_bytes", "_tcp")

    def __init__(self, tcp: Endpoint, chunk_bytes: int = SEND_CHUNK_BYTES) -> None:
        self._tcp = tcp
        self._chunk_bytes = chunk_bytes

    def room(self) -> int:
        """Return the free bytes of the send buffer. Bytes leave the buffer when they are acknowledged."""
        return self._tcp.unacked_room()

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:
        """True if no byte is free. A large write also blocks while less than a cluster is free (`sosend`).

        A write is large if at least one cluster remains to be written, and at least one cluster is already buffered.
        """
        return space <= 0 or (remaining >= CLUSTER_BYTES and space < CLUSTER_BYTES <= buffered)

    def takes(self, space: int, remaining: int) -> tuple[int, int]:
        """Return up to a chunk, limited by free space and remaining bytes.

        These bytes fill clusters. The rest, which is less than a cluster, fills small mbufs.
        """
        taken = min(space, remaining, self._chunk_bytes)
        clusters, rest = divmod(taken, CLUSTER_BYTES)
        return taken, clusters + -(-rest // SMALL_MBUF_BYTES)

    def full(self) -> None:
        """Do nothing before the application sleeps."""


class Bsd42Socket(SunOsSocket):
    """4.2BSD: if any byte is free, the whole write is buffered. The write fills clusters only if a cluster is free (`sosend`)."""

    __slots__ = ()

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:  # noqa: ARG002 - required by the Protocol
        """True only if no byte is free."""
        return space <= 0

    def takes(self, space: int, remaining: int) -> tuple[int, int]:
        """Return the whole write, even if it is larger than the free space."""
        clusters = remaining // CLUSTER_BYTES if space >= CLUSTER_BYTES else 0
        return remaining, clusters + -(-(remaining - clusters * CLUSTER_BYTES) // SMALL_MBUF_BYTES)


class Bsd44Socket(SunOsSocket):
    """4.4BSD: each pass copies one mbuf or cluster. A write that does not fit waits for the low-water mark (`sosend`, `sb_lowat`)."""

    __slots__ = ()

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:  # noqa: ARG002 - required by the Protocol
        """True if the remaining bytes do not fit, and less than the low-water mark is free."""
        return space < remaining and space < min(BSD44_CLUSTER_BYTES, self._tcp.send_buffer)

    def takes(self, space: int, remaining: int) -> tuple[int, int]:
        """Return a cluster if enough bytes remain and a cluster is free, else a small mbuf."""
        if remaining >= BSD44_MIN_CLUSTER_BYTES and space >= BSD44_CLUSTER_BYTES:
            return min(remaining, BSD44_CLUSTER_BYTES), 1
        return min(remaining, space, BSD44_MBUF_BYTES), 1


class BsdSender:
    """SunOS 4.1, 4.3BSD-Tahoe, 4.4BSD (`tcp_output`): Nagle's algorithm with BSD's exceptions.

    A full segment is sent, and also a segment of at least half of the largest window. A segment with all queued bytes is sent if nothing is
    in flight, or if TCP_NODELAY is set.

    Attributes:
        half: True if a segment of half of the largest window is sent.
    """

    __slots__ = ("half",)

    def __init__(self, _tcp: Endpoint | None = None, *, half: bool = True) -> None:
        self.half = half

    def length(self, tcp: Endpoint, queued: int, usable: int, idle: bool) -> int:  # noqa: FBT001 - as in the TCP sources
        """Apply Nagle's algorithm and sender-side silly window avoidance. If an ACK is due now, data is sent with it."""
        mss = tcp.mss
        length = min(queued, usable, mss)
        if length <= 0:
            tcp.blocked_by = tcp.window_cause()
            return 0
        if length == mss or (length == queued and (idle or tcp.no_delay)) or tcp.resending or tcp.ack_now:
            return length
        if self.half and length >= tcp.max_window // 2:
            return length
        tcp.blocked_by = "nagle" if length == queued else tcp.window_cause()
        return 0

    def sent(self, tcp: Endpoint, length: int) -> None:
        """Do nothing, because this stack needs no record of sent segments."""


class Bsd42Sender(BsdSender):
    """4.2BSD, before Nagle's algorithm: a segment with all queued bytes, or with a quarter of the window, is sent (`tcp_output` 6.1)."""

    __slots__ = ()

    def length(self, tcp: Endpoint, queued: int, usable: int, idle: bool) -> int:  # noqa: ARG002, FBT001 - required by the Protocol
        """Allow a full segment, all queued bytes, or a quarter of the window."""
        length = min(queued, usable, tcp.mss)
        much = 4 * length >= tcp.snd_edge - tcp.snd_una
        if length > 0 and (length in (tcp.mss, queued) or much or tcp.resending or tcp.ack_now):
            return length
        tcp.blocked_by = tcp.window_cause()
        return 0


class BsdReceiver:
    """Delays an ACK until the next 200 ms tick, or until reads have opened the window far enough (`tcp_output`, `tcp_fasttimo`).

    Attributes:
        percent: share of the receive buffer by which the window must open for an update.
        segments: number of full segments by which the window must open for an update; 0: there is no such rule.
        empty: True if the rule about segments requires an empty receive buffer (not in 4.4BSD).
    """

    __slots__ = ("empty", "percent", "segments")

    def __init__(self, _tcp: Endpoint | None = None, percent: int = SUNOS_PERCENT, segments: int = 2, *, empty: bool = True) -> None:
        self.percent = percent
        self.segments = segments
        self.empty = empty

    def arrived(self, tcp: Endpoint, length: int, pushed: bool) -> None:  # noqa: ARG002, FBT001 - required by the Protocol
        """Delay the ACK until the next 200 ms tick."""
        tcp.delay_ack()

    def read(self, tcp: Endpoint) -> None:
        """Call `output` for a window update (`PRU_RCVD`)."""
        tcp.output()

    def update_due(self, tcp: Endpoint) -> bool:
        """True if the window opens by `segments` full segments, or by `percent` of the buffer."""
        window = tcp.receive_buffer - tcp.unread
        gain = window - (tcp.advertised - tcp.rcv_nxt)
        if window <= 0 or gain <= 0:
            return False
        if self.segments and gain >= self.segments * tcp.mss and not (self.empty and tcp.unread):
            return True
        return bool(self.percent) and 100 * gain >= self.percent * tcp.receive_buffer

    def window(self, tcp: Endpoint) -> int:
        """Return the free space; the window never shrinks.

        The window is zero if less than a quarter of the buffer, and less than a segment, is free.
        """
        window = tcp.receive_buffer - tcp.unread
        if 4 * window < tcp.receive_buffer and window < tcp.mss:
            window = 0
        return max(window, tcp.advertised - tcp.rcv_nxt)

    def sent(self, tcp: Endpoint, length: int) -> None:
        """Do nothing, because this stack needs no record of sent segments."""

    def timer(self, tcp: Endpoint) -> None:
        """Send the delayed ACK (`tcp_fasttimo`)."""
        tcp.ack_now = True
        tcp.output()


class Bsd44Receiver(BsdReceiver):
    """4.4BSD: a window update is sent if the window opens by half of the buffer, or by two segments (even with unread data)."""

    __slots__ = ()

    def __init__(self, _tcp: Endpoint | None = None) -> None:
        super().__init__(percent=BSD44_PERCENT, empty=False)


class Bsd42Receiver(BsdReceiver):
    """4.2BSD: only a share of the buffer triggers a window update. Less than a quarter of the buffer is advertised as zero.

    Source: `tcp_output` 6.1.
    """

    __slots__ = ()

    def __init__(self, _tcp: Endpoint | None = None) -> None:
        super().__init__(segments=0)

    def window(self, tcp: Endpoint) -> int:
        """Return the free space, or zero if less than a quarter of the buffer is free. This window can shrink."""
        room = tcp.receive_buffer - tcp.unread
        return 0 if 4 * room < tcp.receive_buffer else room
