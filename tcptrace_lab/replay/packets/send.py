"""Sends frames on time. Measures how late each frame was sent, and how many frames the interface counted."""

from __future__ import annotations

import errno
import socket
import statistics
import time
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tcptrace_lab.errors import CaptureInsufficient, LabFailed, UsageError
from tcptrace_lab.lab.experiment import in_real_time
from tcptrace_lab.replay.packets.allowed_destinations import ARPHRD_NONE, Destinations, checked
from tcptrace_lab.replay.packets.frames import Rewrite, destination, frames, ip_of, rewritten
from tcptrace_lab.replay.packets.pace import Pace, sleep_until
from tcptrace_lab.replay.packets.prepared_frames import Ready, ready, timed
from tcptrace_lab.replay.packets.sendmmsg import MOST, Burst
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.replay.packets.allowed_destinations import Network

SCHEMA_VERSION: Final = 2
ETHERNET_BYTES: Final = 14
MAX_LATENESSES: Final = 1_000_000
"""Maximum number of delays that are stored for the percentiles. A longer replay stores the delays of its first frames."""

MAX_OF_PACED: Final = 64
"""Maximum number of frames per system call in a timed replay. The kernel needs about 0.1 ms for 64 frames."""

LEAD_NS: Final = 5_000_000
"""Time between the start of a replay and its first frame. Without this time, the first frame would be late."""

SEND_BUFFER_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class Plan:
    """What to send, and how.

    Attributes:
        path: the capture file.
        interface: name of the interface.
        pace: how frames are spaced.
        rewrite: changes to each frame.
        chosen: first and last frame number; None: all frames.
        display_filter: Wireshark display filter; empty: all frames.
        loops: number of repetitions.
        allowed: networks whose addresses are allowed as destinations.
        any_interface: allow an interface that possibly leads out of this machine.
    """

    path: str
    interface: str
    pace: Pace
    rewrite: Rewrite = field(default_factory=Rewrite)
    chosen: tuple[int, int] | None = None
    display_filter: str = ""
    loops: int = 1
    allowed: tuple[Network, ...] = ()
    any_interface: bool = False


@dataclass(slots=True)
class Sent:
    """Result of a replay.

    Attributes:
        frames, octets: frames and bytes that the kernel accepted.
        refused: frames that the kernel refused (ENOBUFS, too long).
        took_ns: time from the first frame to the last.
        late_ns: upper bound of each frame's delay: the time from the due time until the frame's system call returns.
        counted: packets that the interface sent, and packets that it dropped. The interface's counters include other traffic.
    """

    frames: int = 0
    octets: int = 0
    refused: int = 0
    took_ns: int = 0
    late_ns: list[int] = field(default_factory=list)
    counted: tuple[int, int] = (0, 0)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document."""
        middle, high = _percentiles(self.late_ns)
        return {
            "schema_version": SCHEMA_VERSION,
            "dry_run": False,
            "frames": self.frames,
            "bytes": self.octets,
            "rejected": self.refused,
            "duration_s": self.took_ns / NS_PER_S,
            "lateness_p50_s": middle,
            "lateness_p99_s": high,
            "interface_sent": self.counted[0],
            "interface_dropped": self.counted[1],
        }


def planned(frames: int, octets: int, duration_ns: int, loops: int) -> dict[str, Any]:
    """Return the JSON document of a dry run: frames, bytes and duration of each of the `loops` repetitions."""
    counts = {"frames": frames, "bytes": octets, "duration_s": duration_ns / NS_PER_S, "loops": loops}
    return {"schema_version": SCHEMA_VERSION, "dry_run": True, **counts}


def _percentiles(late_ns: list[int]) -> tuple[float | None, float | None]:
    if len(late_ns) < 2:  # noqa: PLR2004
        return (late_ns[0] / NS_PER_S, late_ns[0] / NS_PER_S) if late_ns else (None, None)
    cuts = statistics.quantiles(late_ns, n=100, method="inclusive")
    return cuts[49] / NS_PER_S, cuts[98] / NS_PER_S


def _prepared(plan: Plan) -> Iterator[tuple[int, bytes]]:
    """Yield (timestamp in ns, bytes) of each frame to send, checked and rewritten, one at a time.

    Raises:
        UsageError: a destination is not allowed, or the selection contains no frame.
        CaptureInsufficient: a packet is truncated, or the capture has no frames.
    """
    hardware, _ = checked(plan.interface, any_interface=plan.any_interface)
    places = Destinations(plan.allowed)
    frame = None
    for frame in frames(plan.path, plan.chosen, plan.display_filter):
        original = ip_of(frame)
        if original is not None and not destination(original):
            raise CaptureInsufficient(
                f"frame {frame.number} is truncated before its IP destination address",
                where=plan.path,
                remedy="exclude it with --range or --filter, or capture at least 96 bytes per frame",
            )
        data = rewritten(frame, plan.rewrite, ethernet=hardware != ARPHRD_NONE)
        packet = data if hardware == ARPHRD_NONE else data[ETHERNET_BYTES:] if original is not None else None
        if packet is not None and not places.may(destination(packet)):
            raise UsageError(
                f"frame {frame.number} goes to {_words(destination(packet))}, which is not an allowed destination",
                where=plan.path,
                remedy="rewrite it with --address OLD=NEW, or allow its network with --allow",
            )
        yield frame.ts_ns, data
    if frame is None and (plan.chosen or plan.display_filter):
        raise UsageError("--range and --filter select no frame", where=plan.path)
    if frame is None:
        raise CaptureInsufficient("contains no frames", where=plan.path)


def _words(address: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET if len(address) == 4 else socket.AF_INET6, address)  # noqa: PLR2004


def check(plan: Plan) -> tuple[int, int, int]:
    """Check all frames without sending them. Return the number of frames, their bytes, and the duration in ns of one repetition.

    Raises:
        UsageError, CaptureInsufficient, NotACapture, MissingTool: the errors that sending would raise.
    """
    count = octets = due_ns = 0
    for due_ns, octets, data in timed(_prepared(plan), plan.pace):  # noqa: B007  (the values of the last frame are used)
        count, octets = count + 1, octets + len(data)  # noqa: PLW2901
    return count, octets, due_ns


def send(plan: Plan) -> Sent:
    """Send the frames. All frames are checked before the first frame is sent. If any frame is refused, nothing is sent.

    Raises:
        LabFailed: the right to raw sockets is missing, or the interface is down. The errors of `check` are raised as well.
        OutputUnwritable: no disk space to prepare the frames.
    """
    done = Sent()
    with ready(timed(_prepared(plan), plan.pace)) as frames, _opened(plan.interface) as out:
        before = _counters(plan.interface)
        sending = _Sending(frames, Burst(frames), out.fileno(), done, at_once=not plan.pace.speed)
        with in_real_time():
            start_ns = time.monotonic_ns() + LEAD_NS
            try:
                for _ in range(plan.loops):
                    start_ns = sending.once(start_ns)
            except OSError as error:
                raise LabFailed(f"the interface accepts no frames: {error.strerror}", where=plan.interface, remedy="set it up") from error
        after = _counters(plan.interface)
    done.counted = after[0] - before[0], after[1] - before[1]
    return done


def _opened(interface: str) -> socket.socket:
    try:
        out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        out.bind((interface, 0))
    except PermissionError as error:
        raise LabFailed("no permission to send frames", where=interface, remedy="run it as root (CAP_NET_RAW)") from error
    out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    return out


REFUSALS: Final = frozenset({errno.EINVAL, errno.EMSGSIZE, errno.ENOBUFS})
"""Errors that concern a single frame: it is shorter than the link header or longer than the MTU, or there is no buffer space."""


@dataclass(slots=True)
class _Sending:
    """Sends prepared frames and updates the result.

    Attributes:
        frames: all frames.
        burst: the frames that are loaded for the next system calls.
        fd: file descriptor of the socket.
        done: the result.
        at_once: True if frames are sent without waiting for their due times.
    """

    frames: Ready
    burst: Burst
    fd: int
    done: Sent
    at_once: bool

    def once(self, start_ns: int) -> int:
        """Send all frames once, the first frame at `start_ns`. Return the earliest start of the next repetition."""
        begun_ns = 0
        for first in range(0, len(self.frames.size), MOST):
            last = min(first + MOST, len(self.frames.size))
            self.burst.load(first, last)
            due_ns: list[int] = (self.frames.due_ns[first:last] + start_ns).tolist()
            at = 0
            while at < len(due_ns):
                if not self.at_once:
                    sleep_until(due_ns[at])
                now_ns = time.monotonic_ns()
                begun_ns = begun_ns or now_ns
                behind = len(due_ns) if self.at_once else min(bisect_right(due_ns, now_ns, at + 1), at + MAX_OF_PACED)
                at += self._sent(due_ns, at, behind, int(self.frames.size[first + at]))
            self.done.octets += int(self.frames.size[first:last].sum())
        ended_ns = time.monotonic_ns()
        self.done.took_ns += ended_ns - begun_ns if begun_ns else 0
        return ended_ns

    def _sent(self, due_ns: list[int], at: int, behind: int, size: int) -> int:
        """Send the loaded frames, beginning at position `at`. Return how many frames are dealt with.

        The kernel can refuse the first of these frames, which has `size` bytes. Then only this frame is dealt with, and the result is 1.
        """
        try:
            taken = self.burst.send(self.fd, at, behind)
        except OSError as error:
            if error.errno not in REFUSALS:
                raise
            self.done.refused, self.done.octets = self.done.refused + 1, self.done.octets - size
            return 1
        self.done.frames += taken
        if not self.at_once and len(self.done.late_ns) < MAX_LATENESSES:
            now_ns = time.monotonic_ns()
            self.done.late_ns += [now_ns - due for due in due_ns[at : at + taken]]
        return taken


def _counters(interface: str) -> tuple[int, int]:
    """Return the numbers of packets that an interface of this network namespace sent and dropped, from the kernel's counters."""
    for line in Path("/proc/net/dev").read_text(encoding="ascii").splitlines()[2:]:
        name, _, figures = line.partition(":")
        if name.strip() == interface:
            words = figures.split()
            return int(words[9]), int(words[11])
    return 0, 0
