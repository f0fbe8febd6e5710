"""One experiment: a network, its applications, captures at the requested points, and the records of the kernel and of the path."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tcptrace_lab.lab.capturing.capture import capturing
from tcptrace_lab.lab.hosts.sockets import Meeting, SocketOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tcptrace_lab.lab.hosts.applications import Program
    from tcptrace_lab.lab.hosts.sender_limits import Witness
    from tcptrace_lab.lab.networks.network import Medium, Network, Point
    from tcptrace_lab.lab.networks.relay import Relay

# This snaplen keeps the Ethernet header, the IPv6 header, the longest TCP header, and little payload.
SNAPLEN_BYTES = 128
REAL_TIME_PRIORITY = 10  # real-time priority, from 1 to 99 (a choice)


@dataclass(frozen=True, slots=True)
class Experiment:
    """The settings of an experiment.

    Attributes:
        medium: the network.
        program: what the applications on both hosts do.
        options: options of their sockets.
        vantages: capture points, by their names in `Network.points`.
        suffix: `.pcapng` (nanoseconds) or `.pcap`.
        snaplen_bytes: snaplen of the captures.
        interface: `any` for a cooked capture; None for the interface of the capture point.
        link_type: dumpcap's name of the link type, for an interface that offers several.
        witnessed: True if the sending kernel's state is read every millisecond.
    """

    medium: Medium
    program: Program
    options: SocketOptions = field(default_factory=SocketOptions)
    vantages: tuple[str, ...] = ("client", "server")
    suffix: str = ".pcapng"
    snaplen_bytes: int = SNAPLEN_BYTES
    interface: str | None = None
    link_type: str | None = None
    witnessed: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an experiment.

    Attributes:
        captures: capture file of each capture point. The kernel dropped no frames; a dropped frame is an error.
        interface: interface of the captures.
        accounts: addresses and TCP_INFO of both sockets of each connection, read after the last ACK and before the close.
        ended: number of connections that have ended, including refused ones.
        relay: the relay, with the log of what the path did to each packet; None if the network has no relay.
        seen_only_here: facts that only the applications know.
        witnesses: one for each connection if `witnessed` is True, otherwise none.
    """

    captures: Mapping[str, Path]
    interface: str
    accounts: list[dict[str, object]]
    ended: int
    relay: Relay | None
    seen_only_here: Mapping[str, object]
    witnesses: list[Witness] = field(default_factory=list)


def run(
    experiment: Experiment, directory: Path, beside: Callable[[Network, Path], AbstractContextManager[object]] | None = None
) -> Outcome:
    """Create the network, run the applications, and write the captures to `directory`. Afterwards, only the files remain.

    Args:
        experiment: the settings.
        directory: folder of the captures.
        beside: a context that is active during the captures, such as a tracer.

    Raises:
        LabFailed: permission is denied, the network cannot be created, or a capture is incomplete.
        MissingTool: a program is not installed.
        OSError, EOFError: the connections failed.
    """
    with in_real_time(), ExitStack() as stack:
        network = stack.enter_context(experiment.medium.network())
        meeting = Meeting(network, experiment.options, witnessed=experiment.witnessed)
        with ExitStack() as running:
            if beside is not None:
                running.enter_context(beside(network, directory))
            captures = {
                vantage: running.enter_context(
                    capturing(
                        _point(experiment, network, vantage),
                        directory / (vantage + experiment.suffix),
                        snaplen_bytes=experiment.snaplen_bytes,
                        link_type=experiment.link_type,
                    )
                )
                for vantage in experiment.vantages
            }
            seen_only_here = experiment.program.run(meeting)
            for capture in captures.values():
                capture.await_end(meeting.ended)
    return Outcome(
        captures={vantage: capture.path for vantage, capture in captures.items()},
        interface=experiment.interface or network.interface,
        accounts=meeting.accounts,
        ended=meeting.ended,
        relay=network.relay,
        seen_only_here=seen_only_here,
        witnesses=meeting.witnesses,
    )


@contextmanager
def in_real_time() -> Iterator[None]:
    """Run this thread and the threads that it starts with real-time priority, if permitted."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(REAL_TIME_PRIORITY))
    except OSError:
        yield  # without permission, the experiment works with more jitter
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


def _point(experiment: Experiment, network: Network, vantage: str) -> Point:
    point = network.points[vantage]
    return point if experiment.interface is None else replace(point, interface=experiment.interface)
