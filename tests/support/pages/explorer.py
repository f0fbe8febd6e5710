"""Starts the explorer's server as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def serving(cache: Path, *subject: Path | str) -> Iterator[str]:
    """Run `tcptrace-lab view SUBJECT --no-browser`, and yield the URL that it prints."""
    command = [sys.executable, "-m", "tcptrace_lab", "view", *map(str, subject), "--no-browser"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            if not url:
                server.terminate()
                raise AssertionError(server.communicate(timeout=30)[1])
            yield url
        finally:
            server.terminate()
            server.communicate(timeout=30)
