"""The docs are true: generated pages are up to date, Python examples run, and links have targets."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tcptrace_lab
from tcptrace_lab import schema
from tcptrace_lab.findings.finding import FINDING_IDS
from tests.support.places import ROOT

sys.path.insert(0, str(ROOT / "docs"))

import pages

PAGES = [Path("README.md"), Path("CONTRIBUTING.md"), *sorted(Path("docs").rglob("*.md"))]
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)")


@pytest.mark.parametrize("name", pages.PAGES)
def test_pages_that_are_made_from_the_package_are_up_to_date(name: str) -> None:
    assert Path("docs", name).read_text(encoding="utf-8") == pages.PAGES[name]()


@pytest.mark.parametrize("name", pages.SCHEMAS)
def test_json_schemas_list_the_causes_that_there_are(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make docs` updates the list of causes in each JSON Schema, and it changes nothing else."""
    text = Path("tcptrace_lab/outputs/schemas", name).read_text(encoding="utf-8")
    assert pages.with_lists(text) == text
    monkeypatch.setitem(schema.CAUSES, "invented", "for this test")
    renewed = pages.with_lists(text)
    assert renewed.count('"close", "unknown", "invented"\n') == 1
    assert f'"minProperties": {len(schema.CAUSES)}' in renewed or "minProperties" not in text
    assert len(renewed.splitlines()) == len(text.splitlines())


def test_the_json_schema_of_an_analysis_lists_the_statistics_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path("tcptrace_lab/outputs/schemas/analysis.schema.json").read_text(encoding="utf-8")
    monkeypatch.setattr(schema, "MORE_STATISTICS_NAMES", (*schema.MORE_STATISTICS_NAMES, "invented"))
    statistics = json.loads(pages.with_lists(text))["$defs"]["statistics"]
    assert statistics["required"] == list(schema.MORE_STATISTICS_NAMES)
    assert statistics["maxProperties"] == len(schema.MORE_STATISTICS_NAMES)


def test_every_finding_has_its_place_in_the_catalogue() -> None:
    page = Path("docs/findings.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (\S+)$", page, re.MULTILINE)
    assert set(headings) <= set(FINDING_IDS)
    assert all(f"`{name}`" in page or name in headings for name in FINDING_IDS)
    examples = re.findall(r"^    tcptrace-lab analyze (captures/\S+)$", page, re.MULTILINE)
    assert len(examples) >= 10
    assert all(Path(example).exists() for example in examples)


@pytest.mark.parametrize("place", range(len(CODE.findall(Path("docs/python.md").read_text(encoding="utf-8")))))
def test_examples_in_python_run_as_they_stand(place: int) -> None:
    code = CODE.findall(Path("docs/python.md").read_text(encoding="utf-8"))[place]
    names: dict[str, object] = {}
    exec(compile(code, f"docs/python.md, example {place}", "exec"), names)  # noqa: S102  (that is the test)
    assert set(names) - {"__builtins__"}, "an example makes something"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        file = (page.parent / target).resolve() if target else page.resolve()
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor[1:] in {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}, anchor


def test_the_readme_is_short() -> None:
    lines = Path("README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 100
    assert [line for line in lines if len(line) > 100 and not line.startswith("    ")] == [], "only commands and filters may be longer"


def test_the_first_five_minutes_are_what_the_tool_says() -> None:
    reported = " ".join(Path("README.md").read_text(encoding="utf-8").split())
    before, after = (tcptrace_lab.analyze(f"captures/ethernet-nagle-{state}.pcapng") for state in ("on", "off"))
    finding = before.findings[0]
    assert before.to_dict()["verdict"]["sentence"] in reported
    assert finding.title in reported
    assert finding.wireshark_filter in reported
    assert "; or ".join(finding.remedy[:2]) in reported
    sentence = tcptrace_lab.compare(before, after).to_dict()["groups"][1]["against_first"]
    start, end = (
        "B is 90% faster: 50.3 ms instead of 527 ms per connection;",
        "within these captures, message time, client → server, is significantly better.",
    )
    assert sentence.startswith(start)
    assert end in sentence
    assert f"{start} […] {sentence[sentence.index(end) :]}" in reported


def test_the_man_page_and_the_pages_hold_no_lines_that_git_would_call_wrong() -> None:
    done = subprocess.run(["git", "grep", "-nI", "[[:blank:]]$", "--", "docs"], capture_output=True, check=False)
    assert done.stdout == b""
