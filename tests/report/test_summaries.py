"""`analyze` writes Markdown for tickets, and files for MultiQC. Both escape text from a capture."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tcptrace_lab import analyze
from tcptrace_lab.report import multiqc, multiqc_documents, summary
from tcptrace_lab.text.escape import markdown, markdown_code
from tests.support import packets, transfer
from tests.support.command import only_line, tcptrace_lab

CAPTURES = Path("captures")

SECTIONS = ("general", "connections", "time")


def test_the_markdown_has_verdict_quality_connections_findings_frames_and_remedies() -> None:
    """The capture has eleven waits of about 43 ms (captures/README.md)."""
    text = summary.text(analyze(CAPTURES / "ethernet-nagle-on.pcapng"))
    lines = text.splitlines()
    assert lines[0] == "## TCP: `captures/ethernet-nagle-on.pcapng`"
    assert lines[2].startswith("**Nagle's algorithm waiting for delayed ACKs took 91% of 527 ms;")
    assert "68 packets, 68 TCP segments, 1 connection in 527 ms; capture quality: good" in text
    assert "| 0 | `192.0.2.1:40001` → `192.0.2.2:5001` | 527 ms | 2.4 kB | 1.2 kB | 0 |" in text
    assert "1. **Nagle's algorithm and delayed ACKs cost 477 ms in 11 waits" in text
    assert "(high, proved, connection 0, client → server, 91% of 527 ms; `nagle-delayed-ack`)" in text
    assert "   - Remedy: write each message with one call" in text
    assert "   - Frames: `tcp.stream eq 0 and frame.number in {" in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_a_capture_without_findings_says_so(tmp_path: Path) -> None:
    text = summary.text(analyze(packets.capture(tmp_path / "empty.pcap", "")))
    assert "This capture contains no TCP connection" in text
    assert "### Findings\n\nNone" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words, 5 % of it (so)", "plain words, 5 % of it (so)"),
        ("a_b*c`d", r"a\_b\*c\`d"),
        ("<script>", r"\<script\>"),
        ("[a](http://b)", r"\[a\](http<!-- -->://b)"),
        ("see www.example.org", "see www<!-- -->.example.org"),
        ("@all #12", r"@<!-- -->all \#12"),
        ("a|b\nc", r"a\|b\\nc"),
        ("- item", r"\- item"),
        ("1. item", r"\1. item"),
        ("\u202eevil", r"\\u202eevil"),
        ("&amp;", r"\&amp;"),
    ],
)
def test_text_from_outside_is_no_markdown(text: str, shown: str) -> None:
    assert markdown(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a", "`a`"), ("a`b", "``a`b``"), ("`", "`` ` ``"), ("```", "```` ``` ````"), ("", "` `"), ("a\nb", r"`a\nb`"), ("a|b", "`a|b`")],
)
def test_code_has_more_backticks_around_it_than_in_it(text: str, shown: str) -> None:
    assert markdown_code(text) == shown


def test_bars_in_code_end_no_cell_of_a_table() -> None:
    assert markdown_code("a|b", in_table=True) == r"`a\|b`"


def test_the_command_writes_markdown_to_standard_output_or_a_file(tmp_path: Path) -> None:
    path = packets.capture(tmp_path / "transfer.pcap", transfer.TEXT)
    done = tcptrace_lab("analyze", path.name, "-q", "--markdown", "-", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert tcptrace_lab("analyze", path.name, "-q", "--markdown", "result.md", folder=tmp_path).stdout == b""
    assert (tmp_path / "result.md").read_bytes() == done.stdout
    assert done.stdout.startswith(b"## TCP: `transfer.pcap`\n")


def sections(folder: Path, name: str) -> dict[str, Any]:
    return {section: json.loads((folder / f"{name}_{section}_mqc.json").read_text()) for section in SECTIONS}


_TEXTS = {"type": "string", "minLength": 1}
_COLUMN = {
    "type": "object",
    "required": ["title"],
    "additionalProperties": False,
    "properties": {"title": _TEXTS, "description": _TEXTS, "suffix": _TEXTS, "format": {"pattern": r"^\{:.*\}$"}}
    | {"scale": {"enum": ["OrRd"]}, "min": {"type": "number"}, "max": {"type": "number"}},
}
_CELL = {"type": ["string", "number"]}
MULTIQC_RULES = {
    "$defs": {"column": _COLUMN},
    "type": "object",
    "required": ["id", "plot_type", "data"],
    "additionalProperties": False,
    "properties": {
        "id": {"pattern": r"^\w+$"},
        "plot_type": {"enum": ["generalstats", "table", "bargraph"]},
        "section_name": _TEXTS,
        "description": _TEXTS,
        "headers": {"type": "object", "additionalProperties": {"$ref": "#/$defs/column"}},
        "categories": {
            "type": "object",
            "additionalProperties": {
                "required": ["name", "color"],
                "additionalProperties": False,
                "properties": {"name": _TEXTS, "color": {"pattern": "^#[0-9a-f]{6}$"}},
            },
        },
        "pconfig": {
            "type": "object",
            "required": ["id", "title"],
            "additionalProperties": False,
            "properties": dict.fromkeys(("id", "title", "col1_header", "ylab", "cpswitch_counts_label"), _TEXTS)
            | {"no_violin": {"type": "boolean"}},
        },
        "data": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": _CELL}},
    },
    "allOf": [
        {"if": {"properties": {"plot_type": {"const": "generalstats"}}}, "then": {"required": ["headers"]}},
        {"if": {"properties": {"plot_type": {"const": "table"}}}, "then": {"required": ["headers", "pconfig", "section_name"]}},
        {
            "if": {"properties": {"plot_type": {"const": "bargraph"}}},
            "then": {
                "required": ["categories", "pconfig", "section_name"],
                "properties": {"data": {"additionalProperties": {"additionalProperties": {"type": "number"}}}},
            },
        },
    ],
}
"""The keys of MultiQC's custom content that we use (docs.seqera.io/multiqc/custom_content and .../development/plots).

MultiQC rejects unknown keys. Only a nightly job runs MultiQC itself (`tests/outputs/multiqc_itself.py`), because it needs many packages,
some of them in fixed versions.
"""


@pytest.mark.parametrize("name", ["ethernet-nagle-on.pcapng", "ethernet-short-connections.pcapng", "atm9180-loss.pcap"])
def test_files_for_multiqc_keep_the_rules_that_it_documents(name: str, tmp_path: Path) -> None:
    rules = jsonschema.Draft202012Validator(MULTIQC_RULES)
    for path in multiqc.write(analyze(CAPTURES / name), str(tmp_path)):
        assert re.fullmatch(r"[\w.:+-]+_mqc\.json", Path(path).name), "what MultiQC looks for"
        section = json.loads(Path(path).read_text())
        rules.validate(section)
        keys = set(section.get("headers", section.get("categories", {})))
        assert all(set(row) <= keys for row in section["data"].values()), "cells without a column are not shown"


def test_multiqc_gets_general_statistics_a_table_and_bars_of_the_ledger(tmp_path: Path) -> None:
    analysis = analyze(CAPTURES / "ethernet-nagle-on.pcapng")
    paths = multiqc.write(analysis, str(tmp_path))
    assert [Path(path).name for path in paths] == [f"ethernet-nagle-on_{section}_mqc.json" for section in SECTIONS]
    found = sections(tmp_path, "ethernet-nagle-on")
    assert [found[section]["plot_type"] for section in SECTIONS] == ["generalstats", "table", "bargraph"]
    document = analysis.to_dict()
    general = found["general"]["data"]["ethernet-nagle-on"]
    assert set(general) == set(found["general"]["headers"])
    assert (general["cost_s"], general["severity"], general["quality"]) == (document["verdict"]["cost_s"], "high", "good")
    row = found["connections"]["data"]["ethernet-nagle-on 0"]
    assert set(row) == set(found["connections"]["headers"])
    assert (row["cause"], row["client_bytes"], row["server_bytes"]) == ("nagle-delayed-ack", 2400, 1200)
    ways = [document["connections"][0][way]["ledger_s"] for way in ("client_to_server", "server_to_client")]
    assert found["time"]["data"]["ethernet-nagle-on"] == pytest.approx({cause: sum(way[cause] for way in ways) for cause in ways[0]})
    assert set(found["time"]["categories"]) == set(ways[0])


def test_multiqc_counts_the_time_of_directions_with_data_only(tmp_path: Path) -> None:
    """A direction without data waits for its peer all the time. This time would hide the causes of the other direction."""
    analysis = analyze(packets.capture(tmp_path / "one.pcap", "0 C > S P. 1:11 ack 1\n+10ms S > C . ack 11\n+500ms C > S P. 11:21 ack 1"))
    sums = multiqc.time(analysis)["data"]["one"]
    assert sum(sums.values()) == pytest.approx(0.510)


def rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Round numbers to six decimals, because the JSON has seconds and the tables have nanoseconds."""
    return {key: round(float(value), 6) if isinstance(value, (int, float)) else value for key, value in row.items()}


@pytest.mark.parametrize(
    "name", ["ethernet-loss.pcapng", "ethernet-nagle-on.pcapng", "ethernet-short-connections.pcapng", "ethernet-slow-reader.pcapng"]
)
def test_the_plugin_of_multiqc_has_the_rows_of_the_files(name: str) -> None:
    """The plugin reads the JSON, and the files are made from the tables.

    `tests/outputs/multiqc_itself.py` tests the plugin in MultiQC itself.
    """
    analysis = analyze(CAPTURES / name)
    rows = multiqc_documents.rows(json.dumps(analysis.to_dict()))
    assert rows is not None
    (general,) = multiqc.general(analysis)["data"].values()
    assert rounded(rows.general) == rounded(general)
    files = {int(key.split()[-1]): row for key, row in multiqc.connections(analysis)["data"].items()}
    assert list(rows.connections) == list(files)
    assert {number: rounded(row) for number, row in rows.connections.items()} == {number: rounded(row) for number, row in files.items()}
    (time,) = multiqc.time(analysis)["data"].values()
    assert rounded(rows.time) == rounded(time)


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"capture": {"tcp_segments": 3}}', '{"capture": 1}'])
def test_the_plugin_of_multiqc_leaves_other_files_alone(text: str) -> None:
    assert multiqc_documents.rows(text) is None


def test_names_that_multiqc_shows_unescaped_are_harmless(tmp_path: Path) -> None:
    path = packets.capture(tmp_path / "<img src=x onerror=alert(1)>.pcap", transfer.TEXT)
    assert tcptrace_lab("analyze", path.name, "-q", "--multiqc", "result", folder=tmp_path).returncode == 0
    names = sorted(file.name for file in (tmp_path / "result").iterdir())
    assert names == sorted(f"_img_src_x_onerror_alert_1__{section}_mqc.json" for section in SECTIONS)
    for file in (tmp_path / "result").iterdir():
        assert "<img" not in file.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["one.pcap", "one.pcap", "--pair", "--markdown", "-"], "the same file"),
        (["one.pcap", "two.pcap", "--pair", "--markdown", "-"], "need exactly one capture"),
        (["one.pcap", "--json", "-", "--markdown", "-"], "--json and --markdown cannot write to the same place"),
        (["one.pcap", "--markdown", "one.pcap"], "overwrite the capture"),
        (["one.pcap", "--multiqc", "two.pcap"], "not a directory"),
        (["one.pcap", "--multiqc", "no/where"], "no such directory"),
    ],
)
def test_what_cannot_be_written_is_refused_before_any_work(tmp_path: Path, arguments: list[str], words: str) -> None:
    for name in ("one", "two"):
        packets.capture(tmp_path / f"{name}.pcap", transfer.TEXT)
    done = tcptrace_lab("analyze", *arguments, folder=tmp_path)
    assert done.returncode == 2
    assert words in only_line(done.stderr)
    assert not (tmp_path / "reports").exists()
