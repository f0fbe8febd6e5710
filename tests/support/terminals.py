"""Runs the command on a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import subprocess
from typing import TYPE_CHECKING

from tests.support.command import PROGRAM, TIME_LIMIT_S

if TYPE_CHECKING:
    from pathlib import Path


def on_terminal(arguments: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Run the command with all its streams on a pseudo-terminal. Return its exit code and its whole output."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, *arguments], cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm", **environment}
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            chunk = os.read(ours, 4096)
        except OSError:  # Linux returns EIO when the last writer has closed the terminal
            break
        if not chunk:
            break
        shown += chunk
    os.close(ours)
    return process.wait(TIME_LIMIT_S), shown.decode()
