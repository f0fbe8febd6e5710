"""The ledger of captures against a kernel's ledger written by hand, and what the commands say when they cannot work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.errors import EXIT_MISSING_TOOL, EXIT_USAGE, MissingTool
from tcptrace_lab.lab.kernel_ledger import build
from tcptrace_lab.lab.kernel_ledger.__main__ import main
from tcptrace_lab.lab.kernel_ledger.agreement import Piece, pieces
from tcptrace_lab.lab.kernel_ledger.compare import report
from tcptrace_lab.lab.kernel_ledger.events import SCHEMA as EVENT_SCHEMA
from tcptrace_lab.lab.kernel_ledger.ledger import LEDGER, SCHEMA
from tcptrace_lab.lab.kernel_ledger.trace import EVENTS
from tests.support import packets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

MS = 1_000_000
QUESTIONS = 5

GAP_MS = 70

QUESTION_MS = [100 + GAP_MS * number for number in range(QUESTIONS)]
"""When the client asks: the question takes 10 ms, the server thinks for 30, its answer takes 10, the client thinks for 20."""


def exchange(*, at_client: bool) -> str:
    """What a capture at one end holds."""
    question_late, answer_late = (0, 50) if at_client else (10, 40)
    lines = [
        *("host A 192.0.2.1:40001", "host B 192.0.2.2:5001"),
        f"{question_late}ms A > B S 0:0(0) win 64240 <mss 1460>",
        f"{20 if at_client else 10}ms B > A S. 0:0(0) ack 1 win 65160 <mss 1460>",
        f"{20 + question_late}ms A > B . 1:1(0) ack 1 win 64240",
    ]
    for number, at_ms in enumerate(QUESTION_MS):
        question, answer = 1 + 100 * number, 1 + 50 * number
        lines += [
            f"{at_ms + question_late}ms A > B P. {question}:{question + 100}(100) ack {answer}",
            f"{at_ms + answer_late}ms B > A P. {answer}:{answer + 50}(50) ack {question + 100}",
        ]
    return "\n".join(lines)


def kernel_rows(own_turn: str) -> list[tuple[object, ...]]:
    """The kernel's ledger of the client's direction; `own_turn` is what it says of the time in which the client thinks."""
    ends = ("192.0.2.1", 40_001, "192.0.2.2", 5_001, True)
    rows: list[tuple[object, ...]] = []
    for at_ms in QUESTION_MS:
        for start_ms, end_ms, gate, context in (
            (0, 10, "peer-turn", ["in-transit", "unacked", "round-trip"]),
            (10, 20, "peer-turn", ["unacked", "round-trip"]),
            (20, 40, "peer-turn", ["unacked"]),
            (40, 50, "peer-in-transit", ["unacked"]),
            (50, GAP_MS, own_turn, []),
        ):
            times = (packets.BASE_NS + (at_ms + start_ms) * MS, packets.BASE_NS + (at_ms + end_ms) * MS)
            rows.append((*ends, *times, [gate], [gate], context, 10 * MS))
    return rows


def transfer(folder: Path, own_turn: str = "own-turn") -> Path:
    """A folder as `run` leaves it."""
    packets.capture(folder / "client.pcap", exchange(at_client=True))
    packets.capture(folder / "server.pcap", exchange(at_client=False))
    pl.DataFrame(kernel_rows(own_turn), schema=SCHEMA, orient="row").write_parquet(folder / LEDGER)
    pl.DataFrame(schema=EVENT_SCHEMA).write_parquet(folder / EVENTS)
    return folder


def spent_ms(found: list[Piece], test: Callable[[Piece], bool]) -> float:
    """How long all that pass the test last."""
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
    """Were the client held by the receiver's window, its 20 ms of thought would be named wrongly."""
    lines = list(report([transfer(tmp_path, own_turn="receiver-window")]))
    (line,) = (line for line in lines if "| sender | receiver-window | application |" in line)
    assert "| 0.08 | 1: 4–6 (20.0), 1: 6–8 (20.0), 1: 8–10 (20.0) and 1 more |" in line
    (row,) = (line for line in lines if line.startswith("| window |"))
    assert row.startswith("| window | 0.08 | 0.0% | 0.0% | 0.0% |")


def test_without_the_compiler_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is compiled yet, and clang is not there."""

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
    """The first of two transfers fails."""

    def make(name: str, _folder: Path) -> dict[str, Any]:
        if name == "redis-set":
            raise MissingTool("not installed", where="redis-server")
        return {"programs": {"received": {"runs": 4, "ns": 4_000}}, "records": 4}

    monkeypatch.setattr("tcptrace_lab.lab.kernel_ledger.__main__.tracer", lambda: None)
    monkeypatch.setattr("tcptrace_lab.lab.kernel_ledger.transfers.make", make)
    assert main(["run", str(tmp_path), "redis"]) == EXIT_MISSING_TOOL
    allowed_causes = capsys.readouterr()
    assert allowed_causes.err == "redis-set: not installed: redis-server\n"
    assert allowed_causes.out == "redis-pipeline: 4 records, 1,000 ns per run of a hook\n"
