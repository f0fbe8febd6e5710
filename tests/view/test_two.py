"""The explorer of two captures shows the results of `analyze --pair` and `compare`. It has links to the explorer of each capture."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support import explorer
from tests.support.command import new_process, only_line
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

FIRST, SECOND = CAPTURES / "atm9180-nagle-on.pcapng", CAPTURES / "atm9180-nagle-off.pcapng"


def test_before_and_after_a_change(tmp_path: Path) -> None:
    compared = json.loads(new_process("compare", FIRST, SECOND, "--json", "-", "-q").stdout)
    with explorer.exploring(FIRST, "vs", SECOND, cache=tmp_path) as found:
        two = found.get("api/pair")
        assert len(two["tables"]) == len(compared["services"])
        assert two["headline"]
        for href, name, path in zip(two["hrefs"], two["names"], (FIRST, SECOND), strict=True):
            assert found.get(f"{href}api/capture")["name"] == name == path.name.removesuffix(".pcapng")
            assert found.ask(href).status == 200
        assert found.ask("").status == 200
        assert found.ask("capture/2/api/capture").status == 404


def test_two_capture_points(tmp_path: Path) -> None:
    copy = tmp_path / "copy.pcapng"
    copy.write_bytes(FIRST.read_bytes())
    with explorer.exploring("--pair", FIRST, copy, cache=tmp_path / "cache") as found:
        two = found.get("api/pair")
        assert "none of" in two["headline"]  # nothing is lost between a capture and its copy
        assert all(row["lost"] == 0 for table in two["tables"] for row in table["rows"])
        assert found.ask("").status == 200


@pytest.mark.parametrize("arguments", [("--pair", FIRST), (FIRST, "vs"), ("vs", FIRST, SECOND), ("--pair", FIRST, SECOND, FIRST)])
def test_other_than_two_captures_are_refused(arguments: tuple[str | Path, ...]) -> None:
    done = new_process("view", *arguments, "--no-browser")
    assert done.returncode == 2
    assert "A vs B" in only_line(done.stderr)
