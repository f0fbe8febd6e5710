"""The command line. `commands` has a module for each command; `program` combines them.

This module is the entry point. Ctrl-C ends the process without a traceback (`interrupts`), even while libraries are being imported.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, NoReturn

from tcptrace_lab.engine import memory
from tcptrace_lab.process import interrupts

if TYPE_CHECKING:
    from collections.abc import Sequence


def main() -> None:
    """Run the console script `tcptrace-lab`."""
    interrupts.end_the_program()
    memory.bound()
    _end(run(sys.argv[1:]))


def analyze() -> None:
    """Run the console script `analyze`, which is short for `tcptrace-lab analyze`."""
    sys.argv.insert(1, "analyze")
    main()


def _end(code: int) -> NoReturn:
    """End the process without finalizing the Python interpreter, which would take a tenth of the time of a small analysis."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the reader has closed the pipe, or the stream is closed
            stream.flush()
    os._exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Raises nothing."""
    from tcptrace_lab.cli import program  # noqa: PLC0415  (importing Typer takes 0.1 s, during which Ctrl-C must work)

    return program.run(arguments)
