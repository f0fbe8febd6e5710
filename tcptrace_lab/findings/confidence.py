"""Confidence of findings: lowered according to the quality of the capture, with the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.causes import Confidence
from tcptrace_lab.connections import capture_quality

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcptrace_lab.findings.finding import Finding

_LADDER = (Confidence.PROVED, Confidence.CONSISTENT, Confidence.POSSIBLE)


def lowered(findings: Sequence[Finding], verdict: capture_quality.CaptureQuality, connections: pl.LazyFrame) -> tuple[Finding, ...]:
    """Return the findings, each with its confidence lowered by the capture faults that affect it.

    Faults of the whole capture affect all findings. A finding on one connection is otherwise affected only by faults of that connection.

    Args:
        findings: the findings of the rules.
        verdict: quality of the capture.
        connections: rows of `schema.CONNECTIONS`, at least those that the findings name.
    """
    named = sorted({finding.conn for finding in findings if finding.conn is not None})
    faults = _faults(connections, named) if named else {}
    whole = [reason for reason in verdict.reasons if reason.factor < 1]

    def one(finding: Finding) -> Finding:
        factor, reasons = faults.get(finding.conn, (1.0, [])) if finding.conn is not None else (verdict.factor_of_connections, [])
        words = [*(reason.words for reason in whole), *(capture_quality.CAUSES[name] for name in reasons)]
        return _less_sure(finding, capture_quality.steps_down(factor * verdict.factor_of_capture), words)

    return tuple(one(finding) for finding in findings)


def _faults(connections: pl.LazyFrame, named: Sequence[int]) -> dict[int, tuple[float, list[str]]]:
    """Return, by connection, the factor that the quality of its capture gives, and the reasons: the faults of the capture."""
    own = connections.filter(pl.col("conn").is_in(named)).select("conn", "quality_factor", "quality_reasons").collect()
    return {conn: (factor, reasons) for conn, factor, reasons in own.iter_rows()}


def as_sure(waits: pl.DataFrame, findings: Sequence[Finding]) -> pl.DataFrame:
    """Give each wait the confidence of the finding that covers it: if many waits of a kind prove a cause, they prove it for each of them.

    Args:
        waits: rows of `schema.LEDGER`.
        findings: result of `lowered`.
    """
    lowered_by = {
        (finding.conn, finding.from_client, cause): str(finding.confidence)
        for finding in reversed(findings)  # if several findings cover the same kind of wait, the first one counts
        for cause in finding.causes
        if finding.conn is not None and finding.from_client is not None and finding.is_of_waits
    }
    if not lowered_by or waits.is_empty():
        return waits
    conns, from_clients, causes, confidences = (waits[name].to_list() for name in ("conn", "from_client", "cause", "confidence"))
    sure = map(lowered_by.get, zip(conns, from_clients, causes, strict=True), confidences)
    return waits.with_columns(pl.Series("confidence", list(sure), waits.schema["confidence"]))


def _less_sure(finding: Finding, steps: int, reasons: Iterable[str]) -> Finding:
    confidence = _LADDER[min(_LADDER.index(finding.confidence) + steps, len(_LADDER) - 1)]
    if confidence == finding.confidence:
        return finding
    sentence = f"Only {confidence} because of the capture: {'; '.join(reasons)}."
    return replace(finding, confidence=confidence, limits=f"{finding.limits} {sentence}".strip())
