"""Findings as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab import schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.findings.finding import Finding


def rows(findings: Sequence[Finding]) -> pl.DataFrame:
    """Return rows of `schema.FINDINGS`, in the order of the findings."""
    listed = [
        {
            "rank": rank,
            "id": each.id,
            "severity": str(each.severity),
            "confidence": str(each.confidence),
            "conn": each.conn,
            "from_client": each.from_client,
            "cost_ns": each.cost_ns,
            "cost_share": each.cost_share,
            "title": each.title,
            "mechanism": each.mechanism,
            "evidence_frames": list(each.evidence_frames),
            "limits": each.limits,
            "remedy": "\n".join(each.remedy),
            "predicted_gain": each.predicted_gain,
            "source": each.source,
        }
        for rank, each in enumerate(findings)
    ]
    return pl.DataFrame(listed, schema=schema.FINDINGS.polars_schema(), orient="row")
