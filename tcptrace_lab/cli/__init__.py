"""The command line: one file per command, each with its options and one call; `program` puts them together.

Here is only the way in: from its first line on an interrupt ends the program quietly (`interrupts`), while the libraries load, too.
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
    """The console script."""
    interrupts.end_the_program()
    memory.bound()
    _end(run(sys.argv[1:]))


def _end(code: int) -> NoReturn:
    """End the process without taking the interpreter apart, which takes a tenth of the time of a small capture: the system frees all."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more, or it was closed
            stream.flush()
    os._exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; nothing is raised."""
    from tcptrace_lab.cli import program  # noqa: PLC0415  (Typer: a tenth of a second, in which an interrupt may come)

    return program.run(arguments)
