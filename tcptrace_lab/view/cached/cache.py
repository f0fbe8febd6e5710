"""The cache of tables: one folder per capture, named by a hash of the capture and of this program. Only the owner of the cache can read it.

A capture is identified without reading all of it: by the paths, sizes, modification times and inodes of its files, and by their first and
last bytes. While a folder is in use, it is locked (flock(2)). When the cache exceeds its size limit, the least recently used folders are
removed, except those in use.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tcptrace_lab.archive.fingerprint import program_version
from tcptrace_lab.errors import CaptureUnreadable, OutputUnwritable, UsageError
from tcptrace_lab.process import interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

CACHE_BYTES = 20_000_000_000
"""Maximum size of all folders together. The folder of the viewed capture is kept at any size."""

_EDGE_BYTES = 65_536
"""Number of bytes at each end of a file that are hashed."""

_DIGITS = 24
"""Number of hex digits of a folder's name, which contain 96 bits of the hash."""

DONE = "capture.json"
"""The file that is written last. A folder without it is incomplete and is not used."""

_LOCK = "lock"


class Changed(CaptureUnreadable):
    """A file of the capture has changed since its tables were made."""


class Vanished(CaptureUnreadable):
    """A file of the capture can no longer be read."""


class Capture(NamedTuple):
    """The files of a capture, and the properties that identified them when they were opened.

    Attributes:
        paths: absolute paths.
        looks: size, modification time (ns) and inode of each file.
        key: hash of `paths` and `looks`, of both ends of the files, and of this program.
    """

    paths: tuple[str, ...]
    looks: tuple[tuple[int, int, int], ...]
    key: str

    def check(self) -> None:
        """Raise Vanished or Changed if a file of the capture is gone or has changed."""
        for path, look in zip(self.paths, self.looks, strict=True):
            name = Path(path).name
            try:
                now = _look(path)
            except OSError as error:
                raise Vanished(f"the capture can no longer be read: {error.strerror}", where=name, remedy="put it back") from error
            if now != look:
                raise Changed("the capture has changed since it was opened", where=name, remedy="end tcptrace-lab view and start it again")


def capture_of(paths: Sequence[str], variant: str = "") -> Capture:
    """Identify a capture. `variant` names everything else on which the tables depend.

    Raises:
        UsageError: a path is standard input, which cannot be read twice.
        CaptureUnreadable: a file cannot be read, or is no regular file.
    """
    digest = hashlib.sha256(json.dumps([program_version(), variant]).encode())
    absolute, looks = [], []
    for path in paths:
        if path == "-":
            raise UsageError("view cannot read standard input", remedy="save the capture in a file first")
        try:
            absolute.append(os.path.realpath(path))
            looks.append(_look(path))
            if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116  (uses the path exactly as the user gave it)
                raise CaptureUnreadable("not a regular file", where=path, remedy="save the capture in a file first")
            ends = _ends(path, looks[-1][0])
        except OSError as error:
            raise CaptureUnreadable(error.strerror or str(error), where=path, remedy="give a file that exists and is readable") from error
        digest.update(json.dumps([absolute[-1], looks[-1], ends]).encode())
    return Capture(tuple(absolute), tuple(looks), digest.hexdigest()[:_DIGITS])


def _look(path: str) -> tuple[int, int, int]:
    seen = os.stat(path)  # noqa: PTH116
    return seen.st_size, seen.st_mtime_ns, seen.st_ino


def _ends(path: str, size_bytes: int) -> str:
    """Return a hash of the first and the last bytes of a file."""
    with open(path, "rb") as file:  # noqa: PTH123  (opens the path exactly as the user gave it)
        head = file.read(_EDGE_BYTES)
        file.seek(max(size_bytes - _EDGE_BYTES, 0))
        return hashlib.sha256(head + file.read(_EDGE_BYTES)).hexdigest()


def root() -> Path:
    """Return the folder of the cache, `tcptrace-lab/view` in XDG_CACHE_HOME (`~/.cache`).

    The folder is created so that only its owner can read it.

    Raises:
        OutputUnwritable: the folder cannot be created, or belongs to another user.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = (Path(base) if base.startswith("/") else Path.home() / ".cache") / "tcptrace-lab" / "view"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if folder.stat().st_uid != os.geteuid():
            raise OutputUnwritable("the cache belongs to another user", where=str(folder), remedy=_ELSEWHERE)
        folder.chmod(0o700)
    except OSError as error:
        raise OutputUnwritable.from_os(error, folder, _ELSEWHERE) from error
    return folder


_ELSEWHERE = "set XDG_CACHE_HOME to a folder of your own"


@contextlib.contextmanager
def opened(capture: Capture, build: Callable[[Path], object], limit_bytes: int = CACHE_BYTES) -> Iterator[Path]:
    """Yield the folder with the tables of `capture`. The folder is locked while the block runs.

    Args:
        capture: the capture.
        build: writes the tables into an empty folder, `DONE` last. It is called only if the tables are not in the cache.
        limit_bytes: maximum size of the cache.

    Raises:
        OutputUnwritable: no room for the tables.
    """
    folder = root() / capture.key
    if not (folder / DONE).is_file():
        _built(folder, build)
        _shrink(folder, limit_bytes)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_locked(folder, fcntl.LOCK_SH))
        os.utime(folder)
        yield folder


def _built(folder: Path, build: Callable[[Path], object]) -> None:
    """Build the tables in a temporary folder, and rename the folder when it is complete."""

    def make() -> Path:
        try:
            return Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
        except OSError as error:
            raise OutputUnwritable.from_os(error, folder.parent, _ELSEWHERE) from error

    def remove(made: Path) -> None:
        shutil.rmtree(made, ignore_errors=True)

    with interrupts.making(make, remove) as new, _locked(new, fcntl.LOCK_EX):
        try:
            build(new)
            shutil.rmtree(folder, ignore_errors=True)  # another version left a folder without `DONE`
            new.rename(folder)
        except OSError as error:
            if not (folder / DONE).is_file():  # another process can have built the tables meanwhile
                raise OutputUnwritable.from_os(error, folder.parent, _ELSEWHERE) from error
        finally:
            remove(new)


@contextlib.contextmanager
def _locked(folder: Path, mode: int) -> Iterator[None]:
    descriptor = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, mode)
        yield
    finally:
        os.close(descriptor)


def _shrink(kept: Path, limit_bytes: int) -> None:
    """Remove folders that killed processes left behind, and then the least recently used folders, until the cache is small enough."""
    folders = [folder for folder in kept.parent.iterdir() if folder.is_dir() and folder != kept]
    left_bytes = _size_bytes(kept) + sum(map(_size_bytes, folders))
    for folder in sorted(folders, key=lambda each: (not each.name.startswith("."), _used_s(each))):
        if left_bytes <= limit_bytes and not folder.name.startswith("."):
            return
        size_bytes = _size_bytes(folder)
        with contextlib.suppress(OSError), _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
            shutil.rmtree(folder, ignore_errors=True)
            left_bytes -= size_bytes


def _used_s(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def _size_bytes(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += file.stat().st_size if file.is_file() else 0
    return total
