"""Results of an experiment: the document by its schema, the table and the page that are made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.cli.tables import lab
from tcptrace_lab.lab.hosts.transfer_kinds import Measured
from tcptrace_lab.lab.studies import experiment_file
from tcptrace_lab.lab.studies.results import document, rows_of
from tcptrace_lab.lab.studies.study import Run
from tcptrace_lab.report.experiment_page import write_report
from tests.support import published

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """
title = "Writes"

[path]
medium = "tun"

[transfer]
kind = "bulk"
total = "40K"

[run]
repetitions = 3

[sweep]
transfer.write = [10, "1K"]
path.loss = [0.0, 0.1]

[[figure]]
measure = "throughput"
x = "transfer.write"

[[figure]]
measure = "latency"
x = "transfer.write"
y = "path.loss"
"""
ENVIRONMENT = {"kernel": "Linux 6.18", "processors": 2, "real_time_priority": True, "ended_utc": "2026-01-01 00:00:00"}


@pytest.mark.parametrize("short", [False, True])
def test_results_are_what_their_schema_says_and_become_a_table_and_a_page(short: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """40,960 bytes in 8.192 ms are 40 Mb/s; one of three transfers fails."""
    declared = experiment_file.parse("writes.toml", TEXT, short=short)
    measured = Measured(elapsed_ns=8_192_000, payload_bytes=40_960, latencies_ns=[8_192_000], port=40_000)
    runs = [
        Run(3 * place + repetition, place, repetition, 0, measured if repetition else None, "" if repetition else "ConnectionResetError")
        for place in range(len(declared.points))
        for repetition in range(3)
    ]
    seen = {"segments": 29, "retransmitted_segments": 1, "capture_bytes": 40_960, "findings": ["loss"], "cause_network_ns": 8_192_000}
    rows = rows_of(runs, declared.points, {0: {run.number: seen for run in runs if run.measured}})
    found = document(declared, declared.points, rows, ENVIRONMENT, {"000-client.pcapng": 2})
    published.check("experiment", found)
    point = found["points"][0]
    assert (point["runs"], point["failures"], point["findings"]) == (3, {"ConnectionResetError": 1}, {"loss": 2})
    assert point["measures"]["throughput"]["mean"] == pytest.approx(40e6)
    assert (point["cause_shares"], point["retransmitted_segments"]) == ({"network": 1.0}, 2)
    assert lab.table(found).row_count == len(declared.points)
    write_report(found, str(tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text()
    assert all(text in page for text in ("40 Mb/s", "ConnectionResetError", "2026-01-01 00:00:00 UTC", "Linux 6.18"))
