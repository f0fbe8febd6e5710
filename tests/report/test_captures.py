"""On every capture of the project, the report calculates the values that the engine calculates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from tcptrace_lab import analyze, report, schema
from tcptrace_lab.report import selection
from tcptrace_lab.report.figures import series
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CAPTURES = sorted(path for path in ROOT.joinpath("captures").iterdir() if ".pcap" in path.name)


SENDER_MARKS = {*schema.KINDS} - {"duplicate_ack"}
"""The kinds of a sender's segments that figures mark."""


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name)
def test_figures_add_up_to_the_table(capture: Path) -> None:
    """The figures of a direction agree with the table of connections.

    The throughput adds up to the number of unique bytes. The highest point of the flight is the table's maximum. The figures draw every
    data segment and mark every retransmit.
    """
    analysis = analyze(capture)
    chosen = selection.chosen(analysis.connections).drawn
    found = series.read(analysis, selection.requests(chosen))
    drawn = [
        (row, side, found[row["conn"]][schema.SIDES[side]])
        for row in chosen.iter_rows(named=True)
        for side in schema.SIDES
        if row[f"{side}_data_segments"]
    ]
    assert drawn
    for row, side, direction in drawn:
        assert direction.throughput["unique_bytes"].sum() == row[f"{side}_unique_bytes"]
        assert direction.lines["flight"]["y"].max() == row[f"{side}_max_in_flight_bytes"]
        assert direction.line_counts["rtt"] == row[f"{side}_rtt_samples"]
        assert sum(direction.mark_counts.get(kind, 0) for kind in schema.RESENT) == row[f"{side}_retransmitted_segments"]
        marked_data = sum(
            points.filter(pl.col("payload_bytes") > 0).height
            for name, points in direction.marks.items()
            if name in {*schema.KINDS} - {"duplicate_ack"}
        )
        copies = row[f"{side}_capture_duplicates"] + row[f"{side}_network_duplicates"]
        assert direction.bursts["segments"].sum() + marked_data == row[f"{side}_data_segments"] + copies


SMALL_PAGE_BYTES = 700_000
"""Maximum size of the report of a small capture, in bytes. Compressed Plotly is three quarters of the report."""


@pytest.mark.parametrize("name", ["ethernet-random-loss", "ethernet-reordering-at-server", "ethernet-short-connections"])
def test_the_report_of_a_small_capture_is_small(name: str) -> None:
    """These captures have the largest reports of all small captures."""
    page = report.render(report.data(analyze(ROOT / "captures" / f"{name}.pcapng")))
    assert len(page.encode()) <= SMALL_PAGE_BYTES
