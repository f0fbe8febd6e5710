"""The ledger of captures is compared with a hand-written kernel ledger. Other tests check the errors of the command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.errors import EXIT_MISSING_TOOL, EXIT_USAGE, MissingTool
from tcptrace_lab.lab.kernel_ledger import build
from tcptrace_lab.lab.kernel_ledger.__main__ import main
from tcptrace_lab.lab.kernel_ledger.agreement import Piece, pieces
from tcptrace_lab.lab.kernel_ledger.compare import report
from tests.support.kernel.transfer import MS, QUESTIONS, transfer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest


def spent_ms(found: list[Piece], test: Callable[[Piece], bool]) -> float:
    """Return the total duration of all pieces that pass `test`, in milliseconds."""
    return sum(piece.ns for piece in found if test(piece)) / MS


def test_a_ledger_that_says_what_the_kernel_does_agrees_at_both_ends(tmp_path: Path) -> None:
    found = list(pieces(transfer(tmp_path)))
    for at in ("sender", "receiver"):
        here = [piece for piece in found if piece.at == at]
        thinking = spent_ms(here, lambda piece: piece.gates == "own-turn")
        assert thinking == 20 * (QUESTIONS - 1)
        assert spent_ms(here, lambda piece: piece.gates == "own-turn" and piece.cause in piece.allowed.exact) == thinking
        assert all(piece.cause in piece.allowed.accepted for piece in here if piece.frame_after is not None)


def test_what_the_ledger_calls_something_else_is_listed_with_its_frames(tmp_path: Path) -> None:
    """The test changes the kernel ledger: the client's think time of 20 ms gets the cause receiver window.

    So the verdict on it is wrong.
    """
    lines = list(report([transfer(tmp_path, own_turn="receiver-window")]))
    (line,) = (line for line in lines if "| sender | receiver-window | application |" in line)
    assert "| 0.08 | 1: 4–6 (20.0), 1: 6–8 (20.0), 1: 8–10 (20.0) and 1 more |" in line
    (row,) = (line for line in lines if line.startswith("| window |"))
    assert row.startswith("| window | 0.08 | 0.0% | 0.0% | 0.0% |")


def test_without_the_compiler_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tracer is not compiled yet, and clang is not installed."""

    def absent(_tool: str) -> None:
        return None

    monkeypatch.setattr(build, "BUILT", tmp_path / "built")
    monkeypatch.setattr(build, "_found", absent)
    monkeypatch.setattr(build, "_key", lambda: "key")
    assert main(["run", str(tmp_path / "out"), "window-16k"]) == EXIT_MISSING_TOOL
    assert "not installed: clang; install clang, bpftool, libbpf-dev and libelf-dev" in capsys.readouterr().err


def test_a_folder_without_events_is_a_mistake_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(tmp_path)]) == EXIT_USAGE
    assert "no transfer with the kernel's events" in capsys.readouterr().err


def test_a_transfer_that_cannot_be_made_does_not_keep_the_others_from_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def make(name: str, _folder: Path) -> dict[str, Any]:
        if name == "window-16k-10ms":
            raise MissingTool("not installed", where="dumpcap")
        return {"programs": {"received": {"runs": 4, "ns": 4_000}}, "records": 4}

    monkeypatch.setattr("tcptrace_lab.lab.kernel_ledger.__main__.tracer", lambda: None)
    monkeypatch.setattr("tcptrace_lab.lab.kernel_ledger.transfers.make", make)
    assert main(["run", str(tmp_path), "window-16k", "window-64k"]) == EXIT_MISSING_TOOL
    said = capsys.readouterr()
    assert said.err == "window-16k-10ms: not installed: dumpcap\n"
    assert said.out == "window-64k-40ms: 4 records, 1,000 ns per run of a hook\n"
