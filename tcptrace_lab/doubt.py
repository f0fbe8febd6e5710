"""Findings are as sure as the capture that they rest on: their confidence, lowered by how far it can be believed, and the reason said."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab import trust
from tcptrace_lab.rules import Confidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcptrace_lab.findings import Finding

_LADDER = (Confidence.PROVED, Confidence.CONSISTENT, Confidence.POSSIBLE)


def lowered(findings: Sequence[Finding], verdict: trust.Trust, connections: pl.LazyFrame) -> tuple[Finding, ...]:
    """The findings, each with the confidence that what it rests on leaves it.

    What touches the whole capture counts for all; of the faults of connections, a finding on one minds only its own.

    Args:
        findings: as the rules make them.
        verdict: on the capture.
        connections: rows of `schema.CONNECTIONS`, at least those that the findings name.
    """
    named = sorted({finding.conn for finding in findings if finding.conn is not None})
    faults = _faults(connections, named) if named else {}
    whole = [reason for reason in verdict.reasons if reason.factor < 1]

    def one(finding: Finding) -> Finding:
        factor, reasons = faults.get(finding.conn, (1.0, [])) if finding.conn is not None else (verdict.factor_of_connections, [])
        words = [*(reason.words for reason in whole), *(trust.CAUSES[name] for name in reasons)]
        return _less_sure(finding, trust.steps_down(factor * verdict.factor_of_capture), words)

    return tuple(one(finding) for finding in findings)


def _faults(connections: pl.LazyFrame, named: Sequence[int]) -> dict[int, tuple[float, list[str]]]:
    """The factor of each of these connections, and the names of its faults."""
    own = connections.filter(pl.col("conn").is_in(named)).select("conn", **trust.connection_columns()).collect()
    return {conn: (factor, reasons) for conn, factor, reasons in own.iter_rows()}


def as_sure(waits: pl.DataFrame, findings: Sequence[Finding]) -> pl.DataFrame:
    """The waits, each as sure as the finding that tells of it: what many of a kind prove, they prove of each.

    Args:
        waits: rows of `schema.LEDGER`.
        findings: as `lowered` gives them.
    """
    told = {
        (finding.conn, finding.from_client, cause): str(finding.confidence)
        for finding in reversed(findings)  # of several on one kind of wait, the first tells
        for cause in finding.causes
        if finding.conn is not None and finding.from_client is not None and finding.is_of_waits
    }
    if not told or waits.is_empty():
        return waits
    conns, ways, causes, confidences = (waits[name].to_list() for name in ("conn", "from_client", "cause", "confidence"))
    sure = map(told.get, zip(conns, ways, causes, strict=True), confidences)
    return waits.with_columns(pl.Series("confidence", list(sure), waits.schema["confidence"]))


def _less_sure(finding: Finding, steps: int, reasons: Iterable[str]) -> Finding:
    confidence = _LADDER[min(_LADDER.index(finding.confidence) + steps, len(_LADDER) - 1)]
    if confidence == finding.confidence:
        return finding
    said = f"Only {confidence} because of the capture: {'; '.join(reasons)}."
    return replace(finding, confidence=confidence, limits=f"{finding.limits} {said}".strip())
