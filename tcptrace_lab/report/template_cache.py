"""Caches the bytecode of templates in the `__pycache__` of their folder, as Python does for modules, or in the user's cache folder.

Compiling the templates takes longer than the rest of rendering a small report. The user's cache (`XDG_CACHE_HOME`) is used if the package
folder is not writable, or if Python must not write bytecode beside the source (`PYTHONDONTWRITEBYTECODE`, as in most containers). Bytecode
is code, so it is loaded from the user's cache only if the user owns the folder.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import tempfile
import zlib
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import BytecodeCache, compiler

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.bccache import Bucket

_UNREADABLE = (OSError, EOFError, ValueError, TypeError, pickle.UnpicklingError)


class Compiled(BytecodeCache):
    """The bytecode cache. Jinja2 itself rejects bytecode of another template text or another Python version."""

    def __init__(self, environment: Environment) -> None:
        """Create a cache for this environment. Other options, or another Jinja2 version, produce other bytecode for a template."""
        made = Path(compiler.__file__).stat()  # identifies the Jinja2 version; querying the version takes ten times as long
        options = (environment.autoescape, environment.trim_blocks, environment.lstrip_blocks)
        self._made_by = f"jinja{zlib.crc32(repr((made.st_size, made.st_mtime_ns, options)).encode()):08x}"

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """Return the path of the file that contains a template's bytecode."""
        beside = Path(cache_from_source(filename or name, optimization=self._made_by))
        folder = beside.parent if beside.parent.exists() else beside.parent.parent
        stays_beside = beside.exists() or (os.access(folder, os.W_OK) and not sys.dont_write_bytecode)
        own = None if stays_beside else _users_cache()
        return str(beside if own is None else own / f"{zlib.crc32(os.fsencode(folder)):08x}" / beside.name)

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load the bytecode, if the file exists and is valid."""
        try:
            with Path(bucket.key).open("rb") as file:
                bucket.load_bytecode(file)
        except _UNREADABLE:
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write the bytecode atomically. If writing is not permitted, the next run compiles the template again."""
        path = Path(bucket.key)
        if sys.dont_write_bytecode and path.parent.name == "__pycache__":
            return
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, made = tempfile.mkstemp(dir=path.parent, prefix=path.name)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    bucket.write_bytecode(file)
                Path(made).chmod(0o644)
                Path(made).replace(path)
            except BaseException:
                Path(made).unlink(missing_ok=True)
                raise


def _users_cache() -> Path | None:
    """Return the user's cache folder; None if the folder above it belongs to another user, as under sudo."""
    named = os.environ.get("XDG_CACHE_HOME")
    place = Path(named or os.path.expanduser("~"))  # noqa: PTH111  (Path.home() raises if the user has no passwd entry)
    with contextlib.suppress(OSError):
        if sys.platform == "win32" or place.stat().st_uid == os.geteuid():
            return place / "tcptrace-lab" if named else place / ".cache" / "tcptrace-lab"
    return None
