"""Some families of transfers have causes that are easily mistaken. These families are compared with the kernel's ledger."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.lab.corpus import paths
from tcptrace_lab.lab.corpus.drawn import DEVELOPMENT
from tcptrace_lab.lab.corpus.families import FAMILIES, of_families
from tcptrace_lab.lab.corpus.family_report import HEADER, line, wrong_findings, wrong_gains
from tcptrace_lab.lab.corpus.gains import Gain
from tcptrace_lab.lab.corpus.judging import judge
from tcptrace_lab.lab.corpus.programs import PROGRAMS
from tests.support.kernel.transfer import ENTRY, transfer

if TYPE_CHECKING:
    from pathlib import Path

S = 1_000_000_000


@pytest.mark.parametrize("number", FAMILIES)
def test_each_family_is_made_by_at_least_two_kinds_of_software(number: int) -> None:
    made = FAMILIES[number].made
    assert len({PROGRAMS[one.program].family for one in made}) >= 2
    assert all(one.path in paths.PATHS for one in made)
    assert all(name in PROGRAMS for one in made for name, _ in one.competing)


def test_no_transfer_shows_what_is_held_back_and_each_has_a_folder_of_its_own() -> None:
    every = [one for _, one in of_families(list(FAMILIES))]
    assert {one.part for one in every} == {DEVELOPMENT}
    assert len({one.name for one in every}) == len(every)
    assert [number for number, _ in of_families([3, 1])] == [3] * len(FAMILIES[3].made) + [1] * len(FAMILIES[1].made)


def test_gains_are_compared_only_where_the_bottleneck_has_a_rate_in_both_directions() -> None:
    media = [one.medium for family in FAMILIES.values() if family.has_gains for one in family.made]
    assert media
    assert all(medium.forward.rate_bps and medium.backward.rate_bps for medium in media)


@pytest.mark.parametrize(
    ("confidence", "is_right", "result"),
    [
        ("consistent", True, "right"),
        ("consistent", False, "wrong, most likely"),
        ("possible", False, "wrong, possibly"),
        (None, False, "unknown"),
    ],
)
def test_a_line_says_what_took_the_time_and_whether_the_headline_is_right(
    tmp_path: Path, confidence: str | None, result: str, *, is_right: bool
) -> None:
    """The client thinks for 20 ms after each of four answers. The test replaces the confidence of the headline."""
    transfer(tmp_path / "one")
    judged = judge(tmp_path, ENTRY)
    judged.headlines = [replace(judged.headlines[0], confidence=confidence, is_right=is_right)]
    cells = [cell.strip() for cell in line(5, judged, "sender").strip("|").split("|")]
    assert len(cells) == HEADER[0].count("|") - 1
    assert cells[:3] == ["5", "questions", "sender"]
    assert "application 0.08" in cells[3]
    assert cells[4] == f"application ({confidence})"
    assert cells[-1] == result


def test_a_line_has_what_contradicts_the_transfer_and_the_reason_if_there_is_nothing_to_compare(tmp_path: Path) -> None:
    transfer(tmp_path / "one")
    judged = judge(tmp_path, ENTRY)
    judged.headlines = []
    assert line(3, judged, "sender", ["loss would save 2.00 s"]).endswith("| loss would save 2.00 s |")
    assert line(3, judged, "sender").endswith("| no headline |")
    assert "no data" in line(3, judged, "nowhere")
    assert "lost" in line(3, judge(tmp_path, ENTRY | {"name": "lost"}), "sender")


def test_findings_that_are_wrong_for_a_family_are_named_with_their_capture(tmp_path: Path) -> None:
    folder = transfer(tmp_path / "one")
    named = list(wrong_findings(folder, ENTRY, {"application-limited"}))
    assert {one.split(":")[0] for one in named} == {"client", "server", "middle"}
    assert not list(wrong_findings(folder, ENTRY, {"capture-duplicates"}))
    assert not list(wrong_findings(folder, ENTRY, set()))


def test_gains_above_and_below_what_the_line_has_free_are_named() -> None:
    """The finding costs 2 s of the 4 s that the direction was active.

    A promised gain can differ from the possible gain by up to one-twentieth of the active time, 0.2 s.
    """
    gains = [
        Gain("one", "sender", "loss", 0, 4 * S, 2 * S, round(gain_s * S), round(free_s * S), is_headline=False)
        for gain_s, free_s in ((2, 0.5), (2, 1.9), (1, 3))
    ]
    texts = ["loss would save 2.00 s, and 0.50 s are possible", "loss would save 1.00 s, and 2.00 s are possible"]
    assert list(wrong_gains(gains, "one", "sender")) == texts
    assert not list(wrong_gains(gains, "one", "receiver"))
    assert not list(wrong_gains(gains, "two", "sender"))
