"""Each error is one line without a traceback, and has the documented exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import cli, errors
from tcptrace_lab.text import escape
from tests.support import packets, transfer
from tests.support.command import PROGRAM, TIME_LIMIT_S, new_process, only_line

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return packets.capture(tmp_path / "transfer.pcap", transfer.TEXT)


def text_file(folder: Path) -> str:
    (folder / "notes.txt").write_text("Nothing that was captured.\n" * 20)
    return "notes.txt"


def empty_file(folder: Path) -> str:
    (folder / "empty.pcap").touch()
    return "empty.pcap"


def directory(folder: Path) -> str:
    (folder / "directory").mkdir()
    return "directory"


def missing_file(_: Path) -> str:
    return "missing.pcap"


def half_a_header(folder: Path) -> str:
    whole = packets.capture(folder / "whole.pcap", transfer.TEXT).read_bytes()
    (folder / "half.pcap").write_bytes(whole[:11])
    return "half.pcap"


UNREADABLE: list[Callable[[Path], str]] = [text_file, empty_file, directory, missing_file, half_a_header]


@pytest.mark.parametrize("make", UNREADABLE)
@pytest.mark.parametrize("command", [["analyze"], ["export", "--format", "csv"]])
def test_what_cannot_be_read_is_one_line_and_exits_with_3(tmp_path: Path, make: Callable[[Path], str], command: list[str]) -> None:
    name = make(tmp_path)
    done = new_process(*command, name, folder=tmp_path)
    assert done.returncode == 3
    assert done.stdout == b""
    line = only_line(done.stderr)
    assert line.startswith("tcptrace-lab: ")
    assert f": {name}" in line
    assert "; " in line
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["annihilate"], "No such command 'annihilate'"),
        (["analyze"], "Missing argument"),
        (["analyze", "x.pcap", "--connection", "one"], "Invalid value for '--connection': it must be a whole number; "),
        (["analyze", "x.pcap", "--connection", "-1"], "Invalid value for '--connection': it must be 0 or more; "),
        (["analyze", "x.pcap", "--fail-on", "terrible"], "'--fail-on': 'terrible' is not one of 'high', 'medium', 'low', 'info'"),
        (["analyze", "x.pcap", "--jsn"], "--jsn"),
        (["analyze", "x.pcap", "-o", "-"], "-o cannot write to standard output"),
        (["export", "x.pcap", "--format", "xlsx"], "'parquet', 'csv', 'arrow', 'ndjson'"),
        (["export", "x.pcap", "--table", "delays"], "'segments', 'connections'"),
    ],
)
def test_a_wrong_command_is_one_line_and_exits_with_2(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = new_process(*arguments, folder=tmp_path)
    assert done.returncode == 2
    line = only_line(done.stderr)
    assert line.startswith("tcptrace-lab: ")
    assert words in line


def test_a_wrong_option_is_reported_with_the_help_of_its_own_command(tmp_path: Path) -> None:
    done = new_process("replay", "packets", "x.pcap", "--bogus", folder=tmp_path)
    assert only_line(done.stderr) == "tcptrace-lab: No such option: --bogus; tcptrace-lab replay packets --help shows how"


@pytest.mark.parametrize(("group", "command"), [("replay", "whatif"), ("lab", "show"), ("archive", "query")])
def test_a_group_of_commands_alone_shows_which_there_are(group: str, command: str, tmp_path: Path) -> None:
    done = new_process(group, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == new_process(group, "--help", folder=tmp_path).stdout.decode()
    assert f"\n  {command} " in done.stderr.decode()


def test_a_connection_that_is_not_there_is_a_mistake_of_usage(path: Path, tmp_path: Path) -> None:
    done = new_process("analyze", path.name, "--connection", "5", folder=tmp_path)
    assert done.returncode == 2
    assert only_line(done.stderr) == "tcptrace-lab: no connection 5: transfer.pcap; they are numbered 0 to 0"


def in_a_directory(folder: Path) -> str:
    (folder / "out").mkdir()
    return "out"


def in_no_directory(_: Path) -> str:
    return "nowhere/out"


def over_the_capture(_: Path) -> str:
    return "transfer.pcap"


def over_the_capture_by_another_name(folder: Path) -> str:
    (folder / "link").symlink_to("transfer.pcap")
    return "link"


def on_a_full_disk(_: Path) -> str:
    return "/dev/full"


def in_a_place_that_takes_no_files(_: Path) -> str:
    return "/proc/report.html"


UNWRITABLE: list[Callable[[Path], str]] = [
    in_a_directory,
    in_no_directory,
    over_the_capture,
    over_the_capture_by_another_name,
    on_a_full_disk,
    in_a_place_that_takes_no_files,
]


@pytest.mark.parametrize("make", UNWRITABLE)
@pytest.mark.parametrize("command", [["analyze", "-o"], ["analyze", "--json"], ["export", "--format", "csv", "-o"], ["export", "-o"]])
def test_an_output_that_cannot_be_written_is_one_line_and_exits_with_2(
    path: Path, tmp_path: Path, make: Callable[[Path], str], command: list[str]
) -> None:
    content = path.read_bytes()
    target = make(tmp_path)
    done = new_process(*command, target, path.name, folder=tmp_path)
    assert done.returncode == 2, done.stderr
    line = only_line(done.stderr)
    assert line.startswith("tcptrace-lab: ")
    assert target.split("/")[0] in line
    assert path.read_bytes() == content


def test_help_on_a_full_disk_is_one_line_and_exits_with_2() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([PROGRAM, "--help"], stdout=full, stderr=subprocess.PIPE, timeout=TIME_LIMIT_S, check=False)
    assert done.returncode == 2
    assert only_line(done.stderr).startswith("tcptrace-lab: cannot write: No space left on device: standard output")


def test_a_directory_without_rights_is_said(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # CI possibly runs as root, which can write everywhere
    assert cli.run(["analyze", str(path), "-o", str(tmp_path / "out.html")]) == 2
    assert only_line(capsys.readouterr().err.encode()) == f"tcptrace-lab: no permission to write: {tmp_path}/out.html; choose another place"


def test_an_error_keeps_what_stood_there(path: Path, tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("precious")
    (tmp_path / "notes.txt").write_text("no capture")
    assert new_process("export", "notes.txt", "--format", "csv", "-o", "out.csv", folder=tmp_path).returncode == 3
    assert (tmp_path / "out.csv").read_text() == "precious"
    assert new_process("export", path, "--format", "csv", "-o", "out.csv", folder=tmp_path).returncode == 0
    assert (tmp_path / "out.csv").read_text().startswith("frame,ts_ns,")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["notes.txt", "out.csv", "transfer.pcap"]


def test_control_characters_of_a_file_name_do_not_reach_the_terminal(path: Path, tmp_path: Path) -> None:
    evil = "red\x1b[31m\r\nbell\x07\u202eright-to-left.pcap"
    for name in (evil, f"missing-{evil}"):
        path.with_name(evil).write_bytes(path.read_bytes())
        done = new_process("analyze", name, folder=tmp_path)
        words = (done.stdout + done.stderr).decode()
        assert r"\x1b[31m\r\nbell\x07\u202e" in words.replace("\n", "")
        assert not set(words) & set("\x1b\r\x07\u202e")


def test_a_file_name_that_is_not_utf_8_is_a_name_like_any_other(path: Path, tmp_path: Path) -> None:
    name = b"latin-\xe9.pcap"
    whole = path.read_bytes()
    with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:  # noqa: PTH118, PTH123  (the name is bytes)
        file.write(whole)
    command: list[str | bytes | Path] = [PROGRAM, "analyze", name, "-q", "--json", "-"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=TIME_LIMIT_S, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["capture"]["path"] == r"latin-\xe9.pcap"
    assert (tmp_path / "reports" / "latin-_.html").is_file()
    with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:  # noqa: PTH118, PTH123
        file.write(whole[:-1])
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=TIME_LIMIT_S, check=False)
    assert done.returncode == 4
    assert r": latin-\udce9.pcap, frame " in only_line(done.stderr)


def test_a_reader_that_goes_away_ends_the_command_quietly(path: Path, tmp_path: Path) -> None:
    for arguments in (["analyze", path, "--json", "-", "-q"], ["export", path, "--format", "ndjson"], ["export", path], ["--help"]):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [PROGRAM, *arguments], cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, timeout=TIME_LIMIT_S, check=False
        )
        os.close(writing)
        assert (done.returncode, done.stderr) == (141, b"")


def test_an_interrupt_ends_the_command_quietly(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    process = subprocess.Popen([PROGRAM, "export", "fifo", "--format", "csv"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with (tmp_path / "fifo").open("wb"):  # blocks until the command has opened the fifo, too
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIME_LIMIT_S)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_a_defect_is_said_to_be_one_and_debug_shows_where(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        message = "a bug\nover two lines"
        raise ZeroDivisionError(message)

    monkeypatch.setattr("tcptrace_lab.outputs.export.read", broken)
    assert cli.run(["export", str(path)]) == errors.EXIT_DEFECT
    line = only_line(capsys.readouterr().err.encode())
    assert line.startswith(r"tcptrace-lab: internal error: ZeroDivisionError: a bug\nover two lines; please report it")
    assert cli.run(["export", str(path), "--debug"]) == errors.EXIT_DEFECT
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_debug_shows_the_traceback_of_an_expected_error(tmp_path: Path) -> None:
    done = new_process("analyze", "missing.pcap", "--debug", folder=tmp_path)
    assert done.returncode == 3
    assert "Traceback (most recent call last)" in done.stderr.decode()


def test_every_error_of_the_package_has_an_exit_code_of_the_design() -> None:
    codes = {
        error.__name__: error.exit_code
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.TcptraceLabError)
    }
    codes.pop("TcptraceLabError")
    of_captures = {"CaptureUnreadable": 3, "NotACapture": 3, "CaptureInsufficient": 3, "ReadInPart": 4}
    assert codes == {"UsageError": 2, "OutputUnwritable": 2, "RuleUnusable": 2, **of_captures, "MissingTool": 5, "LabFailed": 5}


def test_printable_text_keeps_letters_of_all_scripts() -> None:
    assert escape.printable("grün 日本 naïve 🙂.pcap") == "grün 日本 naïve 🙂.pcap"
    assert escape.printable("a\u200bb\x9bc\ud800") == r"a\u200bb\x9bc\ud800"


def test_report_and_json_cannot_go_to_one_file(tmp_path: Path) -> None:
    path = packets.capture(tmp_path / "one.pcap", "0 C > S S 0:0(0)")
    done = new_process("analyze", path.name, "-o", "same.html", "--json", "same.html", folder=tmp_path)
    assert done.returncode == 2
    assert b"cannot write to the same place" in done.stderr
    assert not (tmp_path / "same.html").exists()
