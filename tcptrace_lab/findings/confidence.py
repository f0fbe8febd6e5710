"""Lowers the confidence of findings and waits if the quality of the capture is poor, and states the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab import causes
from tcptrace_lab.causes import Confidence
from tcptrace_lab.connections import capture_quality

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcptrace_lab.findings.finding import Finding

_LADDER = (Confidence.PROVED, Confidence.CONSISTENT, Confidence.POSSIBLE)


def proved_by_repetition(waits: pl.DataFrame, findings: Iterable[Finding]) -> pl.DataFrame:
    """Raise the confidence of waits to *proved* if three waits of one kind prove their finding.

    The confidence of a wait stays if another cause explains the wait equally well.

    Args:
        waits: rows of `schema.LEDGER`, or of a table with its columns.
        findings: result of `Lowering.findings`.
    """
    proved = {
        (finding.conn, finding.from_client, cause)
        for finding in findings
        if finding.confidence is Confidence.PROVED and finding.is_of_waits
        for cause in finding.causes
        if causes.of_cause(cause).proved_by_repetition
    }
    if not proved:
        return waits
    rows = waits[["conn", "from_client", "cause", "confidence"]].rows()
    surer = [
        str(Confidence.PROVED) if (conn, from_client, cause) in proved and own != Confidence.POSSIBLE else own
        for conn, from_client, cause, own in rows
    ]
    return waits.with_columns(pl.Series("confidence", surer, waits.schema["confidence"]))


class Lowering:
    """Lowers the confidence of findings, and of waits, according to the faults of a capture.

    A fault of the whole capture affects all findings and waits. A fault of one connection affects the findings and waits of that
    connection.
    """

    def __init__(self, verdict: capture_quality.CaptureQuality, connections: pl.LazyFrame, conns: Iterable[int]) -> None:
        """Query the faults of some connections.

        Args:
            verdict: quality of the capture.
            connections: rows of `schema.CONNECTIONS`, at least those of `conns`.
            conns: the connections of all findings and waits that will be lowered.
        """
        self._verdict = verdict
        self._whole = [reason.words for reason in verdict.reasons if reason.factor < 1]
        self._faults: dict[int, tuple[float, list[str]]] = {}
        if named := sorted(set(conns)):
            own = connections.filter(pl.col("conn").is_in(named)).select("conn", "quality_factor", "quality_reasons").collect()
            self._faults = {conn: (factor, reasons) for conn, factor, reasons in own.iter_rows()}

    def findings(self, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """Return the findings with lowered confidence. The limits of a finding state the reason."""
        return tuple(self._finding(each) for each in findings)

    def waits(self, waits: pl.DataFrame) -> pl.DataFrame:
        """Return rows of `schema.LEDGER` (or of a table with its columns) with lowered confidence."""
        steps = {conn: self._steps(conn) for conn in waits["conn"].unique()}
        if not any(steps.values()):
            return waits
        lowered = [str(_lower(Confidence(each), steps[conn])) for conn, each in waits[["conn", "confidence"]].rows()]
        return waits.with_columns(pl.Series("confidence", lowered, waits.schema["confidence"]))

    def _fault(self, conn: int | None) -> tuple[float, list[str]]:
        """Return the factor and the names of a connection's faults; None stands for all connections."""
        return (self._verdict.factor_of_connections, []) if conn is None else self._faults.get(conn, (1.0, []))

    def _steps(self, conn: int | None) -> int:
        return capture_quality.steps_down(self._fault(conn)[0] * self._verdict.factor_of_capture)

    def _finding(self, finding: Finding) -> Finding:
        confidence = _lower(finding.confidence, self._steps(finding.conn))
        if confidence == finding.confidence:
            return finding
        reasons = "; ".join([*self._whole, *(capture_quality.CAUSES[name] for name in self._fault(finding.conn)[1])])
        sentence = f"Only {confidence} because of the capture: {reasons}."
        return replace(finding, confidence=confidence, limits=f"{finding.limits} {sentence}".strip())


def _lower(confidence: Confidence, steps: int) -> Confidence:
    return _LADDER[min(_LADDER.index(confidence) + steps, len(_LADDER) - 1)]
