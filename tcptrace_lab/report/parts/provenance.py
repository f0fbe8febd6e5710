"""Lists the origin of a report: the program, the command, the files and the date."""

from __future__ import annotations

import hashlib
import shlex
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from tcptrace_lab.text import numbers
from tcptrace_lab.text.escape import printable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

MAX_HASHED_BYTES = 1 << 28
"""Size of the largest file that is hashed. Hashing a larger file would take a noticeable part of the analysis time."""


def lines(command: Sequence[str], files: Sequence[str], now: datetime, *, anonymous: bool = False) -> list[str]:
    """Return the lines of the page's footer.

    Args:
        command: the arguments of the program.
        files: the capture's files; `-` is standard input.
        now: the present time, with a time zone.
        anonymous: leave out the command and the names of files. Size and SHA-256 stay, so that those who have the capture can identify it.
    """
    made = f"tcptrace-lab {version('tcptrace-lab')}, {now:%Y-%m-%d %H:%M:%S} {now.tzname()} (UTC{now:%z}); times on this page are UTC."
    if anonymous:
        kept = "Anonymized: addresses are pseudonyms, names and payload are left out. Ports, times, sizes and SHA-256 are the original's."
        return [made, kept, *(_file(path, "name left out") for path in files)]
    return [made, f"Command: {shlex.join(command)}", *map(_file, files)]


def _file(path: str, name: str | None = None) -> str:
    """Return the footer's line on one file. `name` replaces the name of the file."""
    file = Path(path)
    if path == "-" or not file.is_file():
        return f"File: {'standard input' if path == '-' else name or path}"
    size_bytes = file.stat().st_size
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest() if size_bytes <= MAX_HASHED_BYTES else "not computed for a large file"
    return f"File: {name or printable(file.name)}, {size_bytes:,} bytes ({numbers.size(size_bytes)}), SHA-256 {digest}"
