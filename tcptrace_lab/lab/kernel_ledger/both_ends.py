"""Derives facts that only both ends show: bytes in transit, queues on the path, delayed ACKs, and the application that writes next."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from tcptrace_lab.lab.kernel_ledger.events import RECEIVED, TRANSMIT, WRITE
from tcptrace_lab.lab.kernel_ledger.sockets import SEQ_SPACE, ahead
from tcptrace_lab.text.numbers import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tcptrace_lab.lab.kernel_ledger.sockets import Event, Life

Spans = list[tuple[int, int]]

OWN_TURN, PEER_TURN = "own-turn", "peer-turn"
"""This end has no unsent data. Its own application, or the peer's application, writes next."""
PEER_HELD, PEER_IN_TRANSIT = "peer-held", "peer-in-transit"
"""This end has no unsent data. Bytes that the peer's application has written are still in the peer's TCP, or in transit."""
SENT_ALL = "sent-all"
"""Neither application writes again."""
IN_TRANSIT, UNACKED, ROUND_TRIP, QUEUE, ACK_QUEUE, ACK_HELD = "in-transit", "unacked", "round-trip", "queue", "ack-queue", "ack-held"
"""States of sent bytes.

- `IN_TRANSIT`: they have not arrived.
- `UNACKED`: they are not acknowledged.
- `ROUND_TRIP`: they are not acknowledged, and the ACK is possibly in transit.
- `QUEUE`: they are in transit for longer than the path's delay.
- `ACK_QUEUE`: their ACK is in transit for longer than the path's delay.
- `ACK_HELD`: they have arrived, but the receiver delays the ACK. This state lasts until the ACK arrives.
"""
PACED_AS_LINE = "paced-as-line"
"""The pacing rate is at least the path's rate, so the path determines the spacing of the bytes."""

MIN_QUEUE_NS = NS_PER_MS
"""A packet counts as queued only if it was in transit longer than the fastest packet by more than this (a choice).

The relay's own variation is smaller.
"""
QUEUE_SHARE = 0.1
"""The transit time of a queued packet must also exceed the transit time of the fastest packet by this share (a choice)."""
LINE_SHARE = 0.8
"""A pacing rate of at least this share of the bottleneck's rate fills the path (a choice)."""
MIN_LATE = 10
"""The bottleneck's rate is known only if at least this many packets waited behind another packet (a choice)."""
ACK_HELD_NS = 20 * NS_PER_MS
"""An ACK counts as delayed if it is sent at least this long after its data arrived: half of Linux's shortest delay (TCP_DELACK_MIN)."""


@dataclass(slots=True)
class Between:
    """The transit of one direction's bytes between the two sockets.

    Attributes:
        least_transit_ns: transit time of the path's fastest packet; None if no packet was seen at both ends.
        queues: time spans in which a packet was in transit for longer than the path's delay.
        ack_queues: time spans in which an ACK was in transit for longer than the path's delay.
        acks_held: one time span per delayed ACK, from the transmission of its data to the arrival of the ACK.
        arrivals: times at which data arrived.
        line_rate: payload bytes per second that left the path's queue; None if too few packets were queued.
    """

    least_transit_ns: int | None = None
    queues: Spans = field(default_factory=list)
    ack_queues: Spans = field(default_factory=list)
    acks_held: Spans = field(default_factory=list)
    arrivals: list[int] = field(default_factory=list)
    line_rate: float | None = None


def between(sender: Life, receiver: Life | None, trips: Sequence[Trip], path_ns: int | None = None, back_ns: int | None = None) -> Between:
    """Return what the two sockets show about the path of the sender's data.

    Args:
        sender: the socket that sends the data.
        receiver: the socket at the other end.
        trips: result of `trips_between` for these sockets.
        path_ns: transit time of the fastest packet from the sender's host to the receiver's host, over all connections. If all packets of a
            connection were queued, the connection itself does not show this time.
        back_ns: transit time of the fastest packet from the receiver's host to the sender's host.
    """
    if receiver is None:
        return Between()
    held = joined(_acks_held(receiver, trips))
    _, ack_queues = _queued(_ack_trips(receiver, sender), back_ns)
    if not trips:
        return Between(ack_queues=ack_queues, acks_held=held)
    least_ns, queues = _queued(trips, path_ns)
    is_late = [_is_late(trip, least_ns) for trip in trips]
    return Between(least_ns, queues, ack_queues, held, [trip.arrived_ns for trip in trips], _line_rate(trips, is_late))


def _queued(trips: Sequence[Trip], path_ns: int | None) -> tuple[int, Spans]:
    """Return the shortest transit time of the path, and the time spans in which a packet was queued."""
    least_ns = min(trip.ns for trip in trips) if trips else 0
    least_ns = least_ns if path_ns is None else min(least_ns, path_ns)
    return least_ns, joined((trip.left_ns + least_ns, trip.arrived_ns) for trip in trips if _is_late(trip, least_ns))


def _is_late(trip: Trip, least_ns: int) -> bool:
    return trip.ns > least_ns + max(MIN_QUEUE_NS, int(QUEUE_SHARE * least_ns))


def least_transits(every: Iterable[tuple[Life, Sequence[Trip]]]) -> dict[tuple[str, str], int]:
    """Return the transit time of the fastest data segment from each host to each other host, by their addresses, over all connections."""
    found: dict[tuple[str, str], int] = {}
    for sender, trips in every:
        hosts = sender.local.address, sender.remote.address
        for trip in trips:
            found[hosts] = min(trip.ns, found.get(hosts, trip.ns))
    return found


class Trip(NamedTuple):
    """One data segment that was seen at both sockets."""

    left_ns: int
    arrived_ns: int
    payload_bytes: int

    @property
    def ns(self) -> int:
        """Return the transit time of the segment in ns."""
        return self.arrived_ns - self.left_ns


def trips_between(sender: Life, receiver: Life | None) -> list[Trip]:
    """Return one trip per arrived data segment, in order of arrival.

    If a segment was sent several times, the first arrival belongs to the first transmission, and so on.
    """
    if receiver is None:
        return []
    left: dict[tuple[int, int], deque[int]] = {}
    for event in sender.events:
        if event.kind == TRANSMIT and event.detail_bytes > 0:
            left.setdefault((event.detail_seq, event.detail_bytes), deque()).append(event.time_ns)
    trips: list[Trip] = []
    for event in receiver.events:
        sent = left.get((event.detail_seq, event.detail_bytes)) if event.kind == RECEIVED else None
        if sent and sent[0] <= event.time_ns:
            trips.append(Trip(sent.popleft(), event.time_ns, event.detail_bytes))
    return trips


def _ack_trips(receiver: Life, sender: Life) -> list[Trip]:
    """Return one trip per ACK number: from the first transmission of an ACK with this number to its first arrival."""
    sent: dict[int, int] = {}
    for event in receiver.events:
        if event.kind == TRANSMIT:
            sent.setdefault(event.detail_ack, event.time_ns)
    arrived: dict[int, int] = {}
    for event in sender.events:
        if event.kind == RECEIVED and sent.get(event.detail_ack, event.time_ns) < event.time_ns:
            arrived.setdefault(event.detail_ack, event.time_ns)
    return [Trip(sent[ack], arrived_ns, 0) for ack, arrived_ns in arrived.items()]


def _acks_held(receiver: Life, trips: Sequence[Trip]) -> Iterator[tuple[int, int]]:
    """Yield one time span per delayed ACK, from the transmission of its data to the arrival of the ACK.

    The ACK is assumed to take as long as the data.
    """
    took_ns = {trip.arrived_ns: trip.ns for trip in trips}
    waiting: deque[tuple[int, int]] = deque()  # unacknowledged segments: next sequence number, arrival time
    for event in receiver.events:
        if event.kind == RECEIVED and event.detail_bytes > 0:
            waiting.append(((event.detail_seq + event.detail_bytes) % SEQ_SPACE, event.time_ns))
        elif event.kind == TRANSMIT and waiting and ahead(event.detail_ack, waiting[0][0]) >= 0:
            arrived_ns = waiting[0][1]
            if event.time_ns - arrived_ns >= ACK_HELD_NS:
                yield arrived_ns - took_ns.get(arrived_ns, 0), event.time_ns + took_ns.get(arrived_ns, 0)
            while waiting and ahead(event.detail_ack, waiting[0][0]) >= 0:
                waiting.popleft()


def _line_rate(trips: Sequence[Trip], is_late: Sequence[bool]) -> float | None:
    """Return the bottleneck's rate in bytes per second, from packets that waited behind another packet; None if these are too few."""
    behind = [
        (after.arrived_ns - before.arrived_ns, after.payload_bytes)
        for (before, after), both_late in zip(pairwise(trips), map(all, pairwise(is_late)), strict=True)
        if both_late
    ]
    took_ns = sum(ns for ns, _ in behind)
    return sum(size for _, size in behind) * NS_PER_S / took_ns if len(behind) >= MIN_LATE and took_ns else None


def joined(spans: Iterable[tuple[int, int]]) -> Spans:
    """Merge spans that touch or overlap. Return them in order."""
    found: Spans = []
    for start_ns, end_ns in sorted(spans):
        if found and start_ns <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end_ns)
        else:
            found.append((start_ns, end_ns))
    return found


def within(spans: Spans, moment_ns: int) -> bool:
    """Return whether `moment_ns` is within one of the spans."""
    at = bisect_right(spans, moment_ns, key=lambda span: span[0]) - 1
    return at >= 0 and moment_ns < spans[at][1]


class Sides:
    """The state of both ends of a connection at any moment, derived from the events of each end."""

    def __init__(self, here: Life, there: Life | None) -> None:
        self._there = there.events if there is not None else []
        self._there_times = [event.time_ns for event in self._there]
        self._here_writes = _writes(here.events)
        self._there_writes = _writes(self._there)

    def changes(self, start_ns: int, end_ns: int) -> list[int]:
        """Return the times of the other end's events from `start_ns` to `end_ns`."""
        return self._there_times[bisect_right(self._there_times, start_ns) : bisect_right(self._there_times, end_ns - 1)]

    def turn(self, here: Event, moment_ns: int) -> str:
        """Return which application writes next. At `moment_ns`, this end has the state `here`, and no unsent data."""
        there = self._state_there(moment_ns)
        if there is not None and there.unsent_bytes > 0:
            return PEER_HELD
        if there is not None and ahead(there.snd_nxt, here.rcv_nxt) > 0:
            return PEER_IN_TRANSIT
        own, other = _next(self._here_writes, moment_ns), _next(self._there_writes, moment_ns)
        if own is None and other is None:
            return SENT_ALL
        return OWN_TURN if other is None or (own is not None and own <= other) else PEER_TURN

    def in_transit(self, here: Event, moment_ns: int) -> bool:
        """Return whether bytes that this end has sent have not arrived at the other end yet."""
        there = self._state_there(moment_ns)
        return there is not None and ahead(here.snd_nxt, there.rcv_nxt) > 0

    def _state_there(self, moment_ns: int) -> Event | None:
        at = bisect_right(self._there_times, moment_ns) - 1
        # RECEIVED and WRITE are recorded before the state changes. So if the next event is one of these, it has the state at `moment_ns`.
        if at + 1 < len(self._there) and self._there[at + 1].kind in {RECEIVED, WRITE}:
            at += 1
        return self._there[at] if at >= 0 else None


def _writes(events: Sequence[Event]) -> list[int]:
    return [event.time_ns for event in events if event.kind == WRITE]


def _next(times: Sequence[int], moment_ns: int) -> int | None:
    at = bisect_right(times, moment_ns)
    return times[at] if at < len(times) else None
