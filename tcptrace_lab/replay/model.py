"""Converts a schedule to the input of a simulation: both hosts' stacks, buffers and applications, and the path between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tcptrace_lab.errors import CaptureInsufficient
from tcptrace_lab.replay.reconstruct import IP_TCP_BYTES
from tcptrace_lab.replay.schedule import AwaitRead
from tcptrace_lab.stacks import STACKS, Host, Link, Setting
from tcptrace_lab.stacks.families.linux import FIRST_MSS_BYTES
from tcptrace_lab.stacks.setting import Write

if TYPE_CHECKING:
    from tcptrace_lab.replay.schedule import Between, End, PathDirection, Schedule
    from tcptrace_lab.stacks.endpoint import Endpoint
    from tcptrace_lab.stacks.setting import Step
    from tcptrace_lab.stacks.stack import Stack

AMPLE_BYTES: Final = 6 << 20
"""Size that is assumed for an auto-tuned buffer: the maximum on Linux (third value of net.ipv4.tcp_rmem)."""

SMALL_SEGMENT_MEMORY_BYTES: Final = 2304
"""Memory that Linux charges for an Ethernet-sized segment (`truesize`). A larger segment takes whole pages plus `HEAD_BYTES`."""

PAGE_BYTES, HEAD_BYTES, FRAME_HEADER_BYTES = 4096, 768, 66
SMALL_SEGMENT_BYTES: Final = 1460

UNSCALED_BITS: Final = 16
"""Width of the window field (RFC 9293, 3.1)."""

LONGEST_BYTES: Final = 65_535
"""Largest IPv4 packet (RFC 791, 3.1). The MTU of Linux's loopback interface is one byte larger."""

SPARE_NS: Final = 5 * 10**9
"""A run can last twice the original's duration, plus twice the pauses of both applications, plus this time."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Assumed values for what a capture does not show.

    Attributes:
        stack: stack of both ends, a name in `STACKS`.
        extra_ns: added to the base RTT of the schedule's path.
        phase_ns: phase of the hosts' timer ticks.
        less_bytes: part of the receive window that the sender never uses.
        nodelay: True: both ends set TCP_NODELAY, even where the schedule does not.
        call_bytes: size of one write call, for an end whose unacknowledged bytes are limited; 0: the sizes in the schedule.
    """

    stack: str = "linux"
    extra_ns: int = 0
    phase_ns: int = 0
    less_bytes: int = 0
    nodelay: bool = False
    call_bytes: int = 0


class BoundedSocket:
    """A socket that accepts a write call only if the send buffer has room for all unacknowledged bytes and the whole call."""

    __slots__ = ("_tcp",)

    def __init__(self, tcp: Endpoint) -> None:
        self._tcp = tcp

    def room(self) -> int:
        """Return the free bytes of the send buffer. Bytes leave the buffer when they are acknowledged."""
        return self._tcp.unacked_room()

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:
        """Return True if the call must wait: it is larger than the free space, and some bytes are unacknowledged."""
        return buffered > 0 and remaining > space

    def takes(self, space: int, remaining: int) -> tuple[int, int]:  # noqa: ARG002 - required by the Protocol
        """Accept the whole call. Return its number of bytes, and 1 as the number of buffers."""
        return remaining, 1

    def full(self) -> None:
        """Do nothing. This application never fills the kernel's buffer, so the kernel never pushes data for that reason."""


def setting(schedule: Schedule, fit: Fit) -> Setting:
    """Return the simulation input for a schedule and a fit.

    Raises:
        CaptureInsufficient: both ends send at the same time, but a modelled host can run only one task.
    """
    if not schedule.takes_turns:
        raise CaptureInsufficient(
            "both ends send at once, and a modelled host does one thing at a time",
            where=str(schedule.source.get("capture", "")),
            remedy="tcptrace-lab replay transfer repeats it over real sockets",
        )
    path = schedule.path
    client, server = (_host(end, path, fit) for end in schedule.ends())
    thinking_ns = sum(end.thinking_ns for end in schedule.ends())
    said_s = schedule.source.get("duration_s", 0.0)
    return Setting(
        client=client,
        server=server,
        forward=_link(path.forward, fit.extra_ns // 2),
        backward=_link(path.backward, fit.extra_ns - fit.extra_ns // 2),
        mss_bytes=min(path.mtu_bytes, LONGEST_BYTES) - IP_TCP_BYTES[path.ipv6],
        until_ns=round(2 * float(said_s) * 1e9) + 2 * thinking_ns + SPARE_NS,
    )


def _host(end: End, path: Between, fit: Fit) -> Host:
    stack = _stack(STACKS[fit.stack], end, path)
    program: list[Step] = []
    for step in end.tasks[0]:
        assert not isinstance(step, AwaitRead)  # noqa: S101  (only an end with two tasks has `AwaitRead` steps)
        if fit.call_bytes and end.max_unacked_bytes and isinstance(step, Write) and step.size_bytes > end.max_unacked_bytes:
            program.append(replace(step, call_bytes=fit.call_bytes))
        else:
            program.append(step)
    return Host(
        stack,
        send_buffer_bytes=end.max_unacked_bytes or end.send_buffer_bytes or AMPLE_BYTES,
        receive_buffer_bytes=_window(end, path.mtu_bytes - IP_TCP_BYTES[path.ipv6] - stack.option_bytes, fit.less_bytes) or AMPLE_BYTES,
        no_delay=end.nodelay or fit.nodelay,
        cork=False,
        quick_ack=end.quickack,
        phase_ns=fit.phase_ns,
        program=tuple(program),
    )


def _stack(stack: Stack, end: End, path: Between) -> Stack:
    if not path.timestamps:
        stack = replace(stack, option_bytes=0)
    if end.max_unacked_bytes is not None:
        stack = replace(stack, socket=BoundedSocket)
    return replace(stack, window_scale=_scale(end, stack))


def capacity_bytes(asked_bytes: int, mss_bytes: int) -> int:
    """Return how many payload bytes fit a Linux receive buffer of the requested size.

    Linux doubles the requested size. It multiplies the result by the ratio of payload to memory of a segment (`tcp_scaling_ratio`). Linux
    computes this ratio whenever a segment is larger than all earlier ones (`tcp_measure_rcv_mss`). If no segment has more than 536 bytes,
    the initial ratio of one half remains.
    """
    if mss_bytes <= FIRST_MSS_BYTES:
        return asked_bytes
    pages = -(-(mss_bytes + FRAME_HEADER_BYTES) // PAGE_BYTES) * PAGE_BYTES
    memory = SMALL_SEGMENT_MEMORY_BYTES if mss_bytes <= SMALL_SEGMENT_BYTES else pages + HEAD_BYTES
    return 2 * asked_bytes * mss_bytes // memory


def _window(end: End, mss_bytes: int, less_bytes: int) -> int | None:
    """Return the largest receive window that the sender uses; None if the kernel tunes the receive buffer.

    The window comes from the capture, or from the size of the buffer. `less_bytes` of this window stay unused.
    """
    if end.window_clamp_bytes is not None:
        return max(end.window_clamp_bytes - less_bytes, 1)
    if end.receive_buffer_bytes is None:
        return None
    return max(capacity_bytes(end.receive_buffer_bytes, mss_bytes) - less_bytes, mss_bytes)


def _scale(end: End, stack: Stack) -> int | None:
    """Return the window scale that Linux chooses for a buffer of fixed size (`tcp_select_initial_window`)."""
    if stack.window_scale is None or end.receive_buffer_bytes is None:
        return stack.window_scale
    return max(0, end.receive_buffer_bytes.bit_length() - UNSCALED_BITS)


def _link(direction: PathDirection, extra_ns: int) -> Link:
    return Link(
        rate_bps=direction.rate_bps or 0,
        propagation_ns=direction.delay_ns + extra_ns,
        framing="bare",
        lost=frozenset(direction.lost),
        loss=direction.loss_share,
    )
