"""Simulates one connection between two hosts, and returns its packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcptrace_lab.stacks.application import Process
from tcptrace_lab.stacks.endpoint import Endpoint
from tcptrace_lab.stacks.events import NS_PER_S, Clock, Cpu, TooManyEvents
from tcptrace_lab.stacks.model_ledger import Hold, Ledger
from tcptrace_lab.stacks.path import Line

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcptrace_lab.stacks.packet import Packet
    from tcptrace_lab.stacks.setting import Setting


MAX_PACKETS = 2_000_000
"""Maximum number of packets of one run. So many packets take about 1 GB of memory, and more than a minute."""


@dataclass(frozen=True, slots=True)
class Side:
    """What one host did.

    Attributes:
        marks: name and time (ns) of each `Mark` of its application.
        busy_ns: processor time used.
        segments_out: segments sent, with or without data (`ip_output`).
        segments_in: segments received (`tcp_input`).
        handed_over: pieces that the socket layer passed to TCP (`sbappend`).
        asked: number of calls of `tcp_output`.
        buffers: mbufs filled by writes (`uiomove`).
        mss_bytes, send_buffer_bytes, receive_buffer_bytes: values in use, after the stack's rounding.
        done: True if its application has ended.
    """

    marks: tuple[tuple[str, int], ...]
    busy_ns: int
    segments_out: int
    segments_in: int
    handed_over: int
    asked: int
    buffers: int
    mss_bytes: int
    send_buffer_bytes: int
    receive_buffer_bytes: int
    done: bool

    def spans(self, start: str, end: str) -> list[int]:
        """Return the nanoseconds from marks named `start` to the next mark named `end`. After several starts, only the last one counts."""
        found: list[int] = []
        since: int | None = None
        for name, at_ns in self.marks:
            if name == start:
                since = at_ns
            elif name == end and since is not None:
                found.append(at_ns - since)
                since = None
        return found


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a simulation.

    Attributes:
        packets: all packets, in the order in which the hosts sent them.
        truth: the model's ledger, as contiguous intervals by direction and time; empty if it was not requested.
        client, server: what each host did.
        end_ns: time of the last event.
    """

    packets: list[Packet]
    truth: tuple[Hold, ...]
    client: Side
    server: Side
    end_ns: int


def simulate(setting: Setting, *, truth: bool = False, stop: Callable[[Endpoint, Endpoint], bool] | None = None) -> Run:
    """Simulate a connection on which both applications run their programs.

    Args:
        setting: hosts, applications and path.
        truth: whether to keep the model's ledger.
        stop: called with client and server before each event; True ends the run.

    Returns:
        The packets and what the hosts did. Equal settings always give equal results.

    Raises:
        TooManyEvents: the run exceeds the limit of events or packets.
    """
    clock = Clock()
    packets: list[Packet] = []
    mss = setting.mss_bytes
    cpus = Cpu(clock), Cpu(clock)
    lines = Line(setting.forward), Line(setting.backward)
    options = min(setting.client.stack.option_bytes, setting.server.stack.option_bytes)  # 0 unless both have timestamps
    client, server = (
        Endpoint(host, from_client=up, clock=clock, cpu=cpu, line=line, packets=packets, mss=mss, option_bytes=options)
        for host, up, cpu, line in zip((setting.client, setting.server), (True, False), cpus, lines, strict=True)
    )
    client.peer, server.peer = server, client
    if setting.no_slow_start:
        client.cc.open()
        server.cc.open()
    programs = Process(client, setting.client.program), Process(server, setting.server.program)
    ledger = Ledger(setting, (client, server), programs) if truth else None
    client.connect()

    def done() -> bool:
        if len(packets) > MAX_PACKETS:
            raise TooManyEvents(f"more than {MAX_PACKETS:,} packets, and the run is at {clock.now_ns / NS_PER_S:.3f} s")
        return stop is not None and stop(client, server)

    clock.run(setting.until_ns, done)
    holds = ledger.holds(packets) if ledger is not None else ()
    return Run(packets, holds, _side(client, programs[0], cpus[0]), _side(server, programs[1], cpus[1]), clock.now_ns)


def _side(tcp: Endpoint, program: Process, cpu: Cpu) -> Side:
    return Side(
        marks=tuple(program.marks),
        busy_ns=cpu.busy_ns,
        segments_out=tcp.segments_out,
        segments_in=tcp.calls_input,
        handed_over=tcp.calls_append,
        asked=tcp.calls_output,
        buffers=tcp.buffers,
        mss_bytes=tcp.mss,
        send_buffer_bytes=tcp.send_buffer,
        receive_buffer_bytes=tcp.receive_buffer,
        done=program.state == "done",
    )
