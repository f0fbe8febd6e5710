"""The document with the results of an experiment matches its schema. A table and a page are made of the document."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.cli.tables import lab
from tcptrace_lab.report.experiment_page import write_report
from tests.support import published
from tests.support.pages import experiment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("short", [False, True])
def test_results_are_what_their_schema_says_and_become_a_table_and_a_page(short: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """A transfer of 40,960 bytes in 8.192 ms has a rate of 40 Mb/s. One of the three transfers fails."""
    found = experiment.results(short=short)
    published.check("experiment", found)
    point = found["points"][0]
    assert (point["runs"], point["failures"], point["findings"]) == (3, {"ConnectionResetError": 1}, {"loss": 2})
    assert point["measures"]["throughput"]["mean"] == pytest.approx(40e6)
    assert (point["cause_shares"], point["retransmitted_segments"]) == ({"network": 1.0}, 2)
    assert lab.table(found).row_count == len(found["points"])
    write_report(found, str(tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text()
    assert all(text in page for text in ("40 Mb/s", "ConnectionResetError", "2026-01-01 00:00:00 UTC", "Linux 6.18"))
