"""Templates compiled once, as Python's own modules are: the bytecode stands beside them in `__pycache__`, or in the user's cache.

Compiling them takes longer than all else that makes a small report's page. The bytecode is in the user's cache (`XDG_CACHE_HOME`) where
the user may not write the package, or Python is told to write no bytecode beside the source (`PYTHONDONTWRITEBYTECODE`, as in most
containers). Bytecode is code: it is taken from the cache only if the folder is the user's own.
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
    """The bytecode of templates; Jinja2 itself takes none that was made of another text, or by another Python."""

    def __init__(self, environment: Environment) -> None:
        """For this environment: one with other options, and another Jinja2, make other bytecode of the same text."""
        made = Path(compiler.__file__).stat()  # tells one Jinja2 from another; to ask for its version takes ten times as long
        options = (environment.autoescape, environment.trim_blocks, environment.lstrip_blocks)
        self._made_by = f"jinja{zlib.crc32(repr((made.st_size, made.st_mtime_ns, options)).encode()):08x}"

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """The file that holds a template's bytecode."""
        beside = Path(cache_from_source(filename or name, optimization=self._made_by))
        folder = beside.parent if beside.parent.exists() else beside.parent.parent
        stays_beside = beside.exists() or (os.access(folder, os.W_OK) and not sys.dont_write_bytecode)
        own = None if stays_beside else _users_cache()
        return str(beside if own is None else own / f"{zlib.crc32(os.fsencode(folder)):08x}" / beside.name)

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read it, if it is there."""
        try:
            with Path(bucket.key).open("rb") as file:
                bucket.load_bytecode(file)
        except _UNREADABLE:
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write it, whole or not at all; where that is not allowed, the next run compiles again."""
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
    """The user's cache; None where its place is not the user's own, as under sudo."""
    named = os.environ.get("XDG_CACHE_HOME")
    place = Path(named or os.path.expanduser("~"))  # noqa: PTH111  (Path.home() raises where the user has no entry)
    with contextlib.suppress(OSError):
        if place.stat().st_uid == os.geteuid():
            return place / "tcptrace-lab" if named else place / ".cache" / "tcptrace-lab"
    return None
