"""Decides whether a schedule still shows the stall.

A model that is fitted to the capture decides, because simulation is fast and reproducible.

A schedule shows the stall if two conditions hold:

- The sender waits for the same cause as in the original, about as long as in the original, and sends data after this wait.
- The remedy that the finding recommends removes the wait and shortens the transfer.

Both conditions must hold for each fit that is nearly as good as the best fit. Otherwise the stall would depend on a single jiffy, or on one
segment of a window, and would not occur on a real kernel. With `must_be_seen`, `analyze` must also find the stall in a capture of the
model's run. This matters for a send buffer limit, which a capture shows only after several round trips. Most stalls do not need this check,
which takes 100 times as long as the simulation.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tcptrace_lab.errors import CaptureInsufficient
from tcptrace_lab.replay.side_by_side import DIRECTIONS, FAMILIES, FIXED_LEFT
from tcptrace_lab.replay.whatif import life_ns, modelled, run
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.replay.changes import Changes
    from tcptrace_lab.replay.model import Fit
    from tcptrace_lab.replay.schedule import Schedule
    from tcptrace_lab.replay.side_by_side import Stall
    from tcptrace_lab.stacks import Run

WAIT_SHARE: Final = 0.8
"""Minimum length of a reproduced wait, as a share of the original's usual wait. Timers are rounded to jiffies of 4 ms."""

MIN_WAIT_NS: Final = 10_000_000
"""Shortest wait that can be reproduced. A busy machine causes shorter delays (a heuristic)."""

LOOPBACK_ROUND_TRIP_NS: Final = 40_000
"""RTT that is assumed for a path without delay (a heuristic).

With an RTT of 0, the result would depend on the order in which the model runs simultaneous events.
"""

MAX_FITS: Final = 4
"""Maximum number of fits that are simulated for each schedule."""

LONGER_NS: Final = 5_000_000
"""Minimum increase of the RTT for the second simulation. The two simulations show how durations depend on the RTT."""

SEEN_SHARE: Final = 0.5
"""Minimum share of the wait that the ledger of a capture must show. This ledger assigns one RTT of the wait to `network`."""

SAVED_SHARE: Final = 0.5
"""Minimum time that the remedy must save, as a share of the wait.

The remedy saves nothing if something else delays the transfer during the wait.
"""


@dataclass(frozen=True, slots=True)
class Shown:
    """The model's result for one schedule, in nanoseconds.

    Attributes:
        stalled_ns, fixed_stalled_ns: time that the sender waits for the stall's causes, unchanged and with the remedy.
        took_ns, fixed_ns: duration of the connection, unchanged and with the remedy.
    """

    stalled_ns: int
    fixed_stalled_ns: int
    took_ns: int
    fixed_ns: int


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected durations of a transfer, with its stall and without it. The durations depend on the RTT.

    Attributes:
        stalled_s: time that the sender waits because of the stall.
        with_s, without_s: duration of the connection at an RTT of `rtt_s`, with the stall and with the remedy.
        with_rounds, without_rounds: how much each duration grows per second of additional RTT. This equals the number of RTTs in the
            duration.
    """

    stalled_s: float
    with_s: float
    without_s: float
    with_rounds: float
    without_rounds: float
    rtt_s: float


@dataclass(slots=True)
class Oracle:
    """Checks whether a schedule shows a stall.

    Attributes:
        fits: fits of the model, the best first.
        stall: the stall of the original.
        remedy: changes that remove the stall.
        need_ns: minimum time that the sender must wait.
        runs: number of simulations so far.
        must_be_seen: whether `analyze` must find the stall in a capture of the run.
    """

    fits: tuple[Fit, ...]
    stall: Stall
    remedy: Changes
    need_ns: int = MIN_WAIT_NS
    runs: int = 0
    must_be_seen: bool = False

    def shows(self, schedule: Schedule) -> Shown | None:
        """Return the result of the best fit if all fits show the stall, else None."""
        first: Shown | None = None
        for fit in self._fits_of(schedule):
            found = self.asked(schedule, fit)
            if found is None or not self._is_stall(found):
                return None
            first = first or found
        return first if not self.must_be_seen or self.is_seen(schedule) else None

    def is_seen(self, schedule: Schedule) -> bool:
        """Return whether the wait appears in the ledger of a capture of the simulated run."""
        seen = modelled("", schedule, self._fits_of(schedule)[0]).stalled_s(self.stall.family, self.stall.direction)
        return seen * NS_PER_S >= SEEN_SHARE * self.need_ns

    def _is_stall(self, found: Shown) -> bool:
        if found.stalled_ns < self.need_ns or found.fixed_stalled_ns > FIXED_LEFT * found.stalled_ns:
            return False
        return found.took_ns - found.fixed_ns >= SAVED_SHARE * self.need_ns

    def _fits_of(self, schedule: Schedule) -> tuple[Fit, ...]:
        """Return the fits for the path of a schedule.

        Without delay, each fit gets `LOOPBACK_ROUND_TRIP_NS` as its RTT. Fits that become equal are merged.
        """
        if has_delay(schedule):
            return self.fits
        return tuple(dict.fromkeys(replace(fit, extra_ns=LOOPBACK_ROUND_TRIP_NS) for fit in self.fits))

    def asked(self, schedule: Schedule, fit: Fit) -> Shown | None:
        """Return the model's result for one fit; None if the applications do not finish, or the sender does not wait long enough."""
        plain = self._run(schedule, fit)
        if plain is None or self.stalled_ns(plain) < self.need_ns:
            return None
        # It is unknown how much of a changed receive buffer stays unused, so the sender is assumed to use the whole buffer.
        fixed = self._run(self.remedy.applied(schedule), fit if self.remedy.receive_buffer_bytes is None else replace(fit, less_bytes=0))
        if fixed is None:
            return None
        return Shown(self.stalled_ns(plain), self.stalled_ns(fixed), life_ns(plain), life_ns(fixed))

    def expected(self, schedule: Schedule) -> Expected | None:
        """Return the expected durations by the best fit, which is simulated for two RTTs; None if the sender does not wait long enough."""
        fit = self._fits_of(schedule)[0]
        longer_ns = max(schedule.path.base_rtt_ns // 4, LONGER_NS)
        faster, slower = self.asked(schedule, fit), self.asked(schedule, replace(fit, extra_ns=fit.extra_ns + longer_ns))
        if faster is None:
            return None
        slower = slower or faster
        return Expected(
            faster.stalled_ns / NS_PER_S,
            faster.took_ns / NS_PER_S,
            faster.fixed_ns / NS_PER_S,
            max(0.0, (slower.took_ns - faster.took_ns) / longer_ns),
            max(0.0, (slower.fixed_ns - faster.fixed_ns) / longer_ns),
            (schedule.path.base_rtt_ns + fit.extra_ns) / NS_PER_S,
        )

    def _run(self, schedule: Schedule, fit: Fit) -> Run | None:
        self.runs += 1
        try:
            made = run(schedule, fit, truth=True)
        except CaptureInsufficient:
            return None
        return made if made.client.done and made.server.done else None

    def stalled_ns(self, of: Run) -> int:
        """Return the total time (ns) that the stall's direction waits for the stall's causes."""
        return sum(end_ns - start_ns for start_ns, end_ns in self._holds(of))

    def _holds(self, of: Run) -> list[tuple[int, int]]:
        """Return start and end (ns) of each wait for the stall's causes. Waits after the last data segment do not count."""
        causes, departures = FAMILIES[self.stall.family], self._departures(of)
        last_ns = departures[-1] if departures else 0
        own = (hold for hold in of.truth if hold.from_client == self._from_client and hold.cause in causes)
        return [(hold.start_ns, min(hold.end_ns, last_ns)) for hold in own if hold.start_ns < last_ns]

    def longest_waits(self, of: Run) -> list[tuple[int, int]]:
        """Return start and end (ns) of the waits that last at least half of `need_ns`."""
        return [(start_ns, end_ns) for start_ns, end_ns in self._holds(of) if end_ns - start_ns >= self.need_ns // 2]

    @property
    def _from_client(self) -> bool:
        return DIRECTIONS[self.stall.direction]

    def _departures(self, of: Run) -> list[int]:
        return sorted({packet.sent_ns for packet in of.packets if packet.from_client == self._from_client and packet.payload_bytes})

    def usual_wait_ns(self, of: Run) -> int:
        """Return the usual length (ns) of a wait between two data segments.

        Half of the total waiting time consists of waits of at least this length.
        """
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
    """Return whether the path has delay, a rate limit or losses."""
    path = schedule.path
    return path.loses or any(direction.rate_bps for direction in path.directions) or (not path.loopback and path.base_rtt_ns > 0)


def oracle(schedule: Schedule, fits: Sequence[Fit], stall: Stall, remedy: Changes) -> Oracle:
    """Make the oracle for a stall. Its `need_ns` is based on the usual wait in the complete schedule.

    Args:
        schedule: the complete schedule.
        fits: fits of the model, the best first.
        stall: the stall of the original.
        remedy: changes that remove the stall.

    Raises:
        CaptureInsufficient: the model of the complete schedule does not show the stall, or the remedy does not remove it.
    """
    made = Oracle(tuple(fits[:MAX_FITS]), stall, remedy)
    try:
        whole = run(schedule, fits[0], truth=True)
    except CaptureInsufficient:
        whole = None
    if whole is not None:
        made.need_ns = max(MIN_WAIT_NS, round(WAIT_SHARE * made.usual_wait_ns(whole)))
        if made.shows(schedule) is not None:
            return made
    raise CaptureInsufficient(
        f"the model does not show the stall ({stall.family}) in a way that can be measured with a smaller schedule",
        where=str(schedule.source.get("capture", "")),
        remedy="--whole writes the complete schedule without shrinking it",
    )
