"""Derives from a stack's rules which message sizes stall and which buffer sizes can deadlock a stream, without simulated time.

A request and its answer share one connection. The sender's socket copies the message in pieces. TCP sends full segments at once, and
Nagle's algorithm delays a small segment. The receiver delays its ACK until enough data has arrived. At the end, bytes can be unsent, or the
application can be blocked. The message size stalls if only the delayed-ACK timer sends an ACK in this state. The path decides whether an
ACK returns before or after the next piece is written, so each size is evaluated for both cases.

The evaluation ignores congestion windows, loss, processing time, and ACKs that the timer sends in the meantime. Earlier messages were
answered, so none of their bytes are queued or in flight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from tcptrace_lab.stacks.rounding import BSD44_CLUSTER_BYTES, clusters, same, segments_down, segments_up
from tcptrace_lab.stacks.runs import Amount, runs
from tcptrace_lab.stacks.thresholds import BSD44_PERCENT, SUNOS_PERCENT, ack_bytes, hold_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

KIB = 1024
LARGEST_BYTES = 64 * KIB
"""Default upper bound of the examined message sizes."""

CLUSTER_BYTES = 1024
"""Bytes of an mbuf cluster, SunOS 4.1 and 4.3BSD (MCLBYTES)."""
SEND_CHUNK_BYTES = 4 * CLUSTER_BYTES
"""Maximum number of bytes that `sosend` of SunOS 4.1 passes to TCP at a time (os/uipc_socket.c)."""

BSD44_MBUF_BYTES, BSD44_MIN_CLUSTER_BYTES = 100, 208
"""MHLEN and MINCLSIZE of 4.4BSD (sys/mbuf.h). `sosend` passes one cluster at a time to TCP, or mbufs for less than MINCLSIZE bytes."""

STREAM_BUFFERS = 4
"""A stream is evaluated until it has filled both buffers this many times. Two times are enough to show a deadlock."""

MAX_PIECES = 1024
"""Maximum number of pieces of the largest message.

Computing time grows with the square of this number. For 64 KiB in 1,024 pieces, the computing time is about 10 s.
"""

_MAX_STEPS = 16 * MAX_PIECES
"""Maximum number of steps of one evaluation, as a safeguard. A step writes a piece or processes an ACK."""

Bytes = int | Amount


class Acks(StrEnum):
    """When ACKs return.

    - SLOW: after the application has written all bytes that the socket accepts.
    - FAST: before the application writes its next piece.
    - BY_READS: only when the receiving application has read (Linux). One ACK then covers a whole burst, with its small last segment.
    """

    SLOW = "slow"
    FAST = "fast"
    BY_READS = "by reads"


@dataclass(frozen=True, slots=True)
class Settings:
    """Parameters that determine which message sizes stall.

    Attributes:
        mss_bytes: payload of a full segment.
        send_buffer_bytes: size of the sender's send buffer. The Linux model ignores it, because Linux blocks only after megabytes.
        receive_buffer_bytes: size of the receiver's receive buffer, which is also the largest window.
        copy_bytes: bytes that are passed to TCP at a time: the socket layer's piece or the application's write, whichever is smaller.
        nodelay: True if the sender sets TCP_NODELAY.
    """

    mss_bytes: int
    send_buffer_bytes: int
    receive_buffer_bytes: int
    copy_bytes: int
    nodelay: bool = False

    def __post_init__(self) -> None:
        """Reject sizes below 1 byte (ValueError)."""
        for name in ("mss_bytes", "send_buffer_bytes", "receive_buffer_bytes", "copy_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")


class Stalls(StrEnum):
    """Whether a message size stalls."""

    NEVER = "never"
    ALWAYS = "always"
    BY_TIMING = "timing-dependent"


@dataclass(frozen=True, slots=True)
class Range:
    """A range of message sizes, with both bounds included. Its sizes always stall, or they stall depending on when ACKs return."""

    from_bytes: int
    to_bytes: int
    stalls: Stalls


@dataclass(frozen=True, slots=True)
class Stack:
    """Rules of one stack, for both the sender and the receiver.

    Attributes:
        key: its name on the command line and in the JSON.
        title: its name in reports.
        copy_bytes: size of the pieces in which the socket copies a message that is written in one call.
        ack_percent: percentage of the receive buffer that triggers an immediate ACK; None if the stack has another rule.
        rest: function of settings, message size and timing of ACKs. It returns the unwritten and the unsent bytes that remain when neither
            data nor an ACK can be sent.
        source: sources of the rules.
        ack_timings: timings of ACKs that are evaluated. A size always stalls if it stalls with all of them.
        unused_bytes: maximum number of free bytes in the send buffer while a write is blocked.
        round_mss, round_buffer: how the stack rounds an MSS, and a buffer size given the MSS.
    """

    key: str
    title: str
    copy_bytes: int
    ack_percent: int | None
    rest: Callable[[Settings, Bytes, Acks], tuple[Bytes, Bytes]]
    source: str
    ack_timings: tuple[Acks, ...] = (Acks.SLOW, Acks.FAST)
    unused_bytes: Callable[[Settings], int] = lambda _settings: 0
    round_mss: Callable[[int, int], int] = same
    round_buffer: Callable[[int, int], int] = same

    def stalled(self, settings: Settings, size: Bytes, acks_come: Acks) -> bool:
        """Return whether a message of this size stalls."""
        unwritten, unsent = self.rest(settings, size, acks_come)
        return unwritten > 0 or unsent > 0

    def in_force(self, settings: Settings) -> Settings:
        """Return the settings after the stack's rounding. Rounding them again changes nothing."""
        mss = self.round_mss(settings.mss_bytes, settings.mss_bytes)
        send, receive = (self.round_buffer(size, mss) for size in (settings.send_buffer_bytes, settings.receive_buffer_bytes))
        return replace(settings, mss_bytes=mss, send_buffer_bytes=send, receive_buffer_bytes=receive)


@dataclass(frozen=True, slots=True)
class Deadlock:
    """Whether a stream can deadlock: the sender waits until `hold_bytes` are queued, and the receiver waits until `ack_bytes` arrive.

    Attributes:
        hold_bytes: number of queued bytes that are always sent, despite Nagle's algorithm.
        ack_bytes: number of received bytes that trigger an immediate ACK.
        send_buffer_bytes: size of the send buffer.
        unused_bytes: maximum number of free bytes in the send buffer while a write is blocked.
        locks: True if the rules predict a deadlock for a stream that begins on an idle connection.
    """

    hold_bytes: int
    ack_bytes: int
    send_buffer_bytes: int
    unused_bytes: int
    locks: bool

    @property
    def needed_bytes(self) -> int:
        """The sum of `hold_bytes` and `ack_bytes`.

        If the send buffer is smaller, a stream can deadlock, whatever the size of its writes.
        """
        return self.hold_bytes + self.ack_bytes

    @property
    def possible(self) -> bool:
        """True if the send buffer is smaller than `needed_bytes`, or if this stream deadlocks although the send buffer has free space."""
        return self.send_buffer_bytes < self.needed_bytes or self.locks

    @property
    def possible_if_unused(self) -> bool:
        """True if the send buffer is smaller than `needed_bytes` plus the bytes that writes can leave free.

        Otherwise, no deadlock is possible.
        """
        return self.send_buffer_bytes < self.needed_bytes + self.unused_bytes


def deadlock(stack: Stack, settings: Settings) -> Deadlock | None:
    """Return the condition for a deadlock; None for a stack that pushes delayed data when a write blocks (Linux)."""
    if stack.ack_percent is None:
        return None
    used = stack.in_force(settings)
    hold = 1 if used.nodelay else hold_bytes(used.mss_bytes, used.receive_buffer_bytes)
    needed = ack_bytes(used.mss_bytes, used.receive_buffer_bytes, stack.ack_percent)
    found = Deadlock(hold, needed, used.send_buffer_bytes, stack.unused_bytes(used), locks=False)
    if found.possible or not found.possible_if_unused:
        return found
    stream = min(STREAM_BUFFERS * (used.send_buffer_bytes + used.receive_buffer_bytes), MAX_PIECES * _piece_bytes(used))
    return replace(found, locks=any(stack.rest(used, stream, acks_come)[0] > 0 for acks_come in stack.ack_timings))


def _piece_bytes(settings: Settings) -> int:
    return min(settings.mss_bytes, settings.copy_bytes, settings.send_buffer_bytes, settings.receive_buffer_bytes)


def predicted_ranges(stack: Stack, settings: Settings, first: int = 1, last: int = LARGEST_BYTES) -> tuple[Range, ...]:
    """Return the ranges of message sizes from `first` to `last` bytes that stall, in ascending order.

    Raises:
        ValueError: a message of `last` bytes would have more than `MAX_PIECES` pieces.
    """
    used = stack.in_force(settings)
    piece = _piece_bytes(used)
    if last > MAX_PIECES * piece:
        raise ValueError(f"{last:,} bytes in pieces of {piece:,} are more than {MAX_PIECES:,}")

    def becomes(size: Amount) -> Stalls:
        stalled = [stack.stalled(used, size, acks_come) for acks_come in stack.ack_timings]
        if all(stalled):
            return Stalls.ALWAYS
        return Stalls.BY_TIMING if any(stalled) else Stalls.NEVER

    return tuple(Range(low, high, found) for low, high, found in runs(becomes, first, last) if found is not Stalls.NEVER)


def stalled_share(ranges: tuple[Range, ...], first: int = 1, last: int = LARGEST_BYTES) -> float:
    """Return the share of the sizes from `first` to `last` that always stall."""
    stalled = sum(found.to_bytes - found.from_bytes + 1 for found in ranges if found.stalls is Stalls.ALWAYS)
    return stalled / (last - first + 1)


def _bsd(
    settings: Settings, size: Bytes, acks_come: Acks, stack: Stack, piece: Callable[[Settings, Bytes, Bytes], Bytes | None]
) -> tuple[Bytes, Bytes]:
    """Send a message between two hosts with a BSD stack (`sosend`, `tcp_output`). Return the unwritten and the unsent bytes.

    The application writes the message in one call. If the stack's own pieces are larger than `copy_bytes`, the application writes in calls
    of `copy_bytes` instead. The size of a call matters, because `sosend` considers how many bytes of the call remain to be copied.
    """
    full, window = settings.mss_bytes, settings.receive_buffer_bytes
    ack_at = ack_bytes(full, window, stack.ack_percent or 0)
    queued: Bytes = 0
    in_flight: Bytes = 0
    unacked: Bytes = 0
    left = size
    call: Bytes = 0
    acks: list[Bytes] = []

    def output() -> None:
        nonlocal queued, in_flight, unacked
        idle = in_flight == 0  # evaluated before the loop, so that a burst ends with its small last segment
        while queued > 0:
            length = min(queued, full, window - in_flight)
            may_leave = length == full or ((idle or settings.nodelay) and length == queued) or length >= window // 2
            if length <= 0 or not may_leave:
                return
            queued, in_flight, unacked = queued - length, in_flight + length, unacked + length
            if unacked >= ack_at:
                acks.append(unacked)
                unacked = 0

    for _ in range(_MAX_STEPS):
        space = settings.send_buffer_bytes - in_flight - queued
        if not call > 0:
            call = min(settings.copy_bytes, left) if settings.copy_bytes < stack.copy_bytes else left
        taken = piece(settings, call, space) if left > 0 else None
        if acks and (acks_come is Acks.FAST or taken is None):
            in_flight -= acks.pop(0)
            output()
        elif taken is None:
            break
        else:
            left, call, queued = left - taken, call - taken, queued + taken
            output()
    return left, queued


def _sunos_piece(settings: Settings, left: Bytes, space: Bytes) -> Bytes | None:
    """Return the bytes that `sosend` of SunOS 4.1 copies in one pass; None if it blocks."""
    held = settings.send_buffer_bytes - space
    if space <= 0 or (left >= CLUSTER_BYTES and space < CLUSTER_BYTES and held >= CLUSTER_BYTES):
        return None
    return min(settings.copy_bytes, space, left)


def _bsd44_piece(settings: Settings, left: Bytes, space: Bytes) -> Bytes | None:
    """Return the bytes that `sosend` of 4.4BSD copies in one pass; None if it blocks because less than a cluster is free."""
    if space <= 0 or (space < left and space < BSD44_CLUSTER_BYTES):
        return None
    if left >= BSD44_MIN_CLUSTER_BYTES and space >= BSD44_CLUSTER_BYTES:
        return min(settings.copy_bytes, left)
    return min(BSD44_MBUF_BYTES, settings.copy_bytes, left, space)


def _sunos(settings: Settings, size: Bytes, acks_come: Acks) -> tuple[Bytes, Bytes]:
    return _bsd(settings, size, acks_come, STACKS["sunos4"], _sunos_piece)


def _sunos_unused(settings: Settings) -> int:
    """Return the maximum number of free bytes while a call is blocked.

    A call that still has a cluster to write waits for a free cluster.
    """
    return CLUSTER_BYTES - 1 if settings.copy_bytes >= CLUSTER_BYTES else 0


def _bsd44(settings: Settings, size: Bytes, acks_come: Acks) -> tuple[Bytes, Bytes]:
    return _bsd(settings, size, acks_come, STACKS["bsd4.4"], _bsd44_piece)


def _bsd44_unused(settings: Settings) -> int:
    """Return the maximum number of free bytes while a call is blocked.

    A blocked call waits for the low-water mark (`sb_lowat`), which is a cluster or the whole buffer.
    """
    return min(BSD44_CLUSTER_BYTES, settings.copy_bytes, settings.send_buffer_bytes) - 1


class _Linux:
    """Writes of `copy_bytes` under Minshall's rule. The receiver sends an ACK when more than one full segment is unacknowledged.

    The ACK is sent when the receiving application has read, or when the next segment arrives. So the ACK covers the last full segment of a
    burst, and possibly the small segment after it. Otherwise, the delayed-ACK timer acknowledges the small segment.

    The model assumes that the receiver has received full segments, has sent its first quick ACKs, and answers. So a read alone triggers no
    ACK. A blocked sender pushes all data, so no small segment waits in a full send buffer.
    """

    def __init__(self, settings: Settings, acks_come: Acks) -> None:
        self._settings, self._acks_come = settings, acks_come
        self.queued: Bytes = 0
        self._sent: Bytes = 0
        self._acked: Bytes = 0
        self._small_end: Bytes = 0
        self._told: Bytes = 0  # highest sequence number that the receiver has acknowledged so far
        self.acks: list[Bytes] = []

    def write(self, count: Bytes) -> None:
        """Queue the bytes of one write, and send the segments that the rules allow."""
        self.queued += count
        self._output()

    def take_ack(self) -> None:
        """Process the next ACK at the sender."""
        self._acked = self.acks.pop(0)
        self._output()

    def _output(self) -> None:
        full, by_reads = self._settings.mss_bytes, self._acks_come is Acks.BY_READS
        while self.queued > 0:
            length = min(self.queued, full, self._settings.receive_buffer_bytes - (self._sent - self._acked))
            if length < full and not by_reads:
                self._acknowledge()
            if length <= 0 or (length < full and self._small_end > self._acked and not self._settings.nodelay):
                break
            self.queued, self._sent = self.queued - length, self._sent + length
            if length < full:
                self._small_end = self._sent
        if by_reads or self._small_end != self._sent:
            self._acknowledge()

    def _acknowledge(self) -> None:
        if self._sent - self._told > self._settings.mss_bytes:
            self.acks.append(self._sent)
            self._told = self._sent


def _linux(settings: Settings, size: Bytes, acks_come: Acks) -> tuple[Bytes, Bytes]:
    sender, left = _Linux(settings, acks_come), size
    for _ in range(_MAX_STEPS):
        if sender.acks and (acks_come is not Acks.SLOW or not left > 0):
            sender.take_ack()
        elif left > 0:
            taken = min(settings.copy_bytes, left)
            left -= taken
            sender.write(taken)
        else:
            break
    return left, sender.queued


_BSD44 = Stack(
    "bsd4.4",
    "4.4BSD",
    BSD44_CLUSTER_BYTES,
    BSD44_PERCENT,
    _bsd44,
    "4.4BSD-Lite kern/uipc_socket.c and netinet/tcp_output.c; Heidemann 1997 (short first segments)",
    unused_bytes=_bsd44_unused,
    round_mss=clusters,
    round_buffer=segments_up,
)

STACKS = {
    stack.key: stack
    for stack in (
        Stack(
            "sunos4",
            "SunOS 4.1 and 4.3BSD-Tahoe",
            SEND_CHUNK_BYTES,
            SUNOS_PERCENT,
            _sunos,
            "SunOS 4.1.3 os/uipc_socket.c and netinet/tcp_output.c; Liu, Cheng, Bhargava, Zhao 1995",
            unused_bytes=_sunos_unused,
        ),
        _BSD44,
        replace(
            _BSD44,
            key="irix6.2",
            title="IRIX 6.2",
            source="4.4BSD-Lite; buffers as Law (1998) observed them",
            round_buffer=segments_down,
        ),
        Stack(
            "linux",
            "Linux",
            SEND_CHUNK_BYTES,
            None,
            _linux,
            "Linux net/ipv4: tcp_minshall_check, __tcp_ack_snd_check, tcp_cleanup_rbuf",
            tuple(Acks),
        ),
    )
}
"""Stacks by their key."""
