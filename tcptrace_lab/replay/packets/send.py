"""Frames out, on time, and an account of how well: each one's lateness, and what the interface says it took."""

from __future__ import annotations

import socket
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tcptrace_lab.errors import LabFailed, UsageError
from tcptrace_lab.lab.experiment import in_real_time
from tcptrace_lab.replay.packets.frames import Rewrite, destination, frames, ip_of, rewritten
from tcptrace_lab.replay.packets.guard import ARPHRD_NONE, Destinations, checked
from tcptrace_lab.replay.packets.pace import NS_PER_S, Pace, sleep_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.replay.packets.guard import Network

ETH_P_ALL: Final = 0x0003  # linux/if_ether.h
ETHERNET_BYTES: Final = 14
MOST_LATENESSES: Final = 1_000_000
"""Kept for the percentiles; of a longer replay the first so many."""

LEAD_NS: Final = 5_000_000
"""From the first call to the first frame, so that it is on time, too."""

SEND_BUFFER_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class Plan:
    """What is sent.

    Attributes:
        path: the capture.
        interface: where to.
        pace: how fast.
        rewrite: what is changed.
        chosen: first and last frame; None: all.
        display_filter: of Wireshark.
        loops: how often.
        allowed: networks that frames may be addressed to.
        any_interface: also into an interface that may lead out of the machine.
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
    """What came of it.

    Attributes:
        frames, octets: handed to the kernel.
        refused: frames that the kernel did not take (ENOBUFS, too long).
        took_ns: from the first to the last.
        late_ns: of each frame, how much later than due it was handed over.
        counted: by the interface's own counters: packets sent, and dropped; others' traffic counts, too.
    """

    frames: int = 0
    octets: int = 0
    refused: int = 0
    took_ns: int = 0
    late_ns: list[int] = field(default_factory=list)
    counted: tuple[int, int] = (0, 0)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        middle, high = _percentiles(self.late_ns)
        return {
            "frames": self.frames,
            "bytes": self.octets,
            "refused": self.refused,
            "took_s": self.took_ns / NS_PER_S,
            "late_p50_s": middle,
            "late_p99_s": high,
            "interface_sent": self.counted[0],
            "interface_dropped": self.counted[1],
        }


def _percentiles(late_ns: list[int]) -> tuple[float | None, float | None]:
    if len(late_ns) < 2:  # noqa: PLR2004
        return (late_ns[0] / NS_PER_S, late_ns[0] / NS_PER_S) if late_ns else (None, None)
    cuts = statistics.quantiles(late_ns, n=100, method="inclusive")
    return cuts[49] / NS_PER_S, cuts[98] / NS_PER_S


def _prepared(plan: Plan) -> Iterator[tuple[int, bytes]]:
    """(time, bytes) of each frame to send; rewritten one at a time, just ahead of sending.

    Raises:
        UsageError: a destination that is not allowed.
    """
    hardware, _ = checked(plan.interface, any_interface=plan.any_interface)
    places = Destinations(plan.allowed)
    for frame in frames(plan.path, plan.chosen, plan.display_filter):
        data = rewritten(frame, plan.rewrite, ethernet=hardware != ARPHRD_NONE)
        packet = data if hardware == ARPHRD_NONE else data[ETHERNET_BYTES:] if ip_of(frame) is not None else None
        if packet is not None and not places.may(destination(packet)):
            raise UsageError(
                f"frame {frame.number} goes to {_words(destination(packet))}, which is not allowed",
                where=plan.path,
                remedy="rewrite it with --address OLD=NEW, or allow its network with --allow",
            )
        yield frame.ts_ns, data


def _words(address: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET if len(address) == 4 else socket.AF_INET6, address)  # noqa: PLR2004


def check(plan: Plan) -> tuple[int, int, int]:
    """Go through all that would be sent, and send nothing: frames, bytes, and nanoseconds from the first to the last, once.

    Raises:
        UsageError, CaptureInsufficient, NotACapture, MissingTool: as sending would.
    """
    count = octets = first = last = 0
    for ts_ns, data in _prepared(plan):
        first = first if count else ts_ns
        last = plan.pace.due_ns(ts_ns - first, octets, count)
        count, octets = count + 1, octets + len(data)
    return count, octets, last


def send(plan: Plan) -> Sent:
    """Send. Every frame is checked before the first one leaves, so that a refusal sends nothing.

    Raises:
        LabFailed: no rights to raw sockets, or the interface is down.
    """
    check(plan)
    done = Sent()
    before = _counters(plan.interface)
    with _opened(plan.interface) as out, in_real_time():
        start_ns = time.monotonic_ns() + LEAD_NS
        try:
            for _ in range(plan.loops):
                start_ns = _once(plan, out, done, start_ns)
        except OSError as error:
            raise LabFailed(f"the interface takes no frames: {error.strerror}", where=plan.interface, remedy="ip link set it up") from error
    after = _counters(plan.interface)
    done.counted = after[0] - before[0], after[1] - before[1]
    return done


def _opened(interface: str) -> socket.socket:
    try:
        out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        out.bind((interface, 0))
    except PermissionError as error:
        raise LabFailed("no rights to send frames", where=interface, remedy="run it as root (CAP_NET_RAW)") from error
    out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    return out


REFUSALS: Final = frozenset({90, 105})  # EMSGSIZE, ENOBUFS of Linux


def _once(plan: Plan, out: socket.socket, done: Sent, start_ns: int) -> int:
    """All frames once; when the next round may begin."""
    first = octets = count = 0
    first_sent_ns = 0
    for ts_ns, data in _prepared(plan):
        first = first if count else ts_ns
        due_ns = start_ns + plan.pace.due_ns(ts_ns - first, octets, count)
        if plan.pace.speed or plan.pace.bits_per_s or plan.pace.packets_per_s:
            sleep_until(due_ns)
        now_ns = time.monotonic_ns()
        first_sent_ns = first_sent_ns or now_ns
        try:
            out.send(data)
        except OSError as error:
            if error.errno not in REFUSALS:
                raise
            done.refused += 1
        else:
            done.frames, done.octets = done.frames + 1, done.octets + len(data)
        if len(done.late_ns) < MOST_LATENESSES and plan.pace.speed:
            done.late_ns.append(max(0, now_ns - due_ns))
        count, octets = count + 1, octets + len(data)
    ended_ns = time.monotonic_ns()
    done.took_ns += ended_ns - first_sent_ns if count else 0
    return ended_ns


def _counters(interface: str) -> tuple[int, int]:
    """Packets sent and dropped, by the kernel's count of the interface in this network namespace."""
    for line in Path("/proc/net/dev").read_text(encoding="ascii").splitlines()[2:]:
        name, _, figures = line.partition(":")
        if name.strip() == interface:
            words = figures.split()
            return int(words[9]), int(words[11])
    return 0, 0
