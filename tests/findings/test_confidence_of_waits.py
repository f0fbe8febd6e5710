"""A finding is not more certain than the waits it is made of, weighted by their time."""

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
def test_a_finding_whose_waits_are_only_possible_is_only_possible(path: Path) -> None:
    """More than half of a finding's time lies in waits that the engine calls possible, by the ledger's own intervals.

    One sure wait proves some causes, such as a full window; it makes the finding proved.
    """
    analysis = tcptrace_lab.analyze(path)
    length = pl.col("end_ns") - pl.col("start_ns")
    possible = pl.col("confidence") == str(Confidence.POSSIBLE)
    sums = (
        analysis.ledger.group_by("conn", "from_client", "cause").agg(ns=length.sum(), possible_ns=length.filter(possible).sum()).collect()
    )
    in_doubt = {(row[0], row[1], row[2]) for row in sums.iter_rows() if 2 * row[4] > row[3]}
    for found in analysis.findings:
        (cause, *more) = sorted(found.causes) or [""]
        if more or (found.conn, found.from_client, cause) not in in_doubt or not found.is_of_waits:
            continue
        rule = causes.of_cause(cause)
        doubt = rule.doubt
        if rule.confidence is Confidence.PROVED:
            continue
        if doubt is None or not doubt.consistent_if:
            assert found.confidence is Confidence.POSSIBLE, found.title
        else:
            assert found.confidence is not Confidence.PROVED, found.title
