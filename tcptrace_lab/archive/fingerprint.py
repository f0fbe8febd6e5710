"""Hashes that identify a capture by the contents of its files, and a result by program, archive format and options."""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING

from tcptrace_lab.archive.storage import file_system, is_url
from tcptrace_lab.errors import CaptureUnreadable
from tcptrace_lab.schema import STORE_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.resources.abc import Traversable

BLOCK_BYTES = 1 << 20

CAPTURE_DIGITS = 20
"""Hex digits of a capture's name: 80 bits. Among a million captures, the probability that any two have the same name is 4e-13."""

SETTINGS_DIGITS = 12

_SOURCES = (".py", ".j2", ".js", ".css", ".json")
"""Suffixes of the source files on which a result depends. The engine's binary is not hashed, because the version number covers it."""


def contents(path: str) -> tuple[str, int]:
    """Return the SHA-256 (hex) and the size in bytes of a file, local or behind a URL. Compressed files are not decompressed.

    Raises:
        CaptureUnreadable: the file cannot be read.
        MissingTool: as for `storage.file_system`.
    """
    digest = hashlib.sha256()
    size_bytes = 0
    try:
        with file_system(path).open(path, "rb") if is_url(path) else open(path, "rb") as stream:  # noqa: PTH123  (opens the path exactly as the user gave it)
            while block := stream.read(BLOCK_BYTES):
                digest.update(block)
                size_bytes += len(block)
    except OSError as error:
        raise CaptureUnreadable(error.strerror or str(error) or type(error).__name__, where=path) from error
    return digest.hexdigest(), size_bytes


def capture_of(digests: Sequence[str]) -> str:
    """Return the name of a capture: a hash of the SHA-256 digests of its files, in order."""
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:CAPTURE_DIGITS]


@cache
def settings(*, reports: bool = True) -> str:
    """Return a hash of everything except the capture that determines a result: program, format version of the archive, and options."""
    what = {"store": STORE_VERSION, "program": program_version(), "reports": reports}
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:SETTINGS_DIGITS]


@cache
def program_version() -> str:
    """Return the version and a hash of the sources, such as `0.1.0+3fa94c01`.

    In a checkout, the version alone does not identify the sources.
    """
    digest = hashlib.sha256()
    for name, data in _sources(files("tcptrace_lab"), ""):
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return f"{version('tcptrace-lab')}+{digest.hexdigest()[:8]}"


def _sources(folder: Traversable, above: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        name = f"{above}/{entry.name}"
        if entry.is_dir():
            found += _sources(entry, name)
        elif entry.name.endswith(_SOURCES):
            found.append((name, entry.read_bytes()))
    return found


def looks(path: str) -> list[int | str] | None:
    """Return metadata that changes when a file changes; None if no metadata is available. The file is not read.

    The metadata of a local file is its size, mtime, ctime (ns) and inode. The metadata of a URL is its size, and one more value: its ETag,
    its modification time, or its MD5. The first available one is used.
    """
    if not is_url(path):
        try:
            look = os.stat(path)  # noqa: PTH116  (uses the path exactly as the user gave it)
        except OSError:
            return None
        return [look.st_size, look.st_mtime_ns, look.st_ctime_ns, look.st_ino]
    try:
        info = file_system(path).info(path)
    except (OSError, NotImplementedError):
        return None
    mark = next((str(info[key]) for key in ("ETag", "etag", "LastModified", "mtime", "md5Hash") if info.get(key)), None)
    return None if mark is None else [int(info.get("size") or 0), mark]
