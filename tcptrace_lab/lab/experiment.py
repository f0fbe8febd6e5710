"""One experiment: a network, a program that talks over it, captures at the points asked for, and what kernel and path say of it."""

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

    from tcptrace_lab.lab.hosts.programs import Program
    from tcptrace_lab.lab.hosts.witness import Witness
    from tcptrace_lab.lab.networks.network import Medium, Network, Point
    from tcptrace_lab.lab.networks.relay import Relay

# Ethernet, IPv6 and the longest TCP header, and hardly any payload.
SNAPLEN_BYTES = 128
REAL_TIME_PRIORITY = 10  # of 1 to 99; a choice, no source


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is done, as data.

    Attributes:
        medium: the network.
        program: what its two ends do.
        options: of their sockets.
        vantages: where frames are captured, by the names of `Network.points`.
        suffix: `.pcapng` (nanoseconds) or `.pcap`.
        snaplen_bytes: what is kept of each frame.
        interface: `any` for a cooked capture; None for the point's own.
        link_type: dumpcap's name of the link type, where there is a choice.
        witnessed: read the sending kernel's state every millisecond.
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
    """What became of it.

    Attributes:
        captures: vantage → its file; the kernel dropped no frame of it (a capture with drops is an error).
        interface: the interface captured from.
        accounts: per connection, addresses and TCP_INFO of both ends when every byte was acknowledged, before the close.
        ended: connections that have ended, refused ones included.
        relay: what the path did to every packet; None on media without one.
        seen_only_here: what only the program's run could know.
        witnesses: per connection, where they were asked for.
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
    """Make the network, let the program talk, and capture it into `directory`; everything but the files is gone afterwards.

    Args:
        experiment: what is done.
        directory: where the captures go.
        beside: what else lasts as long as the captures, such as a tracer.

    Raises:
        LabFailed: no rights, the network cannot be built, or a capture is not whole.
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
    """This thread and those that it starts go before all others, if that is allowed: a busy machine then delays no packet of ours."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(REAL_TIME_PRIORITY))
    except OSError:
        yield  # without the right to it the experiment is the same, only less even
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


def _point(experiment: Experiment, network: Network, vantage: str) -> Point:
    point = network.points[vantage]
    return point if experiment.interface is None else replace(point, interface=experiment.interface)
