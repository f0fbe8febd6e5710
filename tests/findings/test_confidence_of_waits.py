"""A finding is at most as certain as its waits, weighted by their time."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tcptrace_lab
from tcptrace_lab import causes
from tcptrace_lab.causes import Confidence
from tests.support import needs
from tests.support.places import CAPTURES

sys.path.insert(0, str(CAPTURES))

import figures

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("path", needs.each(figures.captures(CAPTURES)))
def test_a_finding_is_as_sure_as_the_waits_that_make_up_most_of_its_time(path: Path) -> None:
    """The expected confidence is computed from the intervals of the ledger.

    A finding can be more certain than its waits for two reasons. Three waits can prove what one wait cannot. There can also be evidence
    about the whole direction (`Doubt`).
    """
    analysis = tcptrace_lab.analyze(path)
    length, confidence = pl.col("end_ns") - pl.col("start_ns"), pl.col("confidence")
    sums = analysis.ledger.group_by("conn", "from_client", "cause").agg(
        ns=length.sum(),
        sure_ns=length.filter(confidence != str(Confidence.POSSIBLE)).sum(),
        proved_ns=length.filter(confidence == str(Confidence.PROVED)).sum(),
    )
    kinds = {(row["conn"], row["from_client"], row["cause"]): row for row in sums.collect().to_dicts()}
    for found in analysis.findings:
        (cause, *more) = sorted(found.causes) or [""]
        kind = kinds.get((found.conn, found.from_client, cause))
        if more or kind is None or not found.is_of_waits:
            continue
        rule = causes.of_cause(cause)
        if found.confidence is Confidence.PROVED:
            assert 2 * kind["proved_ns"] >= kind["ns"] or rule.proved_by_repetition, found.title
        elif found.confidence is Confidence.CONSISTENT:
            assert 2 * kind["sure_ns"] >= kind["ns"] or (rule.doubt is not None and rule.doubt.consistent_if), found.title
