"""No folder has too many files, and the imports of scripts and tests form no cycle."""

from __future__ import annotations

import ast
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ROOT
from tests.support.sources import imported, tracked

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_FILES = 20
"""Maximum number of files in a source folder, without subfolders and pictures."""

DATA = ("captures", "rust/fuzz/seeds", "tests/golden", "tests/data")
"""Folders of captures and expected results. They and their subfolders can have any number of files."""

PICTURES = {".png", ".svg"}


def crowded(files: Iterable[PurePosixPath]) -> dict[str, int]:
    """Return each source folder that has too many files, with its number of files."""
    counts = Counter(str(file.parent) for file in files if file.suffix not in PICTURES and not any(map(file.is_relative_to, DATA)))
    return {folder: count for folder, count in counts.items() if count > MAX_FILES}


def test_no_folder_of_sources_has_more_than_20_files() -> None:
    assert crowded(tracked()) == {}


def test_pictures_and_captures_do_not_count() -> None:
    files = [
        PurePosixPath(folder, f"{number}.{kind}") for number in range(21) for folder, kind in (("docs", "png"), ("captures/more", "pcap"))
    ]
    assert crowded(files) == {}
    assert crowded(PurePosixPath("docs", f"{number}.md") for number in range(21)) == {"docs": 21}


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "captures", "docs"])
def test_scripts_and_tests_import_each_other_in_one_direction(folder: str) -> None:
    """The test knows that scripts import other scripts of their folder by bare names."""
    sources = {ROOT / file for file in tracked(f"{folder}/*.py")}
    graph: dict[Path, set[Path]] = {}
    for file in sources:
        paths = [Path(*name.split(".")).with_suffix(".py") for name in imported(ast.parse(file.read_text(encoding="utf-8")))]
        graph[file] = {place / path for place in (ROOT, file.parent) for path in paths} & sources - {file}
    assert set(TopologicalSorter(graph).static_order()) == sources  # a cycle raises CycleError


def test_no_test_imports_from_another_test_file() -> None:
    importing = {
        file.as_posix()
        for file in tracked("tests/*.py")
        for name in imported(ast.parse((ROOT / file).read_text(encoding="utf-8")))
        if name.startswith("tests.") and any(part.startswith("test_") for part in name.split("."))
    }
    assert importing == set()
