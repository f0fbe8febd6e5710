"""Liu, Cheng, Bhargava and Zhao 1995: message sizes that stall, over ATM and Ethernet, between SunOS 4.1.3 hosts with 16 KB buffers.

A size stalls if its last byte waits for a heartbeat. The published ranges are those of hosts that need no time: an ACK then never comes
before the program has filled the send buffer.
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
"""Heartbeats are at multiples of 200 ms; 50 KB take 43 ms on an Ethernet: what is not there by then, waits for one."""

SUNOS = STACKS["sunos4"]

Range = tuple[int, int]


def stalls(size: int, *, atm: bool, stack: Stack = SUNOS, no_delay: bool = False) -> bool:
    """Whether a message waits for a heartbeat, sent in one write over a connection that has carried many."""
    link = TAXI if atm else ETHERNET
    client = Host(stack, BUFFER_BYTES, BUFFER_BYTES, no_delay=no_delay, program=(Write(size), Think(NS_PER_S)))
    server = Host(stack, BUFFER_BYTES, BUFFER_BYTES, program=(Read(size),))
    mss = ATM_MSS_BYTES if atm else ETHERNET_MSS_BYTES
    run = simulate(Setting(client, server, link, link, mss, no_slow_start=True, until_ns=BEFORE_HEARTBEAT_NS))
    return not run.server.done


def ranges(sizes: Iterable[int], stalled: Callable[[int], bool]) -> list[Range]:
    """First and last size of each run of sizes that stall."""
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
    """(12n + 4)K + 1 … 12(n + 1)K − 1."""
    found = [((12 * n + 4) * KIB + 1, 12 * (n + 1) * KIB - 1) for n in range(largest // (12 * KIB) + 1)]
    return [(low, min(high, largest)) for low, high in found if low <= largest]


def published_ethernet(largest: int = LARGEST_BYTES) -> list[Range]:
    """4K + 1 … 4K + M − 1 of the text, then the formula's 4K + (2n + 1)M + 1 … 4K + (2n + 2)M − 1."""
    m = ETHERNET_MSS_BYTES
    found = [(4 * KIB + 1, 4 * KIB + m - 1)]
    found += [(4 * KIB + (2 * n + 1) * m + 1, 4 * KIB + (2 * n + 2) * m - 1) for n in range(largest // (2 * m) + 1)]
    return [(low, min(high, largest)) for low, high in found if low <= largest]


def inside(size: int, spans: list[Range]) -> bool:
    """Whether a size is in one of the ranges."""
    return any(low <= size <= high for low, high in spans)


def edges(spans: list[Range], largest: int = LARGEST_BYTES) -> list[int]:
    """Each end of each range, and its neighbours on both sides."""
    near = {edge + step for span in spans for edge in span for step in (-1, 0, 1)}
    return sorted(size for size in near | {1, largest} if 1 <= size <= largest)


def round_trips(size: int, count: int, *, every_ns: int, phase_ns: int = 0, server_phase_ns: int = 60 * NS_PER_MS) -> list[int]:
    """Nanoseconds of each echo over ATM, sent at regular times.

    Args:
        size: of the message and of its echo.
        count: of messages.
        every_ns: from one to the next.
        phase_ns: of the client's heartbeats.
        server_phase_ns: of the server's.
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
    """SunOS 4.1 without one of its rules: `copy` (4 KB at a time), `half` (of the window is enough) or `segments` (two bring an ACK)."""
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
