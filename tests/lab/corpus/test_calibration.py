"""Tests of the page docs/how-sure.md: the shares of right verdicts by confidence, the reliability curve, and the held-back transfers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tcptrace_lab.lab.corpus import manifest
from tcptrace_lab.lab.corpus.__main__ import main
from tcptrace_lab.lab.corpus.calibration import CURVE, PAGE, by_cause, write
from tcptrace_lab.lab.corpus.drawn import DEVELOPMENT, HELD_BACK
from tcptrace_lab.lab.corpus.judging import Headline, Judged, Key
from tests.support.kernel.transfer import transfer

if TYPE_CHECKING:
    from pathlib import Path

S = 1_000_000_000
ENTRY = {
    "schema_version": 2,
    "name": "one",
    "program": "questions",
    "path": "short",
    "congestion_control": "cubic",
    "kernel": "6.18.1-a",
    "family": "own",
}


def key(cause: str, confidence: str, *, right: bool, at: str = "sender") -> Key:
    """Return a key with this verdict. Times are summed for each key.

    The kernel's cause is always the receiver window, because these tests do not use it.
    """
    return Key(at, "window", "receiver-window", "receiver-window", cause, confidence, right, right, right)


def judged() -> Judged:
    """Return verdicts on 20 s of a transfer.

    10 s have "most likely" verdicts, and 9 of them are right. 4 s have "possibly" verdicts, and 3 of them are right. 5 s are proved, and 1
    s is unknown.
    """
    sums = {
        key("network", "consistent", right=True): 9 * S,
        key("network", "consistent", right=False): 1 * S,
        key("pacing", "possible", right=True, at="receiver"): 3 * S,
        key("pacing", "possible", right=False, at="receiver"): 1 * S,
        key("loss-recovery", "proved", right=True): 5 * S,
        key("unknown", "possible", right=False): 1 * S,
    }
    said = [
        Headline("sender", "network", "consistent", "network", is_right=True, sentence=""),
        Headline("sender", "", None, "network", is_right=False, sentence=""),
    ]
    return Judged(ENTRY, sums, headlines=said)


def cells(page: str, begin: str) -> list[str]:
    """Return the cells of the first table row whose first cell is `begin`."""
    return [cell.strip() for cell in next(line for line in page.splitlines() if line.startswith(f"| {begin} |")).split("|")[2:-1]]


def test_seconds_and_shares_by_point_cause_and_confidence(tmp_path: Path) -> None:
    assert list(write(tmp_path, {DEVELOPMENT: [judged()]})) == [str(tmp_path / PAGE), str(tmp_path / CURVE)]
    page = (tmp_path / PAGE).read_text()
    assert "1 transfers by 1 programs over 1 families of paths, on Linux 6.18.1; 20 s" in page
    # The score of these verdicts is 14.1. Right verdicts cost nothing if they are "proved" (5 s) or "most likely" (9 s). The wrong second
    # of "most likely" costs 10. A second of "possibly" costs 0.4 if it is right (3 s) and 1.9 if it is wrong (1 s). The unknown second
    # costs 1.
    assert cells(page, "all")[-3:] == ["1.0", "5.0%", "0.70"]
    assert cells(page, "all")[2:4] == ["10.0", "90.0% [90.0%, 90.0%]"]
    assert cells(page, "network") == ["0.0", "–", "10.0", "90.0%", "0.0", "–"]
    assert cells(page, "receiver")[4:6] == ["4.0", "75.0% [75.0%, 75.0%]"]
    assert page.count("| 1 | 100% |") == 2, "one headline at the sender, and all of them"


def test_every_line_of_a_table_has_as_many_cells_as_its_head(tmp_path: Path) -> None:
    list(write(tmp_path, {DEVELOPMENT: [judged()]}))
    width = 0
    for line in (tmp_path / PAGE).read_text().splitlines():
        width = 0 if not line.startswith("|") else width or line.count("|")
        assert line.count("|") == width


def test_the_curve_has_a_dot_for_each_share_that_enough_time_carries(tmp_path: Path) -> None:
    list(write(tmp_path, {DEVELOPMENT: [judged()]}))
    curve = ET.fromstring((tmp_path / CURVE).read_text())  # noqa: S314  (our own)
    tips = [title.text for title in curve.iter("{http://www.w3.org/2000/svg}title")]
    assert tips == ["sender, most likely: 90.0% of 10 s", "sender, proved: 100.0% of 5 s", "receiver, possibly: 75.0% of 4 s"]


def test_less_than_a_second_is_no_share() -> None:
    lines = list(by_cause({key("network", "consistent", right=False): S // 2}))
    assert lines[-1] == "| network | 0.0 | – | 0.5 | – | 0.0 | – |"


def test_the_held_back_part_is_on_the_page_only_when_asked_for(tmp_path: Path) -> None:
    paths = {"forward": {"delay_s": 0.010}, "backward": {"delay_s": 0.010}, "paused": None}
    for part in (DEVELOPMENT, HELD_BACK):
        transfer(tmp_path / part / "one")
        manifest.append(tmp_path / part, ENTRY | paths)
    for options, is_there in (([], False), (["--held-back"], True)):
        assert main(["calibration", str(tmp_path), "--page-folder", str(tmp_path), "--processes", "1", *options]) == 0
        assert ("## Held-back part" in (tmp_path / PAGE).read_text()) is is_there


def test_another_stack_has_a_section_where_it_has_transfers(tmp_path: Path) -> None:
    paths = {"forward": {"delay_s": 0.010}, "backward": {"delay_s": 0.010}, "paused": None}
    for folder in (tmp_path / DEVELOPMENT, tmp_path / "gvisor" / DEVELOPMENT):
        transfer(folder / "one")
        manifest.append(folder, ENTRY | paths)
    assert main(["calibration", str(tmp_path), "--page-folder", str(tmp_path), "--processes", "1"]) == 0
    headings = [line for line in (tmp_path / PAGE).read_text().splitlines() if line.startswith("## ")]
    assert headings == ["## Development part", "## Another TCP stack"]
