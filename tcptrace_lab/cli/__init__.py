"""The command line: one file per command, each with its options and one call; `program` puts them together.

Here is only the way in: from its first line on an interrupt ends the program quietly (`interrupts`), while the libraries load, too.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

from tcptrace_lab import interrupts, memory

if TYPE_CHECKING:
    from collections.abc import Sequence


def main() -> None:
    """The console script."""
    interrupts.end_the_program()
    memory.bound()
    code = run(sys.argv[1:])
    gc.freeze()  # what is left ends with the process: looking through it for cycles takes 0.1 s, a fifth of a small capture's analysis
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; nothing is raised."""
    from tcptrace_lab.cli import program  # noqa: PLC0415  (Typer: a tenth of a second, in which an interrupt may come)

    return program.run(arguments)
