"""Temporary folders that do not outlive their process for long, however it ends.

A block ends with its folder, and so does an interrupt (`interrupts`). A process that is killed can do nothing: what it leaves is removed by
the next one that makes such a folder. Whether a folder is still needed, its lock tells: a file in it, locked (flock(2)) as long as the
process lives that made it, or one that was forked from it. In the file stands the folder's name, so that a copy that somebody made to keep
is nobody's to remove, nor is anything else whose name happens to begin the same.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from tcptrace_lab import interrupts
from tcptrace_lab.errors import OutputUnwritable, as_os_error

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "tcptrace-lab-"
"""How the names of the folders begin."""

LOCK = ".tcptrace-lab-lock"
"""The file in each that its process holds locked."""

_NAME_BYTES = 255
"""A file name is no longer (NAME_MAX of Linux, limits.h)."""

_cleared = False
"""Whether this process has looked for what others left: once is enough."""


class _Held(NamedTuple):
    """A folder of this process: its path, and the descriptor that holds its lock."""

    path: str
    lock: int

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                _empty(descriptor)
            finally:
                os.close(descriptor)
        os.close(self.lock)  # sooner than the folder goes: NFS keeps the name of an open file
        with contextlib.suppress(OSError):
            os.rmdir(self.path)  # noqa: PTH106


@contextlib.contextmanager
def folder() -> Iterator[str]:
    """The path of a folder that goes with the block, with the program, or with the next one that makes one.

    Raises:
        OutputUnwritable: it cannot be made.
    """
    with interrupts.making(_made, _Held.remove) as held:
        try:
            yield held.path
        finally:
            held.remove()


@contextlib.contextmanager
def room() -> Iterator[None]:
    """Temporary files are written in the block, and nothing else. Raises OutputUnwritable where they have no room."""
    try:
        yield
    except OSError as error:
        raise OutputUnwritable.from_os(as_os_error(error) or error, "temporary files", _REMEDY) from error


_REMEDY = "set TMPDIR to a directory with room"


def _made() -> _Held:
    global _cleared  # noqa: PLW0603  (it is the process's own)
    import tempfile  # noqa: PLC0415  (10 ms that the start of the program need not pay)

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
    """A descriptor that holds the lock of a new folder. Raises OSError, and leaves nothing then."""
    import fcntl  # noqa: PLC0415  (see `_made`)

    lock = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)  # noqa: PTH118
    try:
        # Until the name stands in it, nobody removes the folder: another that has the lock lets it go at once.
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, os.path.basename(path).encode())  # noqa: PTH119
    except OSError:
        os.close(lock)
        os.unlink(os.path.join(path, LOCK))  # noqa: PTH108, PTH118
        raise
    return lock


def clear(parent: str) -> None:
    """Remove from `parent` the folders of this user whose processes are gone; nothing else, and no folder that cannot be judged."""
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
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: its process lives
        if os.read(lock, _NAME_BYTES) != os.path.basename(path).encode():  # noqa: PTH119
            return
        _empty(descriptor)
    os.rmdir(path)  # noqa: PTH106


def _empty(descriptor: int) -> None:
    """Remove what is in an open folder; its lock last, so that what cannot be removed now, or is removed half, can be tried again."""
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
