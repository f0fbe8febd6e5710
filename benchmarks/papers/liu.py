"""Liu, Cheng, Bhargava and Zhao 1995: message sizes that stall, over ATM and Ethernet.

The hosts run SunOS 4.1.3 with buffers of 16 KB. A size stalls if its last byte waits for a delayed-ACK timer (heartbeat). The published
ranges assume hosts that take no time. Then no ACK arrives before the program has filled the send buffer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tcptrace_lab.stacks import STACKS, Host, Link, Mark, Read, Repeat, Setting, Think, WaitUntil, Write, simulate
from tcptrace_lab.stacks.events import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tcptrace_lab.stacks import Stack, Step

KIB = 1024
BUFFER_BYTES = 16 * KIB
LARGEST_BYTES = 50 * KIB
ATM_MSS_BYTES, ETHERNET_MSS_BYTES = 9148, 1460

TAXI = Link(rate_bps=100_000_000, propagation_ns=5_000, framing="atm")
ETHERNET = Link(rate_bps=10_000_000, propagation_ns=5_000, framing="ethernet")

BEFORE_HEARTBEAT_NS = 190 * NS_PER_MS
"""A message that has not arrived by this time waits for a heartbeat.

Heartbeats are at multiples of 200 ms, and 50 KB take 43 ms on an Ethernet.
"""

SUNOS = STACKS["sunos4"]

Range = tuple[int, int]


def stalls(size: int, *, atm: bool, stack: Stack = SUNOS, no_delay: bool = False) -> bool:
    """Return whether a message waits for a heartbeat.

    The message is sent in one write over a connection that has already carried many messages.
    """
    link = TAXI if atm else ETHERNET
    client = Host(stack, BUFFER_BYTES, BUFFER_BYTES, no_delay=no_delay, program=(Write(size), Think(NS_PER_S)))
    server = Host(stack, BUFFER_BYTES, BUFFER_BYTES, program=(Read(size),))
    mss = ATM_MSS_BYTES if atm else ETHERNET_MSS_BYTES
    run = simulate(Setting(client, server, link, link, mss, no_slow_start=True, until_ns=BEFORE_HEARTBEAT_NS))
    return not run.server.done


def ranges(sizes: Iterable[int], stalled: Callable[[int], bool]) -> list[Range]:
    """Return the first and the last size of each run of consecutive sizes that stall."""
    found: list[Range] = []
    since: int | None = None
    last = 0
    for size in sizes:
        if stalled(size):
            since = size if since is None else since
            last = size
        elif since is not None:
            found.append((since, last))
            since = None
    return found if since is None else [*found, (since, last)]


def published_atm(largest: int = LARGEST_BYTES) -> list[Range]:
    """Return the published ranges over ATM: (12n + 4)K + 1 to 12(n + 1)K − 1, for n = 0, 1, 2 and so on."""
    found = [((12 * n + 4) * KIB + 1, 12 * (n + 1) * KIB - 1) for n in range(largest // (12 * KIB) + 1)]
    return [(low, min(high, largest)) for low, high in found if low <= largest]


def published_ethernet(largest: int = LARGEST_BYTES) -> list[Range]:
    """Return the published ranges over Ethernet, where M is the MSS.

    The text of the paper has the range 4K + 1 to 4K + M − 1. Its formula has 4K + (2n + 1)M + 1 to 4K + (2n + 2)M − 1, for n = 0, 1, 2 and
    so on.
    """
    m = ETHERNET_MSS_BYTES
    found = [(4 * KIB + 1, 4 * KIB + m - 1)]
    found += [(4 * KIB + (2 * n + 1) * m + 1, 4 * KIB + (2 * n + 2) * m - 1) for n in range(largest // (2 * m) + 1)]
    return [(low, min(high, largest)) for low, high in found if low <= largest]


def inside(size: int, spans: list[Range]) -> bool:
    """Return whether the size is in one of the ranges."""
    return any(low <= size <= high for low, high in spans)


def edges(spans: list[Range], largest: int = LARGEST_BYTES) -> list[int]:
    """Return both ends of each range, and the sizes directly before and after each end."""
    near = {edge + step for span in spans for edge in span for step in (-1, 0, 1)}
    return sorted(size for size in near | {1, largest} if 1 <= size <= largest)


def round_trips(size: int, count: int, *, every_ns: int, phase_ns: int = 0, server_phase_ns: int = 60 * NS_PER_MS) -> list[int]:
    """Return the duration of each echo over ATM, in nanoseconds. The messages are sent at regular times.

    Args:
        size: bytes of a message and of its echo.
        count: number of messages.
        every_ns: time from one message to the next.
        phase_ns: phase of the client's heartbeats.
        server_phase_ns: phase of the server's heartbeats.
    """
    echoes: list[Step] = []
    for number in range(count):
        echoes += [WaitUntil((number + 1) * every_ns), Mark("sent"), Write(size), Read(size), Mark("back")]
    client = Host(SUNOS, BUFFER_BYTES, BUFFER_BYTES, phase_ns=phase_ns, program=tuple(echoes))
    answers = (Repeat((Read(size), Write(size)), count), Think(NS_PER_S))
    server = Host(SUNOS, BUFFER_BYTES, BUFFER_BYTES, phase_ns=server_phase_ns, program=answers)
    run = simulate(Setting(client, server, TAXI, TAXI, ATM_MSS_BYTES, no_slow_start=True))
    return run.client.spans("sent", "back")


def without(part: str) -> Stack:
    """Return SunOS 4.1 without one of its rules.

    The rules are `copy` (writes are copied in pieces of 4 KB), `half` (half of the window is enough to send) and `segments` (two segments
    cause an ACK).
    """
    from tcptrace_lab.stacks.families import bsd  # noqa: PLC0415 - only the ablations look inside

    if part == "copy":
        return replace(SUNOS, socket=lambda tcp: bsd.SunOsSocket(tcp, chunk_bytes=BUFFER_BYTES))
    if part == "half":
        return replace(SUNOS, sender=lambda _tcp: bsd.BsdSender(half=False))
    if part == "segments":
        return replace(SUNOS, receiver=lambda _tcp: bsd.BsdReceiver(segments=0))
    if part == "percent":
        return replace(SUNOS, receiver=lambda _tcp: bsd.BsdReceiver(percent=0))
    raise ValueError(part)
