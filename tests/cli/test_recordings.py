"""The terminal output equals the recordings in `tests/golden/terminal/`. `python -m tests.support.recordings` renews them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import needs, recordings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", recordings.RECORDINGS)
def test_the_terminal_shows_what_is_recorded(name: str, tmp_path: Path) -> None:
    if name.startswith("verify"):
        needs.tshark_4_0()
        needs.program("tcptrace")
    assert recordings.shown(name, tmp_path) == (recordings.FOLDER / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", [name for name in recordings.RECORDINGS if not name.startswith("piped")])
def test_no_line_is_wider_than_the_terminal(name: str) -> None:
    """A frame filter is printed on one line, however long it is, so that users can copy it."""
    lines = (recordings.FOLDER / f"{name}.txt").read_text().splitlines()
    wide = [line for line in lines if len(line) > recordings.RECORDINGS[name].columns and "frame.number in" not in line]
    assert wide == []
