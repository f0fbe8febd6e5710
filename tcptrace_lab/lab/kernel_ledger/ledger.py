"""The kernel's ledger of a transfer, in a Parquet file beside the captures. A row is an interval during which no gate opened or closed."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.lab.kernel_ledger.both_ends import (
    ACK_HELD,
    ACK_QUEUE,
    IN_TRANSIT,
    LINE_SHARE,
    PACED_AS_LINE,
    QUEUE,
    ROUND_TRIP,
    UNACKED,
    Sides,
    between,
    least_transits,
    trips_between,
    within,
)
from tcptrace_lab.lab.kernel_ledger.events import TRANSMIT
from tcptrace_lab.lab.kernel_ledger.gates import NOTHING, TIMERS
from tcptrace_lab.lab.kernel_ledger.intervals import intervals
from tcptrace_lab.lab.kernel_ledger.sockets import lives, pairs
from tcptrace_lab.lab.kernel_ledger.trace import EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tcptrace_lab.lab.kernel_ledger.both_ends import Between, Spans
    from tcptrace_lab.lab.kernel_ledger.intervals import Interval
    from tcptrace_lab.lab.kernel_ledger.sockets import Life

LEDGER = "kernel-ledger.parquet"

GROWING, REDUCED, DISORDER = "growing", "reduced", "disorder"
"""Conditions of an interval.

`GROWING`: the congestion window is below ssthresh. `REDUCED`: the congestion window has reached a reduced ssthresh. `DISORDER`: segments
are marked as SACKed or lost.
"""
NO_THRESHOLD = 0x7FFFFFFF
"""Value of ssthresh before the first reduction. Linux: TCP_INFINITE_SSTHRESH."""
NS_PER_US = 1_000
_BEFORE_ALL_NS = -(1 << 62)

SCHEMA: dict[str, Any] = {
    "sender_address": pl.String,
    "sender_port": pl.UInt16,
    "receiver_address": pl.String,
    "receiver_port": pl.UInt16,
    "is_client": pl.Boolean,  # whether this sender opened the connection
    "start_ns": pl.Int64,  # on the realtime clock, as in captures; a sender's rows have no gaps
    "end_ns": pl.Int64,
    "gates": pl.List(pl.String),  # the closed gates, in the kernel's order; if no data are unsent, the application that writes next
    "last": pl.List(pl.String),  # the gates that opened last
    "context": pl.List(pl.String),  # further conditions in the interval: congestion state, pauses
    "least_transit_ns": pl.Int64,  # shortest transit time between the hosts; null if no segment was seen at both sockets
}
"""The table's columns."""


def kernel_ledger(events: pl.DataFrame) -> pl.DataFrame:
    """Return the intervals of all senders, sender by sender, in order of time."""
    rows: list[tuple[object, ...]] = []
    connected = [(life, other, trips_between(life, other)) for life, other in pairs(lives(events))]
    least_ns = least_transits((life, trips) for life, _, trips in connected)
    for life, other, trips in connected:
        hosts = life.local.address, life.remote.address
        path = between(life, other, trips, least_ns.get(hosts), least_ns.get(hosts[::-1]))
        ends = (*life.local, *life.remote, life.is_client)
        rows.extend((*ends, *row, path.least_transit_ns) for row in _merged(_rows(life, other, path)))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def write_ledger(folder: Path) -> pl.DataFrame:
    """Make the ledger from the events in a transfer's folder, and write it to that folder."""
    table = kernel_ledger(pl.read_parquet(folder / EVENTS))
    table.write_parquet(folder / LEDGER, compression="zstd")
    return table


_Row = tuple[int, int, list[str], list[str], list[str]]


def _rows(life: Life, other: Life | None, path: Between) -> Iterator[_Row]:
    sides = Sides(life, other)
    left = [event.time_ns for event in life.events if event.kind == TRANSMIT and event.detail_bytes > 0]
    for interval in intervals(life.events):
        cuts = {interval.start_ns, interval.end_ns, *_bounds(path.queues, interval), *_bounds(path.ack_queues, interval)}
        cuts.update(_bounds(path.acks_held, interval))
        cuts.update(sides.changes(interval.start_ns, interval.end_ns))
        round_trip_ns = _last(left, interval.start_ns) + interval.event.min_rtt_us * NS_PER_US
        for from_ns, to_ns in pairwise(sorted(cuts)):
            answered_ns = max(round_trip_ns, _last(path.arrivals, from_ns) + (path.least_transit_ns or 0))
            for start_ns, end_ns in pairwise(sorted({from_ns, min(max(answered_ns, from_ns), to_ns), to_ns})):
                context = _context(interval, start_ns, sides, path)
                gates, last = _without_timer(interval, is_needed=other is None or IN_TRANSIT in context)
                if NOTHING in gates:
                    turn = sides.turn(interval.event, start_ns)
                    gates, last = ([turn if gate == NOTHING else gate for gate in names] for names in (gates, last))
                if UNACKED in context and start_ns < answered_ns:
                    context.append(ROUND_TRIP)
                yield start_ns, end_ns, gates, last, context


def _without_timer(interval: Interval, *, is_needed: bool) -> tuple[list[str], list[str]]:
    """Return all closed gates, and the gates that opened last.

    If a timer's retransmission was spurious, the timer has delayed nothing, and is removed. If the retransmission was needed, only the
    timer opened last.
    """
    gates, last = list(interval.gates), list(interval.last)
    if gates[0] not in TIMERS:
        return gates, last
    if is_needed:
        return [gate for gate in gates if gate != NOTHING], last
    return gates[1:], gates[1:]


def _last(times: Sequence[int], moment_ns: int) -> int:
    """Return the latest time that is not after `moment_ns`. Without such a time, return a time before all others."""
    at = bisect_right(times, moment_ns)
    return times[at - 1] if at else _BEFORE_ALL_NS


def _bounds(spans: Spans, interval: Interval) -> list[int]:
    return [moment for span in spans for moment in span if interval.start_ns < moment < interval.end_ns]


def _context(interval: Interval, moment_ns: int, sides: Sides, path: Between) -> list[str]:
    event = interval.event
    holds = (
        (GROWING, event.snd_cwnd < event.ssthresh),
        (REDUCED, event.ssthresh < NO_THRESHOLD and event.snd_cwnd >= event.ssthresh),
        (DISORDER, event.sacked_out > 0 or event.lost_out > 0),
        (IN_TRANSIT, sides.in_transit(event, moment_ns)),
        (UNACKED, event.unacked_bytes > 0),
        (QUEUE, within(path.queues, moment_ns)),
        (ACK_QUEUE, within(path.ack_queues, moment_ns)),
        (ACK_HELD, within(path.acks_held, moment_ns)),
        (PACED_AS_LINE, path.line_rate is not None and event.pacing_rate >= LINE_SHARE * path.line_rate),
    )
    return [name for name, is_so in holds if is_so]


def _merged(rows: Iterator[_Row]) -> Iterator[_Row]:
    current: _Row | None = None
    for row in rows:
        if current is not None and current[1] == row[0] and current[2:] == row[2:]:
            current = (current[0], row[1], *row[2:])
            continue
        if current is not None:
            yield current
        current = row
    if current is not None:
        yield current
