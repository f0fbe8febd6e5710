"""Whether a file is complete: nobody has it open for writing, or the next one of its ring has begun; and whether a ring has ended."""

from __future__ import annotations

import errno
import fcntl
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tcptrace_lab.archive import fingerprint
from tcptrace_lab.archive.sources import rotated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

SETTLED_S = 10.0
"""Where the kernel does not tell whether somebody writes a file, it is closed when it has looked the same for so long (a heuristic).
A ring has ended when nobody writes its last file, and nobody did for so long: between two files none is open, but for a moment only."""


@dataclass(slots=True)
class Closed:
    """Tells which files are closed; remembers how they looked.

    Attributes:
        clock: seconds that only grow.
        now: seconds of the day, as files have them.
    """

    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    _seen: dict[str, tuple[object, float]] = field(default_factory=dict)

    def of(self, paths: Iterable[str]) -> list[str]:
        """Those that are closed, in their order."""
        names = list(paths)
        followed = {path for ring in rotated.joined(names) for path in ring[:-1]}
        return [path for path in names if self._closed(path, followed=path in followed)]

    def ended(self, ring: Sequence[str]) -> bool:
        """Whether the files of a set are all there will be."""
        try:
            written = max(Path(path).stat().st_mtime for path in ring)
        except OSError:  # it throws its first away
            return False
        return self.now() - written >= SETTLED_S and not any(map(_is_written, ring))

    def _closed(self, path: str, *, followed: bool) -> bool:
        written = _is_written(path)
        if written is not None:
            return not written
        looks, now = fingerprint.looks(path), self.clock()
        before = self._seen.get(path)
        if before is None or before[0] != looks:
            self._seen[path] = (looks, now)
            return followed
        return followed or now - before[1] >= SETTLED_S


def _is_written(path: str) -> bool | None:
    """Whether somebody has a file open for writing; None where the kernel does not tell.

    A lease for reading is only given where nobody writes (fcntl(2), F_SETLEASE): to the owner of the file or root, on local file systems.
    """
    try:
        with Path(path).open("rb") as file:
            try:
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            except OSError as error:
                return True if error.errno in {errno.EAGAIN, errno.EWOULDBLOCK} else None
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            return False
    except (OSError, AttributeError):
        return None
