"""Rules of other packages (entry points): they are applied, and a rule that cannot be used is refused in one line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

NAGLE = ROOT / "captures" / "ethernet-nagle-on.pcapng"
EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)

HEAD = "import polars as pl\nfrom tcptrace_lab.causes import Advice, Confidence, Rule, proof\n"
LONG_WAITS = "pl.col('wait_ns') > 30_000_000"


def rule(cause: str = "application", holds: str = LONG_WAITS, finding: str = "application-limited") -> str:
    """Return the source text of a module that defines a rule."""
    words = "title='The backup paused {times}, {cost} in all', mechanism='{median} each.', limits='None.', remedy=('wait',)"
    return (
        f"{HEAD}RULE = Rule(cause={cause!r}, holds={holds}, confidence=Confidence.CONSISTENT, proof=(proof.IN_FLIGHT,), refuted_by='x',"
        f" source='the house', lost_to='the backup', advice=Advice(finding={finding!r}, {words}, is_a_fault=False))\n"
    )


def analyzed(tmp_path: Path, module: str, value: str = "house:RULE") -> subprocess.CompletedProcess[str]:
    """Return the result of `analyze --json -` with an installed package that contains `module`.

    The module and its metadata are on the path, as pip writes them.
    """
    (tmp_path / "house.py").write_text(module, encoding="utf-8")
    metadata = tmp_path / "house-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: house\nVersion: 1\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(f"[tcptrace_lab.rules]\nbackup = {value}\n", encoding="utf-8")
    places = os.pathsep.join(map(str, (tmp_path, ROOT)))
    command = [sys.executable, "-m", "tcptrace_lab", "analyze", str(NAGLE), "-q", "--json", "-", "-o", str(tmp_path / "report.html")]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": places})


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_rule_of_others_has_its_waits_whatever_the_engine_says_and_its_words_are_reported(tmp_path: Path) -> None:
    """By our rules, eleven waits of 44 ms have the cause Nagle's algorithm.

    The package's rule gives these waits another cause, and the report describes them with the words of the package.
    """
    found = document(analyzed(tmp_path, rule()))
    sent = found["connections"][0]["client_to_server"]["ledger_s"]
    assert sent["nagle-delayed-ack"] == 0
    assert sent["application"] > 11 * 0.043
    (reported,) = [one for one in found["findings"] if one["from_client"]]
    assert re.fullmatch(r"The backup paused \d+ times, 52\d ms in all", reported["title"])
    assert reported["source"] == "the house"
    assert "the backup took" in found["verdict"]["sentence"]
    assert "The backup paused" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_rule_of_others_may_look_at_what_the_engine_says_of_a_wait(tmp_path: Path) -> None:
    """The package's rule matches only waits for Nagle's algorithm with less than one full segment in flight."""
    holds = "(pl.col('cause') == 'nagle-delayed-ack') & (pl.col('flight_before_bytes') < pl.col('smss_bytes'))"
    found = document(analyzed(tmp_path, rule("pacing", holds, "send-buffer-limited")))
    assert found["connections"][0]["client_to_server"]["ledger_s"]["pacing"] > 11 * 0.043


def test_the_rule_that_the_documentation_shows_can_be_used(tmp_path: Path) -> None:
    (shown,) = EXAMPLE.findall((ROOT / "docs" / "rules.md").read_text(encoding="utf-8"))
    assert document(analyzed(tmp_path, shown))["verdict"]["findings"] == ["nagle-delayed-ack"], "no wait of this capture is its own"


@pytest.mark.parametrize(
    ("module", "value", "said"),
    [
        (rule("backup"), "house:RULE", "unknown cause 'backup': use one of handshake, "),
        (rule(finding="backup"), "house:RULE", "unknown finding 'backup'"),
        (rule(holds="pl.col('nonsense') > 1"), "house:RULE", "the rule uses unknown columns: nonsense"),
        (rule(holds="None"), "house:RULE", "the rule has no condition (holds)"),
        ("RULE = 'none'", "house:RULE", "str is not a tcptrace_lab.causes.Rule"),
        ("RULE = 1 / 0", "house:RULE", "a rule cannot be loaded: ZeroDivisionError"),
        (rule(), "house:OTHER", "a rule cannot be loaded: AttributeError"),
    ],
    ids=["cause", "finding", "column", "no-predicate", "no-rule", "module-fails", "name-is-not-there"],
)
def test_a_rule_that_cannot_be_used_is_reported_in_a_line(tmp_path: Path, module: str, value: str, said: str) -> None:
    done = analyzed(tmp_path, module, value)
    assert done.returncode == 2
    assert said in done.stderr
    assert f"entry point backup = {value}" in done.stderr
    assert "defect" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_words_that_ask_for_what_there_is_not_are_reported_in_a_line(tmp_path: Path) -> None:
    done = analyzed(tmp_path, rule().replace("{cost} in all", "{money} in all"))
    assert done.returncode == 2
    assert "a finding has no placeholder {money}: use one of cost, share" in done.stderr
    assert "defect" not in done.stderr
