"""`replay whatif`: would it have been faster? The schedule of a capture through models of both stacks, as it was and with each change.

First the model has to make the original again: what a capture does not say outright (`model.Fit`) is tried, and the best is kept. Where
even that differs too much in time, or in what held the transfer, nothing is foretold. Each change is then run under all fits that are
nearly as good, so that a prediction has a range.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tcptrace_lab.errors import CaptureInsufficient
from tcptrace_lab.numbers import NS_PER_S
from tcptrace_lab.replay.laid import DIRECTIONS, FAMILIES, Figures, figures
from tcptrace_lab.replay.model import Fit, capacity_bytes, setting
from tcptrace_lab.replay.reconstruct import IP_TCP_BYTES
from tcptrace_lab.simulation import write_capture
from tcptrace_lab.stacks import STACKS, simulate
from tcptrace_lab.stacks.events import TooManyEvents

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcptrace_lab.replay.changes import Changes
    from tcptrace_lab.replay.evidence import Evidence
    from tcptrace_lab.replay.schedule import Schedule
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

PHASES_NS: Final = (0, 1_000_000, 2_000_000, 3_000_000)
"""A jiffy of 4 ms in four steps: where its beats fall, no capture tells."""

STACKS_TRIED: Final = ("linux", "freebsd", "solaris2.5", "bsd4.4", "sunos4")


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
    real_ns = evidence.life_ns
    tried = [(abs(_duration_ns(schedule, one, until_s) / real_ns - 1), one) for one in _fits(evidence, schedule)]
    if min(error for error, _ in tried) > MOST_DURATION_ERROR / 2:
        tried += [
            (abs(_duration_ns(schedule, one, until_s) / real_ns - 1), one)
            for stack in STACKS_TRIED[1:]
            for one in _fits(evidence, schedule, stack=stack, phases=PHASES_NS[:1])
        ]
    tried.sort(key=lambda pair: pair[0])
    least, best = tried[0]
    alike = tuple(one for error, one in tried if error <= least + NEARLY)
    original = figures("original", [evidence.capture], evidence.conn) if original is None else original
    if least > MOST_DURATION_ERROR:
        error = _duration_ns(schedule, best, until_s) / real_ns - 1
        raise _poor(evidence, f"the nearest ({best.stack}) takes {abs(error):.0%} {'longer' if error > 0 else 'less time'}")
    again = modelled("model", schedule, best, until_s)
    ledger_error = max(_distance(original, again, way) for way in DIRECTIONS)
    if ledger_error > MOST_LEDGER_ERROR:
        raise _poor(evidence, f"the nearest ({best.stack}) gives {ledger_error:.0%} of a direction's time to other causes")
    return Fitted(best, alike, _duration_ns(schedule, best, until_s) / real_ns - 1, ledger_error, original, again)


def _poor(evidence: Evidence, words: str) -> CaptureInsufficient:
    return CaptureInsufficient(
        f"no model fits connection {evidence.conn}: {words.replace('%', ' %')}",
        where=evidence.capture,
        remedy="tcptrace-lab replay transfer tries the changes with real sockets",
    )


def _fits(evidence: Evidence, schedule: Schedule, stack: str = "linux", phases: Sequence[int] = PHASES_NS) -> Iterator[Fit]:
    """What is tried: the least round trip and the usual one, the window as told and as used, and the phases of the timers."""
    extras = sorted({0, _usual_extra_ns(evidence)})
    phases = phases if max(end.written_bytes for end in schedule.ends()) < MUCH_BYTES else phases[:1]
    unsure = any(evidence.row[f"{side}_nagle"] == "unknown" and evidence.row[f"{side}_data_segments"] for side in ("client", "server"))
    nodelay = (False, True) if unsure and any(end.bound_bytes for end in schedule.ends()) else (False,)
    for extra_ns, less, phase_ns, off in product(extras, sorted({0, _unused_bytes(evidence, schedule)}), phases, nodelay):
        yield Fit(stack, extra_ns, phase_ns, less, off)


def _usual_extra_ns(evidence: Evidence) -> int:
    """By how much the median round trip of full segments is longer than the least one, where their ACKs are not delayed."""
    row = evidence.row
    side = "client" if row["client_payload_bytes"] >= row["server_payload_bytes"] else "server"
    usual, least = row[f"{side}_rtt_p50_ns"], row[f"{side}_rtt_min_ns"]
    return int(usual - least) if usual and least and usual < MOST_USUAL * least else 0


MOST_USUAL: Final = 1.25
"""A median round trip so much longer than the least one is not the path's jitter but a queue or delayed ACKs."""


MUCH_BYTES: Final = 2_000_000
"""From so much data on, timers of ACKs matter less than the seconds that a model of them takes."""


def _unused_bytes(evidence: Evidence, schedule: Schedule) -> int:
    """What its sender never used of the window that held it: Linux tells less while segments are being read."""
    for from_client, end in ((True, schedule.server), (False, schedule.client)):
        used = evidence.row[f"{'client' if from_client else 'server'}_max_in_flight_bytes"]
        if end.window_bytes and used and used < end.window_bytes:
            return int(end.window_bytes - used)
    return 0


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
        raise CaptureInsufficient(f"the model does not come to an end: {error}") from error
    if time.monotonic() > until_s:
        raise CaptureInsufficient(
            "the models take longer than they were given", remedy="tcptrace-lab replay whatif gives them all they need"
        )
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
    with tempfile.TemporaryDirectory(prefix="tcptrace-lab-") as folder:
        path = Path(folder, "model.pcap")
        with path.open("wb") as stream:
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
    fits = [one for fit in fitted.alike for one in _changed_fits(fit, changes, schedule)]
    times = [_duration_ns(changed, one, until_s) / NS_PER_S for one in fits]
    middle = times[0]
    slack = LEAST_RANGE + abs(fitted.duration_error)
    return Prediction(
        changes,
        middle,
        min(*times, middle * (1 - slack)),
        max(*times, middle * (1 + slack)),
        evidence.life_ns / NS_PER_S - middle,
        modelled(changes.words(), changed, fits[0], until_s),
    )


def _changed_fits(fit: Fit, changes: Changes, schedule: Schedule) -> Iterator[Fit]:
    """The fit for another receive buffer: what is not used of it stays so many bytes; or all of it is used."""
    if changes.receive_buffer_bytes is None:
        yield fit
        return
    mss = schedule.path.mtu_bytes - IP_TCP_BYTES[schedule.path.ipv6] - (STACKS[fit.stack].option_bytes if schedule.path.timestamps else 0)
    for end in schedule.ends():
        if end.receive_buffer_bytes and end.window_bytes:
            seen = end.window_bytes - fit.less_bytes
            yield replace(fit, less_bytes=max(0, capacity_bytes(end.receive_buffer_bytes, mss) - seen))
    yield replace(fit, less_bytes=0)
