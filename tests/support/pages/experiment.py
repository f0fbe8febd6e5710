"""Invented results of an experiment, for tests of its table and its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.lab.hosts.transfer_kinds import Measured
from tcptrace_lab.lab.studies import experiment_file
from tcptrace_lab.lab.studies.results import document, rows_of
from tcptrace_lab.lab.studies.study import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def results(*, short: bool = False) -> Mapping[str, Any]:
    """Return the results document.

    Each point has one failed transfer and two transfers of 40,960 bytes in 8.192 ms (40 Mb/s).
    """
    declared = experiment_file.parse("writes.toml", TEXT, short=short)
    measured = Measured(elapsed_ns=8_192_000, payload_bytes=40_960, latencies_ns=[8_192_000], port=40_000)
    runs = [
        Run(3 * place + repetition, place, repetition, 0, measured if repetition else None, "" if repetition else "ConnectionResetError")
        for place in range(len(declared.points))
        for repetition in range(3)
    ]
    seen = {"segments": 29, "retransmitted_segments": 1, "capture_bytes": 40_960, "findings": ["loss"], "cause_network_ns": 8_192_000}
    rows = rows_of(runs, declared.points, {0: {run.number: seen for run in runs if run.measured}})
    return document(declared, declared.points, rows, ENVIRONMENT, {"000-client.pcapng": 2})
