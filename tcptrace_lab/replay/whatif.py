"""`replay whatif`: predicts how long a transfer takes with changed settings.

Models of both stacks simulate the schedule. First the models must reproduce the original. A capture does not show everything that the
models need (`model.Fit`), so several values are tried, and the best fit is kept. If the best fit differs too much from the capture in
duration or in causes, there is no prediction. Several fits can be nearly as good as the best one. Each change is simulated with all of
these fits, and the results give the range of the prediction.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tcptrace_lab.errors import CaptureInsufficient
from tcptrace_lab.process import temporary
from tcptrace_lab.replay import fit_candidates
from tcptrace_lab.replay.changes import Changes
from tcptrace_lab.replay.model import Fit, capacity_bytes, setting
from tcptrace_lab.replay.side_by_side import DIRECTIONS, FAMILIES, Figures, figures, original_figures
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

SCHEMA_VERSION: Final = 2

MAX_DURATION_ERROR: Final = 0.10
"""Largest accepted error of the modelled duration, as a share of the original's duration."""

MAX_LEDGER_ERROR: Final = 0.25
"""Largest accepted share of a direction's time that has different causes in the model and in the capture's ledger (`_distance`)."""

NEARLY: Final = 0.01
"""A fit widens the range of a prediction if its duration error exceeds the error of the best fit by at most this much."""

MIN_RANGE: Final = 0.01
"""Minimum distance of both bounds from the prediction, as a share of the duration.

The durations of runs on a real machine differ by this share (measured: README of `captures`).
"""


@dataclass(frozen=True, slots=True)
class Fitted:
    """The best fit, and how well the model reproduces the original with it.

    Attributes:
        fit: the best fit.
        equal_fits: all fits that are nearly as good as the best fit, the best first.
        duration_error: error of the modelled duration; 0.02: 2 % longer than the capture.
        ledger_error: share of time for which model and capture have different causes, in the direction with the larger share.
        original, modelled: key figures of the capture, and of the model's run.
    """

    fit: Fit
    equal_fits: tuple[Fit, ...]
    duration_error: float
    ledger_error: float
    original: Figures
    modelled: Figures


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction for one set of changes.

    Attributes:
        changes: the changes.
        duration_s: predicted duration of the connection.
        min_duration_s, max_duration_s: range of the prediction.
        saved_s: captured duration minus predicted duration.
        modelled: key figures of the best fit's run.
    """

    changes: Changes
    duration_s: float
    min_duration_s: float
    max_duration_s: float
    saved_s: float
    modelled: Figures


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The fit and all predictions. The prediction with the largest saving is first."""

    fitted: Fitted
    predictions: tuple[Prediction, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON document."""
        fitted = self.fitted
        return {
            "schema_version": SCHEMA_VERSION,
            "fit": {
                "stack": fitted.fit.stack,
                "extra_rtt_s": fitted.fit.extra_ns / NS_PER_S,
                "duration_error_share": fitted.duration_error,
                "ledger_error_share": fitted.ledger_error,
                "equal_fits": len(fitted.equal_fits),
            },
            "original": fitted.original.to_dict(),
            "modelled": fitted.modelled.to_dict(),
            "predictions": [
                {
                    "changes": one.changes.words(),
                    "duration_s": one.duration_s,
                    "min_duration_s": one.min_duration_s,
                    "max_duration_s": one.max_duration_s,
                    "saved_s": one.saved_s,
                    "modelled": one.modelled.to_dict(),
                }
                for one in self.predictions
            ],
        }


def predict(
    evidence: Evidence, schedule: Schedule, changes: Sequence[Changes], original: Figures | None = None, until_s: float = inf
) -> WhatIf:
    """Fit the model to a connection, and simulate each set of changes.

    Args:
        evidence: data of the connection.
        schedule: what its applications did.
        changes: sets of changes; each is simulated separately.
        original: key figures of the connection; None: the capture is analyzed for them.
        until_s: time of the monotonic clock at which the attempt is abandoned.

    Raises:
        CaptureInsufficient: both ends send at the same time, no model fits (the message says by how much), or the time is up.
    """
    fitted = fit(evidence, schedule, original, until_s)
    made = [_prediction(one, schedule, fitted, evidence, until_s) for one in changes]
    return WhatIf(fitted, tuple(sorted(made, key=lambda one: one.duration_s)))


def fit(evidence: Evidence, schedule: Schedule, original: Figures | None = None, until_s: float = inf) -> Fitted:
    """Find the best fit. The arguments are those of `predict`. CaptureInsufficient is raised if no fit is good enough."""
    original = original_figures(evidence) if original is None else original
    tried: list[tuple[float, Fit]] = []
    ledger_error = inf
    for stage, enough in (
        (fit_candidates.usual(evidence, schedule), MAX_DURATION_ERROR / 2),
        (fit_candidates.odd(evidence, schedule), MAX_DURATION_ERROR / 2),
        (fit_candidates.other_stacks(evidence, schedule), MAX_DURATION_ERROR),
    ):
        new = sorted(((_duration_ns(schedule, one, until_s) / evidence.life_ns - 1, one) for one in stage), key=lambda pair: abs(pair[0]))
        tried = sorted(tried + new, key=lambda pair: abs(pair[0]))
        for error, one in _distinct(new if enough < MAX_DURATION_ERROR else tried, enough):
            again = modelled("model", schedule, one, until_s)
            distance = max(_distance(original, again, direction) for direction in DIRECTIONS)
            ledger_error = min(ledger_error, distance)
            if distance <= MAX_LEDGER_ERROR:
                equal_fits = [fit for other, fit in tried if abs(other) <= abs(error) + NEARLY and fit.stack == one.stack and fit != one]
                return Fitted(one, (one, *equal_fits), error, distance, original, again)
    error, best = tried[0]
    if abs(error) > MAX_DURATION_ERROR:
        raise _poor(
            evidence, f"the best fit ({best.stack}) takes {abs(error):.0%} {'longer' if error > 0 else 'less time'} than the original"
        )
    raise _poor(evidence, f"the best fit ({best.stack}) gives {ledger_error:.0%} of a direction's time to other causes than the capture")


def _like(one: Fit) -> tuple[str, bool, int]:
    """Return the fields of a fit that decide which causes occur. The other fields only affect durations."""
    return one.stack, one.nodelay, one.call_bytes


def _distinct(tried: Sequence[tuple[float, Fit]], most: float) -> Iterator[tuple[float, Fit]]:
    """Yield up to `MAX_LEDGERS` fits whose duration error is at most `most`, the best first.

    Fits that lead to the same causes (`_like`) form a group. Only the best fit of each group is yielded.
    """
    found: dict[tuple[str, bool, int], tuple[float, Fit]] = {}
    for error, one in tried:
        if abs(error) <= most:
            found.setdefault(_like(one), (error, one))
    yield from list(found.values())[:MAX_LEDGERS]


MAX_LEDGERS: Final = 3
"""Maximum number of fits whose simulated capture is analyzed. Each analysis takes about 0.2 s."""


def _poor(evidence: Evidence, words: str) -> CaptureInsufficient:
    return CaptureInsufficient(
        f"no model fits connection {evidence.conn}: {words}",
        where=evidence.capture,
        remedy="tcptrace-lab replay transfer tries the changes with real sockets",
    )


def run(schedule: Schedule, one: Fit, until_s: float = inf, *, truth: bool = False) -> Run:
    """Simulate a schedule with one fit. The run ends early if it sends far more packets than the schedule can need.

    Args:
        schedule: what both ends do, and the path.
        one: the fit.
        until_s: time of the monotonic clock at which the run is abandoned.
        truth: whether to keep the model's ledger.

    Raises:
        CaptureInsufficient: both ends send at the same time, the model does not terminate, or the time is up.
    """
    made = setting(schedule, one)
    payload = sum(end.written_bytes for end in schedule.ends())
    most = MIN_PACKETS + PACKETS_PER_SEGMENT * payload // MIN_SEGMENT_BYTES
    try:
        made_again = simulate(made, truth=truth, stop=lambda client, _server: len(client.packets) > most or time.monotonic() > until_s)
    except TooManyEvents as error:
        raise CaptureInsufficient(f"the model does not terminate: {error}") from error
    if time.monotonic() > until_s:
        raise CaptureInsufficient("the models exceed their time limit", remedy="tcptrace-lab replay whatif has no time limit")
    return made_again


MIN_PACKETS: Final = 20_000
PACKETS_PER_SEGMENT: Final = 4
MIN_SEGMENT_BYTES: Final = 536
"""A run that sends too many packets ends early, because it would never finish.

The limit is `MIN_PACKETS`, plus `PACKETS_PER_SEGMENT` for each `MIN_SEGMENT_BYTES` of data. This limit allows one retransmit and one ACK
for each small segment.
"""


def _duration_ns(schedule: Schedule, one: Fit, until_s: float = inf) -> int:
    return life_ns(run(schedule, one, until_s))


def life_ns(of: Run) -> int:
    """Return the time in ns from the first packet to the last, as seen at the client; at least 1."""
    times = [packet.sent_ns if packet.from_client else packet.arrived_ns for packet in of.packets]
    seen = [at_ns for at_ns in times if at_ns is not None]
    return max(seen) - min(seen) or 1


def modelled(name: str, schedule: Schedule, one: Fit, until_s: float = inf) -> Figures:
    """Return the key figures that `analyze` finds in a capture of the simulated run."""
    made = setting(schedule, one)
    with temporary.folder() as folder:
        path = Path(folder, "model.pcap")
        with temporary.room(), path.open("wb") as stream:
            write_capture(run(schedule, one, until_s), made, stream)
        return replace(figures(name, [str(path)]), capture="")


def _distance(one: Figures, other: Figures, direction: str) -> float:
    """Return how much two transfers differ in the causes of the time of one direction: 0 (equal) to 1 (no cause in common).

    Related causes form a family. The result is half the sum of the absolute differences between the shares of time of each family.
    """
    mine, theirs = _families(one, direction), _families(other, direction)
    return sum(abs(mine.get(family, 0.0) - theirs.get(family, 0.0)) for family in sorted({*mine, *theirs})) / 2


def _families(of: Figures, direction: str) -> dict[str, float]:
    """Return the share of time of each family of causes. A cause without a family counts as its own family."""
    whole = sum(of.ledger_s[direction].values()) or 1.0
    found: dict[str, float] = {}
    for cause, spent in of.ledger_s[direction].items():
        family = next((name for name, causes in FAMILIES.items() if cause in causes), cause)
        found[family] = found.get(family, 0.0) + spent / whole
    return found


def _prediction(changes: Changes, schedule: Schedule, fitted: Fitted, evidence: Evidence, until_s: float) -> Prediction:
    changed = changes.applied(schedule)
    tried = [one for fit in fitted.equal_fits for one in _changed_fits(fit, changes, schedule)]
    times = [_duration_ns(changed, one, until_s) for one in tried]
    middle = times[0]
    if _only_larger(changes, schedule) and middle > (1 + MAX_DURATION_ERROR) * evidence.life_ns:
        raise _poor(
            evidence, f"with {changes.words()}, the best fit ({tried[0].stack}) takes longer than before, which larger buffers cannot cause"
        )
    nearly = [_duration_ns(_without_waking(changed), tried[0], until_s)]
    for other, one in _a_segment_off(changes, changed, tried[0]):
        time_ns = _duration_ns(other, one, until_s)
        nearly.append(min(max(time_ns, middle - evidence.base_rtt_ns), middle + evidence.base_rtt_ns))
    slack = MIN_RANGE + abs(fitted.duration_error)
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
    send, receive = changes.send_buffer_bytes, changes.receive_buffer_bytes
    if changes != Changes(send_buffer_bytes=send, receive_buffer_bytes=receive):
        return False
    ends = schedule.ends()
    return all(
        asked is None or asked >= max(had)
        for asked, had in ((send, [end.max_unacked_bytes or 0 for end in ends]), (receive, [end.receive_buffer_bytes or 0 for end in ends]))
    )


HOST_NS: Final = 5_000_000
"""Time in ns that is added to both sides of a predicted range.

Timer ticks are 4 ms apart, and the time from connecting to the first write varies (measured: by 4 to 10 ms between runs of one
application).
"""

WAKING_NS: Final = 1_000_000
"""A shorter pause is possibly only the time in which a sleeping application wakes up.

This time shrinks when the application no longer sleeps for long (measured: 0.3 ms after a wait of 40 ms, 0.05 ms without a wait).
"""


def _without_waking(schedule: Schedule) -> Schedule:
    def kept(end: End) -> End:
        tasks = ((step for step in task if not isinstance(step, Think) or step.for_ns >= WAKING_NS) for task in end.tasks)
        return replace(end, tasks=tuple(map(tuple, tasks)))

    return replace(schedule, client=kept(schedule.client), server=kept(schedule.server))


def _a_segment_off(changes: Changes, changed: Schedule, one: Fit) -> Iterator[tuple[Schedule, Fit]]:
    """Yield variants in which a changed buffer is one segment larger or smaller.

    Whether the last bytes need one more round trip depends on how writes and segments fill the buffer. So the prediction is uncertain by
    one RTT.
    """
    mss = fit_candidates.mss_bytes(changed, one.stack)
    if changes.receive_buffer_bytes is not None:
        yield changed, replace(one, less_bytes=one.less_bytes + mss)
        yield changed, replace(one, less_bytes=one.less_bytes - mss)
    if changes.send_buffer_bytes is not None:
        for off in (-mss, mss):
            client, server = (
                replace(end, max_unacked_bytes=max(end.max_unacked_bytes + off, 1)) if end.max_unacked_bytes is not None else end
                for end in changed.ends()
            )
            yield replace(changed, client=client, server=server), one


def _changed_fits(fit: Fit, changes: Changes, schedule: Schedule) -> Iterator[Fit]:
    """Yield two fits for a changed receive buffer: the sender leaves as many bytes unused as before, or it uses the whole buffer."""
    if changes.receive_buffer_bytes is None:
        yield fit
        return
    mss = fit_candidates.mss_bytes(schedule, fit.stack)
    for end in schedule.ends():
        if end.receive_buffer_bytes and end.window_clamp_bytes:
            seen = end.window_clamp_bytes - fit.less_bytes
            yield replace(fit, less_bytes=max(0, capacity_bytes(end.receive_buffer_bytes, mss) - seen))
    yield replace(fit, less_bytes=0)
