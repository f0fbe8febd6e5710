"""Temporary folders that are removed soon after their process ends, even if the process is killed.

The folder is removed at the end of the block, and by an interrupt (`interrupts`). A killed process cannot clean up, so the next process
that creates such a folder removes the folder of the killed process. A lock shows whether a folder is in use: a file in the folder is locked
(flock(2)) while the process that created it, or a fork of that process, is alive. The lock file contains the name of its folder. Therefore
a copy of the folder that a user keeps is never removed, and neither is any other folder whose name starts with `PREFIX`.
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
"""Start of the folders' names."""

LOCK = ".tcptrace-lab-lock"
"""The lock file in each folder."""

_NAME_BYTES = 255
"""Longest file name (NAME_MAX of Linux, limits.h)."""

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
        os.close(self.lock)  # before the folder is removed: NFS keeps the name of a removed file that is still open
        with contextlib.suppress(OSError):
            os.rmdir(self.path)  # noqa: PTH106


@contextlib.contextmanager
def folder() -> Iterator[str]:
    """Provide the path of a new folder.

    The folder is removed at the end of the block, by an interrupt, or by the next process that creates one.

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
    """Convert an OSError in the block to OutputUnwritable. The block must only write temporary files."""
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
    """Return the file descriptor that holds the lock of a new folder. After an OSError, no lock file remains."""
    import fcntl  # noqa: PLC0415  (see `_made`)

    lock = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)  # noqa: PTH118
    try:
        # While the lock file is empty, no process removes the folder: a process that finds no name in the file releases the lock at once.
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, os.path.basename(path).encode())  # noqa: PTH119
    except OSError:
        os.close(lock)
        os.unlink(os.path.join(path, LOCK))  # noqa: PTH108, PTH118
        raise
    return lock


def clear(parent: str) -> None:
    """Remove this user's folders in `parent` whose processes have ended.

    Only folders with a valid lock file are removed.
    """
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
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: its process is alive
        if os.read(lock, _NAME_BYTES) != os.path.basename(path).encode():  # noqa: PTH119
            return
        _empty(descriptor)
    os.rmdir(path)  # noqa: PTH106


def _empty(descriptor: int) -> None:
    """Remove the contents of an open folder.

    The lock file is removed last, so that a later process can continue after a partial removal.
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
