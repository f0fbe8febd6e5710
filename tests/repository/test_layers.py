"""Imports follow the layers. Only the modules that provide rows and frames import the engine."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from tests.support.places import ROOT
from tests.support.sources import imported

PACKAGE = ROOT / "tcptrace_lab"

ENGINE = "tcptrace_lab._core"


def test_the_layers_of_the_design_are_kept() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=PACKAGE.parent, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_engine_is_called_only_where_rows_and_frames_come_from() -> None:
    callers = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if ENGINE in imported(ast.parse(path.read_text()))}
    assert callers == {"engine/segments.py", "engine/reread.py", "engine/figures.py", "capture/convert.py", "capture/decompression.py"}
