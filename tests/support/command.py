"""Runs the command as a user does, and returns its exit code, stdout and stderr.

`tcptrace_lab` runs the command in this process. A new process would take seven times the CPU time (0.48 s instead of 0.07 s for a small
capture). `new_process` starts the command as a shell does. It is for tests of the process itself and of commands that start workers.
`tests/cli` shows that both functions give equal results.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING
from unittest import mock

from tcptrace_lab.cli import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROGRAM = Path(sys.executable).with_name("tcptrace-lab")

TIME_LIMIT_S = 60

TERMINAL = {"COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TERM"}
"""Environment variables of a terminal that change the output."""


def tcptrace_lab(*arguments: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run the command with `arguments` in `folder`, in this process. Standard input is empty."""
    words = [str(argument) for argument in arguments]
    plain = {name: value for name, value in os.environ.items() if name not in TERMINAL}
    with (
        contextlib.chdir(folder or Path.cwd()),
        mock.patch.dict(os.environ, plain, clear=True),
        mock.patch.object(sys, "argv", [str(PROGRAM), *words]),
        _redirected("stdout") as stdout,
        _redirected("stderr") as stderr,
    ):
        status = run(words)
        sys.stdout.flush()
        sys.stderr.flush()
        for file in (stdout, stderr):
            file.seek(0)
        return subprocess.CompletedProcess(words, status, stdout.read(), stderr.read())


@contextlib.contextmanager
def _redirected(name: str) -> Iterator[IO[bytes]]:
    """Yield a file that receives the stream `name` of this process, its threads and the programs that it starts."""
    number = {"stdout": 1, "stderr": 2}[name]
    before = os.dup(number)
    with tempfile.TemporaryFile() as file, os.fdopen(os.dup(file.fileno()), "w", encoding="utf-8") as stream:
        os.dup2(file.fileno(), number)
        try:
            with mock.patch.object(sys, name, stream):
                yield file
        finally:
            os.dup2(before, number)
            os.close(before)


def new_process(
    *arguments: str | Path, folder: Path | None = None, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the command in another process.

    The process gets the environment of this process without the variables in `TERMINAL`. The variables in `environment` are added.
    """
    plain = {name: value for name, value in os.environ.items() if name not in TERMINAL}
    command = [PROGRAM, *arguments]
    return subprocess.run(
        command, cwd=folder, input=stdin, env={**plain, **(environment or {})}, capture_output=True, timeout=TIME_LIMIT_S, check=False
    )


def only_line(stderr: bytes) -> str:
    """Return the only line of `stderr`, without its newline. Fail if there are more lines or none."""
    lines = stderr.decode().splitlines()
    assert len(lines) == 1, stderr.decode()
    return lines[0]
