"""Users and scripts call the commands. The tests check what the commands print, where they print it, and which files they create."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.cli import terminal
from tests.support import packets, transfer
from tests.support.command import TIME_LIMIT_S, new_process, tcptrace_lab
from tests.support.terminals import on_terminal

if TYPE_CHECKING:
    from pathlib import Path

"""Time limit of `--help` in seconds, as the design promises."""

COLUMNS = 80


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return packets.capture(tmp_path / "transfer.pcap", transfer.TEXT)


def test_analyze_prints_the_connections_and_writes_the_default_report(path: Path, tmp_path: Path) -> None:
    done = new_process("analyze", path.name, folder=tmp_path)
    assert done.returncode == 0
    words = done.stdout.decode()
    assert f"transfer.pcap: {transfer.SEGMENTS} packets, {transfer.SEGMENTS} TCP segments, 1 connection in 341 ms" in words
    assert re.search(r"^ +0 10\.0\.0\.1:40000 10\.0\.0\.2:80 +341 ms +100 B +4\.38 kB +\S+ \w+ +1$", words, re.MULTILINE)
    assert done.stderr == b"tcptrace-lab: report written: reports/transfer.html\n"
    assert (tmp_path / "reports" / "transfer.html").read_bytes().lstrip().lower().startswith(b"<!doctype html>")


@pytest.mark.parametrize(
    "arguments", [("analyze", "transfer.pcap"), ("analyze", "nothing.pcap"), ("export", "transfer.pcap", "--nonsense")]
)
def test_a_new_process_and_this_one_say_the_same_of_a_result_and_of_errors(path: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Most tests call the command in the test process (`tests/support/command.py`).

    Its output there must equal its output in a new process.
    """
    assert path.parent == tmp_path
    one, other = new_process(*arguments, folder=tmp_path), tcptrace_lab(*arguments, folder=tmp_path)
    assert (one.returncode, one.stdout, one.stderr) == (other.returncode, other.stdout, other.stderr)


def test_the_report_goes_where_it_is_asked_to(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "a report.html"
    assert new_process("analyze", path, "-o", target, folder=tmp_path).returncode == 0
    assert target.stat().st_size > 0
    assert not (tmp_path / "reports").exists()


def test_quiet_says_nothing(path: Path, tmp_path: Path) -> None:
    done = new_process("analyze", path, "--quiet", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (tmp_path / "reports" / "transfer.html").exists()


def test_json_on_stdout_is_nothing_but_json(path: Path, tmp_path: Path) -> None:
    done = new_process("analyze", path, "--json", "-", folder=tmp_path)
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert document["capture"]["tcp_segments"] == transfer.SEGMENTS
    assert done.stderr == b"tcptrace-lab: report written: reports/transfer.html\n"


def test_json_goes_to_a_file(path: Path, tmp_path: Path) -> None:
    on_stdout = new_process("analyze", path, "--json", "-", "-q", folder=tmp_path).stdout
    assert b"1 connection" in new_process("analyze", path, "--json", "out.json", folder=tmp_path).stdout
    assert (tmp_path / "out.json").read_bytes() == on_stdout


def test_one_connection_of_several(tmp_path: Path) -> None:
    second = transfer.TEXT.replace("C >", "D >").replace("> C", "> D")
    path = packets.capture(tmp_path / "two.pcap", f"{transfer.TEXT}\nhost D 10.0.0.3:50000 isn 7\n{second}")
    done = new_process("analyze", path, "--connection", "1", "--json", "-", folder=tmp_path)
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert [connection["id"] for connection in document["connections"]] == [1]
    assert document["connections"][0]["client"] == {"addr": "10.0.0.3", "port": 50_000}
    assert document["capture"]["connections"] == 2
    assert b"10.0.0.1" not in new_process("analyze", path, "--connection", "1", folder=tmp_path).stdout


def test_what_is_kept_is_counted_and_of_how_many(tmp_path: Path) -> None:
    """The second connection is selected. This connection has five of the ten segments in the capture."""
    hosts = "host N 10.0.0.3:50000 isn 7"
    one, two = ("\n".join(f"+10ms {client} > S P. {1 + 10 * n}:{11 + 10 * n} ack 1" for n in range(5)) for client in "CN")
    path = packets.capture(tmp_path / "two.pcap", f"{hosts}\n{one}\n{two}")
    done = new_process("analyze", path.name, "--where", "client_port = 50000", "-o", "kept.html", folder=tmp_path)
    reported = " ".join(done.stdout.decode().split())
    assert "two.pcap: 10 packets in 90 ms; kept: 1 of 2 connections, 5 of 10 TCP segments" in reported
    assert "<dd><bdi>1 of 2</bdi></dd>" in (tmp_path / "kept.html").read_text()
    none = " ".join(new_process("analyze", path.name, "--where", "client_port = 1", folder=tmp_path).stdout.decode().split())
    assert "kept: 0 of 2 connections, 0 of 10 TCP segments" in none


REFUSED = """
    host N 10.0.0.3:50000 isn 7
    0.0000 N > S S  0:0(0)       win 64240 <mss 1460>
    0.1000 S > N R. 0:0(0) ack 1 win 0
"""


def test_a_refused_connection_is_reported_as_refused_and_not_as_slow(tmp_path: Path) -> None:
    path = packets.capture(tmp_path / "refused.pcap", REFUSED)
    done = new_process("analyze", path.name, "--json", "refused.json", folder=tmp_path)
    assert "connection 0: refused (RST in answer to its SYN)" in done.stdout.decode()
    assert json.loads((tmp_path / "refused.json").read_text())["findings"] == []
    assert "<bdi>refused</bdi>" in (tmp_path / "reports" / "refused.html").read_text()


def test_a_connection_that_is_reset_later_was_not_refused(tmp_path: Path) -> None:
    text = "0 C > S S 0:0(0)\n0.1 S > C S. 0:0(0) ack 1\n0.1 C > S . ack 1\n0.2 S > C R. 1:1 ack 1"
    assert b"refused" not in new_process("analyze", packets.capture(tmp_path / "reset.pcap", text), folder=tmp_path).stdout


def test_what_can_be_fixed_is_reported_before_what_costs_more_and_cannot(tmp_path: Path) -> None:
    """The client's application writes only every 5 s, which nobody can fix. In another connection, the SYN waits 3 s for an answer."""
    writes = (f"+5s C > S P. {at}:{at + 10} ack 1\n+0ms S > C . ack {at + 10}" for at in range(1, 51, 10))
    thinks = "\n".join(writes)
    unanswered = "host N 10.0.0.3:50000 isn 7\n0 N > S S 0:0(0)\n1 N > S S 0:0(0)\n3 N > S S 0:0(0)"
    path = packets.capture(tmp_path / "both.pcap", f"{unanswered}\n{thinks}")
    words = new_process("analyze", path.name, folder=tmp_path).stdout.decode()
    assert words.index("A connection attempt was not answered for 3 s") < words.index("was not sending for 20 s")
    page = (tmp_path / "reports" / "both.html").read_text()
    assert page.index("A connection attempt was not answered for 3 s") < page.index("was not sending for 20 s")


def test_the_package_runs_as_a_module(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tcptrace_lab", "analyze", path.name], cwd=tmp_path, capture_output=True, timeout=TIME_LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "reports" / "transfer.html").exists()


def test_several_files_are_one_capture(path: Path, tmp_path: Path) -> None:
    frames = packets.frames(transfer.TEXT)
    packets.write_pcap(tmp_path / "first.pcap", frames[:7])
    packets.write_pcap(tmp_path / "second.pcap", frames[7:])
    merged = json.loads(new_process("analyze", "second.pcap", "first.pcap", "--json", "-", folder=tmp_path).stdout)
    whole = json.loads(new_process("analyze", path, "--json", "-", folder=tmp_path).stdout)
    assert merged["connections"] == whole["connections"]
    assert (tmp_path / "reports" / "second-and-1-more.html").exists()


def test_a_capture_comes_through_stdin(path: Path, tmp_path: Path) -> None:
    done = new_process("analyze", "-", "--json", "-", folder=tmp_path, stdin=path.read_bytes())
    assert done.returncode == 0
    assert json.loads(done.stdout)["capture"]["packets"] == transfer.SEGMENTS
    assert (tmp_path / "reports" / "stdin.html").exists()


def test_a_capture_comes_through_a_fifo(path: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    writer = threading.Thread(target=(tmp_path / "fifo").write_bytes, args=(path.read_bytes(),))
    writer.start()
    done = new_process("analyze", "fifo", "--json", "-", folder=tmp_path)
    writer.join()
    assert done.returncode == 0
    assert json.loads(done.stdout)["capture"]["packets"] == transfer.SEGMENTS


def test_a_cut_capture_is_analyzed_up_to_the_cut_and_exits_with_4(path: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.pcap").write_bytes(path.read_bytes()[:-1])
    done = new_process("analyze", "cut.pcap", "--json", "-", folder=tmp_path)
    assert done.returncode == 4
    document = json.loads(done.stdout)
    assert document["capture"]["packets"] == transfer.SEGMENTS - 1
    assert document["capture"]["complete"] is False
    assert document["capture"]["problems"][0]["frame"] == transfer.SEGMENTS
    assert done.stderr.decode().splitlines()[-1].startswith("tcptrace-lab: the capture ends in the middle")
    assert (tmp_path / "reports" / "cut.html").exists()


def test_the_version_is_that_of_the_distribution() -> None:
    done = new_process("--version")
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, f"tcptrace-lab {metadata.version('tcptrace-lab')}\n", b"")


def test_what_is_done_is_reported_in_percent_where_it_is_known() -> None:
    shown = terminal.Activity("reading")
    shown.segments(1_234, 0.456)
    assert shown.text == "1,234 segments read, 46%"
    shown.datagrams(7, None)
    assert shown.text == "7 datagrams read"


def test_the_largest_connections_are_shown_and_the_rest_counted(tmp_path: Path) -> None:
    hosts = "\n".join(f"host H{number} 10.0.1.{number}:50000" for number in range(23))
    data = "\n".join(f"{number} H{number} > S P. 1:{10 * (number + 1)} ack 1" for number in range(23))
    path = packets.capture(tmp_path / "many.pcap", f"{hosts}\n{data}")
    for options, least, more in (([], 17, 18), (["--verbose"], 2, 3)):
        words = new_process("analyze", path, *options, folder=tmp_path).stdout.decode()
        shown = [int(line.split()[0]) for line in words.splitlines() if re.match(r" *\d+ 10\.0\.1", line)]
        assert shown == list(range(22, least, -1))
        assert f"and {more} more connections, in the report" in words


@pytest.mark.parametrize("address", ["255.255.255.255", "[2001:db8:1234:5678:9abc:def0:1234:5678]"])
def test_the_table_fits_80_columns(tmp_path: Path, address: str) -> None:
    other = address.replace("255.255", "254.254").replace("5678]", "9999]")
    text = (
        f"host A {address}:65535\nhost B {other}:65534\n0 A > B P. 1:1000 ack 1\n100 B > A P. 1:1461 ack 1000\n+0 B > A P. 1:1461 ack 1000"
    )
    path = packets.capture(tmp_path / "wide.pcap", text)
    done = new_process("analyze", path.name, folder=tmp_path)
    table = [line for line in done.stdout.decode().splitlines() if "frame.number in" not in line]
    assert max(len(line.rstrip()) for line in table) <= COLUMNS
    assert any(":65535" in line and ":65534" in line for line in table)
    assert b"\x1b" not in done.stdout


@pytest.mark.parametrize("no_color", [True, False])
def test_on_a_terminal_the_table_takes_its_width_and_no_color_is_honoured(path: Path, tmp_path: Path, no_color: bool) -> None:  # noqa: FBT001
    environment = {"NO_COLOR": "1"} if no_color else {}
    code, shown = on_terminal(["analyze", path.name], tmp_path, {"COLUMNS": "120", **environment})
    assert code == 0
    assert "10.0.0.1:40000" in shown
    if no_color:
        assert not re.search(r"\x1b\[[\d;]*3\dm", shown)


def test_help_lists_the_commands_that_work_and_fits_80_columns() -> None:
    done = new_process("--help")
    assert (done.returncode, done.stderr) == (0, b"")
    words = done.stdout.decode()
    assert re.findall(r"^  (\w+) {2,}\w", words[words.index("Commands:") :], re.MULTILINE) == [
        "analyze",
        "annotate",
        "batch",
        "capture",
        "compare",
        "export",
        "predict",
        "simulate",
        "verify",
        "view",
        "archive",
        "replay",
        "lab",
    ]
    assert max(map(len, words.splitlines())) <= COLUMNS
