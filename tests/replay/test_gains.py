"""Predicted gains are compared with captures of the same schedule that were made with the remedy.

If no model fits, the gain of a finding is the upper bound of its rule.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

import tcptrace_lab as package
from tcptrace_lab import analyze
from tcptrace_lab.findings.finding import FINDING_IDS
from tcptrace_lab.replay.gains import CURABLE, modelled
from tcptrace_lab.replay.side_by_side import FAMILIES
from tcptrace_lab.report.parts.lost_time import MODELLED
from tests.support.command import tcptrace_lab
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from tcptrace_lab import Finding

SCHEMA = Path(package.__file__).parent / "outputs/schemas/analysis.schema.json"


def of_kind(findings: tuple[Finding, ...], kind: str) -> Finding:
    (found,) = [finding for finding in findings if finding.id == kind]
    return found


def life_s(name: str) -> float:
    (row,) = analyze(CAPTURES / name).connections.select("first_ts_ns", "last_ts_ns").collect().iter_rows()
    return float(row[1] - row[0]) / 1e9


def test_a_modelled_gain_is_what_the_same_schedule_with_the_remedy_saved() -> None:
    analysis, refused = modelled(analyze(CAPTURES / "ethernet-nagle-on.pcapng"))
    finding = of_kind(analysis.findings, "nagle-delayed-ack")
    saved_s = life_s("ethernet-nagle-on.pcapng") - life_s("ethernet-nagle-off.pcapng")
    assert refused == ()
    assert finding.modelled is not None
    assert finding.modelled.changes == "--nodelay"
    assert finding.modelled.saved_ns / 1e9 == pytest.approx(saved_s, rel=0.02)
    assert finding.modelled.min_ns <= finding.modelled.saved_ns <= finding.modelled.max_ns
    assert finding.predicted_gain is not None
    assert "with --nodelay, by models that take" in finding.predicted_gain


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ethernet-two-way", "connection 0: both ends send at once"),
        ("ethernet-random-loss", "connection 0: packets were lost, and a model cannot predict which ones would be lost after a change"),
    ],
)
def test_where_no_model_can_show_the_bound_of_the_rule_stays_and_the_reason_is_reported(name: str, reason: str) -> None:
    plain = analyze(CAPTURES / f"{name}.pcapng")
    analysis, (refused,) = modelled(plain)
    assert analysis.findings == plain.findings
    assert refused.startswith(reason)


def test_without_time_nothing_is_modelled_and_nothing_changed() -> None:
    plain = analyze(CAPTURES / "ethernet-nagle-on.pcapng")
    analysis, refused = modelled(plain, max_s=0)
    assert analysis.findings == plain.findings
    assert refused == ("connection 0: the models exceed their time limit",)


def test_the_report_offers_what_can_be_modelled() -> None:
    """`MODELLED` has the findings whose causes have a remedy that the models know.

    One of them is the throughput deadlock, which Nagle's algorithm and a full buffer cause.
    """
    curable = {cause for family in CURABLE for cause in FAMILIES[family]}
    found = {finding.id for path in sorted(CAPTURES.glob("*.pcapng")) for finding in analyze(path).findings if finding.causes & curable}
    assert found <= {*MODELLED}
    assert {*MODELLED} <= {"throughput-deadlock", *FINDING_IDS}


def test_the_reproducer_of_a_modelled_finding_is_a_program(tmp_path: Path) -> None:
    """The reproducer names its connection and its finding. The reproducer also has an option for the remedy."""
    analysis, _ = modelled(analyze(CAPTURES / "ethernet-nagle-on.pcapng"))
    gain = of_kind(analysis.findings, "nagle-delayed-ack").modelled
    assert gain is not None
    path = tmp_path / "reproduce.py"
    path.write_text(gain.script)
    done = subprocess.run([sys.executable, path, "--help"], capture_output=True, text=True, check=True)
    assert "--nodelay" in done.stdout
    assert "connection 0" in gain.script
    assert "Finding: nagle-delayed-ack" in gain.script


def test_connections_beyond_the_most_expensive_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcptrace_lab.replay.gains.MAX_CONNECTIONS", 0)
    plain = analyze(CAPTURES / "ethernet-nagle-on.pcapng")
    assert modelled(plain) == (plain, ("of 1 more connections; only the 0 most expensive are modelled",))


def test_what_the_command_says_shows_the_models_gain_from_the_rules(tmp_path: Path) -> None:
    document, reported = tmp_path / "result.json", {}
    for more in ((), ("--whatif",)):
        done = tcptrace_lab("analyze", CAPTURES / "ethernet-nagle-on.pcapng", *more, "--json", document, "-o", "r.html", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert max(len(line) for line in done.stdout.decode().splitlines() if "frame.number" not in line) <= 80
        whole = json.loads(document.read_text())
        jsonschema.validate(whole, json.loads(SCHEMA.read_text()))
        reported[more] = next(one for one in whole["findings"] if one["id"] == "nagle-delayed-ack")
        assert ("by models that take" in " ".join(done.stdout.decode().split())) is bool(more)
    plain, better = reported[()], reported[("--whatif",)]
    assert (plain["predicted_gain_by"], plain["modelled_gain"]) == ("rule", None)
    assert plain["predicted_gain"].startswith("at most ")
    assert (better["predicted_gain_by"], better["modelled_gain"]["changes"]) == ("model", "--nodelay")
    assert better["cost_s"] == plain["cost_s"]
    assert "by models that take" in (tmp_path / "r.html").read_text()
