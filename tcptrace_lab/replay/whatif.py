"""`replay whatif`: would it have been faster? The schedule of a capture through models of both stacks, as it was and with each change.

First the model has to make the original again: what a capture does not say outright (`model.Fit`) is tried, and the best is kept. Where
even that differs too much in time, or in what held the transfer, nothing is foretold. Each change is then run under all fits that are
nearly as good, so that a prediction has a range.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tcptrace_lab.errors import CaptureInsufficient
from tcptrace_lab.process import temporary
from tcptrace_lab.replay import fits
from tcptrace_lab.replay.changes import Changes
from tcptrace_lab.replay.laid import DIRECTIONS, FAMILIES, Figures, figures
from tcptrace_lab.replay.model import Fit, capacity_bytes, setting
from tcptrace_lab.simulation import write_capture
from tcptrace_lab.stacks import simulate
from tcptrace_lab.stacks.events import TooManyEvents
from tcptrace_lab.stacks.setting import Think
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcptrace_lab.replay.evidence import Evidence
    from tcptrace_lab.replay.schedule import End, Schedule
    from tcptrace_lab.stacks import Run

WHATIF_VERSION: Final = 1

MOST_DURATION_ERROR: Final = 0.10
"""A model whose original takes so much more or less than the real one foretells nothing."""

MOST_LEDGER_ERROR: Final = 0.25
"""Nor one that gives so much of a direction's time to other causes than the capture's ledger (half the sum of differences of shares)."""

NEARLY: Final = 0.01
"""Fits whose error is larger than the best one's by no more than this belong to the range."""

LEAST_RANGE: Final = 0.01
"""No range is narrower: what a real machine does besides differs that much from one run to the next (measured: README of `captures`)."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """How well the model makes the original again.

    Attributes:
        fit: the best.
        alike: all that are nearly as good, the best first.
        duration_error: of the model's time; 0.02: it took 2 % longer than the capture.
        ledger_error: share of the time that it gives to other causes; of the direction where it is larger.
        original: what the capture shows; `modelled`: what the model does.
    """

    fit: Fit
    alike: tuple[Fit, ...]
    duration_error: float
    ledger_error: float
    original: Figures
    modelled: Figures


@dataclass(frozen=True, slots=True)
class Prediction:
    """One set of changes.

    Attributes:
        changes: what is changed.
        duration_s: of the whole connection; `low_s`, `high_s`: over all fits that are nearly as good.
        saved_s: beside the original as captured.
        modelled: the figures of the best fit's run.
    """

    changes: Changes
    duration_s: float
    low_s: float
    high_s: float
    saved_s: float
    modelled: Figures


@dataclass(frozen=True, slots=True)
class Foretold:
    """The fit, and each prediction, most time saved first."""

    fitted: Fitted
    predictions: tuple[Prediction, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON document."""
        fitted = self.fitted
        return {
            "schema_version": WHATIF_VERSION,
            "fit": {
                "stack": fitted.fit.stack,
                "extra_round_trip_s": fitted.fit.extra_ns / NS_PER_S,
                "duration_error": fitted.duration_error,
                "ledger_error": fitted.ledger_error,
                "models": len(fitted.alike),
            },
            "original": fitted.original.to_dict(),
            "modelled": fitted.modelled.to_dict(),
            "predictions": [
                {
                    "changes": one.changes.words(),
                    "duration_s": one.duration_s,
                    "low_s": one.low_s,
                    "high_s": one.high_s,
                    "saved_s": one.saved_s,
                    "modelled": one.modelled.to_dict(),
                }
                for one in self.predictions
            ],
        }


def predict(
    evidence: Evidence, schedule: Schedule, changes: Sequence[Changes], original: Figures | None = None, until_s: float = inf
) -> Foretold:
    """Fit the model to a connection, and run each set of changes through it.

    Args:
        evidence: the connection.
        schedule: what its programs did.
        changes: each is tried by itself.
        original: its figures; None: the capture is analyzed for them.
        until_s: on the monotonic clock: what is not ready by then is given up.

    Raises:
        CaptureInsufficient: both ends send at once, or no model fits (the message says by how much), or not within the time.
    """
    fitted = fit(evidence, schedule, original, until_s)
    made = [_prediction(one, schedule, fitted, evidence, until_s) for one in changes]
    return Foretold(fitted, tuple(sorted(made, key=lambda one: one.duration_s)))


def fit(evidence: Evidence, schedule: Schedule, original: Figures | None = None, until_s: float = inf) -> Fitted:
    """The best fit. Arguments as for `predict`. Raises CaptureInsufficient where it is poor."""
    original = figures("original", [evidence.capture], evidence.conn) if original is None else original
    tried: list[tuple[float, Fit]] = []
    ledger_error = inf
    for stage, enough in (
        (fits.usual(evidence, schedule), MOST_DURATION_ERROR / 2),
        (fits.odd(evidence, schedule), MOST_DURATION_ERROR / 2),
        (fits.other_stacks(evidence, schedule), MOST_DURATION_ERROR),
    ):
        new = sorted(((_duration_ns(schedule, one, until_s) / evidence.life_ns - 1, one) for one in stage), key=lambda pair: abs(pair[0]))
        tried = sorted(tried + new, key=lambda pair: abs(pair[0]))
        for error, one in _unlike(new if enough < MOST_DURATION_ERROR else tried, enough):
            again = modelled("model", schedule, one, until_s)
            distance = max(_distance(original, again, way) for way in DIRECTIONS)
            ledger_error = min(ledger_error, distance)
            if distance <= MOST_LEDGER_ERROR:
                alike = [fit for other, fit in tried if abs(other) <= abs(error) + NEARLY and fit.stack == one.stack and fit != one]
                return Fitted(one, (one, *alike), error, distance, original, again)
    error, best = tried[0]
    if abs(error) > MOST_DURATION_ERROR:
        raise _poor(evidence, f"the nearest ({best.stack}) takes {abs(error):.0%} {'longer' if error > 0 else 'less time'}")
    raise _poor(evidence, f"the nearest ({best.stack}) gives {ledger_error:.0%} of a direction's time to other causes")


def _like(one: Fit) -> tuple[str, bool, int]:
    """What decides which cause holds a transfer: the rest only for how long."""
    return one.stack, one.nodelay, one.call_bytes


def _unlike(tried: Sequence[tuple[float, Fit]], most: float) -> Iterator[tuple[float, Fit]]:
    """The best fit of each that may differ in causes, and takes about as long as the original; the best first, and not too many."""
    found: dict[tuple[str, bool, int], tuple[float, Fit]] = {}
    for error, one in tried:
        if abs(error) <= most:
            found.setdefault(_like(one), (error, one))
    yield from list(found.values())[:MOST_LEDGERS]


MOST_LEDGERS: Final = 3
"""Of so many models the ledger is looked at, at the most: each takes some 0.2 s."""


def _poor(evidence: Evidence, words: str) -> CaptureInsufficient:
    return CaptureInsufficient(
        f"no model fits connection {evidence.conn}: {words}",
        where=evidence.capture,
        remedy="tcptrace-lab replay transfer tries the changes with real sockets",
    )


def run(schedule: Schedule, one: Fit, until_s: float = inf, *, truth: bool = False) -> Run:
    """The model's run, ended where it sends far more than the schedule can need; `truth`: with the model's own ledger.

    Raises:
        CaptureInsufficient: both ends send at once, the model goes round in circles, or the monotonic clock is beyond `until_s`.
    """
    made = setting(schedule, one)
    payload = sum(end.written_bytes for end in schedule.ends())
    most = LEAST_PACKETS + PACKETS_PER_SEGMENT * payload // LEAST_SEGMENT_BYTES
    try:
        made_again = simulate(made, truth=truth, stop=lambda client, _server: len(client.packets) > most or time.monotonic() > until_s)
    except TooManyEvents as error:
        raise CaptureInsufficient(f"the model does not terminate: {error}") from error
    if time.monotonic() > until_s:
        raise CaptureInsufficient("the models exceed their time limit", remedy="tcptrace-lab replay whatif has no time limit")
    return made_again


LEAST_PACKETS: Final = 20_000
PACKETS_PER_SEGMENT: Final = 4
LEAST_SEGMENT_BYTES: Final = 536
"""A run that sends more packets than this makes of its data (small segments, each with its ACK and sent again) goes round in circles."""


def _duration_ns(schedule: Schedule, one: Fit, until_s: float = inf) -> int:
    """From the first packet to the last, as a capture at the client would have them."""
    return life_ns(run(schedule, one, until_s))


def life_ns(of: Run) -> int:
    """From the first packet to the last, as seen at the client."""
    times = [packet.sent_ns if packet.from_client else packet.arrived_ns for packet in of.packets]
    seen = [at_ns for at_ns in times if at_ns is not None]
    return max(seen) - min(seen) or 1


def modelled(name: str, schedule: Schedule, one: Fit, until_s: float = inf) -> Figures:
    """What `analyze` says of the model's run."""
    made = setting(schedule, one)
    with temporary.folder() as folder:
        path = Path(folder, "model.pcap")
        with temporary.room(), path.open("wb") as stream:
            write_capture(run(schedule, one, until_s), made, stream)
        return replace(figures(name, [str(path)]), capture="")


def _distance(one: Figures, other: Figures, way: str) -> float:
    """Half the sum of the differences of the causes' shares, families taken together: 0, the same; 1, nothing in common."""
    mine, theirs = _families(one, way), _families(other, way)
    return sum(abs(mine.get(family, 0.0) - theirs.get(family, 0.0)) for family in {*mine, *theirs}) / 2


def _families(of: Figures, way: str) -> dict[str, float]:
    """The share of each family of causes, and of each cause of none."""
    whole = sum(of.ledger_s[way].values()) or 1.0
    found: dict[str, float] = {}
    for cause, spent in of.ledger_s[way].items():
        family = next((name for name, causes in FAMILIES.items() if cause in causes), cause)
        found[family] = found.get(family, 0.0) + spent / whole
    return found


def _prediction(changes: Changes, schedule: Schedule, fitted: Fitted, evidence: Evidence, until_s: float) -> Prediction:
    changed = changes.applied(schedule)
    tried = [one for fit in fitted.alike for one in _changed_fits(fit, changes, schedule)]
    times = [_duration_ns(changed, one, until_s) for one in tried]
    middle = times[0]
    if _only_larger(changes, schedule) and middle > (1 + MOST_DURATION_ERROR) * evidence.life_ns:
        raise _poor(
            evidence, f"with {changes.words()} the nearest ({tried[0].stack}) takes longer than before, and no larger buffer does that"
        )
    nearly = [_duration_ns(_without_waking(changed), tried[0], until_s)]
    for other, one in _a_segment_off(changes, changed, tried[0]):
        time_ns = _duration_ns(other, one, until_s)
        nearly.append(min(max(time_ns, middle - evidence.round_trip_ns), middle + evidence.round_trip_ns))
    slack = LEAST_RANGE + abs(fitted.duration_error)
    low_ns, high_ns = (f(*times, *nearly, round(middle * (1 + sign * slack))) + sign * HOST_NS for f, sign in ((min, -1), (max, 1)))
    return Prediction(
        changes,
        middle / NS_PER_S,
        max(low_ns, 0) / NS_PER_S,
        high_ns / NS_PER_S,
        (evidence.life_ns - middle) / NS_PER_S,
        modelled(changes.words(), changed, tried[0], until_s),
    )


def _only_larger(changes: Changes, schedule: Schedule) -> bool:
    """Whether nothing is changed but buffers, and none is made smaller."""
    send, receive = changes.send_buffer_bytes, changes.receive_buffer_bytes
    if changes != Changes(send_buffer_bytes=send, receive_buffer_bytes=receive):
        return False
    ends = schedule.ends()
    return all(
        asked is None or asked >= max(had)
        for asked, had in ((send, [end.bound_bytes or 0 for end in ends]), (receive, [end.receive_buffer_bytes or 0 for end in ends]))
    )


HOST_NS: Final = 5_000_000
"""Added to a range at both ends: the beats of a kernel's timers (4 ms), and when a program comes to its first write, differ by so much from
one run to the next (measured: the same program, 4 to 10 ms behind its connect)."""

WAKING_NS: Final = 1_000_000
"""A thought so short may be a machine that woke: less is left of it where nothing makes the program sleep for long (measured: 0.3 ms
behind a wait of 40 ms, 0.05 ms without)."""


def _without_waking(schedule: Schedule) -> Schedule:
    """The schedule without its shortest thoughts."""

    def kept(end: End) -> End:
        tasks = ((step for step in task if not isinstance(step, Think) or step.for_ns >= WAKING_NS) for task in end.tasks)
        return replace(end, tasks=tuple(map(tuple, tasks)))

    return replace(schedule, client=kept(schedule.client), server=kept(schedule.server))


def _a_segment_off(changes: Changes, changed: Schedule, one: Fit) -> Iterator[tuple[Schedule, Fit]]:
    """The same where a changed buffer holds a segment or a call more or less.

    How writes and segments meet it decides whether the last bytes take one round trip more: so much, and no more, is uncertain.
    """
    mss = fits.mss_bytes(changed, one.stack)
    if changes.receive_buffer_bytes is not None:
        yield changed, replace(one, less_bytes=one.less_bytes + mss)
        yield changed, replace(one, less_bytes=one.less_bytes - mss)
    if changes.send_buffer_bytes is not None:
        for off in (-mss, mss):
            client, server = (
                replace(end, bound_bytes=max(end.bound_bytes + off, 1)) if end.bound_bytes is not None else end for end in changed.ends()
            )
            yield replace(changed, client=client, server=server), one


def _changed_fits(fit: Fit, changes: Changes, schedule: Schedule) -> Iterator[Fit]:
    """The fit for another receive buffer: what is not used of it stays so many bytes; or all of it is used."""
    if changes.receive_buffer_bytes is None:
        yield fit
        return
    mss = fits.mss_bytes(schedule, fit.stack)
    for end in schedule.ends():
        if end.receive_buffer_bytes and end.window_bytes:
            seen = end.window_bytes - fit.less_bytes
            yield replace(fit, less_bytes=max(0, capacity_bytes(end.receive_buffer_bytes, mss) - seen))
    yield replace(fit, less_bytes=0)
