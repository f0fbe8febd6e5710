"""A schedule as a setting of the models: both hosts' stacks, buffers and programs, and the path between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tcptrace_lab.errors import CaptureInsufficient
from tcptrace_lab.replay.reconstruct import IP_TCP_BYTES
from tcptrace_lab.replay.schedule import Heard
from tcptrace_lab.stacks import STACKS, Host, Link, Setting
from tcptrace_lab.stacks.families.linux import FIRST_MSS_BYTES
from tcptrace_lab.stacks.setting import Write

if TYPE_CHECKING:
    from tcptrace_lab.replay.schedule import Between, End, Schedule, Way
    from tcptrace_lab.stacks.endpoint import Endpoint
    from tcptrace_lab.stacks.setting import Step
    from tcptrace_lab.stacks.stack import Stack

AMPLE_BYTES: Final = 6 << 20
"""A buffer that grows by itself: as far as Linux lets it (net.ipv4.tcp_rmem, the third figure)."""

SMALL_SEGMENT_MEMORY_BYTES: Final = 2304
"""What Linux charges for an Ethernet segment (`truesize`); larger ones take whole pages and `HEAD_BYTES`."""

PAGE_BYTES, HEAD_BYTES, FRAME_HEADER_BYTES = 4096, 768, 66
SMALL_SEGMENT_BYTES: Final = 1460

UNSCALED_BITS: Final = 16
"""Of the window's field (RFC 9293, 3.1)."""

LONGEST_BYTES: Final = 65_535
"""Of an IPv4 packet (RFC 791, 3.1), whatever the interface takes: Linux' loopback has an MTU of one more."""

SPARE_NS: Final = 5 * 10**9
"""A model that runs so much longer than the original is stopped."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What a capture does not say outright, and what is tried for it.

    Attributes:
        stack: name in `STACKS`, of both ends.
        extra_ns: added to the round trip that the capture showed at least.
        phase_ns: of the hosts' timers.
        less_bytes: of a receive buffer, what the sender never gets to use.
        nodelay: of both ends, also where the capture does not show it.
        call_bytes: of the writes of a program that keeps to a bound; 0: as the schedule has them.
    """

    stack: str = "linux"
    extra_ns: int = 0
    phase_ns: int = 0
    less_bytes: int = 0
    nodelay: bool = False
    call_bytes: int = 0


class BoundedSocket:
    """A program that writes only while no more than the send buffer is unacknowledged, its call included."""

    __slots__ = ("_tcp",)

    def __init__(self, tcp: Endpoint) -> None:
        self._tcp = tcp

    def room(self) -> int:
        """What is not acknowledged counts."""
        return self._tcp.unacked_room()

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:
        """The call does not fit, and something is unacknowledged."""
        return buffered > 0 and remaining > space

    def takes(self, space: int, remaining: int) -> tuple[int, int]:  # noqa: ARG002 - the protocol's
        """The whole call."""
        return remaining, 1

    def full(self) -> None:
        """The program waits by itself: nothing is pushed."""


def setting(schedule: Schedule, fit: Fit) -> Setting:
    """What is simulated.

    Raises:
        CaptureInsufficient: both ends send at once: a modelled host has one program.
    """
    if not schedule.takes_turns:
        raise CaptureInsufficient(
            "both ends send at once, and a modelled host does one thing at a time",
            where=str(schedule.source.get("capture", "")),
            remedy="tcptrace-lab replay transfer makes it again with real sockets",
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
        assert not isinstance(step, Heard)  # noqa: S101  (only an end with two tasks has any)
        if fit.call_bytes and end.bound_bytes and isinstance(step, Write) and step.size_bytes > end.bound_bytes:
            program.append(replace(step, call_bytes=fit.call_bytes))
        else:
            program.append(step)
    return Host(
        stack,
        send_buffer_bytes=end.bound_bytes or end.send_buffer_bytes or AMPLE_BYTES,
        receive_buffer_bytes=_window(end, path.mtu_bytes - IP_TCP_BYTES[path.ipv6] - stack.option_bytes, fit.less_bytes) or AMPLE_BYTES,
        no_delay=end.nodelay or fit.nodelay,
        cork=False,
        quick_ack=end.quickack,
        phase_ns=fit.phase_ns,
        program=tuple(program),
    )


def _stack(stack: Stack, end: End, path: Between) -> Stack:
    """The stack with what the connection used of it."""
    if not path.timestamps:
        stack = replace(stack, option_bytes=0)
    if end.bound_bytes is not None:
        stack = replace(stack, socket=BoundedSocket)
    return replace(stack, window_scale=_scale(end, stack))


def capacity_bytes(asked_bytes: int, mss_bytes: int) -> int:
    """Payload that a receive buffer of Linux takes: twice what was asked for, less the segments' own memory (`tcp_scaling_ratio`).

    That share is worked out when a segment is larger than those before (`tcp_measure_rcv_mss`); it stays half where none is larger than
    what is taken for granted.
    """
    if mss_bytes <= FIRST_MSS_BYTES:
        return asked_bytes
    pages = -(-(mss_bytes + FRAME_HEADER_BYTES) // PAGE_BYTES) * PAGE_BYTES
    memory = SMALL_SEGMENT_MEMORY_BYTES if mss_bytes <= SMALL_SEGMENT_BYTES else pages + HEAD_BYTES
    return 2 * asked_bytes * mss_bytes // memory


def _window(end: End, mss_bytes: int, less_bytes: int) -> int | None:
    """The most that an end offers: what it was seen to offer, or what a buffer of that size would; less what is never used of it."""
    if end.window_bytes is not None:
        return max(end.window_bytes - less_bytes, 1)
    if end.receive_buffer_bytes is None:
        return None
    return max(capacity_bytes(end.receive_buffer_bytes, mss_bytes) - less_bytes, mss_bytes)


def _scale(end: End, stack: Stack) -> int | None:
    """Window scale that Linux takes for a buffer of a fixed size (`tcp_select_initial_window`)."""
    if stack.window_scale is None or end.receive_buffer_bytes is None:
        return stack.window_scale
    return max(0, end.receive_buffer_bytes.bit_length() - UNSCALED_BITS)


def _link(way: Way, extra_ns: int) -> Link:
    return Link(
        rate_bps=way.rate_bps or 0,
        propagation_ns=way.delay_ns + extra_ns,
        framing="bare",
        lost=frozenset(way.lost),
        loss=way.loss_share,
    )
