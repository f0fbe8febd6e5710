"""Verdicts are compared with a hand-written kernel ledger: sums, scores, headlines, and the two parts development and held-back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.errors import EXIT_USAGE
from tcptrace_lab.lab.corpus import manifest
from tcptrace_lab.lab.corpus.__main__ import main
from tcptrace_lab.lab.corpus.compare import report
from tcptrace_lab.lab.corpus.drawn import DEVELOPMENT, HELD_BACK
from tcptrace_lab.lab.corpus.judging import Judged, Key, judge, judge_all
from tcptrace_lab.lab.corpus.sums import cost, cost_of
from tests.support.kernel.transfer import ENTRY, MS, QUESTIONS, transfer

if TYPE_CHECKING:
    from pathlib import Path

THOUGHT_NS = 20 * MS * (QUESTIONS - 1)
"""Total think time of the client in nanoseconds: 20 ms between each answer and the next question."""


def judged(folder: Path, own_turn: str = "own-turn") -> Judged:
    """Return the verdicts on a transfer of questions and answers, compared with the kernel's ledger."""
    transfer(folder / "one", own_turn)
    return judge(folder, ENTRY)


def spent_ns(one: Judged, **wanted: object) -> int:
    """Return the total time in nanoseconds of all keys that have these values."""
    return sum(ns for key, ns in one.sums.items() if all(getattr(key, name) == value for name, value in wanted.items()))


def test_a_ledger_that_says_what_the_kernel_does_agrees_at_all_three_points(tmp_path: Path) -> None:
    """The client thinks for 160 ms.

    In the capture at the client, the peer takes 150 ms of 430 ms. The lead of 10 ms is less than 5%, so this headline is only *possible*.
    In the other captures, the peer takes at most 130 ms.
    """
    one = judged(tmp_path)
    assert not one.error
    for at in ("sender", "middle", "receiver"):
        assert spent_ns(one, at=at, gates="own-turn", cause="application", is_exact=True) == THOUGHT_NS
    assert {headline.at for headline in one.headlines} == {"sender", "middle", "receiver"}
    for headline in one.headlines:
        words, confidence = ("Possibly", "possible") if headline.at == "sender" else ("Most likely", "consistent")
        assert headline.sentence.startswith(f"{words} the {headline.said} ")
        assert headline.confidence == confidence


def test_a_ledger_that_says_something_else_is_wrong_in_matrix_headline_and_list(tmp_path: Path) -> None:
    """The test changes the kernel ledger: the client's think time gets the cause receiver window. So the verdict on it is wrong."""
    one = judged(tmp_path, "receiver-window")
    assert spent_ns(one, gates="receiver-window", is_accepted=False) == 3 * THOUGHT_NS
    lines = list(report([one], 5))
    assert any(line.startswith("| receiver-window | 0.08 [0.08] |") for line in lines)
    assert (
        "| one | short, cubic | sender | receiver-window | application (consistent) | 0.08 | 1: 4–6 (20.0), 1: 6–8 (20.0), 1: 8–10 (20.0) |"
        in lines
    )


def test_what_a_second_costs() -> None:
    """A confidence costs less than a weaker one if enough verdicts are right.

    `proved` and `consistent` cost less than `possible` if more than about 95% of the verdicts are right. `possible` costs less than
    `unknown` if more than 60% are right.
    """
    for confidence, right, wrong in (("proved", 0, 10), ("consistent", 0, 10), ("possible", 0.4, 1.9)):
        assert cost_of("network", confidence, is_right=True) == right
        assert cost_of("network", confidence, is_right=False) == wrong
    assert cost_of("unknown", "possible", is_right=False) == 1
    sixty_of_a_hundred = sum(share * cost_of("network", "possible", is_right=right) for share, right in ((0.6, True), (0.4, False)))
    assert sixty_of_a_hundred == pytest.approx(1)
    key = Key(
        "sender",
        "window",
        "receiver-window",
        "receiver-window",
        "network",
        "consistent",
        is_accepted=False,
        is_exact=False,
        is_strict=False,
    )
    good = key._replace(cause="receiver-window", is_accepted=True)
    assert cost({key: 10, good: 30}) == pytest.approx(2.5)


def test_the_two_parts_are_reported_apart_and_the_held_back_one_only_when_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for part, program in ((DEVELOPMENT, "seen"), (HELD_BACK, "unseen")):
        transfer(tmp_path / part / "one")
        manifest.append(tmp_path / part, ENTRY | {"program": program})
    for options, there, absent in (([], "| seen |", "| unseen |"), (["--held-back"], "| unseen |", "| seen |")):
        assert main(["compare", str(tmp_path), "--processes", "1", *options]) == 0
        said = capsys.readouterr().out
        assert there in said
        assert absent not in said


def test_several_processes_say_what_one_says(tmp_path: Path) -> None:
    for name in ("one", "two"):
        transfer(tmp_path / name)
    entries = [ENTRY, ENTRY | {"name": "two"}]
    assert list(judge_all(tmp_path, entries, 2)) == list(judge_all(tmp_path, entries, 1))


def test_a_transfer_that_cannot_be_read_is_reported_and_the_others_are_compared(tmp_path: Path) -> None:
    one, lost = judged(tmp_path), judge(tmp_path, ENTRY | {"name": "lost"})
    first, second, *_ = report([lost, one], 5)
    assert first.startswith("lost: ")
    assert second.startswith("1 transfers")


def test_a_folder_without_transfers_is_a_mistake_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(tmp_path)]) == EXIT_USAGE
    assert "make some with `make`" in capsys.readouterr().err
