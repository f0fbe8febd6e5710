"""Temporary folders that are removed even if the process that created them is killed.

A folder is removed at the end of its block, and by an interrupt (`interrupts`). A killed process leaves its folder behind, and the next
process that creates a temporary folder removes it.

Each folder contains a lock file. While the process that created the folder, or a fork of it, is alive, the lock file is locked (flock(2)).
The lock file also contains the name of its folder. So a copy under another name, which a user possibly keeps, is never removed.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from tcptrace_lab.errors import OutputUnwritable, as_os_error
from tcptrace_lab.process import interrupts

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "tcptrace-lab-"

LOCK = ".tcptrace-lab-lock"

_NAME_BYTES = 255
"""Length of the longest file name (NAME_MAX of Linux, limits.h)."""

_cleared = False
"""Whether this process has already removed the folders of dead processes."""


class _Held(NamedTuple):
    """A folder of this process: its path, and the file descriptor of its lock."""

    path: str
    lock: int

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                _empty(descriptor)
            finally:
                os.close(descriptor)
        os.close(self.lock)  # closed first, because NFS keeps the name of a removed file that is still open
        with contextlib.suppress(OSError):
            os.rmdir(self.path)  # noqa: PTH106


@contextlib.contextmanager
def folder() -> Iterator[str]:
    """Provide the path of a new folder that exists until the block ends.

    Raises:
        OutputUnwritable: the folder cannot be created.
    """
    with interrupts.making(_made, _Held.remove) as held:
        try:
            yield held.path
        finally:
            held.remove()


@contextlib.contextmanager
def room() -> Iterator[None]:
    """Convert an OSError in the block to OutputUnwritable. The block must do nothing but write temporary files."""
    try:
        yield
    except OSError as error:
        raise OutputUnwritable.from_os(as_os_error(error) or error, "temporary files", _REMEDY) from error


_REMEDY = "set TMPDIR to a directory with room"


def _made() -> _Held:
    global _cleared  # noqa: PLW0603  (one per process)
    import tempfile  # noqa: PLC0415  (a later import saves 10 ms at start)

    where = "temporary files"
    try:
        where = tempfile.gettempdir()
        if not _cleared:
            _cleared = True
            clear(where)
        path = tempfile.mkdtemp(prefix=PREFIX)
        try:
            return _Held(path, _locked(path))
        except OSError:
            os.rmdir(path)  # noqa: PTH106
            raise
    except OSError as error:
        raise OutputUnwritable.from_os(error, where, _REMEDY) from error


def _locked(path: str) -> int:
    """Lock a new folder and return the file descriptor of the lock. After an OSError, no lock file remains."""
    import fcntl  # noqa: PLC0415  (see `_made`)

    lock = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)  # noqa: PTH118
    try:
        # Until the name is written, no other process removes the folder: it finds no name in the lock file and leaves the folder alone.
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, os.path.basename(path).encode())  # noqa: PTH119
    except OSError:
        os.close(lock)
        os.unlink(os.path.join(path, LOCK))  # noqa: PTH108, PTH118
        raise
    return lock


def clear(parent: str) -> None:
    """Remove the folders in `parent` whose processes have ended, if they belong to this user and have a valid lock file."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    _clear_one(entry.path)


def _clear_one(path: str) -> None:
    import fcntl  # noqa: PLC0415  (see `_made`)

    with contextlib.ExitStack() as opened:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        opened.callback(os.close, descriptor)
        if os.fstat(descriptor).st_uid != os.geteuid():
            return
        lock = os.open(LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=descriptor)
        opened.callback(os.close, lock)
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: the process that uses the folder is alive
        if os.read(lock, _NAME_BYTES) != os.path.basename(path).encode():  # noqa: PTH119
            return
        _empty(descriptor)
    os.rmdir(path)  # noqa: PTH106


def _empty(descriptor: int) -> None:
    """Remove the contents of an open folder.

    The lock file is removed last, so that a later process can finish a removal that was interrupted.
    """
    import shutil  # noqa: PLC0415  (see `_made`)

    with os.scandir(descriptor) as entries:
        for entry in entries:
            if entry.name == LOCK:
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.name, dir_fd=descriptor)
            else:
                os.unlink(entry.name, dir_fd=descriptor)
    os.unlink(LOCK, dir_fd=descriptor)
