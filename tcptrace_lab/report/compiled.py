"""Templates compiled once, as Python's own modules are: the bytecode stands beside them in `__pycache__`, wherever that can be written.

Compiling them takes longer than all else that makes a small report's page.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import tempfile
import zlib
from importlib.metadata import version
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import BytecodeCache

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.bccache import Bucket

_UNREADABLE = (OSError, EOFError, ValueError, TypeError, pickle.UnpicklingError)


class Compiled(BytecodeCache):
    """The bytecode of templates; Jinja2 itself takes none that was made of another text, or by another Python."""

    def __init__(self, environment: Environment) -> None:
        """For this environment: one with other options, and another Jinja2, make other bytecode of the same text."""
        options = (environment.autoescape, environment.trim_blocks, environment.lstrip_blocks)
        self._made_by = f"jinja{zlib.crc32(repr((version('jinja2'), options)).encode()):08x}"

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """The file that holds a template's bytecode."""
        return cache_from_source(filename or name, optimization=self._made_by)

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read it, if it is there."""
        try:
            with Path(bucket.key).open("rb") as file:
                bucket.load_bytecode(file)
        except _UNREADABLE:
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write it, whole or not at all; where that is not allowed, the next run compiles again."""
        if sys.dont_write_bytecode:
            return
        path = Path(bucket.key)
        with contextlib.suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            descriptor, made = tempfile.mkstemp(dir=path.parent, prefix=path.name)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    bucket.write_bytecode(file)
                Path(made).chmod(0o644)
                Path(made).replace(path)
            except BaseException:
                Path(made).unlink(missing_ok=True)
                raise
