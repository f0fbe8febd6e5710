"""A schedule as a script for packetdrill (github.com/google/packetdrill).

The sender that is held is the kernel under test, and the script plays the other end and the path.

What happens when is the model's run of the schedule: calls of the program at their times, what must leave, and what comes back, until all
that the held sender writes is acknowledged. Where the model and Linux would differ in what is not the point, the script keeps away from it:

- its path has a round trip of 10 ms at least, so that what answers what can be told apart;
- segments carry no timestamps, and the interface takes one segment at a time: packetdrill compares packet by packet, and Linux pushes (PSH)
  the last segment of each larger packet;
- congestion control is Reno, the model's (CUBIC leaves slow start where ACKs come late), and no small call waits for the interface;
- calls are no larger than a segment, so that PSH stands where a call ends, and not where half of the peer's window is written;
- the other end's program pauses for no longer than `MOST_PAUSE_NS`: later, the window would be probed;
- nobody closes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Final

from tcptrace_lab.errors import CaptureInsufficient
from tcptrace_lab.replay.laid import DIRECTIONS
from tcptrace_lab.replay.model import setting
from tcptrace_lab.replay.reproducers.shrink import halved
from tcptrace_lab.stacks import simulate
from tcptrace_lab.stacks.packet import ACK, PSH, SYN
from tcptrace_lab.stacks.setting import Close, Mark, Read, Think, Write
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.replay.model import Fit
    from tcptrace_lab.replay.reproducers.showing import Oracle
    from tcptrace_lab.replay.schedule import Action, Between, End, Schedule
    from tcptrace_lab.stacks import Packet, Run
    from tcptrace_lab.stacks.setting import Step

KERNEL: Final = "linux"
"""Whose packetdrill is; the capture's own stack may be another."""

LEAST_WAY_NS: Final = 5_000_000
"""One way of the script's path."""

USUAL_MTU_BYTES: Final = 1500
"""Of packetdrill's interface, unless it is told another one."""

LARGEST_MTU_BYTES: Final = 16_384
"""Beyond it half of a window is less than a segment, and what Linux makes of that is not the point."""

HEADER_BYTES: Final = 40
NS_PER_MS: Final = 1e6
TOLERANCE_US: Final = 8_000
"""By so much the kernel may be early or late: two jiffies of 4 ms (its timers of ACKs)."""

BEGIN_NS: Final = 100_000_000
"""The connection begins so long after the script: its command takes its time."""

MOST_PAUSE_NS: Final = 150_000_000
"""Linux probes a closed window after 200 ms (`TCP_RTO_MIN`) and a round trip."""

UNTOUCHED_NS: Final = 3_600 * 10**9
"""Both programs sleep so long in the end, so that nobody closes."""

MOST_UNSPLIT_BYTES: Final = 8_192
"""Calls of a program that keeps to a bound stay as they are up to here: a quarter of the least window that a push has half of."""

SMALL_BYTES: Final = 16_384
"""More than this may not fit the send buffer that Linux gives a new connection (net.ipv4.tcp_wmem); then one is asked for."""

MOST_SENT_BUFFER_BYTES: Final = 212_992
"""What may be asked for without more (net.core.wmem_max)."""

MOST_WRITTEN_BYTES: Final = 131_072
"""So much fits it beside what the kernel needs for each segment (measured on Linux 6.18: more blocks)."""

UNSCALED_BYTES: Final = 65_535
MOST_LINES: Final = 20_000


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the script; of what happens at once, what comes in is first, then calls, then what leaves."""

    at_ns: int
    rank: int
    text: str


_IN, _CALL, _OUT = range(3)


def script(schedule: Schedule, oracle: Oracle, heading: tuple[str, ...], own: Between) -> str:
    """The script.

    Args:
        schedule: shows the stall.
        oracle: says so.
        heading: lines of words, each safe for a comment.
        own: the path of the capture.

    Raises:
        CaptureInsufficient: losses; or on a path that a script can play, the model does not show the stall.
    """
    if schedule.path.loses:
        raise CaptureInsufficient("the model does not repair losses as Linux does (RACK, tail-loss probes)", remedy="--kind python")
    linux = replace(oracle, fits=(replace(oracle.fits[0], stack=KERNEL, extra_ns=0),), need_ns=min(oracle.need_ns, MOST_PAUSE_NS // 2))
    drilled = _drilled(schedule, linux, own)
    under_test = DIRECTIONS[oracle.stall.direction]
    run = _instrumented(drilled, linux.fits[0], under_test=under_test)
    end = drilled.client if under_test else drilled.server
    if end.bound_bytes is None and end.written_bytes > MOST_WRITTEN_BYTES:
        raise CaptureInsufficient(f"{end.written_bytes:,} bytes do not fit the send buffer of a packetdrill script", remedy="--kind python")
    calls = list(_calls(run, end, under_test=under_test))
    events = [*_packets(run, drilled, under_test=under_test), *(event for event, _ in calls)]
    last_ns = max(_settled_ns(run, under_test=under_test), *(event.at_ns for event, _ in calls))
    waits = linux.longest_waits(run)
    events += [Event(start_ns, _OUT + 1, f"// Here it waits for {(end_ns - start_ns) / NS_PER_MS:.1f} ms.") for start_ns, end_ns in waits]
    if len(events) > MOST_LINES:
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
    """The schedule on a path that a script can play, on which it shows the stall."""
    client, server = (replace(end, tasks=(tuple(map(_short, end.tasks[0])),)) for end in schedule.ends())
    for path in (schedule.path, own):
        forward, backward = (replace(way, delay_ns=max(way.delay_ns, LEAST_WAY_NS)) for way in path.ways)
        plain = replace(path, forward=forward, backward=backward, loopback=False, ipv6=False, timestamps=False, sack=False)
        for mtu in dict.fromkeys((min(path.mtu_bytes, USUAL_MTU_BYTES), min(own.mtu_bytes, LARGEST_MTU_BYTES))):
            candidate = replace(schedule, client=client, server=server, path=replace(plain, mtu_bytes=mtu))
            if oracle.shows(candidate) is not None:
                return _halved(candidate, oracle)
    raise CaptureInsufficient("the model shows the stall on no path that a packetdrill script can play", remedy="--kind python")


def _halved(schedule: Schedule, oracle: Oracle) -> Schedule:
    """With writes half as large as long as that shows it: pauses are shorter here, and a send buffer must take what one call writes."""
    while (smaller := next((one for one in halved(schedule) if oracle.shows(one) is not None), None)) is not None:
        schedule = smaller
    return schedule


def _short(step: Action) -> Action:
    return Think(min(step.for_ns, MOST_PAUSE_NS)) if isinstance(step, Think) else step


# What happens


def _instrumented(schedule: Schedule, fit: Fit, *, under_test: bool) -> Run:
    """The run, with a mark before and behind each call of the end under test."""
    made = setting(schedule, fit)
    host, other = (made.client, made.server) if under_test else (made.server, made.client)
    end = schedule.client if under_test else schedule.server
    most = schedule.path.mtu_bytes - HEADER_BYTES if end.bound_bytes is None else MOST_UNSPLIT_BYTES
    steps = list(chain.from_iterable(_single_calls(step, most) for step in host.program if not isinstance(step, Close)))
    marked = [part for number, step in enumerate(steps) for part in (Mark(f"{number} begin"), step, Mark(f"{number} {_name(step)}"))]
    host = replace(host, program=(*marked, Think(UNTOUCHED_NS)))
    other = replace(other, program=(*(step for step in other.program if not isinstance(step, Close)), Think(UNTOUCHED_NS)))
    client, server = (host, other) if under_test else (other, host)
    return simulate(replace(made, client=client, server=server), truth=True)


def _single_calls(step: Step, most_bytes: int) -> Iterator[Step]:
    if not isinstance(step, Write):
        yield step
        return
    left, call_bytes = step.size_bytes, min(step.call_bytes or step.size_bytes, most_bytes)
    while left:
        yield Write(min(left, call_bytes))
        left -= min(left, call_bytes)


def _name(step: Step) -> str:
    if isinstance(step, Write):
        return f"write {step.size_bytes}"
    return f"read {step.size_bytes}" if isinstance(step, Read) and step.size_bytes else "else"


def _calls(run: Run, end: End, *, under_test: bool) -> Iterator[tuple[Event, int]]:
    """The program's calls, and how much each writes: writes when they begin (or when a bound lets them), reads when their data is there."""
    marks = (run.client if under_test else run.server).marks
    descriptor = 3 if under_test else 4
    begin_ns = 0
    for name, at_ns in marks:
        _, what, *size = name.split()
        if what == "begin":
            begin_ns = at_ns
        elif what == "write":
            blocked = at_ns > begin_ns and end.bound_bytes is None
            start_ns, until = (begin_ns, f"...{_seconds(at_ns)} ") if blocked else (at_ns, "")
            yield Event(start_ns, _CALL, f"{until}write({descriptor}, ..., {size[0]}) = {size[0]}"), int(size[0])
        elif what == "read":
            yield Event(at_ns, _CALL, f"read({descriptor}, ..., {size[0]}) = {size[0]}"), 0


def _settled_ns(run: Run, *, under_test: bool) -> int:
    """When the last data has come or has been acknowledged."""
    own = max((packet.seq + packet.payload_bytes for packet in run.packets if packet.from_client == under_test), default=0)
    theirs = [packet for packet in run.packets if packet.from_client != under_test and packet.arrived_ns is not None]
    acked = min((packet.arrived_ns or 0 for packet in theirs if packet.ack >= own), default=0)
    return max([acked, *(packet.arrived_ns or 0 for packet in theirs if packet.payload_bytes)])


def _packets(run: Run, schedule: Schedule, *, under_test: bool) -> Iterator[Event]:
    """What leaves, pushed where a call ends, and what comes; packets that the path loses on their way back never come."""
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
    """Sequence numbers behind the last byte of each call."""
    marks = (run.client if under_test else run.server).marks
    sizes = [int(name.split()[2]) for name, _ in marks if " write " in name]
    return {1 + so_far for so_far in accumulate(sizes)}


def _tcp(packet: Packet, *, pushed: bool) -> str:
    letters = ("S" if packet.flags & SYN else "") + ("P" if pushed else "") + ("." if packet.flags & ACK else "")
    span = f"{packet.seq}:{packet.seq + packet.payload_bytes}({packet.payload_bytes})"
    return f"{letters} {span}" + (f" ack {packet.ack}" if packet.flags & ACK else "")


def _meeting(run: Run, *, under_test: bool) -> Iterator[Event]:
    """The call that makes the connection."""
    first = run.packets[0]
    answer = next((packet for packet in run.packets if not packet.from_client and packet.flags & SYN and packet.arrived_ns), None)
    third = next((packet for packet in run.packets if packet.from_client and not packet.flags & SYN and packet.arrived_ns), None)
    if under_test and answer is not None and answer.arrived_ns is not None:
        yield Event(first.sent_ns, _CALL, f"...{_seconds(answer.arrived_ns)} connect(3, ..., ...) = 0")
    elif third is not None and third.arrived_ns is not None:
        yield Event(third.arrived_ns, _CALL, "accept(3, ..., ...) = 4")


def _opening(end: End, *, under_test: bool) -> Iterator[str]:
    """The socket with its options."""
    yield "// Each segment is a packet of its own, small calls leave when they are written, and windows grow by Reno's rules."
    yield "// Start it in a network namespace of its own (unshare --net): the settings stay."
    yield "0 `ip link set dev tun0 gso_max_segs 1`"
    yield "+0 `sysctl -q -w net.ipv4.tcp_autocorking=0`"
    yield "+0 `sysctl -q -w net.ipv4.tcp_congestion_control=reno`"
    yield "+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3"
    if not under_test:
        yield "+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0"
    sent = end.send_buffer_bytes or (MOST_SENT_BUFFER_BYTES if end.written_bytes > SMALL_BYTES else None)
    for level, name, value in (
        ("SOL_TCP", "TCP_NODELAY", int(end.nodelay)),
        ("SOL_SOCKET", "SO_SNDBUF", sent),
        ("SOL_SOCKET", "SO_RCVBUF", end.receive_buffer_bytes),
        ("SOL_TCP", "TCP_WINDOW_CLAMP", end.window_bytes),
    ):
        if value is not None:
            yield f"+0 setsockopt(3, {level}, {name}, [{value}], 4) = 0"
    if not under_test:
        yield "+0 bind(3, ..., ...) = 0"
        yield "+0 listen(3, 1) = 0"
