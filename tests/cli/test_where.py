"""`--where` selects what is reported. `--fail-on` makes the command exit with 1 if a finding is severe enough."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import pytest

from tcptrace_lab import analyze
from tcptrace_lab.connections.where import Where
from tcptrace_lab.errors import UsageError
from tests.support import packets, transfer
from tests.support.command import only_line, tcptrace_lab

if TYPE_CHECKING:
    from pathlib import Path

NAGLE = """
    host N 10.0.0.3:50000 isn 7
    host T 10.0.0.4:443 isn 9
    1.0000 N > T  S   0:0(0)        win 64240 <mss 1460, sackOK, wscale 7>
    1.0200 T > N  S.  0:0(0) ack 1  win 65160 <mss 1460, sackOK, wscale 7>
    1.0200 N > T  .          ack 1  win 502
    1.0400 N > T  P. 1:101    ack 1
    1.1000 T > N  .           ack 101
    1.1001 N > T  P. 101:201  ack 1
    1.1201 T > N  P. 1:51     ack 201
"""
"""A second connection, in which the client's second write waits 60.1 ms for a delayed ACK.

The direction lives for 120.1 ms. The wait takes half of this time, so the finding is severe.
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A capture of two connections and a UDP flow.

    Connection 0 (port 80) retransmits a segment. Connection 1 (port 443) waits for a delayed ACK.
    """
    return packets.capture(tmp_path / "two.pcap", f"{transfer.TEXT}\n{NAGLE}\n1.2 C > S udp 100")


def kept(path: Path, where: str) -> list[int]:
    return analyze(path, where=where).connections.collect()["conn"].to_list()


@pytest.mark.parametrize(
    ("where", "conns"),
    [
        ("server_retransmitted_segments > 0", [0]),
        ("server_retransmitted_segments > 0 and server_port = 443", []),
        ("server_retransmitted_segments > 0 or server_port = 443", [0, 1]),
        ("client_addr = '10.0.0.3'", [1]),
        ("client_nagle_delayed_ack_ns > 60000000", [1]),
        ("client_nagle_delayed_ack_ns > 60200000", []),
        ("server_rtt_p50_ns < 2000000 and server_timeout_ns = 0", [1]),
        ("client_nagle_delayed_ack_ns = 0", [0]),
        ("client_nagle_delayed_ack_ns is null", []),
        ("server_unique_bytes = max(server_unique_bytes)", [0]),
    ],
)
def test_connections_for_which_it_is_true_are_kept(path: Path, where: str, conns: list[int]) -> None:
    assert kept(path, where) == conns


def test_what_is_unknown_is_not_true(path: Path) -> None:
    """Connection 1 has unknown values: it has no FIN, and the data of its server are never acknowledged."""
    assert kept(path, "server_rtt_p50_ns >= 0 or server_rtt_p50_ns < 0") == kept(path, "server_rtt_p50_ns is not null")


def test_table_json_findings_and_ledger_contain_only_these(path: Path, tmp_path: Path) -> None:
    def analyzed(*arguments: str) -> tuple[dict[str, Any], str]:
        done = tcptrace_lab("analyze", path.name, "--json", "two.json", *arguments, folder=tmp_path)
        assert done.returncode == 0
        return json.loads((tmp_path / "two.json").read_text()), (done.stderr + done.stdout).decode()

    everything, _ = analyzed()
    assert {finding["connection"] for finding in everything["findings"]} == {0, 1}
    assert len(everything["udp_flows"]) == 1
    document, words = analyzed("--where", "server_port = 443")
    assert document["connections"] == [connection for connection in everything["connections"] if connection["id"] == 1]
    assert document["findings"] == [finding for finding in everything["findings"] if finding["connection"] == 1]
    assert document["udp_flows"] == []
    assert "tcptrace-lab: 1 of 2 connections kept: server_port = 443" in words.splitlines()
    assert "10.0.0.3:50000" in words
    assert "10.0.0.1:40000" not in words
    assert "10.0.0.1" not in (tmp_path / "reports" / "two.html").read_text()


def test_none_is_an_answer_too(path: Path, tmp_path: Path) -> None:
    done = tcptrace_lab("analyze", path.name, "--where", "server_port = 22", "--json", "-", folder=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["connections"] == []
    assert (tmp_path / "reports" / "two.html").exists()


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("server_prt = 443", "no column server_prt: server_prt = 443; did you mean server_port"),
        ("colour = 'red'", "no column colour"),
        ("client_port >", "not an SQL expression"),
        ("", "not an SQL expression"),
        ("select conn", "not an SQL expression"),
        ("client_port + 1", "it must be true or false"),
        ("client_addr > 3", "such as text and numbers: client_addr > 3; for example"),
        ("client_addr + 1 = 3", "as text and numbers"),
        ("colour(conn) = 3", "no function colour"),
        ("vantage = 'moon'", "vantage is never 'moon'"),
        ("client_port > 1 and client_known_by not in ('syn', 'moon')", "client_known_by is never 'moon'"),
        ("(select 1) = 1", "subqueries are not allowed"),
        ("conn in (select 1)", "subqueries are not allowed"),
    ],
)
def test_a_wrong_condition_is_one_line_and_exits_with_2_before_anything_is_read(tmp_path: Path, where: str, words: str) -> None:
    done = tcptrace_lab("analyze", "not-there.pcap", "--where", where, folder=tmp_path)
    assert done.returncode == 2
    reported = only_line(done.stderr)
    assert words in reported
    assert not any(word in reported for word in ("dtype", "dyn", "subplan", "POLARS", "Expr", "column '")), "words of the library"
    with pytest.raises(UsageError):
        Where(where)


def severities(path: Path, where: str) -> list[str]:
    return [str(finding.severity) for finding in analyze(path, where=where).findings]


@pytest.mark.parametrize(("asked", "code"), [("high", 1), ("medium", 1), ("info", 1)])
def test_a_finding_as_severe_as_asked_for_or_more_exits_with_1(path: Path, tmp_path: Path, asked: str, code: int) -> None:
    assert severities(path, "server_port = 443")[0] == "high"
    assert tcptrace_lab("analyze", path.name, "--where", "server_port = 443", "--fail-on", asked, folder=tmp_path).returncode == code
    assert (tmp_path / "reports" / "two.html").exists()


@pytest.mark.parametrize(("asked", "code"), [("high", 0), ("medium", 0), ("low", 1), ("info", 1)])
def test_a_finding_that_is_less_severe_exits_with_0(tmp_path: Path, asked: str, code: int) -> None:
    """The delayed ACK takes 60.1 ms, which is 6 % of a connection of one second. So the severity of the finding is low."""
    path = packets.capture(tmp_path / "long.pcap", f"{NAGLE}\n2.0 T > N P. 51:101 ack 201")
    assert {"low"} <= set(severities(path, "true")) <= {"low", "info"}
    assert tcptrace_lab("analyze", path.name, "--fail-on", asked, "-q", folder=tmp_path).returncode == code


def test_a_finding_of_a_connection_that_is_not_asked_for_does_not_count(path: Path, tmp_path: Path) -> None:
    assert tcptrace_lab("analyze", path.name, "--where", "server_port = 22", "--fail-on", "info", folder=tmp_path).returncode == 0


def test_time_is_unknown_not_zero_in_a_capture_without_times(tmp_path: Path) -> None:
    """Simple packet blocks of pcapng have no timestamps, so all durations are unknown."""
    timeless = tmp_path / "timeless.pcapng"
    packets.write_pcapng(timeless, [])
    with timeless.open("ab") as file:
        for frame in packets.frames(transfer.TEXT):
            data = frame.data + bytes(-len(frame.data) % 4)
            file.write(struct.pack("<III", 3, 16 + len(data), len(frame.data)) + data + struct.pack("<I", 16 + len(data)))
    assert kept(timeless, "client_timeout_ns = 0") == []
    assert kept(timeless, "client_timeout_ns is null") == [0]
    spent = analyze(timeless).to_dict()["connections"][0]["client_to_server"]["ledger_s"]
    assert set(spent.values()) == {None}
