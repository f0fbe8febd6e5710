"""What a capture does not say outright, and is therefore tried in the models: `model.Fit`, stage by stage, the likely first."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

from tcptrace_lab.replay.model import Fit
from tcptrace_lab.replay.reconstruct import IP_TCP_BYTES, QUEUED_TIMES
from tcptrace_lab.stacks import STACKS
from tcptrace_lab.stacks.setting import Write

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcptrace_lab.replay.evidence import Evidence
    from tcptrace_lab.replay.schedule import End, Schedule

PHASES_NS: Final = (0, 1_000_000, 2_000_000, 3_000_000)
"""A jiffy of 4 ms in four steps: where its beats fall, no capture tells."""

STACKS_TRIED: Final = ("linux", "freebsd", "solaris2.5", "bsd4.4", "sunos4")


def usual(evidence: Evidence, schedule: Schedule, stack: str = "linux", phases: Sequence[int] = PHASES_NS) -> Iterator[Fit]:
    """The least round trip and the usual one, the window as told and as used, the phases of the timers, and calls that do not show."""
    extra_ns = _usual_extra_ns(evidence)
    phases = phases if max(end.written_bytes for end in schedule.ends()) < MUCH_BYTES else phases[:1]
    unused, offs = sorted({0, _unused_bytes(evidence, schedule)}), _nodelays(evidence, schedule)
    for extra, less, phase_ns, off in product(sorted({0, extra_ns}), unused, phases, offs):
        yield Fit(stack, extra, phase_ns, less, off)
    for end in schedule.ends():
        if any(isinstance(step, Write) and step.call_bytes == mss_bytes(schedule, "linux") for task in end.tasks for step in task):
            for call_bytes, off in product(_calls(end), offs):
                yield Fit(stack, extra_ns, nodelay=off, call_bytes=call_bytes)


def _nodelays(evidence: Evidence, schedule: Schedule) -> tuple[bool, ...]:
    """Of a program that keeps to a bound, where NODELAY does not show, both."""
    unsure = any(evidence.row[f"{side}_nagle"] == "unknown" and evidence.row[f"{side}_data_segments"] for side in ("client", "server"))
    return (False, True) if unsure and any(end.bound_bytes for end in schedule.ends()) else (False,)


def odd(evidence: Evidence, schedule: Schedule) -> Iterator[Fit]:
    """Where none of them does: the window is a segment less than it says, or the calls of a program that keeps to a bound are others."""
    extra_ns = _usual_extra_ns(evidence)
    for end in schedule.ends():
        if end.window_bytes:
            yield Fit(extra_ns=extra_ns, less_bytes=_unused_bytes(evidence, schedule) + mss_bytes(schedule, "linux"))
        for call_bytes, off in product(_calls(end), _nodelays(evidence, schedule)):
            yield Fit(extra_ns=extra_ns, nodelay=off, call_bytes=call_bytes)


def _calls(end: End) -> list[int]:
    """What is unacknowledged at the most, or goes out together, is a whole number of calls."""
    if not end.bound_bytes:
        return []
    together = {step.call_bytes for task in end.tasks for step in task if isinstance(step, Write)} & set(range(end.bound_bytes))
    return sorted(
        {
            whole // calls
            for whole in (end.bound_bytes, *together)
            if whole
            for calls in range(1, MOST_CALLS + 1)
            if whole % calls == 0 and whole // calls >= LEAST_CALL_BYTES
        }
    )


MOST_CALLS, LEAST_CALL_BYTES = 16, 128
"""So many, at the most, are tried, and none smaller: of those the model takes long."""


def other_stacks(evidence: Evidence, schedule: Schedule) -> Iterator[Fit]:
    """The same of other stacks than Linux."""
    for stack in STACKS_TRIED[1:]:
        yield from usual(evidence, schedule, stack=stack, phases=PHASES_NS[:1])


def mss_bytes(schedule: Schedule, stack: str) -> int:
    """Data of a full segment."""
    path = schedule.path
    return path.mtu_bytes - IP_TCP_BYTES[path.ipv6] - (STACKS[stack].option_bytes if path.timestamps else 0)


def _usual_extra_ns(evidence: Evidence) -> int:
    """By how much the median round trip of full segments is longer than the least one, where their ACKs are not delayed."""
    row = evidence.row
    side = "client" if row["client_payload_bytes"] >= row["server_payload_bytes"] else "server"
    usual, least = row[f"{side}_rtt_p50_ns"], row[f"{side}_rtt_min_ns"]
    return int(usual - least) if usual and least and usual < QUEUED_TIMES * least else 0


MUCH_BYTES: Final = 2_000_000
"""From so much data on, timers of ACKs matter less than the seconds that a model of them takes."""


def _unused_bytes(evidence: Evidence, schedule: Schedule) -> int:
    """What its sender never used of the window that held it: Linux tells less while segments are being read.

    A window of which not half was used held nothing for long.
    """
    for from_client, end in ((True, schedule.server), (False, schedule.client)):
        used = evidence.row[f"{'client' if from_client else 'server'}_max_in_flight_bytes"]
        if end.window_bytes and used and end.window_bytes // 2 < used < end.window_bytes:
            return int(end.window_bytes - used)
    return 0
