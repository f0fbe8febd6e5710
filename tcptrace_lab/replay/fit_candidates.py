"""Proposes values for what a capture does not show (`model.Fit`). The values are tried in stages, the most likely values first."""

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
"""Phases of the timer tick that are tried: four steps of a 4 ms jiffy. A capture does not show the phase."""

STACKS_TRIED: Final = ("linux", "freebsd", "solaris2.5", "bsd4.4", "sunos4")


def usual(evidence: Evidence, schedule: Schedule, stack: str = "linux", phases: Sequence[int] = PHASES_NS) -> Iterator[Fit]:
    """Yield the fits of the first stage: RTTs, receive windows, timer phases, and sizes of writes that the capture does not show."""
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
    """Return the values of TCP_NODELAY to try.

    Both values are tried if the option is unknown and the unacknowledged bytes of an end are limited. Otherwise only False is tried, so
    that the value in the schedule applies.
    """
    unsure = any(evidence.row[f"{side}_nagle"] == "unknown" and evidence.row[f"{side}_data_segments"] for side in ("client", "server"))
    return (False, True) if unsure and any(end.max_unacked_bytes for end in schedule.ends()) else (False,)


def odd(evidence: Evidence, schedule: Schedule) -> Iterator[Fit]:
    """Yield the fits of the second stage: a receive window that is one segment smaller, and other sizes of write calls.

    Other sizes of calls are tried only for an end whose unacknowledged bytes are limited.
    """
    extra_ns = _usual_extra_ns(evidence)
    for end in schedule.ends():
        if end.window_clamp_bytes:
            yield Fit(extra_ns=extra_ns, less_bytes=_unused_bytes(evidence, schedule) + mss_bytes(schedule, "linux"))
        for call_bytes, off in product(_calls(end), _nodelays(evidence, schedule)):
            yield Fit(extra_ns=extra_ns, nodelay=off, call_bytes=call_bytes)


def _calls(end: End) -> list[int]:
    """Return the sizes of write calls to try.

    A size is the send buffer limit, or the size of a smaller write call in the schedule, divided by 1 to 16.
    """
    if not end.max_unacked_bytes:
        return []
    together = {step.call_bytes for task in end.tasks for step in task if isinstance(step, Write)} & set(range(end.max_unacked_bytes))
    return sorted(
        {
            whole // calls
            for whole in (end.max_unacked_bytes, *together)
            if whole
            for calls in range(1, MAX_CALLS + 1)
            if whole % calls == 0 and whole // calls >= MIN_CALL_BYTES
        }
    )


MAX_CALLS, MIN_CALL_BYTES = 16, 128
"""Maximum number of calls into which a write is divided, and minimum size of a call. Smaller calls take long to simulate."""


def other_stacks(evidence: Evidence, schedule: Schedule) -> Iterator[Fit]:
    """Yield the fits of the third stage: for each stack other than Linux, the fits of the first stage, with one timer phase."""
    for stack in STACKS_TRIED[1:]:
        yield from usual(evidence, schedule, stack=stack, phases=PHASES_NS[:1])


def mss_bytes(schedule: Schedule, stack: str) -> int:
    """Return the payload bytes of a full segment on the schedule's path."""
    path = schedule.path
    return path.mtu_bytes - IP_TCP_BYTES[path.ipv6] - (STACKS[stack].option_bytes if path.timestamps else 0)


def _usual_extra_ns(evidence: Evidence) -> int:
    """Return median RTT minus minimum RTT, in ns; 0 if queueing or delayed ACKs raise the median."""
    row = evidence.row
    side = "client" if row["client_payload_bytes"] >= row["server_payload_bytes"] else "server"
    usual, least = row[f"{side}_rtt_p50_ns"], row[f"{side}_rtt_min_ns"]
    return int(usual - least) if usual and least and usual < QUEUED_TIMES * least else 0


MUCH_BYTES: Final = 2_000_000
"""If an end writes at least this many bytes, only one timer phase is tried.

Simulating so much data takes seconds, and the phase of delayed-ACK timers matters little.
"""


def _unused_bytes(evidence: Evidence, schedule: Schedule) -> int:
    """Return the bytes of the receive window that the sender never used; 0 if unknown.

    Linux advertises a smaller window while the application has not yet read all segments, so the sender never fills the largest window. A
    sender that used less than half of the window was limited by something else.
    """
    for from_client, end in ((True, schedule.server), (False, schedule.client)):
        used = evidence.row[f"{'client' if from_client else 'server'}_max_in_flight_bytes"]
        if end.window_clamp_bytes and used and end.window_clamp_bytes // 2 < used < end.window_clamp_bytes:
            return int(end.window_clamp_bytes - used)
    return 0
