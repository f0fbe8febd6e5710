"""What a capture and a result are known by: hashes of contents, and of all else that the result depends on."""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING

from tcptrace_lab.archive.place import file_system, is_url
from tcptrace_lab.errors import CaptureUnreadable
from tcptrace_lab.schema import STORE_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.resources.abc import Traversable

BLOCK_BYTES = 1 << 20

CAPTURE_DIGITS = 20
"""Of a capture's name: 80 bits; two of a million captures share one with a chance of 4e-13."""

SETTINGS_DIGITS = 12

_SOURCES = (".py", ".j2", ".js", ".css", ".json")
"""Endings of the package's files that a result depends on. The engine goes with the version: built again, it gives the same results."""


def contents(path: str) -> tuple[str, int]:
    """SHA-256 and bytes of a file, here or behind a URL, as it stands (packed if it is packed).

    Raises:
        CaptureUnreadable: it cannot be read.
        MissingTool: as for `place.file_system`.
    """
    digest = hashlib.sha256()
    size_bytes = 0
    try:
        with file_system(path).open(path, "rb") if is_url(path) else open(path, "rb") as stream:  # noqa: PTH123  (names as given)
            while block := stream.read(BLOCK_BYTES):
                digest.update(block)
                size_bytes += len(block)
    except OSError as error:
        raise CaptureUnreadable(error.strerror or str(error) or type(error).__name__, where=path) from error
    return digest.hexdigest(), size_bytes


def capture_of(digests: Sequence[str]) -> str:
    """The name of the capture that files with these contents make, in this order."""
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:CAPTURE_DIGITS]


@cache
def settings(*, reports: bool = True) -> str:
    """The name of all that a result depends on beside the capture: this program, the store's version, the options."""
    what = {"store": STORE_VERSION, "program": program_version(), "reports": reports}
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:SETTINGS_DIGITS]


@cache
def program_version() -> str:
    """`0.1.0+3fa94c01`: the version, and the sources, because a checkout changes under one version."""
    digest = hashlib.sha256()
    for name, data in _sources(files("tcptrace_lab"), ""):
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return f"{version('tcptrace-lab')}+{digest.hexdigest()[:8]}"


def _sources(folder: Traversable, above: str) -> list[tuple[str, bytes]]:
    """Name and contents of the package's sources, in order."""
    found: list[tuple[str, bytes]] = []
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        name = f"{above}/{entry.name}"
        if entry.is_dir():
            found += _sources(entry, name)
        elif entry.name.endswith(_SOURCES):
            found.append((name, entry.read_bytes()))
    return found


def looks(path: str) -> list[int | str] | None:
    """What tells without reading it that a file is as it was: size, times and identity; None where nothing does."""
    if not is_url(path):
        try:
            look = os.stat(path)  # noqa: PTH116  (names as given)
        except OSError:
            return None
        return [look.st_size, look.st_mtime_ns, look.st_ctime_ns, look.st_ino]
    try:
        told = file_system(path).info(path)
    except (OSError, NotImplementedError):
        return None
    mark = next((str(told[key]) for key in ("ETag", "etag", "LastModified", "mtime", "md5Hash") if told.get(key)), None)
    return None if mark is None else [int(told.get("size") or 0), mark]
