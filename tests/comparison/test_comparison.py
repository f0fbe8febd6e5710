"""Tests of `compare`.

Statistics equal those calculated by hand. Services are matched or named. Findings are new, gone or kept.
"""

from __future__ import annotations

import importlib.resources
import json
import math
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tcptrace_lab import analyze
from tcptrace_lab.comparison import compare, texts
from tcptrace_lab.comparison.t_test import of_numbers, t_quantile
from tests.support import packets
from tests.support.command import only_line, tcptrace_lab

CAPTURES = Path("captures")
SCHEMA = json.loads(importlib.resources.files("tcptrace_lab").joinpath("outputs/schemas/compare.schema.json").read_text())


def lasting(folder: Path, name: str, *lives_ms: int, port: int = 80) -> Path:
    """Write a capture with one connection for each duration, and return its path.

    Each connection sends 1,000 bytes at its start and 1,000 bytes at its end.
    """
    lines = []
    for number, life in enumerate(lives_ms):
        hosts = f"host C{number} 10.0.0.1:{40_000 + number}\nhost S{number} 10.0.0.2:{port}"
        first = f"{number} C{number} > S{number} P. 1:1001 ack 1"
        lines.append(f"{hosts}\n{first}\n+{life}ms C{number} > S{number} P. 1001:2001 ack 1")
    return packets.capture(folder / f"{name}.pcap", "\n".join(lines))


def figure(document: dict[str, Any], name: str, way: str | None = None, service: int = 0) -> dict[str, Any]:
    (found,) = (one for one in document["services"][service]["figures"] if (one["name"], one["direction"]) == (name, way))
    assert isinstance(found, dict)
    return found


def valid(document: dict[str, Any]) -> dict[str, Any]:
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    json.dumps(document, allow_nan=False)
    return document


def test_the_schema_is_a_schema_and_has_the_words_of_the_analysis() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    analysis = json.loads(importlib.resources.files("tcptrace_lab").joinpath("outputs/schemas/analysis.schema.json").read_text())["$defs"]
    assert SCHEMA["$defs"]["finding_id"]["enum"] == analysis["finding"]["properties"]["id"]["enum"]
    causes = analysis["direction"]["properties"]["ledger_s"]["propertyNames"]["enum"]
    assert SCHEMA["$defs"]["cause"]["properties"]["cause"]["enum"] == causes


def test_three_captures_before_and_three_after_by_hand(tmp_path: Path) -> None:
    """The captures last 100, 110 and 120 ms before the change, and 200, 210 and 220 ms after it.

    Calculated by hand, the difference is 100 ± 2.776 √(200/3) ms. 2.776 is the quantile for 4 degrees of freedom. The statistic t of the
    test is 100 / √(200/3).
    """
    before = [lasting(tmp_path, f"before{life}", life) for life in (100, 110, 120)]
    after = [lasting(tmp_path, f"after{life}", life) for life in (200, 210, 220)]
    document = valid(compare(before, after).to_dict())
    found = figure(document, "connection_time")
    assert found["sample_unit"] == "captures"
    assert [group["mean"] for group in found["groups"]] == pytest.approx([0.110, 0.210])
    half_s = 4.302653 * 0.010 / math.sqrt(3)
    assert found["groups"][0]["interval"] == pytest.approx([0.110 - half_s, 0.110 + half_s], rel=1e-6)
    (change,) = found["against_first"]
    error_s = 0.010 * math.sqrt(2 / 3)
    assert (change["change"], change["change_share"]) == pytest.approx((0.1, 0.1 / 0.11))
    assert (change["test"]["t"], change["test"]["degrees_of_freedom"]) == pytest.approx((0.1 / error_s, 4))
    assert change["test"]["interval"] == pytest.approx([0.1 - 2.776445 * error_s, 0.1 + 2.776445 * error_s], rel=1e-6)
    sine = change["test"]["t"] / math.sqrt(4 + change["test"]["t"] ** 2)
    assert change["test"]["p"] == pytest.approx(1 - sine * (1 + (1 - sine * sine) / 2), rel=1e-6)
    assert (change["test"]["method"], change["verdict"]) == ("welch", "worse")
    throughput = figure(document, "throughput", "client_to_server")
    assert throughput["groups"][0]["mean"] == pytest.approx(sum(2000 * 8 / life for life in (0.100, 0.110, 0.120)) / 3)
    assert throughput["against_first"][0]["verdict"] == "worse"


def test_chances_are_corrected_for_the_number_of_figures(tmp_path: Path) -> None:
    before = [lasting(tmp_path, f"before{life}", life) for life in (100, 110, 120)]
    after = [lasting(tmp_path, f"after{life}", life) for life in (120, 130, 141)]
    tests = [
        change["test"]
        for one in compare(before, after).to_dict()["services"][0]["figures"]
        for change in one["against_first"]
        if change["test"]
    ]
    assert len(tests) > 1
    least = min(tests, key=lambda test: test["p"])
    assert least["p_adjusted"] == pytest.approx(least["p"] * len(tests))
    assert all(test["p_adjusted"] >= test["p"] for test in tests)


def test_one_capture_of_each_with_one_connection_is_not_tested(tmp_path: Path) -> None:
    document = valid(compare(lasting(tmp_path, "a", 100), lasting(tmp_path, "b", 300)).to_dict())
    found = figure(document, "connection_time")
    assert (found["sample_unit"], found["against_first"][0]["test"], found["against_first"][0]["verdict"]) == (None, None, "unknown")
    assert found["against_first"][0]["change"] == pytest.approx(0.2)
    assert "not tested, because each group has one value" in document["groups"][1]["against_first"]


def test_many_connections_of_one_capture_each_are_samples_of_these_captures_only(tmp_path: Path) -> None:
    comparison = compare(lasting(tmp_path, "a", 100, 120, 110, 130), lasting(tmp_path, "b", 210, 230, 200, 220))
    found = figure(valid(comparison.to_dict()), "connection_time")
    assert (found["sample_unit"], found["groups"][0]["samples"]) == ("connections", 4)
    assert found["against_first"][0]["verdict"] == "worse"
    assert comparison.regressions[0] == "B port 80 connection time"


def test_one_later_capture_is_held_against_the_spread_of_the_earlier(tmp_path: Path) -> None:
    """The earlier captures last 100, 110 and 120 ms. A later capture of 150 ms is no significant change, but one of 400 ms is.

    For 150 ms, t is (150 − 110) / (10 √(1 + 1/3)), with 2 degrees of freedom.
    """
    before = [lasting(tmp_path, f"before{life}", life) for life in (100, 110, 120)]
    near = figure(compare(before, lasting(tmp_path, "near", 150)).to_dict(), "connection_time")["against_first"][0]
    assert (near["test"]["method"], near["test"]["degrees_of_freedom"]) == ("pooled", 2)
    assert near["test"]["t"] == pytest.approx(40 / (10 * math.sqrt(4 / 3)))
    assert near["verdict"] == "none-shown"
    far = figure(compare(before, lasting(tmp_path, "far", 400)).to_dict(), "connection_time")["against_first"][0]
    assert far["verdict"] == "worse"


def test_captures_that_are_all_the_same_are_the_same(tmp_path: Path) -> None:
    groups = [[lasting(tmp_path, f"{name}{number}", 100) for number in range(2)] for name in "ab"]
    found = figure(valid(compare(*groups).to_dict()), "connection_time")["against_first"][0]
    assert (found["change"], found["verdict"], found["test"]) == (0, "same", None)


def test_repetitions_alone_have_means_and_intervals_and_no_tests(tmp_path: Path) -> None:
    document = valid(compare([lasting(tmp_path, f"r{life}", life) for life in (100, 110, 120)]).to_dict())
    found = figure(document, "connection_time")
    assert found["against_first"] == []
    assert found["groups"][0]["interval"][1] - found["groups"][0]["mean"] == pytest.approx(t_quantile(0.975, 2) * 0.010 / math.sqrt(3))


def test_two_repetitions_are_shown_as_the_range_that_they_are(tmp_path: Path) -> None:
    document = valid(compare([lasting(tmp_path, f"r{life}", life) for life in (100, 120)]).to_dict())
    assert figure(document, "connection_time")["groups"][0]["interval"] is None
    assert texts.cell(of_numbers([0.12e9, 0.1e9]), "duration") == "100 ms to 120 ms"
    assert texts.cell(of_numbers([0.1e9, 0.1e9]), "duration") == "100 ms"


def test_services_are_matched_by_port_and_others_are_reported(tmp_path: Path) -> None:
    text = "host C 10.0.0.1:40000\nhost S 10.0.0.2:80\nhost T 10.0.0.2:443\n0 C > S P. 1:11 ack 1\n+100ms C > S P. 11:21 ack 1\n"
    more = "host D 10.0.0.1:40001\n+0 D > T P. 1:11 ack 1\n+100ms D > T P. 11:21 ack 1\n"
    other = "host E 10.0.0.1:40002\nhost U 10.0.0.2:22\n+0 E > U P. 1:11 ack 1\n+100ms E > U P. 11:21 ack 1\n"
    first, second = packets.capture(tmp_path / "a.pcap", text + more), packets.capture(tmp_path / "b.pcap", text + other + more)
    document = valid(compare(first, second).to_dict())
    assert [service["server_ports"] for service in document["services"]] == [[80], [443]]
    assert document["unmatched"] == [{"group": 1, "capture": 0, "server_port": 22, "connections": 1}]


def test_many_services_without_counterpart_are_one_note_a_capture(tmp_path: Path) -> None:
    """Seven services of capture A have no counterpart.

    One note names the five services with the most payload. If payloads are equal, the lower connection number comes first.
    """
    shared = "host C 10.0.0.1:40000\nhost S 10.0.0.2:80\n0 C > S P. 1:11 ack 1\n+100ms C > S P. 11:21 ack 1\n"
    others = "".join(
        f"host C{port} 10.0.0.1:{port + 40_000}\nhost S{port} 10.0.0.2:{port}\n"
        f"+0 C{port} > S{port} P. 1:11 ack 1\n+100ms C{port} > S{port} P. 11:21 ack 1\n"
        for port in range(1, 8)
    )
    comparison = compare(packets.capture(tmp_path / "a.pcap", shared + others), packets.capture(tmp_path / "b.pcap", shared))
    assert len(comparison.unmatched) == 7
    assert [note for note in texts.notes(comparison) if note.startswith("not compared")] == [
        "not compared: ports 1, 2, 3, 4, 5 and 2 more of A a (7 connections), which another group lacks"
    ]


def test_the_only_service_of_each_is_taken_for_the_same(tmp_path: Path) -> None:
    (service,) = valid(compare(lasting(tmp_path, "a", 100, port=5001), lasting(tmp_path, "b", 200, port=5002)).to_dict())["services"]
    assert (service["matched_by"], service["server_ports"]) == ("only_one", [5001, 5002])


def test_connections_stand_side_by_side_by_their_order_where_their_number_is_the_same(tmp_path: Path) -> None:
    same = compare(lasting(tmp_path, "a", 100, 200), lasting(tmp_path, "b", 300, 400)).to_dict()["services"][0]
    lives = [[capture["duration_s"] for group in pair for capture in group] for pair in same["paired_connections"]]
    assert lives == [pytest.approx([0.1, 0.3]), pytest.approx([0.2, 0.4])]
    other = compare(lasting(tmp_path, "c", 100, 200), lasting(tmp_path, "d", 300)).to_dict()["services"][0]
    assert (other["connections"], other["paired_connections"]) == ([[2], [1]], None)


def test_nagle_turned_off_is_reported_by_ledger_messages_and_findings() -> None:
    """The application has one schedule in both captures. The first capture was made without TCP_NODELAY, and the second with this option.

    Without TCP_NODELAY, Nagle's algorithm delays eleven segments by 43 ms each (captures/README.md).
    """
    comparison = compare(CAPTURES / "ethernet-nagle-on.pcapng", CAPTURES / "ethernet-nagle-off.pcapng")
    document = valid(comparison.to_dict())
    held = document["services"][0]["ledger"][0]
    assert (held["cause"], held["direction"]) == ("nagle-delayed-ack", "client_to_server")
    assert held["groups"][0]["mean"] == pytest.approx(0.477, abs=0.002)
    assert held["groups"][1]["mean"] == 0
    by_id = {finding["id"]: finding["against_first"] for finding in document["findings"]}
    assert by_id == {"nagle-delayed-ack": ["disappeared"], "application-limited": ["stayed"]}
    answers = figure(document, "answer_time", "client_to_server")
    assert (answers["sample_unit"], answers["groups"][0]["samples"], answers["against_first"][0]["verdict"]) == ("messages", 12, "better")


def test_a_loss_that_came_is_a_finding_that_came() -> None:
    document = valid(compare(analyze(CAPTURES / "ethernet-slow-start.pcapng"), CAPTURES / "ethernet-tail-loss.pcapng").to_dict())
    assert {"timeout"} <= {finding["id"] for finding in document["findings"] if finding["against_first"] == ["appeared"]}


@pytest.mark.parametrize("name", ["empty", "without times", "without data"])
def test_captures_with_nothing_to_compare_are_reported_as_such(tmp_path: Path, name: str) -> None:
    text = {"empty": "", "without times": "", "without data": "0 C > S S 0:0(0)\n1 C > S S 0:0(0)"}[name]
    nothing = packets.capture(tmp_path / "nothing.pcap", text)
    document = valid(compare(nothing, lasting(tmp_path, "some", 100)).to_dict())
    assert document["services"] == []
    assert "nothing can be compared" in document["groups"][1]["against_first"]


def test_the_command_takes_groups_of_repetitions_and_fails_on_a_regression(tmp_path: Path) -> None:
    names = [
        lasting(tmp_path, f"{name}{life}", life).name for name, lives in (("a", (100, 110, 120)), ("b", (200, 210, 220))) for life in lives
    ]
    arguments = ("compare", *names[:3], "vs", *names[3:])
    assert tcptrace_lab(*arguments, folder=tmp_path).returncode == 0
    done = tcptrace_lab(*arguments, "--fail-on", "regression", "--json", "difference.json", folder=tmp_path)
    assert done.returncode == 1
    valid(json.loads((tmp_path / "difference.json").read_text()))
    words = done.stdout.decode()
    assert words.startswith("B is 91% slower: 210 ms instead of 110 ms per connection; significant (p<0.001).")
    assert re.search(r"^  connection time +110 ± 25 ms +210 ± 25 ms +\+91% worse, p<0\.001 *$", words, re.MULTILINE)
    assert max(map(len, words.splitlines())) <= 80
    better = tcptrace_lab("compare", *names[3:], "vs", *names[:3], "--fail-on", "regression", "-q", folder=tmp_path)
    assert (better.returncode, better.stdout, better.stderr) == (0, b"", b"")
    assert tcptrace_lab("compare", *names[3:], "vs", *names[:3], "--fail-on", "difference", "-q", folder=tmp_path).returncode == 1


def test_a_gate_that_cannot_fail_is_reported(tmp_path: Path) -> None:
    names = [lasting(tmp_path, name, life).name for name, life in (("a", 100), ("b", 900))]
    done = tcptrace_lab("compare", *names, "--fail-on", "regression", folder=tmp_path)
    assert done.returncode == 0
    assert "--fail-on finds no significant change" in done.stderr.decode()


def test_a_finding_that_came_fails_where_asked(tmp_path: Path) -> None:
    on, off = (str((CAPTURES / f"ethernet-nagle-{state}.pcapng").resolve()) for state in ("on", "off"))
    assert tcptrace_lab("compare", off, on, "-q", "--fail-on", "high", folder=tmp_path).returncode == 1
    assert tcptrace_lab("compare", on, off, "-q", "--fail-on", "high", folder=tmp_path).returncode == 0


def test_report_and_markdown_show_what_a_file_is_called_and_no_markup(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>|`x` @all [a](http:b)"
    first, second = lasting(tmp_path, hostile.replace("/", "_"), 100), lasting(tmp_path, "b", 200)
    done = tcptrace_lab("compare", first.name, second.name, "-o", "page.html", "--markdown", "result.md", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    page, reported = (tmp_path / "page.html").read_text(), (tmp_path / "result.md").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "- A: ``<script>alert(1)<_script>|`x` @all [a](http:b).pcap``: " in reported
    assert "| connection time | 100 ms | 200 ms | +100% | not tested |" in reported


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.pcap"], "compare needs at least two captures"),
        (["a.pcap", "vs"], "no capture before or after vs"),
        (["a.pcap", "vs", "b.pcap", "--repetitions"], "leave one of them out"),
        (["-", "-"], "standard input can be read only once"),
        (["a.pcap", "b.pcap", "-o", "-"], "-o cannot write to standard output"),
        (["a.pcap", "b.pcap", "--json", "-", "--markdown", "-"], "cannot write to the same place"),
        (["a.pcap", "b.pcap", "-o", "a.pcap"], "overwrite the capture"),
        (["a.pcap"] * 27, "27 groups of captures"),
    ],
)
def test_what_cannot_be_right_is_one_line_and_exits_with_2(tmp_path: Path, arguments: list[str], words: str) -> None:
    for name in ("a", "b"):
        lasting(tmp_path, name, 100)
    done = tcptrace_lab("compare", *arguments, folder=tmp_path)
    assert done.returncode == 2
    assert words in only_line(done.stderr)


def test_a_capture_cut_short_is_compared_in_part_and_exits_with_4(tmp_path: Path) -> None:
    first, second = lasting(tmp_path, "a", 100, 200), lasting(tmp_path, "b", 100, 200)
    (tmp_path / "cut.pcap").write_bytes(first.read_bytes()[:-1])
    done = tcptrace_lab("compare", "cut.pcap", second.name, "--json", "out.json", folder=tmp_path)
    assert done.returncode == 4
    assert json.loads((tmp_path / "out.json").read_text())["groups"][0]["captures"][0]["complete"] is False
