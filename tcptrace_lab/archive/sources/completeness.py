"""Decides whether a capture file is complete, and whether the capture of a ring buffer has ended.

A file is complete if no process has it open for writing, or if the next file of its ring exists.
"""

from __future__ import annotations

import errno
import fcntl
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tcptrace_lab.archive import fingerprint
from tcptrace_lab.archive.sources import rotation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

SETTLED_S = 10.0
"""A file, or a ring, that was not modified for this long is assumed to be closed (heuristic).

For a file, this matters if the kernel cannot tell whether a process writes the file. A ring has ended if two conditions hold: no process
writes any of its files, and no file was modified for this long. The second condition is needed, because no file is open between the closing
of one file and the opening of the next.
"""


@dataclass(slots=True)
class Closed:
    """Decides which files are closed. It stores the metadata of the files, so that the next call notices changes.

    Attributes:
        clock: monotonic time in seconds.
        now: wall-clock time in seconds since 1970, comparable with mtime.
    """

    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    _seen: dict[str, tuple[object, float]] = field(default_factory=dict)

    def of(self, paths: Iterable[str]) -> list[str]:
        """Return the files that are closed, in the given order."""
        names = list(paths)
        followed = {path for ring in rotation.joined(names) for path in ring[:-1]}
        return [path for path in names if self._closed(path, followed=path in followed)]

    def ended(self, ring: Sequence[str]) -> bool:
        """Return whether the capture of a ring has ended, so that no more files follow."""
        try:
            written = max(Path(path).stat().st_mtime for path in ring)
        except OSError:  # a file is missing because the ring has just deleted its oldest file
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
    """Return whether a process has a file open for writing; None if the kernel cannot tell.

    The kernel grants a read lease only if no process has the file open for writing (fcntl(2), F_SETLEASE). Leases are granted only to root
    and to the file's owner, and only on local file systems.
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
