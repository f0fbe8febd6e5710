"""`verify` runs other programs safely.

File names never become options or shell words. No program can make `verify` wait forever or fill its memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.errors import MissingTool
from tcptrace_lab.verify import analyzers, verify
from tests.support import needs
from tests.support.packets import capture

if TYPE_CHECKING:
    from pathlib import Path

EXCHANGE = "0.0 C > S S 0:0(0)\n0.1 S > C S. 0:0(0) ack 1\n0.2 C > S . ack 1"


def _installed(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Write a shell script named tshark into `folder`, and put `folder` first on the PATH."""
    program = folder / "tshark"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.mark.parametrize("name", ["-x.pcap", "a b;c.pcap", "$(true).pcap", "ä.pcap"])
def test_any_file_name_is_a_file_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    needs.program("tshark")
    needs.program("tcptrace")
    capture(tmp_path / name, EXCHANGE)
    monkeypatch.chdir(tmp_path)
    done = verify(name)
    assert (done.refused, done.unexplained) == ({}, 0)
    assert done.account.counts["tshark", "seq"].compared == 3
    assert done.account.counts["tcptrace", "total_packets"].compared == 2


def test_a_program_that_is_not_there_is_named_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingTool, match="tshark is not installed; install it"):
        verify(tmp_path / "no such file")


def test_lines_before_a_failure_are_given_and_its_words_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _installed(tmp_path, monkeypatch, "echo one; echo two; echo 'Running as user root' >&2; echo 'the end is missing' >&2; exit 2")
    lines, words = _drained("tshark")
    assert (lines, words) == (["one", "two"], "the end is missing")


def test_a_program_that_says_nothing_shows_its_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _installed(tmp_path, monkeypatch, "exit 3")
    assert _drained("tshark") == ([], "ended with exit code 3")


def test_a_program_that_gives_nothing_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyzers, "NO_PROGRESS_S", 0.2)
    _installed(tmp_path, monkeypatch, "echo one; exec sleep 1000")
    assert _drained("tshark") == (["one"], "produced no output for 0.2 s and was stopped")


def test_an_endless_line_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyzers, "MAX_LINE_BYTES", 100_000)
    _installed(tmp_path, monkeypatch, "exec tr '\\0' x < /dev/zero")
    lines, words = _drained("tshark")
    assert lines == []
    assert "a line of more than 100,000 bytes" in words


def test_many_words_neither_block_nor_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _installed(tmp_path, monkeypatch, "head -c 1000000 /dev/zero | tr '\\0' w >&2; echo last; exit 1")
    lines, words = _drained("tshark")
    assert lines == ["last"]
    assert len(words) <= analyzers.REASON_CHARACTERS + 1


def test_a_program_is_ended_with_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _installed(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/pid; yes line")
    lines = analyzers.lines("tshark", [])
    assert next(lines) == "line"
    lines.close()  # type: ignore[attr-defined]  # `lines` is a generator
    process = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        __import__("os").kill(process, 0)


def _drained(program: str) -> tuple[list[str], str]:
    found: list[str] = []
    with pytest.raises(analyzers.Refused) as refusal:
        found.extend(analyzers.lines(program, []))
    return found, refusal.value.words
