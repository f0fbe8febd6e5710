"""`analyze --whatif`: predicts with models how much time a remedy saves. Without this option, findings give only an upper bound.

A finding measures how long a cause took. This time is only an upper bound of the gain, because the transfer can wait for something else
when the cause is gone. Here, models of both stacks (`whatif`) reproduce the connection and simulate it with the remedy. A model takes
seconds per connection, and does not fit every connection. So only the most expensive connections are modelled, within a time limit. Each
finding says whether its gain is modelled or an upper bound.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import polars as pl

from tcptrace_lab.errors import TcptraceLabError
from tcptrace_lab.findings.finding import ModelledGain, Severity
from tcptrace_lab.replay.changes import remedy
from tcptrace_lab.replay.evidence import of_tables
from tcptrace_lab.replay.reconstruct import reconstruct
from tcptrace_lab.replay.reproducers import python_script
from tcptrace_lab.replay.reproducers.stall_oracle import Expected
from tcptrace_lab.replay.side_by_side import DIRECTIONS, FAMILIES, Figures
from tcptrace_lab.replay.whatif import predict
from tcptrace_lab.text import numbers
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcptrace_lab.analysis import Analysis
    from tcptrace_lab.findings.finding import Finding
    from tcptrace_lab.replay.evidence import Evidence
    from tcptrace_lab.replay.schedule import Schedule
    from tcptrace_lab.replay.whatif import Prediction

MAX_S: Final = 30.0
"""Time limit for all models of a capture together, in seconds."""

MAX_CONNECTIONS: Final = 5
"""Maximum number of modelled connections. Connections whose problems cost most time come first."""

MAX_SEGMENTS: Final = 20_000
"""Maximum number of segments of a modelled connection. A simulation takes about 0.2 s per 1,000 segments."""

CURABLE: Final = ("nagle", "window", "send-buffer")
"""Families of causes whose remedy can be simulated. A model can predict neither application time nor packet loss."""


def modelled(analysis: Analysis, *, max_s: float = MAX_S, doing: Callable[[str], None] | None = None) -> tuple[Analysis, tuple[str, ...]]:
    """Replace upper bounds in the findings by modelled gains.

    Args:
        analysis: analysis of a capture.
        max_s: time limit for all models together, in seconds.
        doing: called with a progress message.

    Returns:
        The analysis with modelled gains where a model fits, and a sentence for each connection without one.
    """
    until_s = time.monotonic() + max_s
    modelled_gains, refused = dict[int, ModelledGain](), list[str]()
    by_connection: dict[int, list[int]] = {}
    for place, finding in enumerate(analysis.findings):
        if finding.severity > Severity.INFO and finding.conn is not None and _family(finding) is not None:
            by_connection.setdefault(finding.conn, []).append(place)
    for number, (conn, places) in enumerate(by_connection.items()):
        if number >= MAX_CONNECTIONS:
            refused.append(f"of {len(by_connection) - number:,} more connections; only the {MAX_CONNECTIONS} most expensive are modelled")
            break
        if doing is not None:
            doing(f"modelling connection {conn}")
        try:
            modelled_gains |= _gains(analysis, conn, places, until_s)
        except TcptraceLabError as error:
            refused.append(error.what if f"connection {conn}" in error.what else f"connection {conn}: {error.what}")
    life_ns = _lives(analysis, list(by_connection)) if modelled_gains else {}
    findings = tuple(
        replace(finding, modelled=modelled_gains[place], predicted_gain=_words(modelled_gains[place], life_ns[finding.conn or 0]))
        if place in modelled_gains
        else finding
        for place, finding in enumerate(analysis.findings)
    )
    return replace(analysis, findings=findings), tuple(refused)


def _family(finding: Finding) -> str | None:
    return next((family for family in CURABLE if finding.causes and finding.causes <= {*FAMILIES[family]}), None)


def _gains(analysis: Analysis, conn: int, places: Sequence[int], until_s: float) -> dict[int, ModelledGain]:
    """Return the modelled gain of each finding about the connection; the key is the finding's index.

    Raises TcptraceLabError if no model fits.
    """
    row = analysis.connections.filter(pl.col("conn") == conn).select("client_segments", "server_segments").collect()
    if (count := sum(row.row(0))) > MAX_SEGMENTS:
        raise TcptraceLabError(f"{count:,} segments are too many to model in the given time")
    evidence = of_tables(analysis, conn, analysis.capture["path"])
    schedule = reconstruct(evidence)
    if schedule.path.loses:
        raise TcptraceLabError("packets were lost, and a model cannot predict which ones would be lost after a change")
    families = {place: family for place in places if (family := _family(analysis.findings[place])) is not None}
    asked = {family: remedy(schedule, family) for family in dict.fromkeys(families.values())}
    predicted = predict(evidence, schedule, list(asked.values()), _figures(evidence), until_s)
    by_changes = {one.changes: one for one in predicted.predictions}
    return {
        place: _gain(
            by_changes[asked[family]],
            evidence,
            predicted.fitted.duration_error,
            _script(analysis.findings[place], evidence, schedule, by_changes[asked[family]]),
        )
        for place, family in families.items()
    }


def _gain(one: Prediction, evidence: Evidence, error: float, script: str) -> ModelledGain:
    saved, least, most = (
        evidence.life_ns - round(seconds * NS_PER_S) for seconds in (one.duration_s, one.max_duration_s, one.min_duration_s)
    )
    return ModelledGain(one.changes.words(), saved, least, most, error, script)


def _script(finding: Finding, evidence: Evidence, schedule: Schedule, predicted: Prediction) -> str:
    """Return a program that repeats the transfer, with all reads, writes and pauses of its applications."""
    life_s = evidence.life_ns / NS_PER_S
    expected = Expected((finding.cost_ns or 0) / NS_PER_S, life_s, predicted.duration_s, 0.0, 0.0, schedule.path.base_rtt_ns / NS_PER_S)
    heading = [
        f"From: {evidence.capture}, connection {evidence.conn}",
        f"Finding: {finding.id} ({finding.confidence}): {finding.title}",
        f"As captured: {numbers.duration_s(life_s)}.",
        f"With {predicted.changes.words()}, by models: {numbers.duration_s(predicted.duration_s)}.",
    ]
    return python_script.program(schedule, expected, predicted.changes.words(), heading)


def _figures(evidence: Evidence) -> Figures:
    """Return the key figures of the original from its analysis. The model has to reproduce these figures."""
    ledger_s = {
        direction: {cause: ns / NS_PER_S for cause, ns in evidence.ledger_ns[side].items()} for direction, side in DIRECTIONS.items()
    }
    return Figures("original", evidence.capture, evidence.life_ns / NS_PER_S, ledger_s)


def _lives(analysis: Analysis, conns: Sequence[int]) -> dict[int, int]:
    life = analysis.connections.filter(pl.col("conn").is_in(conns)).select("conn", pl.col("last_ts_ns") - pl.col("first_ts_ns"))
    return dict(life.collect().iter_rows())


def _words(gain: ModelledGain, life_ns: int) -> str:
    missed = f"{abs(gain.model_error):.1%} {'more' if gain.model_error > 0 else 'less'}"
    by = f"with {gain.changes}, by models that take {missed} time than the original"
    if gain.saved_ns <= 0:
        return f"none of {numbers.duration(life_ns)} {by}"
    spread = f"{numbers.duration(max(gain.min_ns, 0))} to {numbers.duration(gain.max_ns)}"
    return f"{numbers.duration(gain.saved_ns)} of {numbers.duration(life_ns)} ({spread}) {by}"
