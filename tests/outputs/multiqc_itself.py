"""MultiQC reads our files with our plugin.

Pytest does not collect a file with this name, because MultiQC needs many packages. Only the nightly job installs MultiQC and runs `pytest
tests/outputs/multiqc_itself.py`.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import new_process
from tests.support.places import CAPTURES

NAMES = ["ethernet-loss", "ethernet-nagle-on", "ethernet-short-connections"]


def reported(folder: Path) -> dict[str, list[dict[str, str]]]:
    """Run MultiQC on `folder`. Return the rows of each table that MultiQC writes beside its report."""
    multiqc = Path(sys.executable).with_name("multiqc")
    done = subprocess.run([multiqc, "--strict", "-o", "out", "."], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    log = (folder / "out" / "multiqc_data" / "multiqc.log").read_text(encoding="utf-8")
    assert [line for line in log.splitlines() if "[WARNING" in line or "[ERROR" in line or "[CRITICAL" in line] == []
    assert (folder / "out" / "multiqc_report.html").is_file()
    tables = {}
    for path in (folder / "out" / "multiqc_data").glob("*.txt"):
        with path.open(encoding="utf-8", newline="") as file:
            tables[path.stem.removeprefix("multiqc_")] = list(csv.DictReader(file, delimiter="\t"))
    return tables


@pytest.mark.parametrize("kind", ["plugin", "files"])
def test_multiqc_shows_captures_connections_and_causes(kind: str, tmp_path: Path) -> None:
    for name in NAMES:
        option = ["--json", f"{name}.json"] if kind == "plugin" else ["--multiqc", "."]
        assert new_process("analyze", CAPTURES / f"{name}.pcapng", "-q", *option, folder=tmp_path).returncode == 0
    (tmp_path / "other.json").write_text('{"tcp_segments": 3}')
    tables = reported(tmp_path)
    general = {row["Sample"]: row for row in tables["general_stats"]}
    assert sorted(general) == NAMES
    shown = {key.rpartition("-")[2]: value for key, value in general["ethernet-nagle-on"].items()}
    assert (shown["severity"], shown["connections"], shown["quality"]) == ("high", "1", "good")
    assert float(shown["cost_share"]) == pytest.approx(91, abs=1)  # the README says 91% of 527 ms
    connections = {row["Sample"]: row for row in tables["tcptrace_lab_connections_table"]}
    assert "nagle-delayed-ack" in connections["ethernet-nagle-on 0"].values()
    assert "400000" in connections["ethernet-loss 0"].values()  # bytes that the client sent
    (bars,) = (row for row in tables["tcptrace_lab_time_plot"] if row["Sample"] == "ethernet-nagle-on")
    assert float(bars["nagle-delayed-ack"]) == pytest.approx(0.477, abs=0.001)  # the README says 477 ms
