"""Tests of `tcptrace-lab verify`: its exit codes, its lines of at most 80 columns, and its JSON."""

from __future__ import annotations

import io
import json
from pathlib import Path

import jsonschema
import polars as pl
import pytest

from tcptrace_lab import errors
from tcptrace_lab.cli import run
from tcptrace_lab.cli.tables.differences import explanation, headline
from tcptrace_lab.errors import EXIT_DONE, EXIT_FINDING, EXIT_MISSING_TOOL, EXIT_READ_IN_PART, EXIT_USAGE
from tcptrace_lab.verify import verify
from tcptrace_lab.verify.differences import UNEXPLAINED
from tcptrace_lab.verify.output import ordered, totals, write_json
from tcptrace_lab.verify.rules import BY_NAME
from tests.support import needs
from tests.support.packets import capture
from tests.support.peers import tshark
from tests.support.places import CAPTURES

LOSS = CAPTURES / "ethernet-loss.pcapng"
SCHEMA = json.loads((Path(errors.__file__).parent / "outputs/schemas/verify.schema.json").read_text())


@pytest.fixture(autouse=True)
def _programs() -> None:
    needs.tshark_4_0()
    needs.program("tcptrace")


def test_a_capture_whose_differences_are_explained_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(LOSS)]) == EXIT_DONE
    reported = capsys.readouterr()
    assert reported.err == ""
    assert reported.out.startswith("No unexplained difference.\n")
    assert ", 0 unexplained" in " ".join(reported.out.split())
    assert "frame 92" in reported.out
    assert max(map(len, reported.out.splitlines())) <= 80


def test_every_difference_is_listed_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(LOSS), "--all", "--without", "tcptrace"]) == EXIT_DONE
    reported = capsys.readouterr().out
    assert "more; --all lists them" not in reported
    assert "tshark ttl" in reported, "items without differences, too"


def test_json_has_what_the_account_has(tmp_path: Path) -> None:
    path = tmp_path / "differences.json"
    assert run(["verify", str(LOSS), "--quiet", "--json", str(path)]) == EXIT_DONE
    document, account = json.loads(path.read_bytes()), verify(LOSS)
    assert document["summary"] == totals(account)
    assert document["summary"]["compared"] == document["summary"]["equal"] + document["summary"]["explained"]
    assert [one["rule"] for one in document["explanations"]] == ordered(account)
    for one in document["explanations"]:
        assert (one["description"], one["source"]) == (BY_NAME[one["rule"]].why, BY_NAME[one["rule"]].source)
        assert one["count"] == len(one["differences"])
        assert all(difference["text"] for difference in one["differences"])


@pytest.mark.parametrize("name", ["ethernet-loss", "ethernet-reordering", "ethernet-duplicates", "loopback-ipv6-nagle-on"])
def test_json_is_what_its_schema_says(name: str, tmp_path: Path) -> None:
    """In these captures, values of every kind differ: words, numbers, lists of SACK edges, and missing values."""
    path = tmp_path / "differences.json"
    (found,) = CAPTURES.glob(f"{name}.pcap*")
    assert run(["verify", str(found), "--quiet", "--json", str(path)]) == EXIT_DONE
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(path.read_bytes()))


def test_json_of_a_refused_file_and_of_what_no_rule_explains_is_what_its_schema_says(tmp_path: Path) -> None:
    path = capture(tmp_path / "plain.pcap", "0.0 C > S P. 1:11 ack 1\n0.1 S > C . ack 11 <sack 20:30>")
    edges = pl.Series([[20, 31]], dtype=pl.List(pl.Int64))
    rows = tshark.opinion(path).segments.with_columns(
        pl.when(pl.col("frame") == 2).then(pl.lit(edges).first()).otherwise("sack_blocks").alias("sack_blocks")
    )
    done = verify(path, ["tshark"], theirs=iter([rows]))
    done.refused["tshark"] = "it stopped"
    assert done.unexplained == 1
    stream = io.BytesIO()
    write_json(done, stream)
    document = json.loads(stream.getvalue())
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert document["explanations"][0]["differences"][0]["theirs"] == [20, 31]


def test_what_no_rule_explains_is_reported_first_and_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The test changes tshark's output: frame 2 gets another TTL, and frame 1 becomes a retransmit."""
    path = capture(tmp_path / "plain.pcap", "0.0 C > S P. 1:11 ack 1\n0.1 S > C . ack 11")
    rows = tshark.opinion(path).segments.with_columns(
        pl.when(pl.col("frame") == 2).then(9).otherwise("ttl").alias("ttl"),
        pl.when(pl.col("frame") == 1).then(pl.lit(["retransmission"])).otherwise("analysis").alias("analysis"),
    )
    done = verify(path, ["tshark"], theirs=iter([rows]))
    assert [(one.item, one.frame) for one in done.account.differences[UNEXPLAINED]] == [("retransmission", 1), ("ttl", 2)]
    assert ordered(done)[0] == UNEXPLAINED
    assert "2 unexplained" in headline(done)
    assert "tcptrace-lab may be wrong" in " ".join(explanation(done, UNEXPLAINED, None))
    monkeypatch.setattr("tcptrace_lab.verify.verify", lambda *_, **__: done)
    assert run(["verify", str(path)]) == EXIT_FINDING
    reported = capsys.readouterr().out
    assert reported.startswith("2 unexplained differences, in retransmission, ttl: tcptrace-lab may be wrong.\n")
    assert "ours 64, tshark 9" in reported


def test_a_missing_program_ends_with_5_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["verify", str(LOSS)]) == EXIT_MISSING_TOOL
    reported = capsys.readouterr().err.splitlines()
    assert len(reported) == 1
    assert "tshark is not installed" in reported[0]


@pytest.mark.parametrize(
    "arguments", [["-"], [str(LOSS), "--without", "tshark", "--without", "tcptrace"], [str(LOSS), "--json", str(LOSS)]]
)
def test_what_cannot_be_right_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", *arguments]) == EXIT_USAGE
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_cut_capture_is_compared_up_to_the_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(LOSS.read_bytes()[:-100])
    assert run(["verify", str(cut), "--without", "tcptrace"]) == EXIT_READ_IN_PART
    reported = " ".join(capsys.readouterr().out.split())
    assert "tshark did not read the whole file" in reported
    assert ", 0 unexplained" in reported
