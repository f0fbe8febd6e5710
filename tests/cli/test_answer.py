"""`analyze` prints its answer in the terminal: at any width, with and without colours, on a pipe, and in any encoding."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import schema
from tcptrace_lab.cli.tables import time_bar
from tests.support import needs, packets, transfer
from tests.support.command import TIME_LIMIT_S, new_process, only_line
from tests.support.places import CAPTURES
from tests.support.terminals import on_terminal

if TYPE_CHECKING:
    from pathlib import Path

NAGLE = CAPTURES / "ethernet-nagle-on.pcapng"
COLOUR = re.compile(r"\x1b\[[\d;]*[34]8?[\d;]*m")
CONTROL = re.compile(r"\x1b\[[?\d;]*[A-Za-z]")


def lines_of(words: str) -> list[str]:
    """Return the lines of the output, without colours and without the erased progress display."""
    return [line.rpartition("\r")[2].rstrip() for line in CONTROL.sub("", words).replace("\r\n", "\n").split("\n")]


def test_the_answer_has_its_parts_in_order(tmp_path: Path) -> None:
    """According to tshark (tcp.time_delta), eleven waits of 43 ms take 477 ms of the connection's 527 ms."""
    words = new_process("analyze", NAGLE, folder=tmp_path).stdout.decode()
    reported = lines_of(words)
    assert reported[0].startswith("Nagle's algorithm waiting for delayed ACKs took 91% of 527 ms;")
    order = [
        "527 ms active, connection 0, client → server",
        "█ nagle-delayed-ack 91%",
        "high   Nagle's algorithm and delayed ACKs cost 477 ms in 11 waits",
        "91% of 527 ms active · saves up to 477 ms · proved · connection 0 →",
        "fix: write each message with one call",
        "tcp.stream eq 0 and frame.number in {15..17,",
        "info   The application on 192.0.2.1 (client) was not sending for 46.8 ms",
        "conn client",
        "capture quality: good",
        "ethernet-nagle-on.pcapng: 68 packets",
    ]
    assert sorted(order, key=words.index) == order
    assert not re.search("λ|μ|delayed-ACK timer of", words)


def test_verbose_has_the_details(tmp_path: Path) -> None:
    words = new_process("analyze", NAGLE, "--verbose", folder=tmp_path).stdout.decode()
    for part in ("limits: No kernel counter shows how long", "server: delayed-ACK timer of 40 ms", "fix: check the application"):
        assert part in " ".join(words.split())


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("no_color", [True, False])
def test_the_answer_takes_the_width_of_the_terminal_and_its_colours_if_wanted(columns: int, no_color: bool, tmp_path: Path) -> None:  # noqa: FBT001
    environment = {"COLUMNS": str(columns), "COLORTERM": "truecolor", **({"NO_COLOR": "1"} if no_color else {})}
    code, shown = on_terminal(["analyze", str(NAGLE)], tmp_path, environment)
    assert code == 0
    assert bool(COLOUR.search(shown)) is not no_color
    reported = [line for line in lines_of(shown) if not line.startswith(("tcptrace-lab:", str(NAGLE)))]
    filters = [line.strip() for line in reported if "frame.number" in line]
    assert filters == ["tcp.stream eq 0 and frame.number in {15..17,20..22,25..27,30..32,35..37,40..42,45..47,50..52,55..57,60..62}"]
    (bar,) = [line for line in reported if line.startswith("██")]
    assert len(bar) == columns
    assert max(len(line) for line in reported if "frame.number" not in line) <= columns
    assert any(line.startswith("high ") for line in reported), "the severity is a word, too"


def test_a_pipe_gets_eighty_columns_without_colours(tmp_path: Path) -> None:
    words = new_process("analyze", NAGLE, folder=tmp_path, environment={"COLUMNS": "200", "TERM": "xterm"}).stdout.decode()
    assert "\x1b" not in words
    assert max(len(line) for line in words.splitlines() if "frame.number" not in line and "/" not in line) <= 80


def test_a_letter_that_stdout_cannot_encode_is_a_question_mark(tmp_path: Path) -> None:
    done = new_process("analyze", NAGLE, folder=tmp_path, environment={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert b"proved ? connection 0 ?" in done.stdout


def test_wireshark_takes_the_filter_as_it_stands(tmp_path: Path) -> None:
    words = new_process("analyze", NAGLE, folder=tmp_path).stdout.decode()
    (wanted,) = [line.strip() for line in words.splitlines() if "frame.number" in line]
    command = [needs.program("tshark"), "-r", str(NAGLE), "-Y", wanted, "-T", "fields", "-e", "frame.number"]
    frames = subprocess.run(command, capture_output=True, timeout=TIME_LIMIT_S, check=True).stdout.split()
    assert [int(frame) for frame in frames] == [first + place for first in range(15, 61, 5) for place in range(3)]


def test_the_rtt_of_a_connection_is_that_of_the_path(tmp_path: Path) -> None:
    """The capture point is between the hosts. In the handshake, the server answers after 10 ms, and the client answers after 30 ms."""
    text = """
        0 C > S S 0:0(0)
        +10ms S > C S. 0:0(0) ack 1
        +30ms C > S . ack 1
        +0ms C > S P. 1:101 ack 1
        +10ms S > C P. 1:101 ack 101
        +30ms C > S . ack 101
    """
    path = packets.capture(tmp_path / "middle.pcap", text)
    words = new_process("analyze", path.name, folder=tmp_path).stdout.decode()
    assert re.search(r"^ +0 10\.0\.0\.1:40000 10\.0\.0\.2:80 +80 ms +100 B +100 B +40 ms +0$", words, re.MULTILINE)


def account(**spent_ns: int) -> dict[str, int]:
    """Return a row of `schema.ACCOUNTS`, in which the client's direction has these times by cause."""
    return {f"client_{cause.replace('-', '_')}_ns": spent_ns.get(cause.replace("-", "_"), 0) for cause in schema.CAUSES}


def test_a_long_duration_stays_on_its_line(tmp_path: Path) -> None:
    """The connection lasts 16 min 33 s, and its RTT is a minute. The addresses are shortened, but the figures stay complete."""
    text = """
    host C [2001:db8:1111:2222::3333]:50001
    host S [2001:db8:4444::5555]:5060
    0.000   C > S  S   0:0(0)        win 65535
    60.000  S > C  S.  0:0(0) ack 1  win 65535
    60.000  C > S  .          ack 1  win 65535
    933.000 C > S  P.  1:101  ack 1
    993.000 S > C  .          ack 101
    """
    lines = new_process("analyze", packets.capture(tmp_path / "long.pcap", text), folder=tmp_path).stdout.decode().splitlines()
    (row,) = (line for line in lines if "16 min 33 s" in line and "…" in line)
    assert row.split()[3:] == ["16", "min", "33", "s", "100", "B", "0", "B", "60", "s", "0"]
    assert all(len(line) <= 80 for line in lines if "tcp.stream" not in line)


def test_the_bar_divides_the_active_time_and_leaves_idle_out() -> None:
    """The bar has 80 cells for 1,000 ns of active time.

    750 ns fill 60 cells, and 245 ns fill 19.6 cells. 5 ns are too short for a part of their own.
    """
    spent = time_bar.parts(account(application=750, network=245, close=5, idle=9_000), "client")
    assert [(part.cause, part.ns) for part in spent] == [("application", 750), ("network", 245), (time_bar.OTHERS, 5)]
    assert time_bar.cells(spent, 80) == [60, 20, 0]


def test_the_cells_of_the_bar_add_up_to_its_width() -> None:
    spent = time_bar.parts(account(application=1, network=1, close=1), "client")
    assert time_bar.cells(spent, 80) == [27, 27, 26]
    assert time_bar.parts(account(idle=5), "client") == []


def test_the_report_is_opened_in_the_browser_if_asked_for(tmp_path: Path) -> None:
    packets.capture(tmp_path / "transfer.pcap", transfer.TEXT)
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    done = new_process("analyze", "transfer.pcap", "--open", "-q", folder=tmp_path, environment={"BROWSER": f"{browser} %s"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "opened").read_text() == f"{(tmp_path / 'reports' / 'transfer.html').as_uri()}\n"


def test_a_folder_is_answered_with_the_command_for_folders(tmp_path: Path) -> None:
    (tmp_path / "my captures").mkdir()
    done = new_process("analyze", "my captures", folder=tmp_path)
    assert done.returncode == 3
    offer = "tcptrace-lab batch 'my captures' -o archive analyzes every capture in it"
    assert only_line(done.stderr) == f"tcptrace-lab: a folder, not a capture: my captures; {offer}"


def test_the_program_alone_says_what_to_do_first() -> None:
    done = new_process()
    assert (done.returncode, done.stderr) == (0, b"")
    words = done.stdout.decode()
    for command in ("analyze slow.pcapng --open", "capture", "batch FOLDER -o archive", "--help"):
        assert f"tcptrace-lab {command}" in words
    assert max(map(len, words.splitlines())) <= 80


def test_the_script_analyze_is_the_command(tmp_path: Path) -> None:
    packets.capture(tmp_path / "transfer.pcap", transfer.TEXT)
    script = "from tcptrace_lab.cli import analyze; analyze()"
    done = subprocess.run(
        [sys.executable, "-c", script, "transfer.pcap"], cwd=tmp_path, capture_output=True, timeout=TIME_LIMIT_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"tcptrace-lab: report written: reports/transfer.html\n")
