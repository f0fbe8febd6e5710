"""The report and the JSON have all statistics of a connection.

The numbers come from the table of connections, and the descriptions come from the schema.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tcptrace_lab import read, schema
from tcptrace_lab.report import definitions
from tcptrace_lab.report.parts import statistics
from tests.support import packets, transfer
from tests.support.command import tcptrace_lab

if TYPE_CHECKING:
    from pathlib import Path


def test_the_report_lists_every_figure_of_both_directions_with_its_meaning(tmp_path: Path) -> None:
    row = read(packets.capture(tmp_path / "transfer.pcap", transfer.TEXT)).connections.collect().row(0, named=True)
    lines = statistics.table(row)
    assert len(lines) == len({line["label"] for line in lines}) == len(schema.STATISTICS) + len(schema.SPREADS)
    found = {line["label"]: line for line in lines}
    segments = found["segments"]
    assert (segments["client"], segments["server"], segments["kind"]) == (row["client_segments"], row["server_segments"], "count")
    assert found["RTT timestamp min"]["kind"] == "duration"
    meanings = {one["word"]: one["means"] for one in definitions.words()["Figures of a direction"]}
    assert set(meanings) == set(found)
    assert meanings["RTT timestamp min"] == "Smallest RTT by TCP timestamps; null without samples"
    assert found["ACK lag p95"]["kind"] == "duration"
    assert found["first data ts"]["kind"] == "utc"
    assert found["SACK permitted"]["client"] in {"yes", "no", None}


def test_the_json_has_the_statistics_of_the_table(tmp_path: Path) -> None:
    capture = packets.capture(tmp_path / "transfer.pcap", transfer.TEXT)
    done = tcptrace_lab("analyze", capture, "--json", "-", "-o", tmp_path / "report.html")
    assert done.returncode == 0
    row = read(capture).connections.collect().row(0, named=True)
    connection = json.loads(done.stdout)["connections"][0]
    for side, way in (("client", "client_to_server"), ("server", "server_to_client")):
        assert connection[way]["statistics"] == {name: row[f"{side}_{name}"] for name in schema.MORE_STATISTICS_NAMES}
    assert "All statistics of connection 0" in (tmp_path / "report.html").read_text()
