"""Divides the time between a sender's events into intervals, with their closed gates and with the gates that opened last.

Some events are recorded before they change the sender's state: a segment is about to be processed, or an application begins to write. If
such an event ends an interval, the interval has the state of this event. Otherwise, it has the state of the event at its start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from tcptrace_lab.lab.kernel_ledger.events import ASKED_QUEUE, READ, RECEIVED, RETRANSMIT, SETTLED, STATE, TRANSMIT, WRITE, WRITTEN
from tcptrace_lab.lab.kernel_ledger.gates import CA_RECOVERY, NOTHING, OWN_BOUND, TAIL_PROBE, TIMEOUT, TIMERS, closed
from tcptrace_lab.lab.kernel_ledger.sockets import ahead
from tcptrace_lab.text.numbers import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.lab.kernel_ledger.sockets import Event

MAX_SEGMENTS = 64
"""The segments of a retransmission are searched in this many records before the tracer's report of the retransmission (a choice)."""
AT_ONCE_NS = NS_PER_MS
"""Maximum time from a retransmission to the tracer's report. The report takes microseconds; on a busy machine, it takes longer."""

_BEFORE_CHANGE = frozenset({RECEIVED, WRITE, ASKED_QUEUE})
_AFTER_CHANGE = frozenset({SETTLED, WRITTEN, READ, STATE})
_RESTARTS_TIMER = frozenset({RECEIVED, TRANSMIT, RETRANSMIT})


@dataclass(frozen=True, slots=True)
class Interval:
    """A time span in which the same gates were closed.

    Attributes:
        event: the sender's state during the interval.
        gates: the closed gates, in the kernel's order.
        last: the gates that opened last; several gates if one event opened them together.
    """

    start_ns: int
    end_ns: int
    event: Event
    gates: tuple[str, ...]
    last: tuple[str, ...] = ()


def intervals(events: Sequence[Event]) -> list[Interval]:
    """Divide the time from the first to the last event of a sender into intervals without gaps."""
    found: list[Interval] = []
    timers = _timers(events)
    bounded = _bounded(events)
    for index, (before, after) in enumerate(pairwise(events)):
        if after.time_ns <= before.time_ns:
            continue
        state = after if after.kind in _BEFORE_CHANGE or before.kind not in _AFTER_CHANGE else before
        for start_ns, end_ns in _around(state.paced_until_ns, before.time_ns, after.time_ns):
            gates = closed(state, start_ns)
            if bounded[index] and gates == (NOTHING,):
                gates = (OWN_BOUND,)
            if timer := timers[index]:
                gates = (timer, *gates)
            found.append(Interval(start_ns, end_ns, state, gates))
    return _with_last(found, {event.time_ns for event in events if _departs(event)})


def _around(moment_ns: int, start_ns: int, end_ns: int) -> list[tuple[int, int]]:
    if start_ns < moment_ns < end_ns:
        return [(start_ns, moment_ns), (moment_ns, end_ns)]
    return [(start_ns, end_ns)]


def _departs(event: Event) -> bool:
    return event.kind == RETRANSMIT or (event.kind == TRANSMIT and event.detail_bytes > 0)


def _timers(events: Sequence[Event]) -> list[str | None]:
    """Return the running timer after each event if this timer later sent a retransmission; otherwise None.

    If the count of timeouts has increased, the retransmission timer sent the segment. Otherwise, the timer of a tail loss probe sent it,
    except during recovery. Each received or sent segment starts both timers again. The kernel reports a retransmission after sending it.
    """
    timers: list[str | None] = [None] * len(events)
    for index, event in enumerate(events):
        if event.kind != RETRANSMIT:
            continue
        own = {at for at in range(max(index - MAX_SEGMENTS, 0), index) if _is_part(events[at], event)}
        since = next((at for at in range(index - 1, -1, -1) if events[at].kind in _RESTARTS_TIMER and at not in own), 0)
        timer = TIMEOUT if event.retransmits > events[since].retransmits else TAIL_PROBE if event.ca_state < CA_RECOVERY else None
        if timer is not None:
            fired = min(own, default=index)
            timers[since:fired] = [timer] * (fired - since)
    return timers


def _is_part(departure: Event, retransmission: Event) -> bool:
    """Return whether a sent segment is part of the retransmission that the kernel reports afterwards."""
    offset = ahead(departure.detail_seq, retransmission.detail_seq)
    recent = retransmission.time_ns - departure.time_ns <= AT_ONCE_NS
    return departure.kind == TRANSMIT and departure.detail_bytes > 0 and 0 <= offset < retransmission.detail_bytes and recent


def _bounded(events: Sequence[Event]) -> list[bool]:
    """Return for each event whether the application limits itself in the time after it.

    Such an application asks for its unacknowledged bytes (SIOCOUTQ) before it writes.
    """
    bounded = [False] * len(events)
    asked_since: int | None = None
    for index, event in enumerate(events):
        if event.kind == ASKED_QUEUE and event.unacked_bytes > 0 and asked_since is None:
            asked_since = index
        elif event.kind == WRITE and asked_since is not None:
            bounded[asked_since:index] = [True] * (index - asked_since)
            asked_since = None
        elif event.kind == WRITE:
            asked_since = None
    return bounded


def _with_last(found: Sequence[Interval], departures: set[int]) -> list[Interval]:
    """Add to each interval the gates that opened last.

    These are the closed gates that stayed closed longest before the next transmission. A timer sends its segment even if other gates are
    closed, so the timer counts as the gate that opened last.
    """
    ends: dict[str, int] = {}
    done: list[Interval] = []
    for interval in reversed(found):
        if interval.end_ns in departures:
            ends = {}
        ends = {gate: ends.get(gate, interval.end_ns) for gate in interval.gates}
        latest = max(ends.values())
        last = tuple(gate for gate in interval.gates if ends[gate] == latest)
        done.append(replace(interval, last=last[:1] if interval.gates[0] in TIMERS else last))
    done.reverse()
    return done
