"""Does a schedule still show the stall? Asked of the model that was fitted to the capture: it answers quickly, and always the same.

A schedule shows it when its sender waits for what held the original, about as long as one of the original's waits, with a byte to send
behind that wait, and when the cure that the finding names takes the wait away and the transfer's time with it. It must be so under each of
the fits that are nearly as good as the best: what hangs on a jiffy, or on a segment of a window, would not come back from a real kernel.
Where `must_be_seen` asks for it, `analyze` must see it in a capture of the model's run as well: a send buffer, for one, shows in a capture
only after some rounds. That takes a hundred times as long, and most stalls do not need it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tcptrace_lab.errors import CaptureInsufficient
from tcptrace_lab.replay.laid import CURED_LEFT, DIRECTIONS, FAMILIES
from tcptrace_lab.replay.whatif import life_ns, modelled, run
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.replay.changes import Changes
    from tcptrace_lab.replay.laid import Stall
    from tcptrace_lab.replay.model import Fit
    from tcptrace_lab.replay.schedule import Schedule
    from tcptrace_lab.stacks import Run

WAIT_SHARE: Final = 0.8
"""Of the original's usual wait, what one that comes back has at least: timers beat in jiffies, 4 ms of 40."""

LEAST_WAIT_NS: Final = 10_000_000
"""No shorter wait is looked for: a program that measures it could not tell it from a busy machine (a heuristic)."""

LOOPBACK_ROUND_TRIP_NS: Final = 40_000
"""Of a path without delay: no host answers in no time, and the order of what happens at once is the model's own (a heuristic)."""

MOST_FITS: Final = 4
"""So many of the nearly best fits are asked."""

LONGER_NS: Final = 5_000_000
"""By so much, at least, a round trip is made longer to see what depends on it."""

SEEN_SHARE: Final = 0.5
"""Of the wait, what the ledger of a capture has of it at least: it gives the round trip in it to the network."""

SAVED_SHARE: Final = 0.5
"""Of the wait, what the cure saves of the transfer's time at least: a wait that something else fills costs nothing."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What the model says of one schedule, in nanoseconds.

    Attributes:
        held_ns, cured_held_ns: how long its sender was held by the stall's causes, as it is and with the cure.
        took_ns, cured_ns: the connection.
    """

    held_ns: int
    cured_held_ns: int
    took_ns: int
    cured_ns: int


@dataclass(frozen=True, slots=True)
class Expected:
    """How long a transfer takes with its stall and without, and how that depends on the round trip.

    Attributes:
        held_s: its sender is held so long.
        with_s, without_s: the connection, with the stall and with the cure, at a round trip of `round_trip_s`.
        with_rounds, without_rounds: round trips that are in it.
    """

    held_s: float
    with_s: float
    without_s: float
    with_rounds: float
    without_rounds: float
    round_trip_s: float


@dataclass(slots=True)
class Oracle:
    """The question, with what it depends on.

    Attributes:
        fits: of the model, the best first.
        stall: what held the original.
        cure: what takes it away.
        need_ns: least time that the sender must be held.
        runs: of the model, so far.
        must_be_seen: by `analyze`, in a capture of the run.
    """

    fits: tuple[Fit, ...]
    stall: Stall
    cure: Changes
    need_ns: int = LEAST_WAIT_NS
    runs: int = 0
    must_be_seen: bool = False

    def shows(self, schedule: Schedule) -> Shown | None:
        """What the best fit says, if all fits show the stall."""
        first: Shown | None = None
        for fit in self._fits_of(schedule):
            found = self.asked(schedule, fit)
            if found is None or not self._is_stall(found):
                return None
            first = first or found
        return first if not self.must_be_seen or self.is_seen(schedule) else None

    def is_seen(self, schedule: Schedule) -> bool:
        """Whether the ledger of a capture has the wait."""
        seen = modelled("", schedule, self._fits_of(schedule)[0]).held_s(self.stall.family, self.stall.direction)
        return seen * NS_PER_S >= SEEN_SHARE * self.need_ns

    def _is_stall(self, found: Shown) -> bool:
        if found.held_ns < self.need_ns or found.cured_held_ns > CURED_LEFT * found.held_ns:
            return False
        return found.took_ns - found.cured_ns >= SAVED_SHARE * self.need_ns

    def _fits_of(self, schedule: Schedule) -> tuple[Fit, ...]:
        """Those that differ on this path: what the round trip of the capture had more than its least is no part of another path."""
        if has_delay(schedule):
            return self.fits
        return tuple(dict.fromkeys(replace(fit, extra_ns=LOOPBACK_ROUND_TRIP_NS) for fit in self.fits))

    def asked(self, schedule: Schedule, fit: Fit) -> Shown | None:
        """What the model says under one fit; None where its programs do not come to their ends, or its sender is not held."""
        plain = self._run(schedule, fit)
        if plain is None or self.held_ns(plain) < self.need_ns:
            return None
        # Nothing is known of how much of a buffer of another size goes unused.
        cured = self._run(self.cure.applied(schedule), fit if self.cure.receive_buffer_bytes is None else replace(fit, less_bytes=0))
        if cured is None:
            return None
        return Shown(self.held_ns(plain), self.held_ns(cured), life_ns(plain), life_ns(cured))

    def expected(self, schedule: Schedule) -> Expected | None:
        """What the best fit says on the schedule's path, and on one with a longer round trip."""
        fit = self._fits_of(schedule)[0]
        longer_ns = max(schedule.path.round_trip_ns // 4, LONGER_NS)
        here, there = self.asked(schedule, fit), self.asked(schedule, replace(fit, extra_ns=fit.extra_ns + longer_ns))
        if here is None:
            return None
        there = there or here
        return Expected(
            here.held_ns / NS_PER_S,
            here.took_ns / NS_PER_S,
            here.cured_ns / NS_PER_S,
            max(0.0, (there.took_ns - here.took_ns) / longer_ns),
            max(0.0, (there.cured_ns - here.cured_ns) / longer_ns),
            (schedule.path.round_trip_ns + fit.extra_ns) / NS_PER_S,
        )

    def _run(self, schedule: Schedule, fit: Fit) -> Run | None:
        self.runs += 1
        try:
            made = run(schedule, fit, truth=True)
        except CaptureInsufficient:
            return None
        return made if made.client.done and made.server.done else None

    def held_ns(self, of: Run) -> int:
        """How long the stall's direction was held by the stall's causes."""
        return sum(end_ns - start_ns for start_ns, end_ns in self._holds(of))

    def _holds(self, of: Run) -> list[tuple[int, int]]:
        """When; behind the last byte there is none that could be held."""
        causes, departures = FAMILIES[self.stall.family], self._departures(of)
        last_ns = departures[-1] if departures else 0
        own = (hold for hold in of.truth if hold.from_client == self._from_client and hold.cause in causes)
        return [(hold.start_ns, min(hold.end_ns, last_ns)) for hold in own if hold.start_ns < last_ns]

    def longest_waits(self, of: Run) -> list[tuple[int, int]]:
        """Begin and end of those that are at least half as long as what is asked for."""
        return [(start_ns, end_ns) for start_ns, end_ns in self._holds(of) if end_ns - start_ns >= self.need_ns // 2]

    @property
    def _from_client(self) -> bool:
        return DIRECTIONS[self.stall.direction]

    def _departures(self, of: Run) -> list[int]:
        return sorted({packet.sent_ns for packet in of.packets if packet.from_client == self._from_client and packet.payload_bytes})

    def usual_wait_ns(self, of: Run) -> int:
        """Half of the time that it was held, it was held for longer than this at a stretch: between two departures of its data."""
        cuts = self._departures(of)
        pieces: list[int] = []
        for start_ns, end_ns in self._holds(of):
            inside = [start_ns, *cuts[bisect_right(cuts, start_ns) : bisect_left(cuts, end_ns)], end_ns]
            pieces += [after - before for before, after in pairwise(inside)]
        half, so_far = sum(pieces) / 2, 0
        for piece in sorted(pieces, reverse=True):
            so_far += piece
            if so_far >= half:
                return piece
        return 0


def has_delay(schedule: Schedule) -> bool:
    """Whether the path is one that loopback is not: delay, rate, losses."""
    path = schedule.path
    return path.loses or any(way.rate_bps for way in path.ways) or (not path.loopback and path.round_trip_ns > 0)


def oracle(schedule: Schedule, fits: Sequence[Fit], stall: Stall, cure: Changes) -> Oracle:
    """The question for one stall: `need_ns` is what the usual wait of the whole schedule asks for.

    Args:
        schedule: the whole.
        fits: of the model, the best first.
        stall: what held the original.
        cure: what takes it away.

    Raises:
        CaptureInsufficient: the model of the whole schedule does not show the stall, or its cure does not take it away.
    """
    made = Oracle(tuple(fits[:MOST_FITS]), stall, cure)
    try:
        whole = run(schedule, fits[0], truth=True)
    except CaptureInsufficient:
        whole = None
    if whole is not None:
        made.need_ns = max(LEAST_WAIT_NS, round(WAIT_SHARE * made.usual_wait_ns(whole)))
        if made.shows(schedule) is not None:
            return made
    raise CaptureInsufficient(
        f"the model does not show the stall ({stall.family}) in a way that can be measured with a smaller schedule",
        where=str(schedule.source.get("capture", "")),
        remedy="--whole writes the complete schedule without shrinking it",
    )
