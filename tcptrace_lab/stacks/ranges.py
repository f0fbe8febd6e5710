"""Which sizes of messages stall, and which buffers can lock a stream: what follows from a stack's rules alone, without time.

A request goes one way and its answer comes back, over one connection. The sender's socket takes the message in pieces; TCP sends full
segments at once and holds a small one back (Nagle's algorithm); the receiver holds its ACK back until enough has come. A size stalls if at
the end bytes are held, or the program is blocked, and no ACK is on its way but that of the receiver's timer. Whether an ACK comes back
before or after the next piece is written depends on the path; so each size is tried both ways.

Not modelled: congestion windows, loss, the time that hosts need, ACKs that the timer sends meanwhile, and what the message before left
behind (it was answered, so nothing).
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
"""Sizes are looked at up to here unless asked otherwise."""

CLUSTER_BYTES = 1024
"""SunOS 4.1 and 4.3BSD: MCLBYTES."""
SEND_CHUNK_BYTES = 4 * CLUSTER_BYTES
"""SunOS 4.1: what `sosend` hands to TCP at a time (os/uipc_socket.c)."""

BSD44_MBUF_BYTES, BSD44_LEAST_CLUSTER_BYTES = 100, 208
"""4.4BSD: MHLEN and MINCLSIZE (sys/mbuf.h). `sosend` hands TCP one cluster at a time, and less than MINCLSIZE in mbufs."""

STREAM_BUFFERS = 4
"""A stream is looked at until it has filled both buffers so often: what locks by itself does so in the first or second round."""

MOST_PIECES = 1024
"""Pieces of the largest message: time grows with their square, and 64 KiB in so many take some ten seconds."""

_MOST_STEPS = 16 * MOST_PIECES
"""Steps of one walk, as a guard: each writes a piece or takes an ACK."""

Bytes = int | Amount


class Acks(StrEnum):
    """When ACKs come back.

    After the program has written all that the socket takes; before its next piece; or (Linux) only when the receiving program has read, so
    that one covers all of a burst, its small end too.
    """

    SLOW = "slow"
    FAST = "fast"
    BY_READS = "by reads"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the sizes depend on.

    Attributes:
        mss_bytes: M, the data of a full segment.
        send_buffer_bytes: S, of the sender's socket. Linux, which does not block before megabytes, does not look at it.
        receive_buffer_bytes: R, of the receiver's socket, and the largest window.
        copy_bytes: what is handed to TCP at a time: the socket layer's piece or the program's write, whichever is smaller.
        nodelay: TCP_NODELAY at the sender.
    """

    mss_bytes: int
    send_buffer_bytes: int
    receive_buffer_bytes: int
    copy_bytes: int
    nodelay: bool = False

    def __post_init__(self) -> None:
        """Refuse what no connection has (ValueError)."""
        for name in ("mss_bytes", "send_buffer_bytes", "receive_buffer_bytes", "copy_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")


class Stalls(StrEnum):
    """What becomes of a size."""

    NEVER = "never"
    ALWAYS = "always"
    BY_TIMING = "timing-dependent"


@dataclass(frozen=True, slots=True)
class Range:
    """Sizes that stall: always, or depending on how soon ACKs come back."""

    from_bytes: int
    to_bytes: int
    stalls: Stalls


@dataclass(frozen=True, slots=True)
class Stack:
    """A sender and a receiver of one kind.

    Attributes:
        key: its name on the command line and in the JSON.
        title: its name for people.
        copy_bytes: pieces in which the socket takes a message, if the program writes it at once.
        ack_percent: share of the receive buffer that lets an ACK go; None where the rule is another.
        rest: `(settings, size, acks_come)` → what of a message of that size is not written, and what is not sent, when all waits.
        source: where the rules are from.
        ways: in which ACKs may come; a size stalls always if it does in all.
        unused_bytes: most of a send buffer that may stay unused while a write waits for room.
        round_mss, round_buffer: what the stack makes of an MSS, and of a buffer given that.
    """

    key: str
    title: str
    copy_bytes: int
    ack_percent: int | None
    rest: Callable[[Settings, Bytes, Acks], tuple[Bytes, Bytes]]
    source: str
    ways: tuple[Acks, ...] = (Acks.SLOW, Acks.FAST)
    unused_bytes: Callable[[Settings], int] = lambda _settings: 0
    round_mss: Callable[[int, int], int] = same
    round_buffer: Callable[[int, int], int] = same

    def stalled(self, settings: Settings, size: Bytes, acks_come: Acks) -> bool:
        """Whether a message of that size stalls."""
        unwritten, unsent = self.rest(settings, size, acks_come)
        return unwritten > 0 or unsent > 0

    def in_force(self, settings: Settings) -> Settings:
        """The settings as the stack uses them, after its rounding; the same if it has rounded them already."""
        mss = self.round_mss(settings.mss_bytes, settings.mss_bytes)
        send, receive = (self.round_buffer(size, mss) for size in (settings.send_buffer_bytes, settings.receive_buffer_bytes))
        return replace(settings, mss_bytes=mss, send_buffer_bytes=send, receive_buffer_bytes=receive)


@dataclass(frozen=True, slots=True)
class Deadlock:
    """Whether a stream can lock: a sender that waits for `hold_bytes` against a receiver that waits for `ack_bytes`.

    Attributes:
        hold_bytes: H: queued bytes that the sender does not hold back.
        ack_bytes: A: bytes that let an ACK go at once.
        send_buffer_bytes: S.
        unused_bytes: most of S that may stay unused while a write waits for room.
        locks: a stream that begins on an idle connection locks by the rules.
    """

    hold_bytes: int
    ack_bytes: int
    send_buffer_bytes: int
    unused_bytes: int
    locks: bool

    @property
    def needed_bytes(self) -> int:
        """With less than so much of send buffer a stream can lock, however it is written."""
        return self.hold_bytes + self.ack_bytes

    @property
    def possible(self) -> bool:
        """Whether S < H + A, or a stream of these writes is known to lock with some of S unused."""
        return self.send_buffer_bytes < self.needed_bytes or self.locks

    @property
    def possible_if_unused(self) -> bool:
        """Whether what writes may leave unused is enough for a lock: with as much send buffer as all that there is none."""
        return self.send_buffer_bytes < self.needed_bytes + self.unused_bytes


def deadlock(stack: Stack, settings: Settings) -> Deadlock | None:
    """The condition under which a stream can lock; None for a stack whose blocked sender pushes what it holds (Linux)."""
    if stack.ack_percent is None:
        return None
    used = stack.in_force(settings)
    hold = 1 if used.nodelay else hold_bytes(used.mss_bytes, used.receive_buffer_bytes)
    needed = ack_bytes(used.mss_bytes, used.receive_buffer_bytes, stack.ack_percent)
    found = Deadlock(hold, needed, used.send_buffer_bytes, stack.unused_bytes(used), locks=False)
    if found.possible or not found.possible_if_unused:
        return found
    stream = min(STREAM_BUFFERS * (used.send_buffer_bytes + used.receive_buffer_bytes), MOST_PIECES * _piece_bytes(used))
    return replace(found, locks=any(stack.rest(used, stream, acks_come)[0] > 0 for acks_come in stack.ways))


def _piece_bytes(settings: Settings) -> int:
    return min(settings.mss_bytes, settings.copy_bytes, settings.send_buffer_bytes, settings.receive_buffer_bytes)


def predicted_ranges(stack: Stack, settings: Settings, first: int = 1, last: int = LARGEST_BYTES) -> tuple[Range, ...]:
    """The sizes from `first` to `last` bytes that stall, exact to the byte, ascending; those between do not stall.

    Raises:
        ValueError: a message would have more than `MOST_PIECES` pieces.
    """
    used = stack.in_force(settings)
    piece = _piece_bytes(used)
    if last > MOST_PIECES * piece:
        raise ValueError(f"{last:,} bytes in pieces of {piece:,} are more than {MOST_PIECES:,}")

    def becomes(size: Amount) -> Stalls:
        stalled = [stack.stalled(used, size, acks_come) for acks_come in stack.ways]
        if all(stalled):
            return Stalls.ALWAYS
        return Stalls.BY_TIMING if any(stalled) else Stalls.NEVER

    return tuple(Range(low, high, found) for low, high, found in runs(becomes, first, last) if found is not Stalls.NEVER)


def stalled_share(ranges: tuple[Range, ...], first: int = 1, last: int = LARGEST_BYTES) -> float:
    """Share of the sizes from `first` to `last` that always stall."""
    stalled = sum(found.to_bytes - found.from_bytes + 1 for found in ranges if found.stalls is Stalls.ALWAYS)
    return stalled / (last - first + 1)


def _bsd(
    settings: Settings, size: Bytes, acks_come: Acks, stack: Stack, piece: Callable[[Settings, Bytes, Bytes], Bytes | None]
) -> tuple[Bytes, Bytes]:
    """A message through `sosend` and `tcp_output` of BSD and its kin, to a receiver of the same stack.

    Written in one call, or in calls of `copy_bytes` where the stack's own pieces are larger: `sosend` looks at the rest of its call.
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
        idle = in_flight == 0  # once per call: the tail of a burst leaves with it
        while queued > 0:
            length = min(queued, full, window - in_flight)
            may_leave = length == full or ((idle or settings.nodelay) and length == queued) or length >= window // 2
            if length <= 0 or not may_leave:
                return
            queued, in_flight, unacked = queued - length, in_flight + length, unacked + length
            if unacked >= ack_at:
                acks.append(unacked)
                unacked = 0

    for _ in range(_MOST_STEPS):
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
    """What `sosend` of SunOS 4.1 takes; None: it blocks."""
    held = settings.send_buffer_bytes - space
    if space <= 0 or (left >= CLUSTER_BYTES and space < CLUSTER_BYTES and held >= CLUSTER_BYTES):
        return None
    return min(settings.copy_bytes, space, left)


def _bsd44_piece(settings: Settings, left: Bytes, space: Bytes) -> Bytes | None:
    """What `sosend` of 4.4BSD takes; None: it blocks below the low-water mark, a cluster."""
    if space <= 0 or (space < left and space < BSD44_CLUSTER_BYTES):
        return None
    if left >= BSD44_LEAST_CLUSTER_BYTES and space >= BSD44_CLUSTER_BYTES:
        return min(settings.copy_bytes, left)
    return min(BSD44_MBUF_BYTES, settings.copy_bytes, left, space)


def _sunos(settings: Settings, size: Bytes, acks_come: Acks) -> tuple[Bytes, Bytes]:
    return _bsd(settings, size, acks_come, STACKS["sunos4"], _sunos_piece)


def _sunos_unused(settings: Settings) -> int:
    """A call waits with a cluster or more left for a cluster of room."""
    return CLUSTER_BYTES - 1 if settings.copy_bytes >= CLUSTER_BYTES else 0


def _bsd44(settings: Settings, size: Bytes, acks_come: Acks) -> tuple[Bytes, Bytes]:
    return _bsd(settings, size, acks_come, STACKS["bsd4.4"], _bsd44_piece)


def _bsd44_unused(settings: Settings) -> int:
    """A call that does not fit waits for the low-water mark (`sb_lowat`, a cluster or the whole buffer)."""
    return min(BSD44_CLUSTER_BYTES, settings.copy_bytes, settings.send_buffer_bytes) - 1


class _Linux:
    """Writes of `copy_bytes` by Minshall's rule, to a receiver that acknowledges more than one full segment at once.

    That is, as soon as its program has read, or with the next segment: so an ACK may go with a burst's last full segment and leave the
    small one behind it to the timer, or cover both. The receiver has seen full segments before, is past its first quick ACKs, and answers
    (so that reading alone lets no ACK go). A blocked sender pushes, so the send buffer holds nothing back.
    """

    def __init__(self, settings: Settings, acks_come: Acks) -> None:
        self._settings, self._acks_come = settings, acks_come
        self.queued: Bytes = 0
        self._sent: Bytes = 0
        self._acked: Bytes = 0
        self._small_end: Bytes = 0
        self._told: Bytes = 0  # how far the receiver's ACKs have come
        self.acks: list[Bytes] = []

    def write(self, count: Bytes) -> None:
        """The program writes."""
        self.queued += count
        self._output()

    def take_ack(self) -> None:
        """The next ACK reaches the sender."""
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
    for _ in range(_MOST_STEPS):
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
"""The stacks whose rules are here, by key."""
