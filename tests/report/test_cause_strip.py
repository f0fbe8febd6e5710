"""In the strip of causes, the width of each cause is its share of the ledger.

The tests in `rust/src/figures/strip.rs` cover single examples.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tcptrace_lab import analyze, schema
from tcptrace_lab.report import selection
from tcptrace_lab.report.figures import series
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.engine.figures import Band

TOLERANCE = 0.02


def lengths(bands: Sequence[Band]) -> Counter[str]:
    found: Counter[str] = Counter()
    for band in bands:
        found[band["cause"]] += band["end_ns"] - band["start_ns"]
    return found


@pytest.mark.parametrize("name", ["ethernet-loss.pcapng", "ethernet-nagle-on.pcapng", "ethernet-two-way.pcapng", "loopback-bulk.pcapng"])
def test_the_strip_of_a_capture_adds_up_to_its_ledger(name: str) -> None:
    analysis = analyze(CAPTURES / name)
    rows = selection.chosen(analysis.connections).drawn
    account = analysis.accounts.filter(pl.col("conn") == rows.item(0, "conn")).collect().row(0, named=True)
    for from_client, direction in series.read(analysis, selection.requests(rows, selection.ALONE))[rows.item(0, "conn")].items():
        side = "client" if from_client else "server"
        ledger = {cause: account[f"{side}_{cause.replace('-', '_')}_ns"] for cause in schema.CAUSES}
        found = lengths(direction.causes)
        assert found.total() == sum(ledger.values())
        assert all(abs(found[cause] - ns) <= TOLERANCE * found.total() for cause, ns in ledger.items())
