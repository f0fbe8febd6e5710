"""The command as a user runs it: another process, its exit code, its two streams."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM = Path(sys.executable).with_name("tcptrace-lab")

TIME_LIMIT_S = 60


def tcptrace_lab(
    *arguments: str | Path, folder: Path | None = None, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Runs `tcptrace-lab` with `arguments` in `folder`, with only the given variables of this terminal in its environment."""
    plain = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TERM"}}
    command = [PROGRAM, *arguments]
    return subprocess.run(
        command, cwd=folder, input=stdin, env={**plain, **(environment or {})}, capture_output=True, timeout=TIME_LIMIT_S, check=False
    )


def only_line(stderr: bytes) -> str:
    """The one line that stderr must be, without its newline."""
    lines = stderr.decode().splitlines()
    assert len(lines) == 1, stderr.decode()
    return lines[0]
