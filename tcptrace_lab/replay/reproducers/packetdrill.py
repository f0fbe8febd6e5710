"""Writes a schedule as a script for packetdrill (github.com/google/packetdrill).

The kernel under test is the sender that waits. The script plays the peer and the path.

A simulation of the schedule gives all times in the script: calls of the application, segments that the kernel must send, and segments that
arrive. The script ends when all data of the sender is acknowledged. Model and Linux differ in some behaviour that does not affect the
stall. The script avoids such behaviour as follows:

- The path has an RTT of at least 10 ms, so it is clear to which segment a reply belongs.
- Segments carry no timestamps. The interface takes one segment at a time, because Linux sets PSH on the last segment of a larger packet.
- Congestion control is Reno, as in the model, because CUBIC leaves slow start if ACKs are late. Autocorking is off, so a small write does
  not wait for the interface.
- Each call is at most one segment long, so PSH is set where a call ends. In a longer call, Linux also sets PSH when half of the peer's
  window is written.
- The other end's application pauses for at most `MAX_PAUSE_NS`, because Linux would send a window probe during a longer pause.
- Neither end closes the connection.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Final

from tcptrace_lab.errors import CaptureInsufficient
from tcptrace_lab.replay.model import setting
from tcptrace_lab.replay.reproducers.shrink import halved
from tcptrace_lab.replay.side_by_side import DIRECTIONS
from tcptrace_lab.stacks import simulate
from tcptrace_lab.stacks.packet import ACK, PSH, SYN
from tcptrace_lab.stacks.setting import Close, Mark, Read, Think, Write
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.replay.model import Fit
    from tcptrace_lab.replay.reproducers.stall_oracle import Oracle
    from tcptrace_lab.replay.schedule import Action, Between, End, Schedule
    from tcptrace_lab.stacks import Packet, Run
    from tcptrace_lab.stacks.setting import Step

KERNEL: Final = "linux"
"""The stack under test. The captured hosts possibly have another stack."""

MIN_DELAY_NS: Final = 5_000_000
"""Minimum one-way delay of the script's path."""

USUAL_MTU_BYTES: Final = 1500
"""Default MTU of packetdrill's interface, in bytes."""

LARGEST_MTU_BYTES: Final = 16_384
"""Largest MTU of the script. With a larger MTU, half of a window is less than a segment, and Linux splits data in another way."""

HEADER_BYTES: Final = 40
NS_PER_MS: Final = 1e6
TOLERANCE_US: Final = 8_000
"""Accepted deviation of the kernel's timing: two jiffies of 4 ms (delayed-ACK timers)."""

BEGIN_NS: Final = 100_000_000
"""Time from the start of the script to the start of the connection. The script configures the kernel in this time."""

MAX_PAUSE_NS: Final = 150_000_000
"""Longest pause of an application. Linux probes a closed window after 200 ms (`TCP_RTO_MIN`) plus the RTT."""

UNTOUCHED_NS: Final = 3_600 * 10**9
"""Final pause of both applications, so that no end closes."""

MAX_UNSPLIT_BYTES: Final = 8_192
"""Larger calls are split if the end limits its unacknowledged bytes.

This size is a quarter of the smallest window. Linux sets PSH when half of the window is written.
"""

SMALL_BYTES: Final = 16_384
"""If an application writes more bytes than this, the script sets SO_SNDBUF.

The data possibly does not fit the send buffer of a new Linux connection (net.ipv4.tcp_wmem).
"""

MAX_SENT_BUFFER_BYTES: Final = 212_992
"""SO_SNDBUF that the script sets. The value is the kernel's default limit (net.core.wmem_max)."""

MAX_WRITTEN_BYTES: Final = 131_072
"""Maximum number of bytes that fit a send buffer of `MAX_SENT_BUFFER_BYTES`.

The kernel charges overhead for each segment. A larger write blocks (measured on Linux 6.18).
"""

UNSCALED_BYTES: Final = 65_535
MAX_LINES: Final = 20_000


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the script. Lines with equal times are in the order of `rank`: arriving segments, calls, sent segments."""

    at_ns: int
    rank: int
    text: str


_IN, _CALL, _OUT = range(3)


def script(schedule: Schedule, oracle: Oracle, heading: tuple[str, ...], own: Between) -> str:
    """Return the text of the script.

    Args:
        schedule: a schedule that shows the stall.
        oracle: decides whether a schedule shows the stall.
        heading: lines of text, each safe for a comment.
        own: the path of the capture.

    Raises:
        CaptureInsufficient: the path has losses, the script would be too long, or the data does not fit the send buffer. The error is also
            raised if packetdrill supports no path on which the model shows the stall.
    """
    if schedule.path.loses:
        raise CaptureInsufficient("the model does not repair losses as Linux does (RACK, tail-loss probes)", remedy="--kind python")
    linux = replace(oracle, fits=(replace(oracle.fits[0], stack=KERNEL, extra_ns=0),), need_ns=min(oracle.need_ns, MAX_PAUSE_NS // 2))
    drilled = _drilled(schedule, linux, own)
    under_test = DIRECTIONS[oracle.stall.direction]
    run = _instrumented(drilled, linux.fits[0], under_test=under_test)
    end = drilled.client if under_test else drilled.server
    if end.max_unacked_bytes is None and end.written_bytes > MAX_WRITTEN_BYTES:
        raise CaptureInsufficient(f"{end.written_bytes:,} bytes do not fit the send buffer of a packetdrill script", remedy="--kind python")
    calls = list(_calls(run, end, under_test=under_test))
    events = [*_packets(run, drilled, under_test=under_test), *(event for event, _ in calls)]
    last_ns = max(_settled_ns(run, under_test=under_test), *(event.at_ns for event, _ in calls))
    waits = linux.longest_waits(run)
    events += [Event(start_ns, _OUT + 1, f"// Here it waits for {(end_ns - start_ns) / NS_PER_MS:.1f} ms.") for start_ns, end_ns in waits]
    if len(events) > MAX_LINES:
        raise CaptureInsufficient(f"a packetdrill script of {len(events):,} lines", remedy="--kind python")
    mtu = drilled.path.mtu_bytes
    lines = [f"// {line}" if line else "//" for line in heading]
    lines += ["", *([f"--mtu={mtu}"] if mtu != USUAL_MTU_BYTES else []), f"--tolerance_usecs={TOLERANCE_US}", ""]
    lines += list(_opening(end, under_test=under_test))
    lines += [_line(event) for event in sorted(events, key=lambda event: (event.at_ns, event.rank)) if event.at_ns <= last_ns]
    return "\n".join(lines) + "\n"


def _line(event: Event) -> str:
    if event.text.startswith("//"):
        return event.text
    return f"{_seconds(event.at_ns)}{'' if event.text.startswith('...') else ' '}{event.text}"


def _seconds(at_ns: int) -> str:
    return f"{(BEGIN_NS + at_ns) / NS_PER_S:.6f}"


def _drilled(schedule: Schedule, oracle: Oracle, own: Between) -> Schedule:
    """Return the schedule on a path that packetdrill supports. On this path, the model must show the stall."""
    client, server = (replace(end, tasks=(tuple(map(_short, end.tasks[0])),)) for end in schedule.ends())
    for path in (schedule.path, own):
        forward, backward = (replace(direction, delay_ns=max(direction.delay_ns, MIN_DELAY_NS)) for direction in path.directions)
        plain = replace(path, forward=forward, backward=backward, loopback=False, ipv6=False, timestamps=False, sack=False)
        for mtu in dict.fromkeys((min(path.mtu_bytes, USUAL_MTU_BYTES), min(own.mtu_bytes, LARGEST_MTU_BYTES))):
            candidate = replace(schedule, client=client, server=server, path=replace(plain, mtu_bytes=mtu))
            if oracle.shows(candidate) is not None:
                return _halved(candidate, oracle)
    raise CaptureInsufficient("packetdrill can play no path on which the model shows the stall", remedy="--kind python")


def _halved(schedule: Schedule, oracle: Oracle) -> Schedule:
    """Halve writes and pauses while the stall remains. Pauses are limited in the script, and a whole call must fit the send buffer."""
    while (smaller := next((one for one in halved(schedule) if oracle.shows(one) is not None), None)) is not None:
        schedule = smaller
    return schedule


def _short(step: Action) -> Action:
    return Think(min(step.for_ns, MAX_PAUSE_NS)) if isinstance(step, Think) else step


# Events of the run


def _instrumented(schedule: Schedule, fit: Fit, *, under_test: bool) -> Run:
    """Simulate the schedule with a mark before and after each call of the end under test, and return the run."""
    made = setting(schedule, fit)
    host, other = (made.client, made.server) if under_test else (made.server, made.client)
    end = schedule.client if under_test else schedule.server
    most = schedule.path.mtu_bytes - HEADER_BYTES if end.max_unacked_bytes is None else MAX_UNSPLIT_BYTES
    steps = list(chain.from_iterable(_single_calls(step, most) for step in host.program if not isinstance(step, Close)))
    marked = [part for number, step in enumerate(steps) for part in (Mark(f"{number} begin"), step, Mark(f"{number} {_name(step)}"))]
    host = replace(host, program=(*marked, Think(UNTOUCHED_NS)))
    other = replace(other, program=(*(step for step in other.program if not isinstance(step, Close)), Think(UNTOUCHED_NS)))
    client, server = (host, other) if under_test else (other, host)
    return simulate(replace(made, client=client, server=server), truth=True)


def _single_calls(step: Step, max_bytes: int) -> Iterator[Step]:
    if not isinstance(step, Write):
        yield step
        return
    left, call_bytes = step.size_bytes, min(step.call_bytes or step.size_bytes, max_bytes)
    while left:
        yield Write(min(left, call_bytes))
        left -= min(left, call_bytes)


def _name(step: Step) -> str:
    if isinstance(step, Write):
        return f"write {step.size_bytes}"
    return f"read {step.size_bytes}" if isinstance(step, Read) and step.size_bytes else "else"


def _calls(run: Run, end: End, *, under_test: bool) -> Iterator[tuple[Event, int]]:
    """Yield the application's calls, each with the number of bytes that it writes.

    A write has the time of its start, or the time at which enough bytes are acknowledged for it. A read has the time at which its data
    arrives.
    """
    marks = (run.client if under_test else run.server).marks
    descriptor = 3 if under_test else 4
    begin_ns = 0
    for name, at_ns in marks:
        _, what, *size = name.split()
        if what == "begin":
            begin_ns = at_ns
        elif what == "write":
            blocked = at_ns > begin_ns and end.max_unacked_bytes is None
            start_ns, until = (begin_ns, f"...{_seconds(at_ns)} ") if blocked else (at_ns, "")
            yield Event(start_ns, _CALL, f"{until}write({descriptor}, ..., {size[0]}) = {size[0]}"), int(size[0])
        elif what == "read":
            yield Event(at_ns, _CALL, f"read({descriptor}, ..., {size[0]}) = {size[0]}"), 0


def _settled_ns(run: Run, *, under_test: bool) -> int:
    """Return the time (ns) at which all data of the end under test is acknowledged, and all data of the peer has arrived."""
    own = max((packet.seq + packet.payload_bytes for packet in run.packets if packet.from_client == under_test), default=0)
    theirs = [packet for packet in run.packets if packet.from_client != under_test and packet.arrived_ns is not None]
    acked = min((packet.arrived_ns or 0 for packet in theirs if packet.ack >= own), default=0)
    return max([acked, *(packet.arrived_ns or 0 for packet in theirs if packet.payload_bytes)])


def _packets(run: Run, schedule: Schedule, *, under_test: bool) -> Iterator[Event]:
    """Yield the segments that the kernel under test must send, and the segments that it receives.

    A sent segment has PSH where a write call ends.
    """
    mss = schedule.path.mtu_bytes - HEADER_BYTES
    theirs = [packet.window_bytes for packet in run.packets if packet.from_client != under_test and not packet.flags & SYN]
    scale = max((max(theirs, default=0) // (UNSCALED_BYTES + 1)).bit_length(), 0)
    ends = _call_ends(run, under_test=under_test)
    for packet in run.packets:
        pushed = packet.flags & PSH if packet.from_client != under_test else packet.seq + packet.payload_bytes in ends
        line = _tcp(packet, pushed=bool(pushed and packet.payload_bytes))
        if packet.from_client == under_test:
            options = " <...>" if packet.flags & SYN else ""
            yield Event(packet.sent_ns, _OUT, f"> {line}{options}")
        elif packet.arrived_ns is not None:
            is_syn = bool(packet.flags & SYN)
            window = min(packet.window_bytes, UNSCALED_BYTES) if is_syn else packet.window_bytes >> scale
            options = f" <mss {mss},nop,wscale {scale}>" if is_syn else ""
            yield Event(packet.arrived_ns, _IN, f"< {line} win {window}{options}")
    yield from _meeting(run, under_test=under_test)


def _call_ends(run: Run, *, under_test: bool) -> set[int]:
    marks = (run.client if under_test else run.server).marks
    sizes = [int(name.split()[2]) for name, _ in marks if " write " in name]
    return {1 + so_far for so_far in accumulate(sizes)}


def _tcp(packet: Packet, *, pushed: bool) -> str:
    letters = ("S" if packet.flags & SYN else "") + ("P" if pushed else "") + ("." if packet.flags & ACK else "")
    span = f"{packet.seq}:{packet.seq + packet.payload_bytes}({packet.payload_bytes})"
    return f"{letters} {span}" + (f" ack {packet.ack}" if packet.flags & ACK else "")


def _meeting(run: Run, *, under_test: bool) -> Iterator[Event]:
    first = run.packets[0]
    answer = next((packet for packet in run.packets if not packet.from_client and packet.flags & SYN and packet.arrived_ns), None)
    third = next((packet for packet in run.packets if packet.from_client and not packet.flags & SYN and packet.arrived_ns), None)
    if under_test and answer is not None and answer.arrived_ns is not None:
        yield Event(first.sent_ns, _CALL, f"...{_seconds(answer.arrived_ns)} connect(3, ..., ...) = 0")
    elif third is not None and third.arrived_ns is not None:
        yield Event(third.arrived_ns, _CALL, "accept(3, ..., ...) = 4")


def _opening(end: End, *, under_test: bool) -> Iterator[str]:
    yield "// Each segment is a packet of its own, small calls leave when they are written, and windows grow by Reno's rules."
    yield "// Start it in a network namespace of its own (unshare --net): the settings stay."
    yield "0 `ip link set dev tun0 gso_max_segs 1`"
    yield "+0 `sysctl -q -w net.ipv4.tcp_autocorking=0`"
    yield "+0 `sysctl -q -w net.ipv4.tcp_congestion_control=reno`"
    yield "+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3"
    if not under_test:
        yield "+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0"
    sent = end.send_buffer_bytes or (MAX_SENT_BUFFER_BYTES if end.written_bytes > SMALL_BYTES else None)
    for level, name, value in (
        ("SOL_TCP", "TCP_NODELAY", int(end.nodelay)),
        ("SOL_SOCKET", "SO_SNDBUF", sent),
        ("SOL_SOCKET", "SO_RCVBUF", end.receive_buffer_bytes),
        ("SOL_TCP", "TCP_WINDOW_CLAMP", end.window_clamp_bytes),
    ):
        if value is not None:
            yield f"+0 setsockopt(3, {level}, {name}, [{value}], 4) = 0"
    if not under_test:
        yield "+0 bind(3, ..., ...) = 0"
        yield "+0 listen(3, 1) = 0"
