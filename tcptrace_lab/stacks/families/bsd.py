"""Decisions of the BSD family: 4.2BSD, SunOS 4.1 (4.3BSD-Tahoe), 4.4BSD and what came of it.

Followed, not copied: SunOS 4.1.3 `sys/os/uipc_socket.c` (`sosend`), `sys/netinet/tcp_output.c` (`tcp_output`), `tcp_input.c`, `tcp_timer.c`
(`tcp_fasttimo`); 4.2BSD and 4.4BSD-Lite the same files (CSRG archive).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.stacks.ranges import (
    BSD44_LEAST_CLUSTER_BYTES,
    BSD44_MBUF_BYTES,
    CLUSTER_BYTES,
    SEND_CHUNK_BYTES,
)
from tcptrace_lab.stacks.rounding import BSD44_CLUSTER_BYTES
from tcptrace_lab.stacks.thresholds import BSD44_PERCENT, SUNOS_PERCENT

if TYPE_CHECKING:
    from tcptrace_lab.stacks.endpoint import Endpoint

SMALL_MBUF_BYTES = 112
"""Data in an mbuf without a cluster, 4.2BSD and SunOS 4.1 (`MLEN`)."""


class SunOsSocket:
    """SunOS 4.1: four clusters a turn; a large write does not start on less than a cluster."""

    __slots__ = ("_chunk_bytes", "_tcp")

    def __init__(self, tcp: Endpoint, chunk_bytes: int = SEND_CHUNK_BYTES) -> None:
        self._tcp = tcp
        self._chunk_bytes = chunk_bytes

    def room(self) -> int:
        """What is not acknowledged counts."""
        return self._tcp.unacked_room()

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:
        """As `sosend`: no room, or less than a cluster of room for a write of at least one behind at least one."""
        return space <= 0 or (remaining >= CLUSTER_BYTES and space < CLUSTER_BYTES <= buffered)

    def takes(self, space: int, remaining: int) -> tuple[int, int]:
        """Clusters while there is one's worth of both, then small mbufs."""
        taken = min(space, remaining, self._chunk_bytes)
        clusters, rest = divmod(taken, CLUSTER_BYTES)
        return taken, clusters + -(-rest // SMALL_MBUF_BYTES)

    def full(self) -> None:
        """The program sleeps."""


class Bsd42Socket(SunOsSocket):
    """4.2BSD: any room at all lets a whole write in; it is cut in clusters only while there is room for one (`sosend`)."""

    __slots__ = ()

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:  # noqa: ARG002 - the protocol's
        """Only without any room."""
        return space <= 0

    def takes(self, space: int, remaining: int) -> tuple[int, int]:
        """All of it: what is copied counts against the room only when it is handed over."""
        clusters = remaining // CLUSTER_BYTES if space >= CLUSTER_BYTES else 0
        return remaining, clusters + -(-(remaining - clusters * CLUSTER_BYTES) // SMALL_MBUF_BYTES)


class Bsd44Socket(SunOsSocket):
    """4.4BSD: one mbuf or cluster a turn; a write that does not fit waits for the low-water mark (`sosend`, `sb_lowat`)."""

    __slots__ = ()

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:  # noqa: ARG002 - the protocol's
        """The rest does not fit, and there is less room than the low-water mark."""
        return space < remaining and space < min(BSD44_CLUSTER_BYTES, self._tcp.send_buffer)

    def takes(self, space: int, remaining: int) -> tuple[int, int]:
        """A cluster if rest and room are worth one, else a small mbuf."""
        if remaining >= BSD44_LEAST_CLUSTER_BYTES and space >= BSD44_CLUSTER_BYTES:
            return min(remaining, BSD44_CLUSTER_BYTES), 1
        return min(remaining, space, BSD44_MBUF_BYTES), 1


class BsdSender:
    """SunOS 4.1, 4.3BSD-Tahoe, 4.4BSD: full segments; all there is when idle or with NODELAY; half of the largest window (`tcp_output`).

    Attributes:
        half: whether half of the largest window is enough.
    """

    __slots__ = ("half",)

    def __init__(self, _tcp: Endpoint | None = None, *, half: bool = True) -> None:
        self.half = half

    def length(self, tcp: Endpoint, queued: int, usable: int, idle: bool) -> int:  # noqa: FBT001 - as in the sources
        """The rules of small packets and of the sender's silly window; with an ACK that must go, data goes too."""
        mss = tcp.mss
        length = min(queued, usable, mss)
        if length <= 0:
            tcp.held = tcp.window_cause()
            return 0
        if length == mss or (length == queued and (idle or tcp.no_delay)) or tcp.resending or tcp.ack_now:
            return length
        if self.half and length >= tcp.max_window // 2:
            return length
        tcp.held = "nagle" if length == queued else tcp.window_cause()
        return 0

    def sent(self, tcp: Endpoint, length: int) -> None:
        """Nothing to remember."""


class Bsd42Sender(BsdSender):
    """4.2BSD: older than Nagle's rule: what empties the buffer goes, and what is a quarter of the window (`tcp_output` 6.1)."""

    __slots__ = ()

    def length(self, tcp: Endpoint, queued: int, usable: int, idle: bool) -> int:  # noqa: ARG002, FBT001 - the protocol's
        """A full segment, all there is, or much of the window."""
        length = min(queued, usable, tcp.mss)
        much = 4 * length >= tcp.snd_edge - tcp.snd_una
        if length > 0 and (length in (tcp.mss, queued) or much or tcp.resending or tcp.ack_now):
            return length
        tcp.held = tcp.window_cause()
        return 0


class BsdReceiver:
    """ACKs wait for the heartbeat of 200 ms, or until reading has opened enough of the window (`tcp_output`, `tcp_fasttimo`).

    Attributes:
        percent: of the receive buffer.
        segments: full ones, with the buffer empty (4.4BSD asks not for that).
        empty: whether it must be.
    """

    __slots__ = ("empty", "percent", "segments")

    def __init__(self, _tcp: Endpoint | None = None, percent: int = SUNOS_PERCENT, segments: int = 2, *, empty: bool = True) -> None:
        self.percent = percent
        self.segments = segments
        self.empty = empty

    def arrived(self, tcp: Endpoint, length: int, pushed: bool) -> None:  # noqa: ARG002, FBT001 - the protocol's
        """The heartbeat takes it along."""
        tcp.delay_ack()

    def read(self, tcp: Endpoint) -> None:
        """`PRU_RCVD`."""
        tcp.output()

    def update_due(self, tcp: Endpoint) -> bool:
        """Two segments with the buffer empty, or a share of the buffer."""
        window = tcp.receive_buffer - tcp.unread
        gain = window - (tcp.advertised - tcp.rcv_nxt)
        if window <= 0 or gain <= 0:
            return False
        if self.segments and gain >= self.segments * tcp.mss and not (self.empty and tcp.unread):
            return True
        return bool(self.percent) and 100 * gain >= self.percent * tcp.receive_buffer

    def window(self, tcp: Endpoint) -> int:
        """The room there is, without shrinking; none for less than a quarter and a segment."""
        window = tcp.receive_buffer - tcp.unread
        if 4 * window < tcp.receive_buffer and window < tcp.mss:
            window = 0
        return max(window, tcp.advertised - tcp.rcv_nxt)

    def sent(self, tcp: Endpoint, length: int) -> None:
        """Nothing to remember."""

    def timer(self, tcp: Endpoint) -> None:
        """`tcp_fasttimo`."""
        tcp.ack_now = True
        tcp.output()


class Bsd44Receiver(BsdReceiver):
    """4.4BSD: two segments at any time, or half of the buffer."""

    __slots__ = ()

    def __init__(self, _tcp: Endpoint | None = None) -> None:
        super().__init__(percent=BSD44_PERCENT, empty=False)


class Bsd42Receiver(BsdReceiver):
    """4.2BSD: the share of the buffer alone lets an ACK go at once, and less than a quarter of it is told as nothing (`tcp_output` 6.1)."""

    __slots__ = ()

    def __init__(self, _tcp: Endpoint | None = None) -> None:
        super().__init__(segments=0)

    def window(self, tcp: Endpoint) -> int:
        """The room there is, though that may shrink the window."""
        room = tcp.receive_buffer - tcp.unread
        return 0 if 4 * room < tcp.receive_buffer else room
