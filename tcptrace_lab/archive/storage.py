"""Reads and writes the files of an archive, in a folder or behind a URL that fsspec can write. Every write is atomic.

In a folder, each file is written under `tmp/`, flushed to disk (fsync) and renamed. Behind a URL, the object store makes an object visible
when the object is complete.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tcptrace_lab.errors import MissingTool, OutputUnwritable
from tcptrace_lab.process import temporary

if TYPE_CHECKING:
    from collections.abc import Iterator

TMP = "tmp"
"""Folder of files that are being written."""

SAVE_S = 5.0
"""Minimum interval between saves of a state that grows while a run continues."""

_NAME_BYTES = 8
"""Number of random bytes in the name of a temporary file."""

_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
_ELSEWHERE = "free disk space or choose another place, and run it again: finished captures are kept"


def is_url(path: str) -> bool:
    """Return whether a path is a URL, which fsspec opens."""
    return _URL.match(path) is not None


def file_system(url: str) -> Any:  # noqa: ANN401  (fsspec publishes no types)
    """Return the fsspec file system of a URL. Raises MissingTool if fsspec, or its package for this kind of URL, is not installed."""
    try:
        import fsspec  # noqa: PLC0415  (only URLs need it)

        return fsspec.core.url_to_fs(url)[0]
    except (ImportError, ValueError) as error:
        raise MissingTool(str(error).split("\n", maxsplit=1)[0], where=url, remedy="pip install 'tcptrace-lab[archive]'") from error


class Place(Protocol):
    """The files of an archive. The name of a file is its path relative to the archive's root, with forward slashes."""

    root: str

    def read(self, name: str) -> bytes | None:
        """Return the contents of a file; None if the file does not exist."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file atomically. Raises OutputUnwritable."""

    def take(self, name: str, path: Path) -> None:
        """Move a file from its `scratch` path into the archive, atomically. Raises OutputUnwritable."""

    def scratch(self) -> contextlib.AbstractContextManager[Path]:
        """Return a local path for a new file. When the block ends, the file is deleted, unless `take` has moved it into the archive."""

    def local(self, name: str) -> contextlib.AbstractContextManager[Path]:
        """Return a local path of a file, valid until the block ends. Remote files are copied. Raises FileNotFoundError."""

    def names(self, folder: str) -> dict[str, int]:
        """Return the files in a folder and its subfolders as name → size in bytes, sorted by name."""

    def remove(self, name: str) -> None:
        """Remove a file, if it exists. Raises OutputUnwritable."""


def at(root: str) -> Place:
    """Return the storage of the archive at `root`, a folder or a URL. Raises MissingTool, as `file_system` does."""
    return Remote(root) if is_url(root) else Folder(root)


class Folder:
    """An archive in a folder, local or on a network file system."""

    def __init__(self, root: str) -> None:
        """Store the folder's path. The first write creates the folder."""
        self.root = root
        self._path = Path(root)

    def read(self, name: str) -> bytes | None:
        """See `Place`."""
        try:
            return (self._path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, data: bytes) -> None:
        """See `Place`."""
        with self.scratch() as path:
            try:
                path.write_bytes(data)
            except OSError as error:
                raise OutputUnwritable.from_os(error, self._path / name, _ELSEWHERE) from error
            self.take(name, path)

    def take(self, name: str, path: Path) -> None:
        """See `Place`."""
        target = self._path / name
        try:
            _sync(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
        except OSError as error:
            raise OutputUnwritable.from_os(error, target, _ELSEWHERE) from error

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """See `Place`."""
        path = self._path / TMP / secrets.token_hex(_NAME_BYTES)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputUnwritable.from_os(error, self._path / TMP, _ELSEWHERE) from error
        try:
            yield path
        finally:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def local(self, name: str) -> Iterator[Path]:
        """See `Place`."""
        path = self._path / name
        path.stat()
        yield path

    def names(self, folder: str) -> dict[str, int]:
        """See `Place`."""
        found = {}
        for place, _, files in os.walk(self._path / folder):
            for file in files:
                path = Path(place, file)
                with contextlib.suppress(FileNotFoundError):
                    found[path.relative_to(self._path).as_posix()] = path.stat().st_size
        return dict(sorted(found.items()))

    def remove(self, name: str) -> None:
        """See `Place`."""
        try:
            (self._path / name).unlink(missing_ok=True)
        except OSError as error:
            raise OutputUnwritable.from_os(error, self._path / name, "make the folder writable") from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Remote:
    """An archive behind a URL, such as `s3://bucket/archive`."""

    def __init__(self, root: str) -> None:
        """Open the URL's file system. Raises MissingTool, as `file_system` does."""
        self.root = root.rstrip("/")
        self._system = file_system(root)
        self._base: str = self._system._strip_protocol(self.root)  # noqa: SLF001  (fsspec documents this function, which returns the path of a URL)

    def _at(self, name: str) -> str:
        return f"{self._base}/{name}"

    def read(self, name: str) -> bytes | None:
        """See `Place`."""
        try:
            data: bytes = self._system.cat_file(self._at(name))
        except FileNotFoundError:
            return None
        return data

    def write(self, name: str, data: bytes) -> None:
        """See `Place`."""
        with self._writing(name):
            self._system.pipe_file(self._at(name), data)

    def take(self, name: str, path: Path) -> None:
        """See `Place`."""
        with self._writing(name):
            self._system.put_file(str(path), self._at(name))
        path.unlink()

    @contextlib.contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        try:
            self._system.makedirs(self._system._parent(self._at(name)), exist_ok=True)  # noqa: SLF001  (no-op in stores without folders)
            yield
        except NotImplementedError as error:
            raise OutputUnwritable("the place is not writable", where=self.root, remedy="name a folder, or a URL such as s3://…") from error
        except OSError as error:
            raise OutputUnwritable(f"cannot write: {error}", where=f"{self.root}/{name}", remedy=_ELSEWHERE) from error
        finally:
            self._system.invalidate_cache()

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """See `Place`."""
        with temporary.folder() as folder:
            yield Path(folder) / "file"

    @contextlib.contextmanager
    def local(self, name: str) -> Iterator[Path]:
        """See `Place`."""
        with self.scratch() as path:
            self._system.get_file(self._at(name), str(path))
            yield path

    def names(self, folder: str) -> dict[str, int]:
        """See `Place`."""
        self._system.invalidate_cache()
        try:
            found = self._system.find(self._at(folder), detail=True)
        except FileNotFoundError:
            return {}
        return {path.removeprefix(f"{self._base}/"): int(what["size"] or 0) for path, what in sorted(found.items())}

    def remove(self, name: str) -> None:
        """See `Place`."""
        with self._writing(name), contextlib.suppress(FileNotFoundError):
            self._system.rm_file(self._at(name))


def part_name(settings: str, capture: str) -> str:
    """Return the path of a capture's part in the archive."""
    return f"parts/{settings}/{capture[:2]}/{capture}.part"


def report_name(capture: str) -> str:
    """Return the path of a capture's report in the archive."""
    return f"reports/{capture}.html"
